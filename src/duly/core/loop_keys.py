"""What is wrong with a definition, told in the words and the lines of the loop file that it comes from."""

from collections.abc import Mapping

from duly.core.loops import Fault
from duly.errors import DulyError

KEY_OF: Mapping[str, str] = {
    "triggers": "schedule",
    "zone": "timezone",
    "action": "agent",
    "action.prompt": "prompt",
    "definition": "name",
    "when": "schedule",
}
"""Keys of the file for fields of a definition that have other names there."""


def faults_of(bad: DulyError, lines: Mapping[str, int]) -> tuple[Fault, ...]:
    """Tell what is wrong with a definition in the words and the lines of its file."""
    errors = bad.details.get("errors")
    found = [
        Fault(field=key, message=str(one["message"]), line=lines.get(key))
        for one in (errors if isinstance(errors, list) else ())
        for key in [key_of(str(one["pointer"]).removeprefix("/").replace("/", "."))]
    ]
    key = key_of(getattr(bad, "field", None) or "definition")
    first = Fault(field=key, message=bad.message, line=lines.get(key), hint=bad.hint)
    return (first, *(one for one in found if (one.field, one.message) != (first.field, first.message)))


def key_of(path: str) -> str:
    """Give the key of the file that a field of a definition comes from."""
    bare = path.partition("[")[0]
    top = ".".join(part for part in bare.split(".") if not part.isdigit())
    return KEY_OF.get(top) or KEY_OF.get(top.partition(".")[0], "") or _last(top)


def _last(path: str) -> str:
    parts = path.split(".")
    return parts[1] if len(parts) > 1 and parts[0] in ("rules", "action") else parts[0]
