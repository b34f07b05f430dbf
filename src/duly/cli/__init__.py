"""The command line: a skin over the operations, with no rule of its own."""
