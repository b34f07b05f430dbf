"""What users are shown of where a task comes from: beside `shapes`, with the same rules."""

from collections.abc import Mapping

from duly.core.loops import fault_of, told


def file_fault(source: Mapping[str, object]) -> dict[str, object] | None:
    """Show what is wrong with the file of a task that goes on as it last read."""
    fault = fault_of(source)
    if fault is None:
        return None
    message = f"{told(fault, str(source['path']))} (the task goes on as its file last read)"
    return {"field": fault.field, "message": message}


def source(kept: Mapping[str, object]) -> dict[str, object]:
    """Show where a task comes from."""
    return {"kind": None, "set": None, "key": None, "path": None, "line": None} | {
        name: value for name, value in kept.items() if name not in {"digest", "fault"}
    }
