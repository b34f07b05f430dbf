"""What the tests of events draw: JSON of any shape, paths into it, triggers that listen."""

from datetime import timedelta

from hypothesis import strategies as st

from duly.core.event_text import read_path
from duly.core.triggers import On, Throttle

WORDS = st.from_regex(r"[A-Za-zäß][A-Za-z0-9_-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
KEYS = WORDS | TEXTS
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS


def values(keys: st.SearchStrategy[str] = KEYS) -> st.SearchStrategy[object]:
    """Any JSON."""
    return st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
    )


def path_of(keys: list[str]) -> str:
    """The canonical path of these keys."""
    import json

    return read_path(".".join(json.dumps(key, ensure_ascii=False) for key in keys))


PATHS = st.lists(KEYS, min_size=1, max_size=3).map(path_of)
THROTTLES = st.builds(
    lambda seconds, by: Throttle(within=timedelta(seconds=seconds), by=tuple(sorted(by))),
    st.integers(1, 100_000),
    st.sets(PATHS, max_size=3),
)
SOURCES = st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,6}", fullmatch=True), min_size=1, max_size=3).map(".".join)
LISTENERS: st.SearchStrategy[On] = st.builds(
    lambda source, match, throttle: On(source=source, match=tuple(sorted(match.items())), throttle=throttle),
    SOURCES.filter(lambda source: source not in ("where", "throttle")),
    st.dictionaries(PATHS, TEXTS, max_size=3),
    st.none() | THROTTLES,
)
