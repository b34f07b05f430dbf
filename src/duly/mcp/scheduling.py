"""The tools that change schedules: create, update, pause, resume, delete; each within the rails for agents."""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from duly import clock, zones
from duly.core.definition_json import definition_to_json
from duly.core.names import key_of
from duly.core.notes import check_note
from duly.core.spans import read_instant
from duly.core.task import Definition, Task
from duly.definitions import Understood, read_definition
from duly.errors import Invalid, Refused
from duly.mcp import answers, rails
from duly.mcp.desk import NOBODY, Desk, answer, is_served, task_of
from duly.mcp.looking import Word, Zone, instants_text, line, state_of
from duly.operations import edits, listing, previewing, tasks
from duly.operations.askers import Asker, check_project
from duly.operations.limits import check_fits
from duly.operations.lookup import told
from duly.operations.rail import waiting_for_a_person
from duly.store import Session, Store

UPCOMING = 3
KEY_MOST = 200
DO = ("command", "shell", "agent")
FOLDER = "a command or an agent works in a folder: an absolute path"
Changes = Annotated[
    dict[str, Any],
    Field(
        description="a JSON merge patch of the definition, null goes back to the default; such as"
        ' {"description": "…", "enabled": false, "action": {"prompt": "…"}, "rules": {"timeout": "15m"}}'
    ),
]


class Scheduling:
    """Tools that write definitions."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def schedule_create(  # noqa: PLR0913, RUF100
        self,
        ctx: Context[Any, Any],
        name: Annotated[str, Field(description="what to call it, unique in its project", min_length=1, max_length=80)],
        when: Annotated[
            list[str],
            Field(description='triggers: daily 09:00, weekly mon-fri 08:15, "*/15 * * * *", once in 20m, manual'),
        ],
        agent: Annotated[str | None, Field(description="an agent of this host, by its name in the config")] = None,
        prompt: Annotated[str | None, Field(description="what it is asked; it knows nothing of this chat")] = None,
        command: Annotated[
            list[str] | None, Field(description="a program and its arguments, in place of agent")
        ] = None,
        shell: Annotated[str | None, Field(description="a line for sh -c, in place of agent")] = None,
        cwd: Annotated[str | None, Field(description=FOLDER)] = None,
        zone: Zone = None,
        project: Annotated[str | None, Field(max_length=80)] = None,
        description: Annotated[str | None, Field(max_length=2000)] = None,
        rules: Annotated[dict[str, Any] | None, Field(description='such as {"timeout": "15m", "retries": 2}')] = None,
        model: Annotated[str | None, Field(description="of the agent, as provider/model", max_length=200)] = None,
        key: Annotated[
            str | None, Field(description="the same again makes no second task", min_length=1, max_length=KEY_MOST)
        ] = None,
        dry_run: Annotated[bool, Field(description="judge it, and keep nothing")] = False,
    ) -> answers.WRITTEN:
        """Add a task."""
        action = _action(agent=agent, prompt=prompt, model=model, command=command, shell=shell, cwd=cwd)
        given = {"name": name, "project": project, "triggers": when, "zone": zone, "description": description}
        wanted = {**{field: value for field, value in given.items() if value is not None}, "action": action}
        wanted |= {"rules": rules} if rules else {}
        asker = self._creator(ctx)
        check_project(asker, project or "default")
        if dry_run and (judged := self._judged_without_a_store(asker, wanted)) is not None:
            return judged
        with self._desk.opening.changing() as store:
            first = None if key is None else self._first(store, wanted, key)
            if first is not None:
                return self._written(store, first)
            return self._add(store, asker, wanted, key, dry_run=dry_run)

    def schedule_update(
        self,
        ctx: Context[Any, Any],
        task: Word,
        when: Annotated[list[str] | None, Field(description="triggers in place of all it has")] = None,
        changes: Changes | None = None,
        if_version: Annotated[int | None, Field(description="refuse where another was here since", ge=1)] = None,
        dry_run: Annotated[bool, Field(description="judge it, and keep nothing")] = False,
    ) -> answers.WRITTEN:
        """Change a task."""
        patch = {**(changes or {}), **({} if when is None else {"triggers": when})}
        if not patch:
            raise Invalid("nothing is to be changed", field="changes", hint='"when", or "changes"')
        with self._desk.changing(ctx, "write") as (asker, store):
            with store.read() as session:
                before = task_of(session, asker, task)
            if "project" in patch:
                check_project(asker, str(patch["project"] or "default"))
            seen = edits.edit(store, before.id, patch, by=asker.name, if_version=if_version, dry_run=True)
            rails.check(seen.after.definition, seen.after, self._desk.rails)
            if dry_run:
                done = seen
            else:
                held = rails.held_for(seen.after.definition, self._desk.rails) if _acts(seen) else None
                # What was judged is what is written: nobody else has changed it in between.
                done = edits.edit(
                    store, before.id, patch, by=asker.name, if_version=seen.before.version, run=asker.run, held=held
                )
            changed = tuple(one.field for one in done.changes)
            return self._written(store, done.after, changes=changed, warnings=done.warnings, dry_run=dry_run)

    def schedule_pause(
        self,
        ctx: Context[Any, Any],
        task: Word,
        note: Annotated[str, Field(description="why, for others to read", min_length=1, max_length=200)],
        until: Annotated[str | None, Field(description="when it ends by itself: 2h, or an instant")] = None,
        zone: Zone = None,
    ) -> answers.SWITCHED:
        """Hold a task."""
        check_note(note)
        end = None
        if until is not None:
            place = zones.zone(zone or self._desk.zone or "UTC")
            end = read_instant(until, now=clock.now(), zone=place, bare="ahead", field="until")
        with self._desk.changing(ctx, "write") as (asker, store):
            of = _not_waiting(store, asker, task, "held already, and")
            tasks.pause(store, "task", of.id, until=end, note=note, by=asker.name)
            return _switched(store, of, "paused")

    def schedule_resume(self, ctx: Context[Any, Any], task: Word) -> answers.SWITCHED:
        """Let a held task go on."""
        with self._desk.changing(ctx, "write") as (asker, store):
            of = _not_waiting(store, asker, task, "held, and")
            tasks.unpause(store, "task", of.id, by=asker.name, run=asker.run)
            return _switched(store, of, "resumed")

    def schedule_delete(self, ctx: Context[Any, Any], task: Word) -> answers.SWITCHED:
        """Remove a task."""
        with self._desk.changing(ctx, "write") as (asker, store):
            with store.read() as session:
                of = task_of(session, asker, task)
            tasks.remove(store, of.id, by=asker.name)
            shape = {"id": of.id, "name": told(of), "state": "removed", "next_due_at": None}
            return answer(f"Removed {told(of)}; its runs and its ledger stay.", shape)

    def _creator(self, ctx: Context[Any, Any]) -> Asker:
        """Say who adds: who may write, or a run that may run others; what it adds waits for a person."""
        asker = self._desk.asker(ctx, "read")
        return asker if asker.run is not None and asker.may("run") else self._desk.asker(ctx, "write")

    def _first(self, store: Store, wanted: Mapping[str, object], key: str) -> Task | None:
        """Find the task that was made by this key; refused where it was another one."""
        with store.read() as session:
            project = key_of(str(wanted.get("project", "default")))
            found = session.tasks.by_name(project, key_of(str(wanted["name"])))
            if found is None or found.source.get("kind") != rails.SOURCE or found.source.get("key") != key:
                return None
            read = self._read(wanted, found)
            same = definition_to_json(read.definition) == edits.as_written(session, found)
        if not same:
            raise Refused(
                "key_reused",
                f"the key {key} was used for {told(found)}, which is another task by now",
                details={"task": found.id, "key": key},
                hint="schedule_update, or another key and name",
            )
        return found

    def _read(self, wanted: Mapping[str, object], kept: Task | None = None) -> Understood:
        triggers = () if kept is None else kept.definition.triggers
        return read_definition(wanted, now=clock.now(), default_zone=self._desk.zone, kept=triggers)

    def _judged_without_a_store(self, asker: Asker, wanted: Mapping[str, object]) -> answers.WRITTEN | None:
        """Judge a definition where there is no store yet, which judging does not make; None where there is one."""
        with self._desk.opening.reading() as store:
            if store is not None:
                return None
        read = self._read(wanted)
        _check_folder(read.definition)
        task = tasks.first_version(read.definition, now=clock.now(), by=asker.name, source={"kind": rails.SOURCE})
        rails.check(read.definition, task, self._desk.rails)
        return _told(*_understood(None, task), read.warnings, changes=(), served=False, dry_run=True)

    def _add(
        self, store: Store, asker: Asker, wanted: Mapping[str, object], key: str | None, *, dry_run: bool
    ) -> answers.WRITTEN:
        read = self._read(wanted)
        with store.read() as session:
            filled = session.defaults.fill_in(read.definition)
            _check_folder(filled)
            source = {"kind": rails.SOURCE, "key": key}
            first = tasks.first_version(filled, now=session.now, by=asker.name, source=source)
            rails.check(filled, first, self._desk.rails)
            rails.check_count(session, self._desk.rails)
            notes = check_fits(session, filled)
        held = rails.held_for(filled, self._desk.rails)
        made = tasks.add(
            store, read.definition, by=asker.name, source=source, dry_run=dry_run, run=asker.run, held=held
        )
        return self._written(store, made, warnings=(*read.warnings, *notes), dry_run=dry_run)

    def _written(
        self,
        store: Store,
        task: Task,
        *,
        changes: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
        dry_run: bool = False,
    ) -> answers.WRITTEN:
        with store.read() as session:
            shape, text = _understood(None if dry_run else session, task)
            served = is_served(store, session)
        return _told(shape, text, warnings, changes=changes, served=served, dry_run=dry_run)


def _told(
    shape: dict[str, object],
    text: list[str],
    warnings: tuple[str, ...],
    *,
    changes: tuple[str, ...],
    served: bool,
    dry_run: bool,
) -> answers.WRITTEN:
    whole = {**shape, "warnings": list(warnings), "served": served, "dry_run": dry_run, "changes": list(changes)}
    lines = [*text, *([f"Changed: {', '.join(changes)}."] if changes else []), *(f"Warning: {one}" for one in warnings)]
    return answer(lines if served else [*lines, NOBODY], whole)


def _action(**given: Any) -> dict[str, object]:
    """Put together what shall be done; Invalid where it is nothing, or two things."""
    said = [name for name in DO if given[name] is not None]
    if len(said) != 1:
        text = "is missing: one of command, shell and agent" if not said else f"is both {' and '.join(said)}"
        raise Invalid(f"what shall be done {text}", field="action", hint='"agent" with "prompt"')
    others = {name: given[name] for name in ("prompt", "model", "cwd") if given[name] is not None}
    if said == ["agent"]:
        return {"kind": "agent", "agent": given["agent"], **others}
    return {"kind": "command", "argv" if said == ["command"] else "shell": given[said[0]], **others}


def _check_folder(definition: Definition) -> None:
    """Refuse work without a folder: there is none in which this was typed."""
    if definition.action.get("kind") in ("command", "agent") and definition.action.get("cwd") is None:
        project = definition.project
        raise Invalid(
            f"it is missing: the project {project} has no folder",
            field="action.cwd",
            hint=f"an absolute path as cwd, or duly project set {project} --dir PATH",
        )


def _acts(edited: edits.Edited) -> bool:
    """Say whether an edit changed what is done, or what it may do."""
    told_ = {one.field for one in edited.changes}
    return any(one.startswith("action") for one in told_) or bool(
        told_ & {"rules.gate", "rules.unattended", "rules.permissions", "rules.store_access"}
    )


def _not_waiting(store: Store, asker: Asker, word: str, what: str) -> Task:
    """Find a task; refused where it waits for a person, whom no agent stands for."""
    with store.read() as session:
        task = task_of(session, asker, word)
        hold = waiting_for_a_person(session, task)
    if hold is not None:
        raise Refused(
            "not_allowed",
            f"{told(task)} is {what} waits for a person: {hold.note}",
            details={"task": task.id, "note": hold.note},
            hint=f"ask a person to type: duly unpause {told(task)}",
        )
    return task


def _switched(store: Store, task: Task, done: str) -> answers.SWITCHED:
    with store.read() as session:
        again = session.tasks.by_id(task.id)
        assert again is not None
        shown = line(listing.one(session, again))
    following = f", next {shown['next_due_at']}" if shown["next_due_at"] else ""
    shape = {name: shown[name] for name in ("id", "name", "state", "next_due_at")}
    return answer(f"{told(task)} is {done}: {shown['state']}{following}.", shape)


def _understood(session: Session | None, task: Task) -> tuple[dict[str, object], list[str]]:
    """Show how a task was understood; without a session, one that is only judged."""
    definition = task.definition
    zone = zones.zone(definition.zone)
    coming = islice(previewing.ahead(task, known=session is not None), UPCOMING)
    items = [previewing.item_of(task, zone, one) for one in coming]
    switch = "on" if definition.enabled else "disabled"
    state = switch if session is None else state_of(listing.one(session, task))
    shape: dict[str, object] = {
        "id": task.id,
        "name": told(task),
        "project": definition.project,
        "state": state,
        "version": task.version,
        "words": previewing.say(definition.triggers),
        "canonical": previewing.canonical(definition.triggers),
        "zone": definition.zone,
        "upcoming": items,
    }
    head = f"{told(task)}: {shape['words']} ({shape['canonical']}; {definition.zone}), {state}"
    text = [f"Would be: {head}" if session is None else head, *instants_text(items)]
    if state == "waits_for_a_person":
        text.append(f"A person must let it start: ask them to type `duly unpause {told(task)}`. No agent can.")
    return shape, text
