"""The keys of occurrences: the same from whichever process, moment or host they are computed."""

from datetime import datetime

from duly.core.spans import write_instant

AT = "at:"


def at_key(due_at: datetime) -> str:
    """The key of the occurrence that time brought at this instant."""
    return f"{AT}{write_instant(due_at)}"


def manual_key(key: str) -> str:
    """The key of an ask by hand."""
    return f"manual:{key}"


def is_of_time(key: str) -> bool:
    """The occurrence is one that time brought."""
    return key.startswith(AT)


def instant_of(key: str) -> datetime:
    """The instant of an occurrence that time brought."""
    return datetime.fromisoformat(key.removeprefix(AT))


def event_key(source: str, key: str) -> str:
    """The key of the occurrence that an event is, by its source and its own key or id."""
    return f"event:{source}:{key}"
