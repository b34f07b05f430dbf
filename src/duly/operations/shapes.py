"""Every dict that users are shown, made in one place; the names are those of the contract.

A shape's fields are always there, null where not known. Instants are RFC 3339 in UTC; spans that were set are texts,
measured times are numbers of seconds.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from duly.core import spoken
from duly.core.action_fields import UNSAID
from duly.core.definition_json import action_to_json, rule_to_json
from duly.core.limits import Limit
from duly.core.questions import Question
from duly.core.rule_fields import RULES
from duly.core.run import Attempt, Missed, Run
from duly.core.skips import Range
from duly.core.spans import write_instant
from duly.core.task import Broken, Task, idle_timeout_of, on_interrupt_of, timeout_of
from duly.core.trigger_json import to_json
from duly.operations import source_shapes

if TYPE_CHECKING:
    from duly.store.projects import Project
    from duly.store.rows import HolderRow, Pause, Written

PUBLIC_STATE: Mapping[str, str] = {"held": "running"}


def instant(at: datetime | None) -> str | None:
    """Write an instant, or null."""
    return None if at is None else write_instant(at)


def task(
    task: Task,
    *,
    pauses: "Sequence[Pause]",
    last_run: Run | None,
    open_missed: int,
) -> dict[str, object]:
    """Show a task with its holds, its last run and its counts."""
    definition = task.definition
    return {
        "id": task.id,
        "project": definition.project,
        "name": definition.name,
        "description": definition.description,
        "labels": dict(definition.labels),
        "enabled": definition.enabled,
        "done": task.done,
        "broken": broken(task.broken) or source_shapes.file_fault(task.source),
        "paused": [pause(hold) for hold in pauses],
        "triggers": [to_json(trigger) for trigger in definition.triggers],
        "zone": definition.zone,
        "action": action(definition.action),
        "rules": rules(task),
        "own_rules": [field.name for field in RULES if field.name in definition.own_rules],
        "inherited_rules": {name: of for name, of in definition.inherited.items() if name != "cwd"},
        "source": source_shapes.source(task.source),
        "version": task.version,
        "definition_version": task.definition_version,
        "created_at": instant(task.created_at),
        "created_by": task.created_by,
        "updated_at": instant(task.updated_at),
        "next_due_at": instant(task.next_due_at),
        "next_start_at": instant(task.next_start_at),
        "last_run": None if last_run is None else last(last_run),
        "counts": {
            "runs": task.runs,
            "scheduled_runs": task.scheduled_runs,
            "failures_in_a_row": task.failures_in_a_row,
            "open_missed": open_missed,
        },
    }


def broken(why: Broken | None) -> dict[str, object] | None:
    """Show why a definition no longer reads."""
    return None if why is None else {"field": why.field, "message": why.message}


def action(given: Mapping[str, object]) -> dict[str, object]:
    """Show an action; what its kind takes of these is there even where nothing was said of it."""
    kind = given.get("kind")
    return {"kind": kind, **UNSAID.get(str(kind), {}), **action_to_json(given)} if given else {}


def rules(task: Task) -> dict[str, object]:
    """Show the rules in force, defaults included; null where the default depends on the occurrence."""
    shown = {field.name: rule_to_json(getattr(task.definition.rules, field.name)) for field in RULES}
    if shown["timeout"] is None and task.definition.action:
        shown["timeout"] = rule_to_json(timeout_of(task.definition))
    if shown["idle_timeout"] is None and task.definition.action:
        shown["idle_timeout"] = rule_to_json(idle_timeout_of(task.definition))
    shown["on_interrupt"] = on_interrupt_of(task.definition.rules, task.definition.action)
    return shown


def default(rule: str, value: object, *, project: str | None, tasks: int) -> dict[str, object]:
    """Show a default rule: of a project, or of the store where there is none."""
    return {"rule": rule, "value": value, "project": project, "tasks": tasks}


def project(one: "Project", *, tasks: int, in_its_folder: int) -> dict[str, object]:
    """Show a project with its folder and how many tasks it has."""
    return {
        "name": one.name,
        "dir": one.dir,
        "created_at": instant(one.created_at),
        "tasks": tasks,
        "in_its_folder": in_its_folder,
        "host": one.dir_host,
        "missing": one.loops.get("missing"),
        "faults": one.loops.get("faults", []),
    }


def pause(hold: "Pause") -> dict[str, object]:
    """Show an operator's hold."""
    return {
        "scope": hold.scope,
        "since": instant(hold.since),
        "until": instant(hold.until),
        "note": hold.note,
        "by": hold.by,
    }


def last(run: Run) -> dict[str, object]:
    """Show what a task's list line tells of its last run."""
    return {
        "id": run.id,
        "due_at": instant(run.due_at),
        "started_at": instant(run.started_at),
        "ended_at": instant(run.ended_at),
        "state": state(run),
        "outcome": run.outcome,
        "reason": run.reason,
        "error": run.error,
        "session": run.agent.get("session"),
    }


def state(run: Run) -> str:
    """Give the public word for a run's state."""
    return PUBLIC_STATE.get(run.state, run.state)


def run(
    run: Run,
    *,
    task_name: str | None,
    project: str | None,
    host: str | None,
    waiting_for: Mapping[str, object] | None,
    attempts: Sequence[Attempt],
    event: Mapping[str, object] | None = None,
    notices: Sequence[Mapping[str, object]] = (),
) -> dict[str, object]:
    """Show a run with its attempts, what it waits for, and the event that it was opened for."""
    return {
        "id": run.id,
        "task": run.task,
        "task_name": task_name,
        "project": project,
        "occurrence": run.occurrence,
        "due_at": instant(run.due_at),
        "opened_at": instant(run.opened_at),
        "opened_by": run.opened_by,
        "opened_by_whom": run.opened_by_whom,
        "state": state(run),
        "outcome": run.outcome,
        "reason": run.reason,
        "attempt": run.attempt,
        "fence": run.fence,
        "seat": run.seat,
        "holder": run.holder,
        "host": host,
        "definition_version": run.definition_version,
        "input": run.input,
        "args": list(run.args),
        "retry_of": run.retry_of,
        "event": None if event is None else dict(event),
        "waiting_for": None if waiting_for is None else dict(waiting_for),
        "not_before": instant(run.not_before),
        "started_at": instant(run.started_at),
        "stopping_since": instant(run.stopping_since),
        "ended_at": instant(run.ended_at),
        "late_by_s": None if run.started_at is None else seconds(run.started_at - run.due_at - run.spread),
        # What is running has no end yet; that of the attempt before stands in `attempts`.
        "exit_code": None if run.state == "held" else run.exit_code,
        "signal": None if run.state == "held" else run.signal,
        "error": None if run.state == "held" else run.error,
        "retries": run.retries,
        **spoken.shown(run.agent),
        "question": run.question,
        "log_bytes": run.log_bytes,
        "log_cut": run.log_cut,
        "attempts": [attempt(one) for one in attempts],
        "notices": [dict(one) for one in notices],
    }


def waiting_for(*, what: str, key: str | None, since: datetime | None, until: datetime | None) -> dict[str, object]:
    """Show what a run waits for."""
    return {"what": what, "key": key, "since": instant(since), "until": instant(until)}


def attempt(one: Attempt) -> dict[str, object]:
    """Show one try at a run."""
    return {
        "attempt": one.attempt,
        "fence": one.fence,
        "holder": one.holder,
        "started_at": instant(one.started_at),
        "ended_at": instant(one.ended_at),
        "outcome": one.outcome,
        "reason": one.reason,
    }


def missed(one: Missed) -> dict[str, object]:
    """Show an occurrence, or a counted stretch of them, that was found too late."""
    return {
        "id": one.id,
        "task": one.task,
        "occurrence": one.occurrence,
        "due_at": instant(one.due_at),
        "until_at": instant(one.until_at),
        "count": one.count,
        "reason": one.reason,
        "noticed_at": instant(one.noticed_at),
        "holder": one.holder,
        "state": one.state,
        "expires_at": instant(one.expires_at),
        "decided_by": one.decided_by,
        "decided_at": instant(one.decided_at),
        "note": one.note,
        "run": one.run,
    }


def question(one: Question) -> dict[str, object]:
    """Show what a run asks, with its answer: allow, deny, or the words of it."""
    return {
        "id": one.id,
        "run": one.run,
        "task": one.task,
        "attempt": one.attempt,
        "asked_at": instant(one.asked_at),
        "until": instant(one.until),
        "then": one.otherwise,
        "attached": one.attached,
        "kind": one.kind,
        "text": one.text,
        "options": list(one.options),
        "about": dict(one.about),
        "state": one.state,
        "answer": one.said if one.answer == "text" else one.answer,
        "note": one.note,
        "answered_by": one.answered_by,
        "answered_at": instant(one.answered_at),
    }


def skipped(range_: Range | None) -> dict[str, object] | None:
    """Show who skipped an instant to come, and why."""
    return None if range_ is None else {"by": range_.by, "note": range_.note}


def entry(written: "Written") -> dict[str, object]:
    """Show one line of the ledger."""
    told = written.entry
    return {
        "seq": written.seq,
        "at": instant(told.at),
        "task": told.task,
        "occurrence": told.occurrence,
        "run": told.run,
        "attempt": told.attempt,
        "kind": told.kind,
        "reason": told.reason,
        "holder": told.holder,
        "by": told.by,
        "count": told.count,
        "until_at": instant(told.until_at),
        "details": dict(told.details),
    }


def holder(row: "HolderRow", *, state: str, running: int) -> dict[str, object]:
    """Show one life of one process that may hold leases."""
    return {
        "id": row.id,
        "host": row.host,
        "pid": row.pid,
        "started_at": instant(row.started_at),
        "last_beat_at": instant(row.last_beat_at),
        "state": state,
        "slots": row.slots,
        "passive": row.slots == 0,
        "running": running,
        "labels": list(row.labels),
        "version": row.version,
        "zone_data": row.zone_data,
        "claims": row.claims,
        "claims_lost": row.claims_lost,
    }


def fence(task: Task, number: int, *, run: Run | None, reason: str | None, lease_us: int) -> dict[str, object]:
    """Show whether a fence is current, and the run that had it; without a reason it is."""
    lease_end = None if run is None or reason is not None else run.lease_end_us
    return {
        "task": task.id,
        "task_name": task.definition.name,
        "project": task.definition.project,
        "fence": number,
        "current": reason is None,
        "reason": reason,
        "highest": task.fence,
        "run": None if run is None else run.id,
        "attempt": None if run is None else run.attempt,
        "state": None if run is None else state(run),
        "outcome": None if run is None else run.outcome,
        "holder": None if run is None else run.holder,
        "lease_left_s": None if lease_end is None else round((lease_end - lease_us) / 1e6, 3),
    }


def limit(limit: Limit, *, tasks: int) -> dict[str, object]:
    """Show a limit as it stands."""
    return {
        "key": limit.key,
        "n": limit.most,
        "per": None
        if limit.rate is None or limit.rate_for is None
        else {"starts": limit.rate, "within": rule_to_json(limit.rate_for)},
        "used": limit.used,
        "free_at": instant(limit.free_at),
        "tasks": tasks,
        "set_at": instant(limit.set_at),
        "set_by": limit.set_by,
    }


def preview_item(
    *,
    due_at: datetime,
    start_at: datetime | None,
    local: datetime,
    zone: str,
    offset: timedelta,
    note: str | None,
    words: str,
) -> dict[str, object]:
    """Show one instant to come: `due_at` is nominal, `start_at` with the task's spread, `local` on the zone's wall."""
    return {
        "due_at": instant(due_at),
        "start_at": instant(start_at),
        "local": local.replace(tzinfo=None).isoformat(timespec="seconds"),
        "zone": zone,
        "offset": offset_text(offset),
        "note": note,
        "words": words,
    }


def offset_text(offset: timedelta) -> str:
    """Write an offset as `+02:00`, with seconds where history had them."""
    total = int(offset.total_seconds())
    sign, rest = ("-", -total) if total < 0 else ("+", total)
    text = f"{sign}{rest // 3600:02d}:{rest % 3600 // 60:02d}"
    return f"{text}:{rest % 60:02d}" if rest % 60 else text


def seconds(span: timedelta) -> float:
    """Write a measured time as seconds."""
    return round(span.total_seconds(), 6)


def listing(items: Sequence[Mapping[str, object]], following: str | None) -> dict[str, object]:
    """Show one page of a list."""
    return {"items": list(items), "next": following}
