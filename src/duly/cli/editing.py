"""`edit`: a task's definition changed by options, or whole in an editor, answered with what changed."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from duly.cli import out
from duly.cli.actions import KIND_BY, SAYS, action_text, kind_told, read_files, what_is_said
from duly.cli.fields import AMOUNTS, cleared, gathered, options, spelled
from duly.cli.frame import settings
from duly.cli.joining import absolute, hint, open_for_change
from duly.cli.parting import Parted, words
from duly.cli.table import Cell, pairs, plain, trimmed
from duly.cli.words import many
from duly.core.action_fields import FIELDS_OF
from duly.core.amounts import WORDS
from duly.core.successes import PARTS
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.core.task import Task
    from duly.operations.edits import Change, Edited
    from duly.store.store import Store

UPCOMING_SHOWN = 3
VALUE_MOST = 60
NONE = "none"
DOING = frozenset(
    f"action.{name}"
    for name in (
        "kind",
        "argv",
        "shell",
        "function",
        "args",
        "in",
        "agent",
        "prompt",
        "prompt_file",
        "model",
        "session",
        "goal",
        "worktree",
        "url",
        "method",
        "headers",
        "body",
        "sign",
    )
)


def _edit(
    task: str,
    extra: tuple[str, ...],
    clear: tuple[str, ...],
    if_version: str | None,
    file: str | None,
    dry_run: bool,
    **given: Any,
) -> None:
    """Edit a task and say what changed."""
    from duly.cli.previewing import number
    from duly.operations import edits
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run

    version = None if if_version is None else number(if_version, "--if-version", 10**9)
    patch, taken = _patch(extra, given), cleared(clear)
    _check_words(patch, clear, file)
    with open_for_change() as store:
        how: dict[str, Any] = {"by": caller(), "if_version": version, "dry_run": dry_run, "run": asking_run()}
        if patch or taken:
            done = edits.edit(store, task, patch, cleared=taken, **how)
        else:
            edited = _from_a_text(store, task, file, how)
            if edited is None:
                return
            done = edited
        _answer(store, done, dry_run=dry_run)


def _patch(extra: tuple[str, ...], given: dict[str, Any]) -> dict[str, object]:
    """Gather what the options change into a merge patch; what is to be done now takes the place of what was."""
    argv = words()
    if argv is not None and not argv:
        raise Invalid("it is missing: what shall be done?", field="action.argv", hint="duly edit TASK -- COMMAND ARG…")
    said = what_is_said(extra, {"argv": argv, **given}, verb="duly edit TASK")
    if given["cwd"] is not None:
        given["cwd"] = absolute(given["cwd"], "action.cwd")
    read_files(given)
    patch = gathered({"argv": argv, **given})
    _other_prompt(patch)
    _whole_amounts(patch)
    _whole_session(patch)
    if said is None:
        return patch
    kind = KIND_BY[said]
    others = {name for name in SAYS if name != said}
    others |= {name for fields in FIELDS_OF.values() for name in fields if name not in FIELDS_OF[kind]}
    action = cast(dict[str, object], patch["action"])
    # What the new kind of action does not have is refused where it was given, and goes where it only stood there.
    patch["action"] = {"kind": kind} | dict.fromkeys(sorted(others - action.keys())) | action
    return patch


def _other_prompt(patch: dict[str, object]) -> None:
    """A prompt takes the place of a prompt's file, and the other way round."""
    action = patch.get("action")
    if isinstance(action, dict) and ("prompt" in action) != ("prompt_file" in action):
        action["prompt" if "prompt_file" in action else "prompt_file"] = None


def _whole_session(patch: dict[str, object]) -> None:
    """A session takes the place of what stood there, whole."""
    action = patch.get("action")
    session = action.get("session") if isinstance(action, dict) else None
    if isinstance(session, dict):
        session.setdefault("busy", None)


def _whole_amounts(patch: dict[str, object]) -> None:
    """A budget, an estimate or a success takes the place of what stood there, whole."""
    rules = patch.get("rules")
    if isinstance(rules, dict):
        if "success_when" in rules:
            rules["success_when"] = dict.fromkeys(PARTS) | rules["success_when"]
        for name in AMOUNTS & rules.keys():
            rules[name] = dict.fromkeys(WORDS.values()) | rules[name]


def _check_words(patch: Mapping[str, object], clear: tuple[str, ...], file: str | None) -> None:
    for name in clear:
        field = cleared((name,))
        both = _both(patch, field)
        if both is not None:
            raise Invalid(f"it is given and cleared at once: {spelled(both)}", field="--clear", hint="one of the two")
    if file is not None and (patch or clear):
        raise Invalid("a whole definition and options that change parts exclude each other", field="--file")


def _both(patch: object, taken: object, path: str = "") -> str | None:
    """Find what is both set and cleared; a mapping that is cleared whole may be given anew."""
    if not isinstance(taken, Mapping) or not isinstance(patch, Mapping):
        return path if taken is None and not isinstance(patch, Mapping) else None
    for key, value in taken.items():
        if key in patch and (found := _both(patch[key], value, f"{path}.{key}".lstrip("."))):
            return found
    return None


def _from_a_text(store: "Store", task: str, file: str | None, how: dict[str, Any]) -> "Edited | None":
    """Write a definition anew from a file or an editor; faults are told in the words of the text, not as options."""
    from duly.operations import edits

    try:
        return _in_an_editor(store, task, how) if file is None else edits.rewrite(store, task, _read_file(file), **how)
    except Invalid as bad:
        if bad.field is None:
            raise
        told = f"{bad.field}: {bad.message}"
        details = {**bad.details, "field": bad.field}
        raise Invalid(told, text=bad.text, at=bad.at, hint=bad.hint, details=details) from bad


def _read_file(name: str) -> dict[str, object]:
    from duly.cli.definition_text import TEXT_MOST, read

    try:
        if name == "-":
            data = sys.stdin.buffer.read(TEXT_MOST + 1)
        else:
            with Path(name).expanduser().open("rb") as file:
                data = file.read(TEXT_MOST + 1)
    except (OSError, ValueError) as bad:
        why = bad.strerror if isinstance(bad, OSError) else "it is no file's name"
        raise Invalid(f"{plain(name)} cannot be read: {why}", field="--file") from bad
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return read(text)


def _in_an_editor(store: "Store", word: str, how: dict[str, Any]) -> "Edited | None":
    from duly.cli import definition_text, editor
    from duly.operations import edits, shapes
    from duly.operations.lookup import find_task, told
    from duly.operations.owned import refuse_edit
    from duly.operations.versions import check_version

    with store.read() as session:
        task = find_task(session, word)
        refuse_edit(task)
        check_version(session, task, how["if_version"])
        written = edits.as_written(session, task)
    head = [f"{told(task)} ({task.id}), version {task.version}"]
    if task.broken is not None:
        head.append(f"It no longer reads: {task.broken.field}: {task.broken.message}")
    head.append("Change what you like and save. Left as it is, or emptied, it changes nothing.")
    text = definition_text.write(
        {**written, "triggers": edits.triggers_as_text(task, written)},
        head=[plain(line) for line in head],
        rules=shapes.rules(task),
        origins=task.definition.inherited,
    )
    how = {**how, "if_version": task.version}
    left = editor.edit(
        text,
        lambda found: edits.rewrite(store, task.id, definition_text.read(found), **how),
        name=told(task),
        is_empty=definition_text.is_empty,
    )
    if left.made is None:
        if settings().as_json:
            _answer(store, edits.unchanged(task), dry_run=how["dry_run"])
        else:
            out.line(f"{plain(told(task))} was left as it is")
        if left.kept is not None:
            hint(f"the text is kept in {plain(str(left.kept))}; duly edit {plain(told(task))} --file takes it up again")
    return left.made


def _answer(store: "Store", done: "Edited", *, dry_run: bool) -> None:
    from itertools import islice

    from duly import zones
    from duly.cli.joining import address, hint_nobody
    from duly.operations import defining, listing, previewing
    from duly.operations.lookup import ending, told

    with store.read() as session:
        if settings().as_json:
            out.document(defining.edited_shape(session, done, dry_run=dry_run))
            return
        one, now = listing.one(session, done.after), session.now
        live = session.runs.live_of(done.after.id)
    task = done.after
    zone = zones.zone(task.definition.zone) if task.broken is None else None
    coming = [] if zone is None else list(islice(previewing.upcoming(task, now), UPCOMING_SHOWN))
    for note in done.warnings:
        out.note(f"warning: {plain(note)}")
    name = out.styled(plain(told(task)), "bold")
    if not done.changes and not done.new_era:
        out.line(f"{name} is so already: nothing was changed  version {task.version}")
        return
    verb = "would edit" if dry_run else "edited"
    out.line(f"{verb} {name}  {task.id}  version {task.version}")
    rows = _rows(done)
    if done.new_era or any(change.field in {"enabled", "project", "rules.spread"} for change in done.changes):
        rows.append(("next", _next(task, coming, zone, now, held=bool(one.pauses))))
    out.lines(pairs(rows, indent="  "))
    if done.ended:
        what = many(done.ended, "waiting run")
        out.line(f"  {what} of before {'would end' if dry_run else 'ended'} without a start")
    if live and not dry_run:
        hint(f"what runs goes on as it was started: {ending(live[0].id)}")
    if done.new_era and not dry_run and task.next_start_at is not None:
        hint_nobody(address(), "it will run when somebody does")


def _rows(done: "Edited") -> list[tuple[str, str | Cell]]:
    """Tell each change a line; all that says what is done is one thing."""
    rows: list[tuple[str, str | Cell]] = []
    told = False
    for change in done.changes:
        if change.field not in DOING:
            rows.append(_row(change, done))
        elif not told:
            old, new = (_short(action_text(task.definition.action)) for task in (done.before, done.after))
            name = kind_told(done.after.definition.action)
            rows.append((name, Cell(text=f"{old or NONE} → {new}", wraps=True)))
            told = True
    return rows


def _row(change: "Change", done: "Edited") -> tuple[str, str | Cell]:
    name = change.field.removeprefix("rules.").removeprefix("action.")
    old, new = (
        _value(change.field, value, task) for value, task in ((change.old, done.before), (change.new, done.after))
    )
    return ("when" if name == "triggers" else name, Cell(text=f"{old} → {new}", wraps=True))


def _value(field: str, value: object, task: "Task") -> str:
    """Tell one side of a change as a person would write it, shortened where it is long."""
    from duly.cli.words import rule_text
    from duly.operations import previewing, shapes

    if field == "triggers":
        return previewing.canonical(task.definition.triggers)
    if field.startswith("rules."):
        name = field.removeprefix("rules.")
        if value is not None:
            return _short(rule_text(value))
        in_force = rule_text(shapes.rules(task)[name]) or NONE
        whose = task.definition.inherited.get(name)
        return f"{_short(in_force)} ({f'{whose}{chr(39)}s default' if whose else 'default'})"
    if field == "action.cwd" and value is None:
        folder = task.definition.action.get("cwd")
        return f"{folder} (the project's folder)" if folder else NONE
    return _short(rule_text(value)) or NONE


def _short(text: str) -> str:
    return trimmed(plain(text), VALUE_MOST)


def _next(task: "Task", coming: Any, zone: Any, now: Any, *, held: bool) -> str:
    from duly.cli.moments import coming_text

    if not task.definition.enabled:
        return "switched off: opens nothing until `duly enable`"
    if held:
        return "paused: opens nothing until `duly unpause`"
    lines = [coming_text(one.due_at, one.start_at, zone, now) for one in coming]
    return "\n".join(lines) or "none by itself"


edit = Parted(
    "edit",
    callback=_edit,
    help=(
        "Change a task: by options, those of `duly add`; or, with none, its whole definition in $EDITOR. "
        "--when replaces all triggers, --env, --label and --limit add to what is there, all after -- is the command."
    ),
    epilog=(
        "duly edit backup\n"
        "duly edit backup --when 'daily 04:00' --max-age 12h\n"
        "duly edit backup --clear max-age --clear env.PGHOST --if-version 3\n"
        "duly edit backup --name nightly --project ops"
    ),
    params=[
        click.Argument(["task"], metavar="TASK"),
        click.Argument(["extra"], nargs=-1, metavar=""),
        click.Option(["--name"], metavar="NEW", help="another name; the history stays"),
        *options(editing=True),
        click.Option(
            ["--clear"],
            metavar="RULE",
            multiple=True,
            help="back to the default: a rule, description, label, env, cwd; or one entry, such as env.PATH",
        ),
        click.Option(["--if-version"], metavar="N", help="only if the task is still at this version"),
        click.Option(["--file"], metavar="PATH", help="take the whole definition from this file (- is standard input)"),
        click.Option(["--dry-run"], is_flag=True, help="Say what would change, and change nothing."),
    ],
)
