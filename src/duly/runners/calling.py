"""Calls a Python function as the work of an attempt: what the child of the runner `call` executes.

Run by path, with a file that says what to call. Standard library only and nothing of ours, loaded as late as may be:
the function's process is the function's. Its end is that of a command: 0, or 1 with the traceback in the log.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import TracebackType
from typing import Any

FAILED = 1
NOT_CALLABLE = 126
NOT_FOUND = 127
IMPORTING = "DULY_IMPORTING"
"""Set while a module is imported only because one of its functions is to be called."""
GENERATOR = 0x20 | 0x200
"""Flags of a function's code: it is a generator, or an asynchronous one."""


class Unfit(Exception):
    """There is no such function, or what there is cannot be called; `status` is the exit status that says so."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def main() -> int:
    """Call what the file says; gives the exit status."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - pathlib is a good part of a start
        told = json.load(file)
    sys.path[:] = told["path"]
    sys.argv[:] = [told["function"]]
    try:
        os.environ[IMPORTING] = "1"
        try:
            function = find(told["function"])
        finally:
            del os.environ[IMPORTING]
        call(function, told["args"], told["more"])
    except Unfit as unfit:
        sys.stderr.write(f"{unfit}\n")
        return unfit.status
    except Exception as error:  # noqa: BLE001 - it is the function's own, and told
        sys.stdout.flush()
        sys.stderr.write(traced(error))
        return FAILED
    return 0


def find(function: str) -> Callable[..., object]:
    """Import the module and give the function; Unfit says what is missing."""
    name, _, words = function.partition(":")
    try:
        found: Any = import_module(name)
    except ModuleNotFoundError as error:
        # What the module itself imports and does not find is its own fault, told with its traceback.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise Unfit(f"there is no module {error.name}", NOT_FOUND) from error
    for word in words.split("."):
        try:
            found = getattr(found, word)
        except AttributeError:
            raise Unfit(f"{name} has no {words}", NOT_FOUND) from None
    if not callable(found):
        raise Unfit(f"{function} cannot be called: it is of type {type(found).__name__}", NOT_CALLABLE)
    code = getattr(found, "__code__", None)
    if getattr(code, "co_flags", 0) & GENERATOR:
        raise Unfit(f"{function} is a generator: calling it would run nothing of it", NOT_CALLABLE)
    callable_: Callable[..., object] = found
    return callable_


def call(function: Callable[..., object], args: object, more: list[str]) -> None:
    """Call it, and await what it gives where that can be awaited; `more` comes after its own arguments."""
    named = args if isinstance(args, dict) else {}
    placed = args if isinstance(args, list | tuple) else []
    result = function(*placed, *more, **named)
    if isinstance(result, Awaitable):
        import asyncio

        asyncio.run(_awaited(result))


async def _awaited(result: Awaitable[object]) -> None:
    await result


def traced(error: BaseException) -> str:
    """Give the traceback as text, beginning with the function's own code."""
    from traceback import format_exception

    return "".join(format_exception(type(error), error, _own(error.__traceback__)))


def _own(trace: TracebackType | None) -> TracebackType | None:
    """Leave out the frames by which we came to the function."""
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_ours(file: str) -> bool:
    roads = [__file__, sys.modules["importlib"].__file__]
    if "asyncio" in sys.modules:
        roads.append(sys.modules["asyncio"].__file__)
    folders = tuple(os.path.dirname(road) for road in roads if road)  # noqa: PTH120
    return file.startswith(("<frozen importlib", *folders))


if __name__ == "__main__":
    sys.exit(main())
