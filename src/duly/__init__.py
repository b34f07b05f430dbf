"""Duly: one occurrence, one run."""

__version__ = "0.2.0"
