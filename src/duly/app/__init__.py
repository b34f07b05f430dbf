"""The one place that puts things together: a store, a registry of runners and a holder make a service."""

from duly.app.demonstration import demo
from duly.app.service import init, serve

__all__ = ["demo", "init", "serve"]
