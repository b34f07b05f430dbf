"""The one table of what a task's definition has.

From it come the options of the command line, their help, the strict model and the reading back of what is stored. A
field says where it stands in the JSON of a definition, what kind of value it takes, its default as a person would
write it, and its limits.
"""

from collections.abc import Mapping

from duly.core.action_fields import ACTION
from duly.core.field import Field
from duly.core.rule_fields import RULES

NAME_MOST = 80
DESCRIPTION_MOST = 2_000
LABELS_MOST = 50
LABEL_KEY_MOST = 63
LABEL_VALUE_MOST = 200
TRIGGERS_MOST = 20
INPUT_MOST = 10 * 1024 * 1024
NOTE_MOST = 500
KEY_MOST = 200
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
