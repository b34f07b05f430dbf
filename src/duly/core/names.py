"""Names as they are compared: ignoring case, in one normal form."""

import unicodedata
from functools import lru_cache

KEPT = 1024
"""Projects are few, and asked for with each run."""


@lru_cache(maxsize=KEPT)
def key_of(name: str) -> str:
    """A name as names are compared: ignoring case, whichever way its characters are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
