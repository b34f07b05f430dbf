"""For tests: a simulated world of holders, work and troubles; days pass in a moment, and one seed is one history."""

from duly.testing.troubles import QUIET, STORM, Troubles
from duly.testing.world import BrokenPromise, World

__all__ = ["QUIET", "STORM", "BrokenPromise", "Troubles", "World"]
