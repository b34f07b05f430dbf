"""What must happen when a process that uses Duly forks, as pre-forking web servers and multiprocessing do.

A connection of SQLite's cannot be carried into a child, and what proves that this process lives must not be held by
one. Python takes such hooks once a process and for good, which is why this module has state.
"""

import ctypes
import os
from typing import Protocol
from weakref import WeakSet


class Forking(Protocol):
    """Something that takes part in every fork of this process."""

    def before_fork(self) -> None:
        """In the parent, in the forking thread: let go of what the child must not find."""

    def after_fork_here(self) -> None:
        """In the parent: go on."""

    def after_fork_in_child(self) -> None:
        """In the child, where no other thread exists: let go of what is the parent's; may not block."""


_TAKING_PART: WeakSet[Forking] = WeakSet()


def take_part(one: Forking) -> None:
    """Let it take part in every fork from now on, for as long as it lives."""
    _TAKING_PART.add(one)


def never_free(one: object) -> None:
    """Leave it as it is until this process ends: to close a connection of the parent's would be to use it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def _before() -> None:
    for one in list(_TAKING_PART):
        one.before_fork()


def _here() -> None:
    for one in list(_TAKING_PART):
        one.after_fork_here()


def _in_child() -> None:
    for one in list(_TAKING_PART):
        one.after_fork_in_child()


os.register_at_fork(before=_before, after_in_parent=_here, after_in_child=_in_child)
