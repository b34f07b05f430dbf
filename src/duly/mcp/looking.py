"""The tools that look at schedules: a list, one of them whole, what a WHEN means, why something ran or did not."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from duly import clock, zones
from duly.core import when
from duly.core.names import key_of
from duly.core.spans import read_instant
from duly.errors import Refused
from duly.mcp import answers
from duly.mcp.desk import NOBODY, UNTRUSTED, Desk, answer, is_seen, is_served, task_of
from duly.operations import listing, previewing, reaching, shapes, shapes_why, showing
from duly.operations.askers import Asker
from duly.operations.lookup import told
from duly.operations.rail import A_PERSON
from duly.store import Session

PREVIEW_MOST = 100
LIST_MOST = 200
PAGE = 200

Word = Annotated[str, Field(description="a task: its name, project/name, or id", max_length=200)]
Zone = Annotated[str | None, Field(description="IANA zone of local times, such as Europe/Berlin", max_length=100)]
Cursor = Annotated[str | None, Field(description="`next` of the page before", max_length=100)]
Wanted = tuple[str | None, str | None, str | None]
"""A project, a part of a name, a state; None where any will do."""


class Looking:
    """Tools that change nothing."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def schedule_list(
        self,
        ctx: Context[Any, Any],
        project: Annotated[str | None, Field(description="of this project alone", max_length=80)] = None,
        contains: Annotated[str | None, Field(description="whose name or description has this", max_length=80)] = None,
        state: Annotated[
            str | None,
            Field(pattern="^(on|disabled|paused|waits_for_a_person|done|broken)$", description="of this state"),
        ] = None,
        cursor: Cursor = None,
        limit: Annotated[int, Field(ge=1, le=LIST_MOST)] = 50,
    ) -> answers.LINES:
        """List the tasks."""
        with self._desk.reading(ctx) as seen:
            if seen is None:
                return answer(NO_STORE, {"items": [], "next": None})
            asker, store, session = seen
            found, following = _page(session, asker, (project, contains, state), cursor, limit)
            text = [_line_text(one) for one in found] or ["There are no such tasks."]
            if following is not None:
                text.append(f"More: call again with cursor {following}.")
            if not is_served(store, session):
                text.append(NOBODY)
            return answer(text, {"items": found, "next": following})

    def schedule_get(self, ctx: Context[Any, Any], task: Word) -> answers.TASK:
        """Show a task."""
        with self._desk.reading(ctx) as seen:
            if seen is None:
                raise nothing_yet(task)
            asker, _, session = seen
            shown = showing.task(session, task_of(session, asker, task))
            state = state_of(shown.listed)
            shape = {**shown.shape, "name": told(shown.listed.task), "state": state, "recent": list(shown.recent)}
            return answer(_task_text(shape), shape)

    def schedule_preview(
        self,
        ctx: Context[Any, Any],
        when: Annotated[list[str], Field(description="triggers, such as daily 09:00", min_length=1, max_length=20)],
        zone: Zone = None,
        after: Annotated[str | None, Field(description="an instant that stands for now", max_length=60)] = None,
        limit: Annotated[int, Field(ge=1, le=PREVIEW_MOST)] = 5,
    ) -> answers.PREVIEW:
        """Say what triggers mean."""
        self._desk.asker(ctx, "read")
        name = self._desk.named_zone(zone)
        place, now = zones.zone(name), clock.now()
        if after is not None:
            now = read_instant(after, now=now, zone=place, bare="ahead", field="after")
        triggers, notes = read_when(when, zone=name, now=now)
        shape = previewing.preview(triggers, place, after=now, most=limit) | {"warnings": notes}
        text = [f"{shape['words']} ({shape['canonical']}; {place.key})", *instants_text(shape["items"])]
        return answer([*text, *(f"Warning: {note}" for note in notes)], shape)

    def schedule_why(
        self,
        ctx: Context[Any, Any],
        of: Annotated[str, Field(description="a task or a run, by name or id", max_length=200)],
        at: Annotated[str | None, Field(description="an instant, past or to come, or -2h", max_length=60)] = None,
        zone: Zone = None,
    ) -> answers.WHY:
        """Say why something ran, did not, or will not."""
        from duly.operations import why as asking
        from duly.operations.serving import alive

        with self._desk.reading(ctx) as seen:
            if seen is None:
                raise nothing_yet(of)
            asker, store, session = seen
            # A removed task is asked about by who may see all.
            word = of if asker.projects is None else reaching.task_or_run(session, asker, of).id
            place = zones.zone(zone or self._desk.zone or "UTC")
            moment = None if at is None else read_instant(at, now=session.now, zone=place, field="at")
            found = asking.why(
                session,
                word,
                moment,
                alive=alive(store, session),
                boot=store.clock.lease_boot(),
                projects=asker.projects,
            )
            shape = shapes_why.why(found)
            upcoming: Any = shape["upcoming"]
            told_ = [shape["answer"], shape["because"], None if upcoming is None else f"Next: {upcoming['answer']}"]
            nobody = [] if is_served(store, session) else [NOBODY]
            return answer([*(str(one) for one in told_ if one), *nobody], shape)


NO_STORE = "There is no store yet: nothing is scheduled. schedule_create makes it with the first task."


def nothing_yet(word: str) -> Refused:
    """Refuse what asks for something in particular where there is no store."""
    return Refused("unknown_id", f"there is no {word}: nothing is scheduled yet", details={"word": word})


def read_when(texts: Sequence[str], *, zone: str, now: datetime) -> tuple[Any, list[str]]:
    """Read triggers, and give what their author should know."""
    place = zones.zone(zone)
    triggers = when.read_all(texts, now=now, zone=place)
    warned = zones.warning(zone)
    notes = [note for text in texts if triggers for note in when.read(text, now=now, zone=place).warnings]
    return triggers, [*([warned] if warned else []), *dict.fromkeys(notes)]


def state_of(one: listing.Listed) -> str:
    """Give the one word for how a task stands."""
    task = one.task
    if task.broken is not None:
        return "broken"
    if any((hold.note or "").endswith(f": {A_PERSON}") for hold in one.pauses):
        return "waits_for_a_person"
    if task.done:
        return "done"
    return "disabled" if not task.definition.enabled else "paused" if one.pauses else "on"


def line(one: listing.Listed) -> dict[str, object]:
    """Show a task in few words."""
    task = one.task
    return {
        "id": task.id,
        "name": told(task),
        "project": task.definition.project,
        "words": previewing.say(task.definition.triggers),
        "state": state_of(one),
        "next_due_at": shapes.instant(task.next_due_at),
        "last_outcome": None if one.last_run is None else one.last_run.outcome,
        "failures_in_a_row": task.failures_in_a_row,
        "open_missed": one.open_missed,
    }


def instants_text(items: object) -> list[str]:
    """Tell instants to come, a line each."""
    assert isinstance(items, list)
    lines = [
        f"- {one['local'].replace('T', ' ')} {one['zone']} ({one['due_at']})"
        + (f", {one['note']}" if one["note"] else "")
        for one in items
    ]
    return lines or ["It has no instant of its own: an event or run_now starts it."]


def _page(
    session: Session, asker: Asker, wanted: Wanted, cursor: str | None, limit: int
) -> tuple[list[dict[str, object]], str | None]:
    found = list(islice(_walked(session, asker, wanted, cursor), limit + 1))
    return found[:limit], str(found[limit - 1]["id"]) if len(found) > limit else None


def _walked(session: Session, asker: Asker, wanted: Wanted, cursor: str | None) -> Iterator[dict[str, object]]:
    """Walk along the tasks that this asker may see and wants."""
    project, contains, state = wanted
    key = None if project is None else key_of(project)
    while True:
        page, cursor = listing.tasks(session, cursor=cursor, most=PAGE)
        for one in page:
            definition = one.task.definition
            texts = f"{told(one.task)}\n{definition.description}".casefold()
            fits = (key is None or key_of(definition.project) == key) and (contains or "").casefold() in texts
            if fits and is_seen(asker, definition.project) and state in (None, state_of(one)):
                yield line(one)
        if cursor is None:
            return


def _line_text(one: Mapping[str, object]) -> str:
    following = f", next {one['next_due_at']}" if one["next_due_at"] else ""
    last = f", last {one['last_outcome']}" if one["last_outcome"] else ""
    missed = f", {one['open_missed']} missed wait for an answer" if one["open_missed"] else ""
    return f"- {one['name']}: {one['words']}; {one['state']}{following}{last}{missed}"


def _task_text(shape: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{shape['name']} ({shape['id']}, version {shape['version']}): {shape['words']}, {shape['state']}",
        *([shape["description"]] if shape["description"] else []),
        f"Does: {shape['action']}",
        "Next:",
        *instants_text(shape["upcoming"]),
    ]
    if shape["broken"]:
        lines.append(f"Broken: {shape['broken']['field']}: {shape['broken']['message']}")
    lines += [f"Held by {one['by']}: {one['note'] or 'no note'}" for one in shape["paused"]]
    newest = [f"- {one['id']}: {one['outcome'] or one['state']}, due {one['due_at']}" for one in shape["recent"]]
    lines += ["Newest runs:", *newest] if newest else ["It has not run yet."]
    if any(one["error"] for one in shape["recent"]):
        errors = [f"- {one['id']}: {one['error']}" for one in shape["recent"] if one["error"]]
        lines += [UNTRUSTED, *errors]
    return lines
