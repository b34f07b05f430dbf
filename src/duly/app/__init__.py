"""The one place that puts things together: a store, a registry of runners and a holder make a service.

Nothing is loaded with it: `from duly import Duly` stands at the head of modules of which one function is called.
"""
