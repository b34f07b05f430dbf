"""Notes: the few words by which people say why, kept with what they decided."""

from duly.core.fields import NOTE_MOST
from duly.core.reading import shown
from duly.errors import Invalid


def check_note(note: str | None) -> None:
    """Refuse a note that is not one line of plain text of at most NOTE_MOST characters."""
    if note is None:
        return
    if not note.isprintable():
        raise Invalid(f"{shown(note)} is not one line of plain text", field="--note")
    if len(note) > NOTE_MOST:
        raise Invalid(f"it has {len(note):,} characters, and {NOTE_MOST} are allowed", field="--note")
