"""The store: the only truth about what is due, waiting and held."""

from duly.store.store import Session, Store

__all__ = ["Session", "Store"]
