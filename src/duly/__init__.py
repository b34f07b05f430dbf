"""Duly: one occurrence, one run."""

__version__ = "0.1.0"
