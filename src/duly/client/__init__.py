"""The HTTP interface of a server, for Python programs: `from duly.client import Client`."""

from duly.client.calls import Client
from duly.client.errors import Unreached
from duly.client.shapes import Entry, Missed, Question, Reset, Run, Task

__all__ = ["Client", "Entry", "Missed", "Question", "Reset", "Run", "Task", "Unreached"]
