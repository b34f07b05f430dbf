"""`add`: a new task, answered with what was understood."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from duly.cli import out
from duly.cli.actions import action_text, check_words, kind_of, kind_told, read_files, takes_folder, unfound
from duly.cli.fields import gathered, options
from duly.cli.frame import settings
from duly.cli.moments import coming_text
from duly.cli.parting import Parted, words
from duly.cli.table import Cell, pairs, plain
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.core.task import Definition, Task
    from duly.operations.previewing import Coming

UPCOMING_SHOWN = 3


def _add(name: str, extra: tuple[str, ...], dry_run: bool, **given: Any) -> None:
    """Add a task and say how it was understood."""
    from duly import clock, zones
    from duly.cli.joining import address, hint_nobody, hint_person, open_for_change, standing
    from duly.definitions import read_definition
    from duly.operations import tasks
    from duly.operations.limits import check_fits
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run

    given["argv"] = words()
    if not given["triggers"]:
        raise Invalid("it is missing", field="triggers", hint="--when 'daily 09:00', or --when manual")
    check_words(extra, given)
    read_files(given)
    if takes_folder(given):
        given["cwd"] = _folder(given["cwd"], given["project"])
    wanted = gathered({"name": name, **given})
    action = wanted.setdefault("action", {})
    assert isinstance(action, dict)
    action["kind"] = kind_of(given)
    now = clock.now()
    machine = zones.machine_zone() if given["zone"] is None else None
    read = read_definition(wanted, now=now, default_zone=machine)
    warnings = (
        *read.warnings,
        *(no_folder(given["cwd"]) if given["cwd"] else ()),
        *unfound(read.definition.action),
    )
    if dry_run and not standing(address()):
        task = tasks.first_version(read.definition, now=now, by=caller(), source={"kind": "cli"})
    else:
        with open_for_change(create=True) as store:
            source = {"kind": "cli"}
            run = asking_run()
            task = tasks.add(store, read.definition, by=caller(), source=source, dry_run=dry_run, run=run)
            with store.read() as session:
                warnings = (*warnings, *check_fits(session, read.definition))
    for note in warnings if not settings().as_json else ():
        out.note(f"warning: {plain(note)}")
    _answer(task, warnings, dry_run=dry_run)
    if not dry_run:
        hint_person(task)
        hint_nobody(address(), "it will run when somebody does")


def _folder(given: str | None, project: str | None) -> str | None:
    """Give the folder to work in: the one named, else none where the project has one, else where we were called."""
    from duly.cli.joining import absolute, address
    from duly.core.names import key_of
    from duly.store.store import Store

    if given is None and (store := Store.find(address(), os.environ)) is not None:
        try:
            with store.read() as session:
                owner = session.projects.by_key(key_of(project or "default"))
        finally:
            store.close()
        if owner is not None and owner.dir is not None:
            return None
    return absolute(given, "action.cwd")


def no_folder(cwd: str) -> tuple[str, ...]:
    """Warn of a folder that is not there now."""
    if Path(cwd).is_dir():
        return ()
    return (f"--cwd: {cwd} is no folder now; a run that finds none there fails (no_directory)",)


def _answer(task: "Task", warnings: tuple[str, ...], *, dry_run: bool) -> None:
    from itertools import islice

    from duly import zones
    from duly.operations import previewing, shapes
    from duly.operations.lookup import told

    definition = task.definition
    zone = zones.zone(definition.zone)
    coming = list(islice(previewing.ahead(task, known=not dry_run), UPCOMING_SHOWN))
    if settings().as_json:
        shown = shapes.task(task, pauses=(), last_run=None, open_missed=0)
        shown |= {
            "words": previewing.say(definition.triggers),
            "canonical": previewing.canonical(definition.triggers),
            "upcoming": [previewing.item_of(task, zone, one) for one in coming],
            "warnings": list(warnings),
            "dry_run": dry_run,
        }
        if dry_run and definition.rules.spread:
            shown["next_start_at"] = None  # its share is drawn from the id that it will get
        out.document(shown)
        return
    head = "would add" if dry_run else "added"
    out.line(f"{head} {out.styled(plain(told(task)), 'bold')}" + ("" if dry_run else f"  {task.id}"))
    out.lines(pairs(_understood(task, coming, task.planned_until), indent="  "))


def _understood(task: "Task", coming: "list[Coming]", now: datetime) -> list[tuple[str, str | Cell]]:
    from duly import zones
    from duly.cli.words import rules_told
    from duly.core.rule_fields import OF_AGENTS
    from duly.operations import previewing, shapes

    definition = task.definition
    zone = zones.zone(definition.zone)
    nexts = "\n".join(coming_text(one.due_at, one.start_at, zone, now) for one in coming)
    if not definition.enabled:
        nexts = "switched off: opens nothing until `duly enable`"
    told = {*definition.own_rules, "timeout"} | ({"idle_timeout"} | OF_AGENTS if _prompts(definition) else set())
    rules = {name: value for name, value in shapes.rules(task).items() if name in told}
    rows: list[tuple[str, str | Cell]] = [
        ("when", Cell(text=previewing.say(definition.triggers), wraps=True)),
        ("canonical", previewing.canonical(definition.triggers)),
        ("zone", definition.zone),
        ("next", nexts or _no_next(definition)),
        (kind_told(definition.action), plain(action_text(definition.action))),
        *([("in", plain(str(definition.action["cwd"])))] if "cwd" in definition.action else []),
        ("rules", "\n".join(rules_told(rules, definition.own_rules))),
    ]
    return rows


def _prompts(definition: "Definition") -> bool:
    return definition.action["kind"] == "agent"


def _no_next(definition: "Definition") -> str:
    from duly.core.events import OURS, sources_of

    sources = sorted(sources_of(definition))
    if not sources:
        return "by hand only: `duly run`"
    outside = next((one for one in sources if one.partition(".")[0] != OURS), None)
    return "when an event comes" + ("" if outside is None else f": `duly emit {outside}`")


add = Parted(
    "add",
    callback=_add,
    help=(
        "Add a task. All after -- is the command, as it stands; --shell LINE runs a line by sh -c instead, and"
        " --call package.module:function calls a Python function, --agent AGENT prompts an agent of the config."
    ),
    epilog=(
        "duly add backup --when 'daily 03:00' --zone Europe/Berlin -- pg_dump -f /backup/db.sql mydb\n"
        "duly add beat --when 'every 15m' --overlap queue --shell 'date >> beat.txt'\n"
        "duly add tidy --when 'daily 04:00' --call shop.jobs:tidy --args '[\"/srv/shop\", 30]'\n"
        "duly add news --when 'weekdays 08:00' --agent claude --prompt 'What changed here since yesterday?'"
    ),
    params=[
        click.Argument(["name"], metavar="NAME"),
        click.Argument(["extra"], nargs=-1, metavar=""),
        *options(),
        click.Option(["--dry-run"], is_flag=True, help="Say what would be added, and add nothing."),
    ],
)
