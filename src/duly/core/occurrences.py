"""The keys of occurrences: the same from whichever process, moment or host they are computed."""

from datetime import datetime

from duly.core.spans import write_instant


def at_key(due_at: datetime) -> str:
    """The key of the occurrence that time brought at this instant."""
    return f"at:{write_instant(due_at)}"


def manual_key(key: str) -> str:
    """The key of an ask by hand."""
    return f"manual:{key}"
