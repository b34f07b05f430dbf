"""How a run's session is called at its agent: by its task, and by when it is due."""

from datetime import datetime

TITLE_MOST = 120


def title(name: str, due: datetime | None) -> str:
    """Give name and due time, on the wall of the task's zone; what is too long loses the end of its name."""
    if due is None:
        return name[:TITLE_MOST]
    when = f"{due:%Y-%m-%d %H:%M}"
    most = TITLE_MOST - len(when) - 1
    return f"{name if len(name) <= most else name[: most - 1] + '…'} {when}"
