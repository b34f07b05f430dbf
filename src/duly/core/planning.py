"""What becomes of a task's occurrences whose time has come: opened, or missed with a reason; and what comes next."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from duly.core.catching_up import LATE, reached_from, settle
from duly.core.fates import Fate, Opening, Stretch
from duly.core.lateness import GRACE_MOST, grace_for
from duly.core.pieces import pieces
from duly.core.schedule import TICK, count_due, is_over, last_due, next_due
from duly.core.skips import Range
from duly.core.spreading import share_of, start_of
from duly.core.task import Definition, Task
from duly.core.values import value

OPENINGS_MOST = 100
"""Punctual occurrences of one task that one plan opens; the cursor stops there and the next plan goes on."""


@value
class Plan:
    """The fates of all occurrences from the cursor as it was to the cursor as it shall be, each in order of time."""

    openings: tuple[Opening, ...]
    stretches: tuple[Stretch, ...]
    planned_until: datetime
    next_due_at: datetime | None
    next_start_at: datetime | None
    done: bool


def plan(task: Task, zone: ZoneInfo, now: datetime, skipped: Sequence[Range] = ()) -> Plan:
    """Judge every occurrence after the cursor and not after `now`; costs the same for two as for two million.

    The next due instant is not after `now` only where more punctual occurrences are left than one plan may open.
    `skipped`: what a person skipped beforehand.
    """
    return (None if skipped else one_punctual(task, zone, now)) or plan_at_length(task, zone, now, skipped)


def one_punctual(task: Task, zone: ZoneInfo, now: datetime) -> Plan | None:
    """Give the plan where a single occurrence is owed and is on time, which most are; None where there is more to it.

    It says what `plan_at_length` says, for a third of the price.
    """
    rules = task.definition.rules
    if rules.spread or rules.times is not None:
        return None
    due = next_due(task.definition, zone, task.planned_until)
    if due is None or due > now:
        return None
    following = next_due(task.definition, zone, due)
    if following is not None and following <= now:
        return None
    late_by = now - due
    if late_by > grace_for(rules, due, following):
        return None
    return Plan(
        openings=(Opening(due_at=due, start_at=due, opened_by="schedule", late_by=late_by),),
        stretches=(),
        planned_until=due,
        next_due_at=following,
        next_start_at=following,
        done=is_over(task.definition, following),
    )


def plan_at_length(task: Task, zone: ZoneInfo, now: datetime, skipped: Sequence[Range] = ()) -> Plan:
    """Do as `plan` does, whatever is owed."""
    left = times_left(task)
    newest = last_due(task.definition, zone, now)
    if left == 0 or newest is None or newest <= task.planned_until:
        following = None if left == 0 else first_due(task.definition, zone, task.planned_until)
        return _made(task, zone, (), task.planned_until, following, done=left == 0)
    found = _found(task, zone, now, newest, skipped)
    fates = settle(task, zone, now, found.fates)
    opened = [fate.due_at for fate in fates if isinstance(fate, Opening)]
    if left is None or len(opened) < left:
        return _made(task, zone, fates, found.until, found.following, done=False)
    # Its last time has come: what lies behind that is no occurrence of the task any more.
    end = opened[left - 1]
    kept = [fate for fate in fates if (fate.due_at if isinstance(fate, Opening) else fate.first) <= end]
    return _made(task, zone, kept, end, None, done=True)


def times_left(task: Task) -> int | None:
    """How many more runs time may open for this task; None is no end."""
    times = task.definition.rules.times
    return None if times is None else max(0, times - task.scheduled_runs)


def first_due(definition: Definition, zone: ZoneInfo, cursor: datetime) -> datetime | None:
    """The first occurrence that a new, enabled or unpaused task owes: strictly after its cursor."""
    return next_due(definition, zone, cursor) if definition.triggers else None


def owed(definition: Definition, zone: ZoneInfo, after: datetime, until: datetime) -> Stretch | None:
    """The occurrences in (after, until] as one stretch without a reason yet, or None if there are none."""
    if not definition.triggers or until <= after:
        return None
    first = next_due(definition, zone, after)
    if first is None or first > until:
        return None
    last = last_due(definition, zone, until)
    assert last is not None
    number = count_due(definition, zone, after, until)
    return Stretch(first=first, last=last, count=number, reason=LATE)


@value
class _Found:
    """Fates up to an instant, the late ones unjudged, and the next occurrence after it."""

    fates: list[Fate]
    until: datetime
    following: datetime | None


def _found(task: Task, zone: ZoneInfo, now: datetime, newest: datetime, skipped: Sequence[Range]) -> _Found:
    """Tell the punctual from the late and from those skipped by hand, in order of time."""
    since = _near_from(task, zone, now, newest)
    fates: list[Fate] = []
    following: datetime | None = newest
    room = OPENINGS_MOST
    for piece in pieces(task.planned_until, newest, skipped):
        if piece.by_hand is not None:
            stretch = owed(task.definition, zone, piece.after, piece.until)
            fates += [] if stretch is None else [_by_hand(stretch, piece.by_hand)]
            continue
        far = owed(task.definition, zone, piece.after, min(piece.until, since - TICK))
        fates += [] if far is None else [far]
        first = since if since == newest else next_due(task.definition, zone, max(piece.after, since - TICK))
        near, following = _near(task, zone, now, first, piece.until, room)
        fates += near
        room -= sum(isinstance(fate, Opening) for fate in near)
        if room == 0:
            last = near[-1]
            assert isinstance(last, Opening)
            return _Found(fates=fates, until=last.due_at, following=following)
    if following is not None and following <= newest:
        following = next_due(task.definition, zone, newest)
    return _Found(fates=fates, until=newest, following=following)


def _near_from(task: Task, zone: ZoneInfo, now: datetime, newest: datetime) -> datetime:
    """Give the instant before which every occurrence is late, however its own grace and spread are."""
    rules = task.definition.rules
    if rules.grace is None and not rules.spread:
        return newest  # half the distance to the next: only the newest can be that near
    return reached_from(task, zone, now, GRACE_MOST if rules.grace is None else rules.grace)


def _near(
    task: Task, zone: ZoneInfo, now: datetime, first: datetime | None, until: datetime, room: int
) -> tuple[list[Fate], datetime | None]:
    """Judge the occurrences from `first` to `until` one by one, up to so many punctual ones; gives the next as well."""
    rules = task.definition.rules
    found: list[Fate] = []
    due = first
    while due is not None and due <= until and room:
        following = next_due(task.definition, zone, due)
        assert following is None or following > due, "a trigger went backwards"
        start = due + share_of(task.id, due, spread=rules.spread, following=following)
        if now - start <= grace_for(rules, due, following):
            late_by = max(now - start, timedelta(0))
            found.append(Opening(due_at=due, start_at=start, opened_by="schedule", late_by=late_by))
            room -= 1
        else:
            found.append(Stretch(first=due, last=due, count=1, reason=LATE))
        due = following
    return found, due


def _by_hand(stretch: Stretch, range_: Range) -> Stretch:
    return Stretch(
        first=stretch.first,
        last=stretch.last,
        count=stretch.count,
        reason="skipped_by_hand",
        details={} if range_.note is None else {"note": range_.note},
        by=range_.by,
    )


def _made(
    task: Task, zone: ZoneInfo, fates: Sequence[Fate], until: datetime, following: datetime | None, *, done: bool
) -> Plan:
    return Plan(
        openings=tuple(fate for fate in fates if isinstance(fate, Opening)),
        stretches=tuple(fate for fate in fates if isinstance(fate, Stretch)),
        planned_until=until,
        next_due_at=following,
        next_start_at=None if following is None else start_of(task.id, task.definition, zone, following),
        done=done or is_over(task.definition, following),
    )
