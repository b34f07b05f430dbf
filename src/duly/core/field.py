"""The shape of one row in the tables of fields."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "name",
    "text",
    "pairs",
    "switch",
    "triggers",
    "zone",
    "choice",
    "span",
    "count",
    "argv",
    "shell",
    "function",
    "arguments",
    "path",
    "env",
    "weights",
    "words",
    "instant",
    "gate",
    "agent",
    "prompt",
    "file",
    "permissions",
    "budget",
    "estimate",
    "success",
    "channels",
    "session",
    "goal",
    "url",
    "method",
    "headers",
    "body",
    "secret",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a definition; `default` is in the form a person writes, None where it depends on the task."""

    name: str
    place: tuple[str, ...]
    kind: Kind
    help: str
    default: object = None
    default_text: str | None = None
    """How help tells the default where `default` alone does not."""
    allowed: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    zero: bool = False
    """Whether a span of nothing makes sense."""
    metavar: str | None = None

    @property
    def path(self) -> str:
        """The dotted place in the JSON, as errors name it."""
        return ".".join(self.place)
