"""What a task's policy makes of occurrences that were found late."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import assert_never
from zoneinfo import ZoneInfo

from duly.core.fates import Fate, Opening, Stretch
from duly.core.lateness import grace_for
from duly.core.occurrences import at_key
from duly.core.schedule import TICK, count_due, dues, last_due, last_due_before, next_due
from duly.core.spreading import start_of
from duly.core.task import Task

LATE = ""
"""The reason of a stretch that no policy has judged yet."""


def settle(task: Task, zone: ZoneInfo, now: datetime, found: Sequence[Fate]) -> list[Fate]:
    """Judge the late stretches among the fates of a span, in order of time, by the task's policy."""
    if not any(isinstance(fate, Stretch) and fate.reason == LATE for fate in found):
        return list(found)
    whole = _joined(found)
    match task.definition.rules.on_missed:
        case "run":
            return _newest(task, zone, now, whole)
        case "run_all":
            return _all(task, zone, now, whole)
        case "skip":
            return [_told(task, zone, now, fate, "missed_skip") for fate in whole]
        case "offer":
            return [_told(task, zone, now, fate, "missed_offer") for fate in whole]
    assert_never(task.definition.rules.on_missed)


def reached_from(task: Task, zone: ZoneInfo, now: datetime, span: timedelta) -> datetime:
    """Give the instant from which on occurrences are late by at most this span; those due before it are later."""
    floor = datetime.min.replace(tzinfo=now.tzinfo) + timedelta(days=2)
    edge = now - span if now - floor > span else floor
    if not task.definition.rules.spread:
        return edge
    # Starts keep the order of their due instants, so only the last before the edge can start after it.
    last = last_due(task.definition, zone, edge)
    return last if last is not None and start_of(task.id, task.definition, zone, last) >= edge else edge


def _joined(found: Sequence[Fate]) -> list[Fate]:
    """Make one stretch of those in a row that wait for their judgement."""
    joined: list[Fate] = []
    for fate in found:
        last = joined[-1] if joined else None
        if isinstance(fate, Stretch) and isinstance(last, Stretch) and fate.reason == last.reason == LATE:
            joined[-1] = replace(last, last=fate.last, count=last.count + fate.count)
        else:
            joined.append(fate)
    return joined


def _newest(task: Task, zone: ZoneInfo, now: datetime, found: Sequence[Fate]) -> list[Fate]:
    """`run`: what starts after a late one stands for it; where nothing does, the newest late one starts."""
    fresh_from = reached_from(task, zone, now, task.definition.rules.max_age)
    backwards: list[Fate] = []
    stands: datetime | None = None
    for fate in reversed(found):
        if isinstance(fate, Opening):
            stands = fate.due_at
        elif fate.reason == LATE:
            if stands is None and fate.last >= fresh_from:
                stands = fate.last
                backwards.append(_caught_up(task, zone, now, stands))
                if fate.count == 1:
                    continue
                fate = _without_last(task, zone, fate)
            fate = (
                _told(task, zone, now, fate, "stale")
                if stands is None
                else replace(fate, reason="coalesced", details={"into": at_key(stands)})
            )
        backwards.append(fate)
    return backwards[::-1]


def _all(task: Task, zone: ZoneInfo, now: datetime, found: Sequence[Fate]) -> list[Fate]:
    """`run_all`: the oldest within max_age start, up to at_most, one after another."""
    rules = task.definition.rules
    fresh_from = reached_from(task, zone, now, rules.max_age)
    judged: list[Fate] = []
    room = rules.at_most
    for fate in found:
        if isinstance(fate, Opening) or fate.reason != LATE:
            judged.append(fate)
            continue
        old, fresh = _cut(task, zone, fate, fresh_from)
        if old is not None:
            judged.append(_told(task, zone, now, old, "stale"))
        if fresh is not None:
            number = min(room, fresh.count)
            chosen = list(islice(dues(task.definition, zone, fresh.first - TICK), number))
            judged += [_caught_up(task, zone, now, due) for due in chosen]
            room -= number
            if number < fresh.count:
                after = chosen[-1] if chosen else fresh.first - TICK
                first = next_due(task.definition, zone, after)
                assert first is not None
                rest = replace(fresh, first=first, count=fresh.count - number)
                judged.append(_told(task, zone, now, rest, "too_many"))
    if room == rules.at_most:
        return judged
    # Each shall run: none is skipped, or cancelled, for another of the same catching up.
    return [replace(fate, queues=True) if isinstance(fate, Opening) else fate for fate in judged]


def _caught_up(task: Task, zone: ZoneInfo, now: datetime, due_at: datetime) -> Opening:
    start = start_of(task.id, task.definition, zone, due_at)
    return Opening(due_at=due_at, start_at=start, opened_by="catch_up", late_by=now - start)


def _without_last(task: Task, zone: ZoneInfo, stretch: Stretch) -> Stretch:
    before = last_due_before(task.definition, zone, stretch.last)
    assert before is not None
    return replace(stretch, last=before, count=stretch.count - 1)


def _cut(task: Task, zone: ZoneInfo, stretch: Stretch, at: datetime) -> tuple[Stretch | None, Stretch | None]:
    """Part a stretch into what is due before an instant and the rest."""
    if stretch.last < at:
        return stretch, None
    if stretch.first >= at:
        return None, stretch
    last, first = last_due_before(task.definition, zone, at), next_due(task.definition, zone, at - TICK)
    assert last is not None
    assert first is not None
    count = count_due(task.definition, zone, stretch.first - TICK, last)
    return replace(stretch, last=last, count=count), replace(stretch, first=first, count=stretch.count - count)


def _told(task: Task, zone: ZoneInfo, now: datetime, fate: Fate, reason: str) -> Fate:
    """Give a late stretch its reason, with the lateness of its newest and the figure that it is beyond."""
    if isinstance(fate, Opening) or fate.reason != LATE:
        return fate
    late_by = now - start_of(task.id, task.definition, zone, fate.last)
    return replace(
        fate, reason=reason, details={"late_by_s": late_by.total_seconds(), **_figure(task, zone, fate, reason)}
    )


def _figure(task: Task, zone: ZoneInfo, stretch: Stretch, reason: str) -> Mapping[str, object]:
    rules = task.definition.rules
    if reason == "stale":
        return {"max_age_s": rules.max_age.total_seconds()}
    if reason == "too_many":
        return {"at_most": rules.at_most}
    following = next_due(task.definition, zone, stretch.last)
    return {"grace_s": grace_for(rules, stretch.last, following).total_seconds()}
