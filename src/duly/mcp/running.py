"""The tools for runs: start one, list them, one with its story, what it wrote, end it; and what was missed."""

from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from duly.core import story
from duly.core.run import Run
from duly.core.spans import read_instant
from duly.mcp import answers
from duly.mcp.desk import NOBODY, UNTRUSTED, Desk, answer, is_seen, is_served, run_of, task_of
from duly.mcp.looking import NO_STORE, Cursor, Word, nothing_yet
from duly.mcp.rails import check_texts
from duly.operations import listing, missed, outputs, reaching, runs, shapes, showing, standing
from duly.operations.askers import Asker
from duly.operations.lookup import told
from duly.runners.folders import folder_of
from duly.store import Session, Store

LIST_MOST = 200
LOG_MOST = 65_536
LOG_USUAL = 8_000
INPUT_MOST = 100_000
LINE_FIELDS = (
    "id", "task", "task_name", "project", "state", "outcome", "reason", "due_at", "started_at", "ended_at", "error",
    "opened_by", "opened_by_whom", "waiting_for", "question",
)  # fmt: skip
RunWord = Annotated[str, Field(description="a run's id, or a task: then its newest run", max_length=200)]
Limit = Annotated[int, Field(ge=1, le=LIST_MOST)]
Page = Callable[[str | None], tuple[list[dict[str, object]], str | None]]


class Running:
    """Tools about runs, and about occurrences that never became one."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def run_now(
        self,
        ctx: Context[Any, Any],
        task: Word,
        input: Annotated[  # noqa: A002 - the word of the command line
            str | None, Field(description="what the work is given for this run alone", max_length=INPUT_MOST)
        ] = None,
        key: Annotated[
            str | None, Field(description="the same again answers with the first run", max_length=200)
        ] = None,
        queue: Annotated[bool, Field(description="if the task is running, wait for its end")] = False,
    ) -> answers.RUN:
        """Start a run by hand."""
        check_texts(iter([("input", input or "")]))
        with self._desk.changing(ctx, "run") as (asker, store):
            with store.read() as session:
                of = task_of(session, asker, task)
            opened = runs.run_now(store, of.id, by=asker.name, input_=input, key=key, queue=queue)
            return _run_answer(store, opened, f"{told(of)}: {opened.id} is {shapes.state(opened)}")

    def run_list(
        self,
        ctx: Context[Any, Any],
        task: Annotated[str | None, Field(description="of this task alone", max_length=200)] = None,
        state: Literal["waiting", "running", "parked", "ended"] | None = None,
        outcome: Literal["succeeded", "failed", "timed_out", "cancelled", "abandoned", "skipped"] | None = None,
        since: Annotated[str | None, Field(description="7d, or an instant", max_length=60)] = None,
        cursor: Cursor = None,
        limit: Limit = 20,
    ) -> answers.RUNS:
        """List runs."""
        from duly import zones

        with self._desk.reading(ctx) as seen:
            if seen is None:
                return answer(NO_STORE, {"items": [], "next": None})
            asker, _, session = seen
            of = None if task is None else task_of(session, asker, task).id
            place = zones.zone(self._desk.zone or "UTC")
            moment = None if since is None else read_instant(since, now=session.now, zone=place, field="since")

            def page(after: str | None) -> tuple[list[dict[str, object]], str | None]:
                return listing.runs(
                    session, task=of, state=state, outcome=outcome, since=moment, cursor=after, most=limit
                )

            found, following = _seen(page, asker, cursor, limit, "project")
            items = [{name: one[name] for name in LINE_FIELDS} for one in found]
            text = [_run_text(one) for one in items] or ["There are no such runs."]
            more = [f"More: call again with cursor {following}."] if following else []
            return answer([*text, *_errors(items), *more], {"items": items, "next": following})

    def run_get(self, ctx: Context[Any, Any], run: RunWord) -> answers.RUN:
        """Show a run."""
        with self._desk.reading(ctx) as seen:
            if seen is None:
                raise nothing_yet(run)
            asker, _, session = seen
            found = showing.run(session, run_of(session, asker, run))
            lines = [f"- {shapes.instant(one.entry.at)} {story.tell(one.entry)}" for one in found.story]
            shape = {**found.shape, "story": [shapes.entry(one) for one in found.story]}
            return answer([_run_text(shape), *lines, *_errors([shape])], shape)

    def run_log(
        self,
        ctx: Context[Any, Any],
        run: RunWord,
        after: Annotated[int | None, Field(description="from this position on; else the end of it", ge=0)] = None,
        most: Annotated[int, Field(description="bytes at most", ge=1, le=LOG_MOST)] = LOG_USUAL,
    ) -> answers.LOG:
        """Read what a run wrote."""
        with self._desk.reading(ctx) as seen:
            if seen is None:
                raise nothing_yet(run)
            asker, store, session = seen
            shape = log_of(store, session, run_of(session, asker, run), after=after, most=most)
            if not shape["text"]:
                return answer(f"{shape['run']} has written nothing" + (" more." if after else "."), shape)
            head = f"{shape['run']}, bytes {shape['after']} to {shape['next']} of {shape['log_bytes']}. {UNTRUSTED}"
            more = [f"More: call again with after={shape['next']}."] if shape["more"] else []
            return answer([head, str(shape["text"]), *more], shape)

    def run_cancel(self, ctx: Context[Any, Any], run: RunWord) -> answers.RUN:
        """End a run."""
        with self._desk.changing(ctx, "run") as (asker, store):
            with store.read() as session:
                of = run_of(session, asker, run)
            asked = runs.cancel(store, of.id, by=asker.name)
            how = "has ended" if asked.state == "ended" else "was asked to end"
            return _run_answer(store, asked, f"{asked.id} {how}")

    def missed_list(
        self,
        ctx: Context[Any, Any],
        task: Annotated[str | None, Field(description="of this task alone", max_length=200)] = None,
        only_open: Annotated[bool, Field(description="only those that wait for an answer")] = False,
        cursor: Cursor = None,
        limit: Limit = 20,
    ) -> answers.MISSED:
        """List what was missed."""
        with self._desk.reading(ctx) as seen:
            if seen is None:
                return answer(NO_STORE, {"items": [], "next": None})
            asker, _, session = seen
            of = None if task is None else task_of(session, asker, task).id

            def page(after: str | None) -> tuple[list[dict[str, object]], str | None]:
                items, following = missed.listed(session, task=of, only_open=only_open, cursor=after, most=limit)
                return [one | {"project": _project(session, str(one["task"]))} for one in items], following

            items, following = _seen(page, asker, cursor, limit, "project")
            text = [_missed_text(one) for one in items] or ["Nothing was missed."]
            more = [f"More: call again with cursor {following}."] if following else []
            return answer([*text, *more], {"items": items, "next": following})

    def missed_resolve(
        self,
        ctx: Context[Any, Any],
        id: Annotated[str, Field(description="of the missed occurrence", max_length=40)],  # noqa: A002
        decision: Annotated[Literal["accept", "decline"], Field(description="accept runs it now, decline never does")],
        note: Annotated[str | None, Field(description="why, for others to read", max_length=200)] = None,
    ) -> answers.RESOLVED:
        """Answer a missed occurrence."""
        with self._desk.changing(ctx, "run") as (asker, store):
            with store.read() as session:
                one = reaching.missed(session, asker, id)
            if decision == "decline":
                declined = missed.decline(store, one.id, by=asker.name, note=note)
                return answer(f"{one.id} is declined.", {"missed": shapes.missed(declined), "run": None})
            done = missed.accept(store, one.id, by=asker.name)
            with store.read() as session:
                run = listing.run_shape(session, done.run, session.tasks.by_id(done.run.task))
            text = f"{one.id} is accepted: {done.run.id} is {shapes.state(done.run)}."
            return answer(text, {"missed": shapes.missed(done.missed), "run": run})

    def scheduler_status(self, ctx: Context[Any, Any]) -> answers.STATUS:
        """Say how things stand."""
        with self._desk.reading(ctx) as seen:
            if seen is None:
                return answer(NO_STORE, standing.nothing("") | {"served": False, "holders_alive": 0})
            asker, store, session = seen
            served = is_served(store, session)
            shape = standing.status(store, session) | {"served": served}
            if asker.projects is not None:  # the counts are of all projects
                shape = {name: shape[name] for name in ("served", "holders_alive", "version")}
            return answer([*_status_text(shape), *([] if served else [NOBODY])], shape)


def log_of(store: Store, session: Session, run: Run, *, after: int | None, most: int) -> dict[str, object]:
    """Give a piece of what the last attempt of a run wrote: from a position on, else its end."""
    data, at, size, following = b"", after or 0, 0, after or 0
    if run.attempt:
        folder = folder_of(store.run_folder, run.id, run.fence)
        size = outputs.size(store, folder, session=session)
        at = max(0, size - most) if after is None else after
        position = at
        while len(data) < most and (piece := outputs.read(store, folder, position, session=session)).data:
            data, position = data + piece.data, piece.next
        # What was cut in the middle has positions and no bytes, so the last bytes tell where the text ends.
        following = position - max(0, len(data) - most)
        data = data[:most]
    text, parted = _letters(data, whole=following >= size)
    following -= parted
    return {
        "run": run.id,
        "attempt": run.attempt,
        "text": text,
        "after": at,
        "next": following,
        "log_bytes": size,
        "more": following < size,
    }


def _letters(data: bytes, *, whole: bool) -> tuple[str, int]:
    """Read bytes as text; a letter that the end parts is left for the next piece, unless nothing else is there."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data)
    parted = len(decoder.getstate()[0])
    if whole or parted == len(data):
        return text + decoder.decode(b"", final=True), 0
    return text, parted


def _seen(
    page: Page, asker: Asker, cursor: str | None, most: int, project: str
) -> tuple[list[dict[str, object]], str | None]:
    """Gather a page of what this asker may see."""
    found: list[dict[str, object]] = []
    while True:
        items, cursor = page(cursor)
        for at, one in enumerate(items):
            if is_seen(asker, None if one[project] is None else str(one[project])):
                found.append(one)
            if len(found) == most:
                return found, str(one["id"]) if at + 1 < len(items) else cursor
        if cursor is None:
            return found, None


def _project(session: Session, task: str) -> str | None:
    of = session.tasks.by_id(task)
    return None if of is None else of.definition.project


def _run_answer(store: Store, run: Run, head: str) -> answers.RUN:
    with store.read() as session:
        shape = listing.run_shape(session, run, session.tasks.by_id(run.task))
        served = is_served(store, session)
    why = [f"It ended {run.outcome} ({run.reason})."] if run.state == "ended" and run.reason else []
    return answer([f"{head}.", *why, *([] if served or run.state == "ended" else [NOBODY])], shape)


def _run_text(one: Mapping[str, Any]) -> str:
    parts = [f"- {one['id']} {one['task_name']}: {one['outcome'] or one['state']}"]
    if one["reason"]:
        parts.append(f"because {one['reason']}")
    parts.append(f"due {one['due_at']}")
    parts += [f"{word} {one[field]}" for word, field in (("began", "started_at"), ("ended", "ended_at")) if one[field]]
    waits = one["waiting_for"]
    if waits:
        parts.append(f"waits for {waits['what']}" + (f" {waits['key']}" if waits["key"] else ""))
    return ", ".join(parts)


def _errors(items: list[dict[str, Any]]) -> list[str]:
    told_ = [f"- {one['id']}: {one['error']}" for one in items if one["error"]]
    return [f"Errors. {UNTRUSTED}", *told_] if told_ else []


def _missed_text(one: Mapping[str, Any]) -> str:
    count = f" and {one['count'] - 1} more until {one['until_at']}" if one["count"] > 1 else ""
    run = f", run {one['run']}" if one["run"] else ""
    return f"- {one['id']} {one['task_name']}: {one['due_at']}{count}, {one['reason']}, {one['state']}{run}"


def _status_text(shape: Mapping[str, Any]) -> list[str]:
    if "tasks" not in shape:
        return [f"{shape['holders_alive']} serve this store."]
    tasks, live = shape["tasks"], shape["runs"]
    lines = [
        f"{shape['holders_alive']} serve {shape['store']}.",
        f"Tasks: {tasks['total']}, {tasks['enabled']} enabled, {tasks['paused']} paused, {tasks['broken']} broken.",
        f"Runs: {live['running']} running, {live['waiting']} waiting, {live['parked']} parked.",
    ]
    if shape["failing"]:
        lines.append(f"Failing: {', '.join(shape['failing_tasks'])}.")
    if shape["open_missed"]:
        lines.append(f"{shape['open_missed']} missed occurrences wait for an answer (missed_list).")
    if shape["open_questions"]:
        lines.append(f"{shape['open_questions']} questions wait for a person (`duly questions`).")
    if shape["next_due_at"]:
        lines.append(f"Next due: {shape['next_due_at']}.")
    return lines
