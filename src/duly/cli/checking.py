"""`check`: what loop files would become, or what is wrong with them and in which line; nothing is changed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.table import Cell, pairs, plain
from duly.errors import DulyError, Invalid

if TYPE_CHECKING:
    from duly.core.loops import Fault, Loop, Spoilt
    from duly.core.task import Task
    from duly.sources.finding import Root

WRONG = 1
UPCOMING_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A file: what it would become, or what is wrong with it; and which named project it belongs to, if any."""

    found: "Loop | Spoilt"
    task: "Task | None" = None
    faults: "tuple[Fault, ...]" = ()
    warnings: tuple[str, ...] = ()
    project: str | None = None


@command(
    name="check",
    help="Say what loop files (.agents/loops/*.md) would become, or what is wrong with them. A folder stands for all "
    "that count for a project there. Exit 1 where one is wrong.",
    epilog="duly check .agents/loops/digest.md\nduly check . --json",
    params=[click.Argument(["files"], nargs=-1, required=True, metavar="FILE...")],
)
def check(files: tuple[str, ...]) -> int:
    """Check loop files."""
    from duly.app import loops

    home, agents = loops.home_of(os.environ), loops.agents_of(os.environ)
    projects = _projects()
    found = [one for name in files for one in _of(name, home, agents)]
    checked = [_checked(one, _project(one.path, projects, home)) for one in _beaten(found)]
    settings().code = WRONG if any(one.faults for one in checked) else 0
    if settings().as_json:
        out.document({"items": [_shape(one) for one in checked], "next": None})
        return settings().code
    if not checked:
        out.note("hint: there are no loop files: .agents/loops/*.md")
    for at, one in enumerate(checked):
        if at:
            out.line()
        _tell(one)
    return settings().code


def _of(name: str, home: str, agents: Any) -> "Sequence[Loop | Spoilt]":
    from duly.cli.joining import absolute
    from duly.core.loops import Fault, Spoilt
    from duly.sources import finding

    path = Path(os.path.normpath(absolute(name, "FILE")))
    if not path.is_dir():
        if not os.path.lexists(path):
            raise Invalid("there is no such file", field="FILE", text=name, at=0)
        return [finding.read_at(path, _root(path, home), agents=agents, home=home)]
    looked = finding.look(str(path), home, agents=agents)
    why = {str(path): looked.missing} if looked.missing is not None else looked.unread
    told = [
        Spoilt(path=folder, faults=(Fault(field="file", message=reason),))
        for folder, reason in why.items()
        if looked.missing is not None or not folder.startswith(home)
    ]
    return [*looked.found, *told]


def _root(path: Path, home: str) -> "Root | None":
    """Give the folder that a file must not leave by a link: that of its `.agents/loops`."""
    from duly.sources import finding

    folder = path.parent.parent.parent
    roots = finding.roots_of(folder, Path(home))
    return next((one for one in roots if one.loops == path.parent), None)


def _beaten(found: "Sequence[Loop | Spoilt]") -> "list[Loop | Spoilt]":
    """Mark the files whose name a nearer one, or another of the same folder, has."""
    from duly.core.loops import Looked, Spoilt
    from duly.core.reconciling import decide

    once = list({one.path: one for one in found}.values())
    faults = dict(decide(Looked(found=tuple(once)), ()).faults)
    return [
        one if isinstance(one, Spoilt) or one.path not in faults else Spoilt(path=one.path, faults=(faults[one.path],))
        for one in once
    ]


def _checked(found: "Loop | Spoilt", project: str | None) -> Checked:
    from duly import clock, zones
    from duly.core.loop_keys import faults_of
    from duly.core.loops import Spoilt
    from duly.operations import tasks
    from duly.sources.loop_file import understand

    if isinstance(found, Spoilt):
        return Checked(found=found, faults=found.faults, project=project)
    now = clock.now()
    read, faults = understand(found, now=now, default_zone=zones.machine_zone(), project=project or "default")
    if read is None:
        return Checked(found=found, faults=faults, project=project)
    try:
        task = tasks.first_version(read.definition, now=now, by="", source={"kind": "file"})
    except DulyError as bad:
        return Checked(found=found, faults=faults_of(bad, found.lines), project=project)
    unsaid = (
        () if "zone" in found.given else (f"no timezone: its times are those of this machine, {task.definition.zone}",)
    )
    return Checked(
        found=found, task=task, warnings=(*unsaid, *found.warnings, *read.warnings, *_unfound(task)), project=project
    )


def _unfound(task: "Task") -> tuple[str, ...]:
    from duly.cli.actions import unfound

    return tuple(unfound(task.definition.action))


def _projects() -> Mapping[str, str]:
    """Give the folders that persons named, by the names of their projects."""
    from duly.cli.joining import address
    from duly.store.store import Store

    store = Store.find(address(), os.environ)
    if store is None:
        return {}
    try:
        with store.read() as session:
            return {one.name: one.dir for one in session.projects.all() if one.dir is not None}
    finally:
        store.close()


def _project(path: str, projects: Mapping[str, str], home: str) -> str | None:
    from duly.sources import finding

    folder = Path(path).parent
    for name, dir_ in projects.items():
        if any(root.loops == folder for root in finding.roots_of(Path(dir_), Path(home))):
            return name
    return None


def _shape(one: Checked) -> dict[str, object]:
    from duly.core.loops import fault_to_json

    shown: dict[str, object] = {
        "path": one.found.path,
        "ok": not one.faults,
        "project": one.project,
        "task": None,
        "words": None,
        "canonical": None,
        "upcoming": [],
        "warnings": list(one.warnings),
        "errors": [fault_to_json(fault) for fault in one.faults],
    }
    if one.task is None:
        return shown
    from duly import zones
    from duly.operations import previewing, shapes

    task, zone = one.task, zones.zone(one.task.definition.zone)
    whole = shapes.task(task, pauses=(), last_run=None, open_missed=0)
    names = ("name", "description", "labels", "enabled", "triggers", "zone", "action", "rules", "own_rules")
    return shown | {
        "task": {name: whole[name] for name in names},
        "words": previewing.say(task.definition.triggers),
        "canonical": previewing.canonical(task.definition.triggers),
        "upcoming": [previewing.item_of(task, zone, at) for at in _coming(task)],
    }


def _coming(task: "Task") -> list[Any]:
    from itertools import islice

    from duly.operations import previewing

    return list(islice(previewing.ahead(task, known=False), UPCOMING_SHOWN))


def _tell(one: Checked) -> None:
    from duly.core.loops import told

    path = one.found.path
    if one.task is None:
        out.line(f"{out.styled('✗' if _signs() else 'x', 'red')} {plain(path)}")
        for fault in one.faults:
            hint = f" (try: {fault.hint})" if fault.hint else ""
            out.line(f"  {plain(told(fault, path) + hint)}")
        return
    from duly import zones
    from duly.cli.actions import action_text
    from duly.cli.moments import coming_text
    from duly.cli.words import rules_told
    from duly.operations import previewing, shapes

    task = one.task
    definition = task.definition
    zone = zones.zone(definition.zone)
    coming = "\n".join(coming_text(at.due_at, at.start_at, zone, task.planned_until) for at in _coming(task))
    rules = {name: value for name, value in shapes.rules(task).items() if name in definition.own_rules}
    out.line(f"{out.styled(plain(definition.name), 'bold')}  {plain(path)}:{getattr(one.found, 'line', 1)}")
    out.lines(
        pairs(
            [
                ("when", Cell(text=previewing.say(definition.triggers), wraps=True)),
                ("canonical", previewing.canonical(definition.triggers)),
                ("zone", definition.zone),
                ("next", coming or "none by itself"),
                ("prompt", Cell(text=plain(action_text(definition.action)), wraps=True)),
                *([("rules", "\n".join(rules_told(rules, definition.own_rules)))] if rules else []),
                ("runs", Cell(text=plain(_runs(one)), wraps=True)),
            ],
            indent="  ",
        )
    )
    for note in one.warnings:
        out.line(f"  warning: {plain(note)}")


def _runs(one: Checked) -> str:
    assert one.task is not None
    if one.project is None:
        return "no: nobody named a project in whose folder it lies (duly project set NAME --dir PATH)"
    if not one.task.definition.enabled:
        return f"no: it is switched off (project {one.project})"
    return f"yes, in the project {one.project}"


def _signs() -> bool:
    from duly.cli.words import mark

    return mark("") == "·"
