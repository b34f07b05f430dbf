"""The HTTP interface: a skin over `operations`, with no rule of its own."""
