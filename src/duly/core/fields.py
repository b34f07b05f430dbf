"""The one table of what a task's definition has.

From it come the options of the command line, their help, the strict model and the reading back of what is stored. A
field says where it stands in the JSON of a definition, what kind of value it takes, its default as a person would
write it, and its limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from duly.core import spans
from duly.core.task import DEFAULT_MAX_AGE, DEFAULT_QUEUE

NAME_MOST = 80
DESCRIPTION_MOST = 2_000
LABELS_MOST = 50
LABEL_KEY_MOST = 63
LABEL_VALUE_MOST = 200
TRIGGERS_MOST = 20
QUEUE_MOST = 1_000
INPUT_MOST = 10 * 1024 * 1024
NOTE_MOST = 500
KEY_MOST = 200
# What Linux takes for one argument of a program, its end mark included, and room for all of them together.
ARGUMENT_MOST = 128 * 1024 - 1
ARGUMENTS_MOST = 1024 * 1024
CWD_MOST = 4_095
ENV_MOST = 500

Kind = Literal[
    "name", "text", "pairs", "switch", "triggers", "zone", "choice", "span", "count", "argv", "shell", "path", "env"
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


def _rule(name: str, kind: Kind, text: str, **more: object) -> Field:
    return Field(name=name, place=("rules", name), kind=kind, help=text, **more)  # type: ignore[arg-type]


RULES: tuple[Field, ...] = (
    _rule(
        "on_missed",
        "choice",
        "what becomes of an occurrence found later than its grace",
        default="run",
        allowed=("run", "skip"),
    ),
    _rule(
        "max_age",
        "span",
        "how late an occurrence may still start",
        default=spans.write_span(DEFAULT_MAX_AGE),
        zero=True,
    ),
    _rule(
        "grace",
        "span",
        "how late still counts as punctual",
        default_text="60s, or half the distance to the next if that is less",
        zero=True,
    ),
    _rule(
        "overlap",
        "choice",
        "what becomes of an occurrence while the task is running",
        default="skip",
        allowed=("skip", "queue"),
    ),
    _rule(
        "queue",
        "count",
        "how many runs may wait under --overlap queue",
        default=DEFAULT_QUEUE,
        least=1,
        most=QUEUE_MOST,
    ),
    _rule(
        "on_interrupt",
        "choice",
        "what becomes of a run whose holder died and whose work did too",
        default="fail",
        allowed=("fail", "retry"),
    ),
    _rule("timeout", "span", "how long one attempt may take", default_text="24h for a command"),
)

ACTION: tuple[Field, ...] = (
    Field(
        name="argv", place=("action", "argv"), kind="argv", help="the program and its arguments", most=ARGUMENTS_MOST
    ),
    Field(
        name="shell",
        place=("action", "shell"),
        kind="shell",
        help="a line for sh -c, in place of -- COMMAND",
        most=ARGUMENT_MOST,
        metavar="LINE",
    ),
    Field(
        name="cwd",
        place=("action", "cwd"),
        kind="path",
        help="the folder to work in",
        default_text="this folder",
        most=CWD_MOST,
        metavar="PATH",
    ),
    Field(
        name="env",
        place=("action", "env"),
        kind="env",
        help="a variable for the command (may be repeated)",
        default={},
        most=ENV_MOST,
        metavar="K=V",
    ),
)

FIELDS: tuple[Field, ...] = (
    Field(name="name", place=("name",), kind="name", help="the task's name", most=NAME_MOST),
    Field(
        name="project",
        place=("project",),
        kind="name",
        help="the project that owns the task",
        default="default",
        most=NAME_MOST,
        metavar="P",
    ),
    Field(
        name="description",
        place=("description",),
        kind="text",
        help="what it is for",
        default="",
        most=DESCRIPTION_MOST,
    ),
    Field(
        name="labels",
        place=("labels",),
        kind="pairs",
        help="a label (may be repeated)",
        default={},
        most=LABELS_MOST,
        metavar="K=V",
    ),
    Field(name="enabled", place=("enabled",), kind="switch", help="whether it opens runs by time", default=True),
    Field(
        name="triggers",
        place=("triggers",),
        kind="triggers",
        help="when it is due (may be repeated)",
        most=TRIGGERS_MOST,
        metavar="WHEN",
    ),
    Field(
        name="zone",
        place=("zone",),
        kind="zone",
        help="the time zone of its times, by IANA name",
        default_text="this machine's",
        metavar="ZONE",
    ),
    *ACTION,
    *RULES,
)

BY_PATH: Mapping[str, Field] = {field.path: field for field in FIELDS}
