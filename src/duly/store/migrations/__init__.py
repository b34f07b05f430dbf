"""The schema's revisions, oldest first; each is one transaction."""

REVISIONS = ("0001", "0002")
"""Every revision this version knows; the last is the one it works with."""
LOWEST_VERSION = "0.2.0"
"""The lowest version of Duly that may use a store of the last revision."""
