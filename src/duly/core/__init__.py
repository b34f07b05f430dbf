"""The pure core: values and a moment in, decisions out."""
