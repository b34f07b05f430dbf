"""`why`: for any instant of the past or the future, the fate and the rule behind it; for a run, its story.

`why(session, word, at)` reads in one transaction, by indexes alone, and gives one value; `shapes.why` shows it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from duly.clock import EPOCH
from duly.core.definition_json import rule_to_json
from duly.core.explaining import Judgement, judge
from duly.core.ledger import attempts, fold
from duly.core.run import Run
from duly.core.schedule import TICK
from duly.core.spans import write_instant
from duly.core.spreading import start_of
from duly.core.task import Broken, Definition, Task, idle_timeout_of, on_interrupt_of, timeout_of
from duly.errors import DulyError, Refused
from duly.operations.budgets import budget_figures, lacks
from duly.operations.lookup import find_any
from duly.operations.outages import outage_at
from duly.operations.telling import waiting_for
from duly.operations.why_ahead import fate_ahead, holds_now, lasting, living, of_trouble, over, taken_by, troubles
from duly.operations.why_past import event_at, fate_at, of_run
from duly.operations.why_then import InForce, Versions, author_of, holds_at
from duly.operations.why_values import Asking, Fate, Holding, Neighbour, Ruled, Why
from duly.store.moments import Moments
from duly.store.rows import HolderRow, Written
from duly.store.store import Session

SECOND = timedelta(seconds=1)
RULE_OF_NOT_DUE: Mapping[str, str] = {
    "gap": "gap",
    "fold": "fold",
    "before_start": "start",
    "after_until": "until",
    "start_of": "spread",
}
NOT_HERE = frozenset({"not_due", "unknown"})
"""Fates of instants for which it is no matter whether anybody served."""
BESIDE_LOOKED_AT = 50
"""Runs opened before an instant, newest first, that are asked whether they were live then."""


def why(
    session: Session,
    word: str,
    at: datetime | None = None,
    *,
    alive: Collection[str] | None = None,
    boot: str | None = None,
    projects: Collection[str] | None = None,
) -> Why:
    """Answer for a task (without `at`: its last instant, its next, and what is wrong now) or for a run (up to `at`).

    `alive` are the holders known to live, `boot` is this boot; without them beats and leases are believed. Held to
    `projects`, nothing of others is named. Refused `unknown_id` when the word means nothing; a removed task is found
    by its id.
    """
    asking, run = asking_of(session, word, alive=alive, boot=boot)
    asking = replace(asking, projects=projects)
    if run is not None:
        return _of_run(asking, run, at)
    return _standing(asking) if at is None else instant(asking, at)


def asking_of(
    session: Session, word: str, *, alive: Collection[str] | None = None, boot: str | None = None
) -> tuple[Asking, Run | None]:
    """Find what a word means: the question about its task, and the run where it means one."""
    found = _find(session, word)
    run = found if isinstance(found, Run) else None
    task = found if isinstance(found, Task) else session.tasks.by_id(found.task)
    assert task is not None, "a task is removed, never deleted"
    return Asking(session=session, task=task, versions=Versions(session, task), alive=alive, boot=boot), run


def instant(asking: Asking, at: datetime) -> Why:
    """Answer for one instant of a task."""
    now = asking.session.now
    in_force = asking.versions.at(at)
    judgement, fate = _fate(asking, in_force, at)
    ahead = fate.use == "ahead" and at > now
    wall = in_force or asking.versions.newest()
    found = Why(
        kind="task",
        task=asking.task,
        run=fate.run,
        now=now,
        asked_at=at,
        at=at,
        zone=None if wall is None else wall.zone(),
        due=None if fate.word == "unknown" else fate.word != "not_due",
        fate=fate,
        rule=_ruled(asking, fate),
        in_force=in_force,
        defined_by=author_of(asking.session, asking.task, in_force),
        judgement=judgement,
        before=_neighbour(asking, asking.versions.before(at)),
        after=_neighbour(asking, asking.versions.after(at)),
        holds=holds_now(asking, now) if at > now else holds_at(asking.session, asking.task, at),
        troubles=troubles(asking, at) if ahead else (),
        serving=living(asking) if fate.use == "ahead" and asking.task.removed_at is None else None,
        beside=_beside(asking, min(at, now), fate.run),
        noticed_by=_holder(asking, fate.noticed_by),
        outage=outage_at(asking.session, at) if at <= now and fate.word not in NOT_HERE else None,
        start_at=_start(asking, in_force, at) if fate.word != "not_due" else None,
    )
    return found if fate.run is None else _with_run(asking, found, fate.run)


def _find(session: Session, word: str) -> Task | Run:
    try:
        return find_any(session, word)
    except Refused as refused:
        # The ledger outlives its task: what became of a removed one can still be asked, by its id.
        removed = session.tasks.by_id(str(refused.details.get("id") or ""))
        if removed is None:
            raise
        return removed


def _fate(asking: Asking, in_force: InForce | None, at: datetime) -> tuple[Judgement | None, Fate]:
    task, now = asking.task, asking.session.now
    first = asking.versions.first()
    if in_force is None or (first is not None and at <= first):
        added = first or task.created_at
        figures: dict[str, object] = {"by": task.created_by, "added_at": write_instant(added)}
        if added > at:
            figures["after_s"] = (added - at).total_seconds()
        return None, Fate(word="not_due", use="not_due", reason="before_task", figures=figures)
    judgement = _judged(in_force, at)
    known = fate_at(asking, at, due=None if judgement is None else judgement.due) if at <= now else None
    if known is not None:
        return judgement, known
    if task.removed_at is not None and at > task.removed_at:
        figures = {"removed_at": write_instant(task.removed_at), "by": _remover(asking)}
        return judgement, Fate(word="not_due", use="not_due", reason="after_removal", figures=figures)
    event = event_at(asking, at) if at <= now and judgement is not None and not judgement.due else None
    if event is not None:
        return judgement, event
    if judgement is None:
        return None, Fate(word="unknown", use="not_told", reason="unreadable", figures=_unreadable(in_force))
    if not judgement.due:
        return judgement, _not_due(asking, in_force, judgement, at)
    if at > now:
        return judgement, fate_ahead(asking, troubles(asking, at))
    return judgement, _unplanned(asking, at)


def _not_due(asking: Asking, in_force: InForce, judgement: Judgement, at: datetime) -> Fate:
    reason, figures = judgement.reason or "no_match", judgement.figures
    start = None if judgement.before is None else _start(asking, in_force, judgement.before)
    if start is not None and judgement.before is not None and timedelta(0) <= at - start < SECOND:
        moved = (start - judgement.before).total_seconds()
        reason, figures = "start_of", {"due_at": write_instant(judgement.before), "moved_s": moved}
    rule = RULE_OF_NOT_DUE.get(reason)
    return Fate(word="not_due", use="not_due", reason=reason, rule=rule, figures=figures, judged_at=at)


def _unplanned(asking: Asking, at: datetime) -> Fate:
    """Give the fate of an instant that is due by its definition and of which the store tells nothing yet."""
    task, now = asking.task, asking.session.now
    if at <= task.planned_until:
        pruned = task.pruned_until is not None and at <= task.pruned_until
        return Fate(word="unknown", use="not_told", reason="pruned" if pruned else "no_record")
    late = {"late_by_s": (now - at).total_seconds()}
    ended = over(asking, at)
    if ended:
        return of_trouble("not_due", ended[0])
    in_the_way = [one for one in lasting(troubles(asking, now)) if one.what not in {"used_up", "done"}]
    first = next((one for one in in_the_way if one.sure), in_the_way[0] if in_the_way else None)
    if first is None:
        return Fate(word="overdue", use="ahead", figures=late)
    fate = of_trouble("not_opened" if first.sure else "overdue", first)
    return replace(fate, figures={**fate.figures, **late})


def _judged(in_force: InForce, at: datetime) -> Judgement | None:
    zone = in_force.zone()
    if zone is None or isinstance(in_force.definition, Broken):
        return None
    try:
        return judge(in_force.definition, zone, at)
    except (DulyError, ArithmeticError, LookupError, TypeError, ValueError):
        return None  # as planning does, a trigger's fault is its own task's


def _unreadable(in_force: InForce) -> dict[str, object]:
    broken = in_force.definition
    if isinstance(broken, Broken):
        return {"version": in_force.version, "field": broken.field, "message": broken.message}
    return {"version": in_force.version, "field": "zone", "message": f"{broken.zone} is not the name of a zone"}


def _remover(asking: Asking) -> str | None:
    entries = Moments(asking.session.line).switches(asking.task.id, asking.session.now, 1)
    return entries[0].entry.by if entries and entries[0].entry.kind == "removed" else None


def _standing(asking: Asking) -> Why:
    """Answer without an instant: the last one, the next one, and what is wrong now."""
    session, task = asking.session, asking.task
    now = session.now
    last = asking.versions.before(now + TICK)
    following = asking.versions.after(now) if task.removed_at is None else None
    upcoming = instant(asking, following) if following is not None else None
    wrong = lasting(troubles(asking, now))
    found = instant(asking, last) if last is not None else _newest(asking)
    live = [*session.runs.live_of(task.id), *session.runs.waiting_of(task.id)]
    return replace(
        found,
        kind="task",
        asked_at=None,
        holds=holds_now(asking, now),
        troubles=wrong,
        serving=living(asking) if task.removed_at is None else None,
        beside=tuple(run for run in live if found.run is None or run.id != found.run.id),
        after=None if following is None else Neighbour(due_at=following),
        upcoming=upcoming,
    )


def _newest(asking: Asking) -> Why:
    """Answer for a task without times: its newest run, or an event after it that did not start it."""
    moments, task = Moments(asking.session.line), asking.task.id
    newest = moments.runs_before(task, None, 1)
    since = newest[0].due_at + TICK if newest else EPOCH
    passed = moments.passed_over(task, since, asking.session.now + TICK, 1)
    if passed:
        return instant(asking, passed[0].entry.at)
    return _of_run(asking, newest[0], None) if newest else _never(asking)


def _never(asking: Asking) -> Why:
    in_force = asking.versions.at(asking.session.now)
    return Why(
        kind="task",
        task=asking.task,
        run=None,
        now=asking.session.now,
        asked_at=None,
        at=None,
        zone=None if in_force is None else in_force.zone(),
        due=False,
        fate=Fate(word="never_due"),
        in_force=in_force,
        defined_by=author_of(asking.session, asking.task, in_force),
    )


def _of_run(asking: Asking, run: Run, at: datetime | None) -> Why:
    """Answer for a run; with `at`, as its entries told it then."""
    session = asking.session
    story = tuple(session.ledger.of_run(run.id))
    fate = of_run(asking, run, story) if at is None else _then(asking, run, story, at)
    in_force = _version_of(asking, run)
    found = Why(
        kind="run",
        task=asking.task,
        run=run,
        now=session.now,
        asked_at=at,
        at=run.due_at,
        zone=None if in_force is None else in_force.zone(),
        due=run.opened_by in {"schedule", "catch_up"},
        fate=fate,
        rule=_ruled(asking, fate),
        in_force=in_force,
        defined_by=author_of(asking.session, asking.task, in_force),
        noticed_by=_holder(asking, fate.noticed_by),
    )
    return _with_run(asking, found, run)


def _holder(asking: Asking, id_: str | None) -> HolderRow | None:
    return None if id_ is None else asking.session.holders.by_id(id_)


def _then(asking: Asking, run: Run, story: Sequence[Written], at: datetime) -> Fate:
    """Give a run's fate as it stood at a moment."""
    so_far = [one for one in story if one.entry.at <= at]
    told = fold(one.entry for one in so_far)
    if told.state == "none":
        figures = {"opened_at": write_instant(run.opened_at)}
        return Fate(word="not_due", use="not_due", reason="before_opening", figures=figures, run=run)
    if told.state == "ended":
        return of_run(asking, run, story)
    word = "running" if told.state == "held" else told.state
    return Fate(word=word, use="ended", run=run, noticed_at=run.opened_at)


def _version_of(asking: Asking, run: Run) -> InForce | None:
    for moment in (run.started_at, run.opened_at):
        found = None if moment is None else asking.versions.at(moment)
        if found is not None and found.version == run.definition_version:
            return found
    return asking.versions.numbered(run.definition_version)


def _with_run(asking: Asking, found: Why, run: Run) -> Why:
    """Add what a run tells: its attempts, its story, who holds it, what it waits for."""
    session = asking.session
    until = found.asked_at if found.kind == "run" else None
    story = [one for one in session.ledger.of_run(run.id) if until is None or one.entry.at <= until]
    return replace(
        found,
        story=tuple(story),
        attempts=attempts(one.entry for one in story),
        held_by=_holding(asking, run),
        waiting_for=_waits(asking, run),
        start_at=run.due_at + run.spread if run.spread else None,
    )


def _waits(asking: Asking, run: Run) -> Mapping[str, object] | None:
    """Give what a run waits for; of a limit with who takes it, of a next try with what came of the last."""
    waits = waiting_for(asking.session, run)
    if waits is not None and waits["what"] == "backoff":
        return {**waits, "attempt": run.attempt, "tried": run.tried, "tried_reason": run.tried_reason}
    if waits is not None and waits["what"] == "budget" and asking.task is not None:
        lack = lacks(asking.session, asking.task, run)
        return waits if lack is None else {**waits, **budget_figures(asking.session, lack)}
    if waits is None or waits["what"] not in {"limit", "rate"}:
        return waits
    key = str(waits["key"])
    limit = asking.session.crowd.by_keys([key])[key]
    return {**waits, "used": limit.used, "most": limit.most, **taken_by(asking, key)}


def _holding(asking: Asking, run: Run) -> Holding | None:
    if run.holder is None:
        return None
    row = asking.session.holders.by_id(run.holder)
    ends = None
    if run.state == "held" and run.lease_end_us is not None and asking.boot in (None, run.lease_boot):
        ends = asking.session.now + timedelta(microseconds=run.lease_end_us - asking.session.lease_us)
    alive = any(one.id == run.holder for one in living(asking))
    return Holding(holder=run.holder, row=row, alive=alive, lease_ends_at=ends)


def _start(asking: Asking, in_force: InForce | None, at: datetime) -> datetime | None:
    """Give when an instant starts by its spread; None where it has none."""
    zone = None if in_force is None else in_force.zone()
    if in_force is None or zone is None or isinstance(in_force.definition, Broken):
        return None
    start = start_of(asking.task.id, in_force.definition, zone, at)
    return None if start == at else start


def _neighbour(asking: Asking, at: datetime | None) -> Neighbour | None:
    if at is None or (asking.task.removed_at is not None and at > asking.task.removed_at):
        return None
    known = fate_at(asking, at, due=True) if at <= asking.session.now else None
    return Neighbour(due_at=at) if known is None else Neighbour(due_at=at, fate=known.word, reason=known.reason)


def _beside(asking: Asking, at: datetime, own: Run | None) -> tuple[Run, ...]:
    found = Moments(asking.session.line).runs_before(asking.task.id, at, BESIDE_LOOKED_AT)
    return tuple(
        run
        for run in found
        if (own is None or run.id != own.id)
        and run.started_at is not None
        and run.started_at <= at
        and (run.ended_at is None or run.ended_at > at)
    )


def _ruled(asking: Asking, fate: Fate) -> Ruled | None:
    """Give the rule that decided, with the value it had then and whether it was the author's own."""
    if fate.rule is None:
        return None
    definition = _definition(asking, fate)
    if definition is None:
        return None
    value = rule_to_json(getattr(definition.rules, fate.rule))
    if fate.rule == "timeout" and value is None:
        value = rule_to_json(timeout_of(definition))
    if fate.rule == "on_interrupt":
        value = on_interrupt_of(definition.rules, definition.action)
    if fate.rule == "idle_timeout" and value is None:
        value = rule_to_json(idle_timeout_of(definition))
    inherited = definition.inherited.get(fate.rule, "built_in")
    return Ruled(name=fate.rule, value=value, whose="own" if fate.rule in definition.own_rules else inherited)


def _definition(asking: Asking, fate: Fate) -> Definition | None:
    if fate.run is not None and fate.run.attempt:
        read = asking.session.versions.read(asking.task.id, fate.run.definition_version)
        return read if isinstance(read, Definition) else None
    found = asking.versions.at(fate.judged_at or asking.session.now)
    return None if found is None or isinstance(found.definition, Broken) else found.definition
