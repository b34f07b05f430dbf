"""What `why` shows as JSON: one shape for every question, its fields always there, null where they do not apply."""

from datetime import timedelta

from duly.core import story
from duly.core.definition_json import rule_to_json
from duly.core.explaining import Answer, Judgement
from duly.core.rule_fields import RULES
from duly.core.run import Run
from duly.core.task import Broken
from duly.core.trigger_json import to_json
from duly.core.when import write
from duly.operations import shapes
from duly.operations.why_answer import because, first_line, line_text, reason_of, trouble
from duly.operations.why_since import Line, Since
from duly.operations.why_then import Hold, InForce
from duly.operations.why_values import Holding, Neighbour, Ruled, Stretch, Trouble, Why


def why(found: Why) -> dict[str, object]:
    """Show the answer to one question; `upcoming` is the same shape once more, about the next instant."""
    fate, at = found.fate, found.at
    wall = None if at is None or found.zone is None else at.astimezone(found.zone)
    return {
        "subject": _subject(found),
        "answer": first_line(found),
        "now": shapes.instant(found.now),
        "asked_at": shapes.instant(found.asked_at),
        "at": shapes.instant(at),
        "local": None if wall is None else wall.replace(tzinfo=None).isoformat(),
        "offset": None if wall is None else shapes.offset_text(wall.utcoffset() or timedelta(0)),
        "zone": None if found.zone is None else found.zone.key,
        "due": found.due,
        "fate": fate.word,
        "reason": reason_of(fate, found.waiting_for),
        "because": because(found),
        "rule": None if found.rule is None else _rule(found.rule),
        "figures": dict(fate.figures),
        "definition_version": None if found.in_force is None else found.in_force.version,
        "definition": None if found.in_force is None else _definition(found.in_force, found.defined_by),
        "triggers": [] if found.judgement is None else _triggers(found.judgement),
        "previous_due_at": None if found.before is None else shapes.instant(found.before.due_at),
        "next_due_at": None if found.after is None else shapes.instant(found.after.due_at),
        "previous": neighbour(found.before),
        "start_at": shapes.instant(found.start_at),
        "noticed_at": shapes.instant(fate.noticed_at),
        "noticed_by": fate.noticed_by,
        "outage": None if found.outage is None else shapes.entry(found.outage),
        "run": None if fate.run is None else _run(found, fate.run),
        "missed": None if fate.missed is None else shapes.missed(fate.missed),
        "stretch": None if fate.stretch is None else _stretch(fate.stretch),
        "waiting_for": None if found.waiting_for is None else dict(found.waiting_for),
        "held_by": None if found.held_by is None else _holding(found.held_by, found),
        "pauses": [_hold(one) for one in found.holds],
        "troubles": [_trouble(one) for one in found.troubles],
        "beside": [_beside(run) for run in found.beside],
        "story": [shapes.entry(one) | {"text": story.tell(one.entry)} for one in found.story],
        "upcoming": None if found.upcoming is None else why(found.upcoming),
    }


def neighbour(one: Neighbour | None) -> dict[str, object] | None:
    """Show the instant before, with its fate."""
    return None if one is None else {"due_at": shapes.instant(one.due_at), "fate": one.fate, "reason": one.reason}


def _subject(found: Why) -> dict[str, object]:
    task = found.task
    return {
        "kind": found.kind,
        "id": found.run.id if found.kind == "run" and found.run is not None else (task.id if task else None),
        "task": task.id if task else None,
        "name": task.definition.name if task else None,
        "project": task.definition.project if task else None,
    }


def _rule(rule: Ruled) -> dict[str, object]:
    return {"name": rule.name, "value": rule.value, "own": rule.whose == "own", "whose": rule.whose}


def _definition(in_force: InForce, by: str | None) -> dict[str, object]:
    definition = in_force.definition
    shown: dict[str, object] = {
        "version": in_force.version,
        "by": by,
        "since": shapes.instant(in_force.since),
        "until": shapes.instant(in_force.until),
        "schedule_since": shapes.instant(in_force.era_since),
        "broken": None,
        "own_rules": {},
        "inherited_rules": {},
    }
    if isinstance(definition, Broken):
        return shown | {"broken": shapes.broken(definition)}
    own = {
        field.name: rule_to_json(getattr(definition.rules, field.name))
        for field in RULES
        if field.name in definition.own_rules
    }
    inherited = {name: of for name, of in definition.inherited.items() if name != "cwd"}
    return shown | {"own_rules": own, "inherited_rules": inherited}


def _triggers(judgement: Judgement) -> list[dict[str, object]]:
    return [_trigger(answer) for answer in judgement.answers]


def _trigger(answer: Answer) -> dict[str, object]:
    return {
        "canonical": write(answer.trigger),
        **to_json(answer.trigger),
        "due": answer.reason is None,
        "reason": answer.reason,
        "note": answer.mark,
        "unmet": [{"what": one.what, "has": one.has, "wants": one.wants} for one in answer.unmet],
        "figures": dict(answer.figures),
    }


def _run(found: Why, run: Run) -> dict[str, object]:
    task, holder = found.task, found.held_by
    return shapes.run(
        run,
        task_name=None if task is None else task.definition.name,
        project=None if task is None else task.definition.project,
        host=None if holder is None or holder.row is None else holder.row.host,
        waiting_for=found.waiting_for,
        attempts=found.attempts,
    )


def _stretch(one: Stretch) -> dict[str, object]:
    return {
        "first_due_at": shapes.instant(one.first),
        "last_due_at": shapes.instant(one.last),
        "count": one.count,
        "reason": one.reason,
        "written_at": shapes.instant(one.written_at),
    }


def _holding(one: Holding, found: Why) -> dict[str, object]:
    run = found.run
    return {
        "holder": one.holder,
        "host": None if one.row is None else one.row.host,
        "pid": None if one.row is None else one.row.pid,
        "alive": one.alive,
        "fence": None if run is None else run.fence,
        "seat": None if run is None else run.seat,
        "lease_ends_at": shapes.instant(one.lease_ends_at),
        "last_beat_at": None if one.row is None else shapes.instant(one.row.last_beat_at),
    }


def _hold(one: Hold) -> dict[str, object]:
    return {
        "scope": one.scope,
        "target": one.target,
        "since": shapes.instant(one.since),
        "until": shapes.instant(one.until),
        "note": one.note,
        "by": one.by,
        "ended_at": shapes.instant(one.ended_at),
    }


def _trouble(one: Trouble) -> dict[str, object]:
    return {"what": one.what, "sure": one.sure, "because": trouble(one), "figures": dict(one.figures)}


def _beside(run: Run) -> dict[str, object]:
    return {
        "run": run.id,
        "state": shapes.state(run),
        "opened_by": run.opened_by,
        "started_at": shapes.instant(run.started_at),
        "ended_at": shapes.instant(run.ended_at),
    }


def since(found: Since) -> dict[str, object]:
    """Show what did not run as planned; `next` is the instant to go on from, as `--since`."""
    return {
        **shapes.listing([_line(line) for line in found.lines], shapes.instant(found.following)),
        "task": found.task.id,
        "task_name": found.task.definition.name,
        "project": found.task.definition.project,
        "since": shapes.instant(found.since),
        "now": shapes.instant(found.now),
        "due": found.due,
        "not_as_planned": found.count(),
    }


def _line(line: Line) -> dict[str, object]:
    return {
        "due_at": shapes.instant(line.first),
        "until_at": shapes.instant(line.last),
        "count": line.count,
        "fate": line.fate,
        "reason": line.reason,
        "because": line_text(line),
        "figures": dict(line.figures),
        "run": line.run,
        "missed": line.missed,
    }
