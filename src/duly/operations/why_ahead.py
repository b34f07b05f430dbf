"""What stands in the way of a start: now, or at an instant to come, as things stand now and no further."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from duly import zones
from duly.core.lateness import grace_for
from duly.core.limits import Limit, weights_of
from duly.core.names import key_of
from duly.core.planning import times_left
from duly.core.run import Run
from duly.core.schedule import TICK, count_due
from duly.core.skips import covering
from duly.core.spans import write_instant
from duly.core.task import Definition, timeout_of
from duly.operations.budgets import budget_figures, lacks
from duly.operations.listing import is_within
from duly.operations.lookup import told
from duly.operations.why_past import RULE_OF, hold_figures
from duly.operations.why_then import Hold, off_at
from duly.operations.why_values import Asking, Fate, Trouble
from duly.store.pauses import holding
from duly.store.rows import HolderRow

RULES: Mapping[str, str] = {
    "used_up": "times",
    "seat": "overlap",
    "label": "needs",
    "limit": "limits",
    "rate": "limits",
    "budget": "budget",
}
OF_ONE_INSTANT = frozenset({"seat", "limit", "rate", "budget", "skipped_by_hand"})
"""Troubles that pass by themselves, or are of one instant; of a task as it stands now they are no trouble."""


def fate_ahead(asking: Asking, troubles: Sequence[Trouble]) -> Fate:
    """Say what would become of an instant to come, by what stands in its way."""
    if not troubles:
        return Fate(word="would_start", use="ahead")
    first = next((one for one in troubles if one.sure), troubles[0])
    word = "would_not_open" if first.sure else "would_wait"
    if first.what == "seat" and asking.task.definition.rules.overlap == "skip":
        word = "may_be_skipped"
    return of_trouble(word, first)


def of_trouble(word: str, trouble: Trouble) -> Fate:
    """Make a trouble the reason of a fate."""
    rule = RULES.get(trouble.what) or RULE_OF.get(trouble.what)
    return Fate(word=word, use="ahead", reason=trouble.what, rule=rule, figures=trouble.figures)


def lasting(troubles: Sequence[Trouble]) -> list[Trouble]:
    """Leave out what passes by itself and what is of one instant alone."""
    return [one for one in troubles if one.what not in OF_ONE_INSTANT]


def troubles(asking: Asking, at: datetime) -> list[Trouble]:
    """Name what would keep an instant of the task from its start, what is sure first; `at` is now or later."""
    task = asking.task
    if task.removed_at is not None:
        return [Trouble(what="removed", sure=True, figures={"removed_at": write_instant(task.removed_at)})]
    if task.broken is not None:
        return [Trouble(what="broken", sure=True, figures={"field": task.broken.field, "message": task.broken.message})]
    found = [*_switched_off(asking), *over(asking, at), *_held(asking, at), *_skipped(asking, at)]
    holders = living(asking)
    found += _nobody(asking, holders, at) or _labels(asking, holders)
    return [*found, *_seats(asking, at), *_limits(asking, at), *_budgets(asking, at)]


def over(asking: Asking, at: datetime) -> list[Trouble]:
    """Tell that a task is done, or will have opened all runs that `times` allows before."""
    task = asking.task
    times, left = task.definition.rules.times, times_left(task)
    if times is not None and left is not None:
        zone = zones.zone(task.definition.zone)
        between = count_due(task.definition, zone, task.planned_until, at - TICK)
        if between >= left:
            figures = {"times": times, "opened": times - left, "between": between}
            return [Trouble(what="used_up", sure=True, figures=figures)]
    return [Trouble(what="done", sure=True)] if task.done else []


def holds_now(asking: Asking, at: datetime) -> list[Hold]:
    """Give the pauses that hold the task now and, as far as is known, still at an instant to come."""
    task = asking.task
    held = holding(asking.session.pauses.all(), task=task.id, project_key=key_of(task.definition.project))
    return [
        Hold(scope=one.scope, target=one.target, since=one.since, until=one.until, note=one.note, by=one.by)
        for one in held
        if one.until is None or one.until > at
    ]


def living(asking: Asking) -> list[HolderRow]:
    """Give the holders that live: those whose lock is taken, or, where nobody looked, whose last beat is recent."""
    now = asking.session.now
    rows = asking.session.holders.living()
    if asking.alive is not None:
        return [row for row in rows if row.id in asking.alive]
    return [row for row in rows if now - row.last_beat_at <= row.lease_for]


def _switched_off(asking: Asking) -> list[Trouble]:
    if asking.task.definition.enabled:
        return []
    off = off_at(asking.session, asking.task, asking.session.now)
    since = asking.task.created_at if off is None or off.since is None else off.since
    by = asking.task.created_by if off is None or off.by is None else off.by
    return [Trouble(what="disabled", sure=True, figures={"by": by, "since": write_instant(since)})]


def _held(asking: Asking, at: datetime) -> list[Trouble]:
    return [Trouble(what="paused", sure=True, figures=hold_figures(hold)) for hold in holds_now(asking, at)]


def _skipped(asking: Asking, at: datetime) -> list[Trouble]:
    one = covering(asking.session.skips.of(asking.task.id, after=at - TICK), at)
    if one is None:
        return []
    figures = {"by": one.by} | ({"note": one.note} if one.note else {})
    return [Trouble(what="skipped_by_hand", sure=True, figures=figures)]


def _nobody(asking: Asking, holders: Sequence[HolderRow], at: datetime) -> list[Trouble]:
    if any(row.state == "alive" and row.slots > 0 for row in holders):
        return []
    rules = asking.task.definition.rules
    grace = grace_for(rules, at, asking.versions.after(at))
    figures: dict[str, object] = {"grace_s": grace.total_seconds(), "on_missed": rules.on_missed}
    if holders:
        figures["but"] = _who_starts_nothing(holders)
    return [Trouble(what="nobody", sure=False, figures=figures)]


def _who_starts_nothing(holders: Sequence[HolderRow]) -> str:
    stopping = sum(row.state != "alive" for row in holders)
    passive = len(holders) - stopping
    parts = [f"{stopping} holder{'s' if stopping > 1 else ''} being stopped"] if stopping else []
    parts += [f"{passive} passive holder{'s' if passive > 1 else ''}"] if passive else []
    return " and ".join(parts)


def _labels(asking: Asking, holders: Sequence[HolderRow]) -> list[Trouble]:
    needs = asking.task.definition.rules.needs
    if any(set(needs) <= set(row.labels) for row in holders):
        return []
    everywhere = {label for row in holders for label in row.labels}
    missing = next((label for label in needs if label not in everywhere), ", ".join(needs))
    return [Trouble(what="label", sure=False, figures={"label": missing})]


def _limits(asking: Asking, at: datetime) -> list[Trouble]:
    weights = weights_of(asking.task.definition)
    found = []
    for key, limit in sorted(asking.session.crowd.by_keys(sorted(weights)).items()):
        figures: dict[str, object] = {"key": key, "used": limit.used, "most": limit.most, "weight": weights[key]}
        if weights[key] > limit.most or (limit.used + weights[key] > limit.most and _may_last(asking, limit, at)):
            figures |= taken_by(asking, key)
            found.append(Trouble(what="limit", sure=weights[key] > limit.most, figures=figures))
        elif limit.free_at is not None and limit.free_at > at:
            figures["free_at"] = write_instant(limit.free_at)
            found.append(Trouble(what="rate", sure=False, figures=figures))
    return found


def _budgets(asking: Asking, at: datetime) -> list[Trouble]:
    found = lacks(asking.session, asking.task)
    if found is None or found.standing.until <= at:
        return []
    return [Trouble(what="budget", sure=False, figures=budget_figures(asking.session, found))]


def taken_by(asking: Asking, key: str) -> dict[str, object]:
    """Name a run that takes a limit now, and its task; the oldest of them that who asks may hear of."""
    for run in asking.session.runs.live():
        if key in run.taken:
            task = asking.session.tasks.by_id(run.task)
            if not is_within(task, asking.projects):
                continue
            return {"run": run.id, "taker": run.task if task is None else told(task)}
    return {}


def _may_last(asking: Asking, limit: Limit, at: datetime) -> bool:
    """Say whether a run that takes a limit now may still do so at an instant."""
    taking = [run for run in asking.session.runs.live() if limit.key in run.taken]
    ends = [timeout_at(asking, run) for run in taking]
    return not ends or any(end is None or end > at for end in ends)


def _seats(asking: Asking, at: datetime) -> list[Trouble]:
    task = asking.task
    rules = task.definition.rules
    live = [(timeout_at(asking, run), run) for run in asking.session.runs.live_of(task.id)]
    still = [(end, run) for end, run in live if end is None or end > at]
    if len(still) < rules.seats or rules.overlap in {"cancel_running", "kill_running"}:
        return []
    end, run = still[0]
    figures: dict[str, object] = {"run": run.id, "overlap": rules.overlap}
    if end is not None:
        figures["timeout_at"] = write_instant(end)
    return [Trouble(what="seat", sure=False, figures=figures)]


def timeout_at(asking: Asking, run: Run) -> datetime | None:
    """Give when a live run's timeout ends its present attempt; None where its definition does not tell."""
    read = asking.session.versions.read(run.task, run.definition_version)
    if run.started_at is None or not isinstance(read, Definition):
        return None
    return run.started_at + timeout_of(read)
