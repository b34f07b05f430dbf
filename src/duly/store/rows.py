"""Rows of the tables and the frozen values the house works with, made from each other in one place."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from duly.clock import MICROSECOND, from_us, to_us
from duly.core.admission import rank_of
from duly.core.definition_json import definition_from_json, definition_to_json
from duly.core.names import key_of
from duly.core.reading import read_name
from duly.core.run import Entry, Missed, Run
from duly.core.task import Broken, Definition, Task
from duly.core.values import changed, made_of
from duly.errors import Invalid
from duly.store import tables

DEFINITIONS_CACHED = 4096
"""Definitions that are kept parsed, by their text; a process with more tasks reads the others anew."""

READ = json.JSONDecoder().raw_decode
WRITE = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
TEXT = json.encoder.encode_basestring
NO_TIME = timedelta(0)

RUN_COLUMNS = tuple(column.name for column in tables.runs.columns)
TASK_COLUMNS = tuple(column.name for column in tables.tasks.columns)
LEDGER_COLUMNS = tuple(column.name for column in tables.ledger.columns)
MISSED_COLUMNS = tuple(column.name for column in tables.missed.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """An operator's hold on a task, a project or the whole store."""

    id: str
    scope: str
    target: str
    since: datetime
    until: datetime | None
    note: str | None
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderRow:
    """One life of one process that may hold leases, as the store knows it."""

    id: str
    place: str
    boot: str
    host: str
    pid: int
    ticks: int | None
    started_at: datetime
    last_beat_at: datetime
    beat_lease_us: int
    lease_for: timedelta
    state: str
    slots: int
    labels: Sequence[str]
    version: str
    zone_data: str
    claims: int
    claims_lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An entry of the ledger with the number it got."""

    seq: int
    entry: Entry


def dump(mapping: Mapping[str, object]) -> str:
    """A mapping as JSON text, the same for equal mappings."""
    return WRITE(mapping)


def us(instant: datetime | None) -> int | None:
    """An instant as it is stored."""
    return None if instant is None else to_us(instant)


def at(stored: int | None) -> datetime | None:
    """An instant as it was stored."""
    return None if stored is None else from_us(stored)


def _span(stored: int) -> timedelta:
    return timedelta(microseconds=stored) if stored else NO_TIME


def _us_of(span: timedelta) -> int:
    return span // MICROSECOND if span else 0


def _kept(default: str) -> tuple[Callable[[str | None], str], Callable[[str], str | None]]:
    """Read and write a word whose usual one is kept as nothing."""
    return lambda stored: stored or default, lambda word: None if word == default else word


READ_RUN: Mapping[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "due_us": ("due_at", from_us, to_us),
    "opened_us": ("opened_at", from_us, to_us),
    "not_before_us": ("not_before", from_us, to_us),
    "started_us": ("started_at", at, us),
    "stopping_us": ("stopping_since", at, us),
    "ended_us": ("ended_at", at, us),
    "cancel_asked_us": ("cancel_asked_at", at, us),
    "worked_us": ("worked_for", _span, _us_of),
    "spread_us": ("spread", _span, _us_of),
    "anyway": ("anyway", bool, int),
    "queued": ("queued", bool, int),
    "taken": (
        "taken",
        lambda stored: json.loads(stored) if stored else {},
        lambda taken: dump(taken) if taken else None,
    ),
    "agent": (
        "agent",
        lambda stored: json.loads(stored) if stored else {},
        lambda agent: dump(agent) if agent else None,
    ),
    "args": (
        "args",
        lambda stored: tuple(json.loads(stored)) if stored else (),
        lambda args: json.dumps(args, ensure_ascii=False) if args else None,
    ),
    "answered_us": ("answered_at", at, us),
    "cancel_why": ("cancel_why", *_kept("cancelled_by_hand")),
    "cancel_how": ("cancel_how", *_kept("term")),
}
"""The columns of a run that are not kept as its fields stand: the field, how it is read, how it is written."""
RUN_FIELDS = tuple(READ_RUN[name][0] if name in READ_RUN else name for name in RUN_COLUMNS)
RUN_READ = tuple((place, READ_RUN[name][1]) for place, name in enumerate(RUN_COLUMNS) if name in READ_RUN)
_RUN = made_of(Run, RUN_FIELDS)


def run_of(row: Sequence[Any]) -> Run:
    """Make a run from a row in the order of RUN_COLUMNS."""
    cells = list(row)
    for place, read in RUN_READ:
        cells[place] = read(cells[place])
    return _RUN(cells)


def fields_of(columns: Sequence[str]) -> Callable[[Run], tuple[Any, ...]]:
    """Give what reads the fields of a run that stand in these columns."""
    read: Callable[[Run], tuple[Any, ...]] = attrgetter(
        *[READ_RUN[name][0] if name in READ_RUN else name for name in columns]
    )
    return read


def cells_of_run(columns: Sequence[str]) -> Callable[[Run], list[Any]]:
    """Give what makes a run into cells in the order of these columns."""
    read = fields_of(columns)
    written = [(place, READ_RUN[name][2]) for place, name in enumerate(columns) if name in READ_RUN]

    def cells_of(run: Run) -> list[Any]:
        cells = list(read(run))
        for place, write in written:
            cells[place] = write(cells[place])
        return cells

    return cells_of


run_cells = cells_of_run(RUN_COLUMNS)
"""A run as cells in the order of RUN_COLUMNS."""


def mapping(stored: str | None) -> Mapping[str, object]:
    """A mapping from its JSON text, where there is one; what does not read is nothing."""
    if not stored:
        return {}
    try:
        # The half of `json.loads` that texts of ours need.
        read, end = READ(stored)
    except (ValueError, RecursionError):
        return _mapping(stored)
    return read if end == len(stored) and isinstance(read, dict) else _mapping(stored)


def _mapping(stored: str) -> Mapping[str, object]:
    """A mapping from its JSON text; what another hand left that does not read is nothing, and blocks nobody."""
    try:
        read = json.loads(stored)
    except (ValueError, TypeError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


@lru_cache(maxsize=DEFINITIONS_CACHED)
def _source(stored: str) -> Mapping[str, object]:
    return _mapping(stored)


def _trouble(stored: str | None) -> Broken | None:
    if stored is None:
        return None
    told = _mapping(stored)
    return Broken(field=str(told.get("field", "definition")), message=str(told.get("message", "it was put aside")))


READ_TASK: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "planned_until_us": ("planned_until", from_us),
    "next_due_us": ("next_due_at", at),
    "next_start_us": ("next_start_at", at),
    "done": ("done", bool),
    "source": ("source", _source),
    "created_us": ("created_at", from_us),
    "updated_us": ("updated_at", from_us),
    "removed_us": ("removed_at", at),
    "pruned_until_us": ("pruned_until", at),
}
"""The columns of a task that are not kept as its fields stand: the field, and how it is read."""
TASK_STATE = tuple(
    name for name in TASK_COLUMNS if name in READ_TASK or name in {one.name for one in fields(Task)} - {"definition"}
)
_state = itemgetter(*map(TASK_COLUMNS.index, TASK_STATE))
_state_read = tuple((place, READ_TASK[name][1]) for place, name in enumerate(TASK_STATE) if name in READ_TASK)
_defined = itemgetter(*map(TASK_COLUMNS.index, ("definition", "name", "project", "enabled", "trouble")))
_TASK = made_of(Task, ("definition", "broken", *(READ_TASK.get(name, (name,))[0] for name in TASK_STATE)))


def task_of(row: Sequence[Any], reading: Callable[[str, str], Definition | Broken]) -> Task:
    """Make a task from a row in the order of TASK_COLUMNS; a definition that no longer reads is kept as broken."""
    text, name, project, stored, trouble = _defined(row)
    enabled, read = bool(stored), reading(text, name)
    broken: Broken | None
    if isinstance(read, Broken):
        definition, broken = Definition(name=name, project=project, enabled=enabled), read
    else:
        definition = read if read.enabled == enabled else replace(read, enabled=enabled)
        broken = _trouble(trouble)
    cells = list(_state(row))
    for place, made in _state_read:
        cells[place] = made(cells[place])
    return _TASK((definition, broken, *cells))


def task_cells(task: Task) -> dict[str, Any]:
    """A task as cells by column name."""
    definition: Definition = task.definition
    return {
        "id": task.id,
        "project": definition.project,
        "project_key": key_of(definition.project),
        "name": definition.name,
        "name_key": key_of(definition.name),
        "enabled": int(definition.enabled),
        "definition": dump(definition_to_json(definition)),
        "definition_version": task.definition_version,
        "version": task.version,
        "source": dump(task.source),
        "created_us": to_us(task.created_at),
        "created_by": task.created_by,
        "updated_us": to_us(task.updated_at),
        "removed_us": us(task.removed_at),
        "overlap": definition.rules.overlap,
        "queue": definition.rules.queue,
        "planned_until_us": to_us(task.planned_until),
        "next_due_us": us(task.next_due_at),
        "next_start_us": us(task.next_start_at),
        "done": int(task.done),
        "fence": task.fence,
        "runs": task.runs,
        "seats": definition.rules.seats,
        "rank": rank_of("schedule", definition.rules),
        "scheduled_runs": task.scheduled_runs,
        "planned_wall": task.planned_wall,
        "zone_data": task.zone_data,
        "pruned_until_us": us(task.pruned_until),
        "leaves": int(definition.rules.remove_when_done),
        "failures_in_a_row": task.failures_in_a_row,
        "last_run": task.last_run,
        "trouble": None,
    }


@lru_cache(maxsize=DEFINITIONS_CACHED)
def parsed(text: str, name: str | None = None) -> Definition | Broken:
    """A definition from its stored text; what does not read says which field and why.

    Of tasks that differ in their names alone all else is read once, where the name is given that the text has.
    """
    try:
        return _named(text, name) or definition_from_json(json.loads(text))
    except Invalid as error:
        return Broken(field=error.field or "definition", message=error.message)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return Broken(field="definition", message=f"it is not the JSON of a definition: {error}")


def _named(text: str, name: str | None) -> Definition | None:
    written = None if name is None else f'"name":{TEXT(name)},'
    if written is None or text.count(written) != 1:
        return None
    rest = _unnamed(text.replace(written, ""))
    return None if rest is None else changed(rest, name=read_name(name))


@lru_cache(maxsize=DEFINITIONS_CACHED)
def _unnamed(text: str) -> Definition | None:
    """What a text without its name defines; nothing where it has one all the same: what was cut was something else."""
    stored = json.loads(text)
    return None if "name" in stored else definition_from_json({**stored, "name": "?"})


def entry_cells(entry: Entry) -> tuple[Any, ...]:
    """An entry as cells in the order of LEDGER_COLUMNS without its number."""
    return (
        to_us(entry.at),
        entry.kind,
        entry.task,
        entry.occurrence,
        entry.run,
        entry.attempt,
        entry.reason,
        entry.holder,
        entry.by,
        entry.count,
        us(entry.until_at),
        dump(entry.details) if entry.details else None,
    )


def entry_of(row: Sequence[Any]) -> Written:
    """Make an entry from a row in the order of LEDGER_COLUMNS."""
    e = dict(zip(LEDGER_COLUMNS, row, strict=True))
    return Written(
        seq=e["seq"],
        entry=Entry(
            kind=e["kind"],
            at=from_us(e["at_us"]),
            task=e["task"],
            occurrence=e["occurrence"],
            run=e["run"],
            attempt=e["attempt"],
            reason=e["reason"],
            holder=e["holder"],
            by=e["by"],
            count=e["count"],
            until_at=at(e["until_us"]),
            details=_mapping(e["details"]) if e["details"] else {},
        ),
    )


def missed_of(row: Sequence[Any]) -> Missed:
    """Make a missed occurrence from a row in the order of MISSED_COLUMNS."""
    m = dict(zip(MISSED_COLUMNS, row, strict=True))
    return Missed(
        id=m["id"],
        task=m["task"],
        occurrence=m["occurrence"],
        due_at=from_us(m["due_us"]),
        until_at=from_us(m["until_us"]),
        count=m["count"],
        reason=m["reason"],
        noticed_at=from_us(m["noticed_us"]),
        holder=m["holder"],
        state=m["state"],
        expires_at=at(m["expires_us"]),
        decided_by=m["decided_by"],
        decided_at=at(m["decided_us"]),
        note=m["note"],
        run=m["run"],
    )


def missed_cells(one: Missed) -> tuple[Any, ...]:
    """A missed occurrence as cells in the order of MISSED_COLUMNS."""
    return (
        one.id,
        one.task,
        one.occurrence,
        to_us(one.due_at),
        to_us(one.until_at),
        one.count,
        one.reason,
        to_us(one.noticed_at),
        one.holder,
        one.state,
        one.decided_by,
        us(one.decided_at),
        one.note,
        one.run,
        us(one.expires_at),
    )
