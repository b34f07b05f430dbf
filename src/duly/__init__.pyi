from duly.app.face import Duly as Duly
from duly.app.values import Run as Run
from duly.app.values import Task as Task
from duly.errors import DulyError as DulyError
from duly.errors import Invalid as Invalid
from duly.errors import Refused as Refused
from duly.errors import StoreAway as StoreAway
from duly.errors import StoreNewer as StoreNewer
from duly.told import ThisRun as ThisRun
from duly.told import this_run as this_run

__all__ = [
    "Duly",
    "DulyError",
    "Invalid",
    "Refused",
    "Run",
    "StoreAway",
    "StoreNewer",
    "Task",
    "ThisRun",
    "__version__",
    "this_run",
]

__version__: str
