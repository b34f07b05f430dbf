"""Names as they are compared: ignoring case, in one normal form."""

import unicodedata


def key_of(name: str) -> str:
    """A name as names are compared: ignoring case, whichever way its characters are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
