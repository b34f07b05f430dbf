"""The name by which a function can be imported again, in whichever process it is to be called."""

import sys
from collections.abc import Callable
from pathlib import Path

from duly.errors import Invalid

HOW = "a call needs a function at the top of a module, or of a class there"


def name_of(function: Callable[..., object]) -> str:
    """Give `package.module:function`; Invalid where nobody could import it by any name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise Invalid(f"{function!r} has no name to be imported by", field="action.function", hint=HOW)
    if "<" in name:
        what = "a lambda" if name.endswith("<lambda>") else f"{name.rpartition('.')[2]} is defined inside a function"
        raise Invalid(f"{what}, and cannot be imported", field="action.function", hint=HOW)
    of = getattr(function, "__self__", None)
    if of is not None and not isinstance(of, type):
        raise Invalid(f"{name} is a method of one object, and cannot be imported", field="action.function", hint=HOW)
    return f"{_main_name(name) if module == '__main__' else module}:{name}"


def _main_name(function: str) -> str:
    """Give the name by which the program that runs now is a module: `-m` told it, or its file lies on the path."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    if file is None:
        raise Invalid(
            f"{function} is defined where no file is, and cannot be imported", field="action.function", hint=HOW
        )
    path = Path(file).resolve()
    if not path.stem.isidentifier() or path.suffix != ".py":
        raise Invalid(
            f"the file {path.name} has a name by which no module can be imported",
            field="action.function",
            hint="a name such as jobs.py",
        )
    if str(path.parent) not in {str(Path(entry or ".").resolve()) for entry in sys.path}:
        raise Invalid(
            f"{path.name} does not lie on the path for modules",
            field="action.function",
            hint=f"PYTHONPATH={path.parent}",
        )
    return path.stem
