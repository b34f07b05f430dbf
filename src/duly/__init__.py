"""Duly: one occurrence, one run.

`from duly import Duly` is the Python face. Nothing is loaded before it is asked for; its types stand in the stub.
"""

__version__ = "0.2.0"

_FROM = {
    "Duly": "duly.app.face",
    "Task": "duly.app.values",
    "Run": "duly.app.values",
    "ThisRun": "duly.told",
    "this_run": "duly.told",
    "DulyError": "duly.errors",
    "Invalid": "duly.errors",
    "Refused": "duly.errors",
    "StoreAway": "duly.errors",
    "StoreNewer": "duly.errors",
}
__all__ = ["__version__", *_FROM]  # noqa: PLE0604 - they are texts


def __getattr__(name: str) -> object:
    """Load what is asked for when it is asked for."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_FROM[name]), name)
    return found


def __dir__() -> list[str]:
    """Name also what is not loaded yet."""
    return sorted({*globals(), *_FROM})
