"""Limits as people set them: how many runs of all tasks that name one may be live, and how many may start in a span."""

from dataclasses import dataclass, replace
from datetime import timedelta

from duly.core.limits import Limit, unset, weights_of
from duly.core.reading import read_word, shown
from duly.core.run import Entry
from duly.core.spans import read_span
from duly.core.task import Definition
from duly.errors import Invalid, Refused
from duly.operations.lookup import told
from duly.store import Session, Store
from duly.store.switches import lift_over

MOST_MOST = 1_000_000
RATE_MOST = 10_000
RATE_DIGITS = 9
TASKS_TOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A limit with how many tasks name it and how many runs wait for it."""

    limit: Limit
    tasks: int


def set_limit(store: Store, key: str, most: int, *, rate: int | None, rate_for: timedelta | None, by: str) -> Limit:
    """Set how much a limit allows; refused `limit_reached` below what runs now or below a task's own weight."""
    word = read_word(key, "KEY")
    if not 1 <= most <= MOST_MOST:
        raise Invalid(f"{most} is not between 1 and {MOST_MOST}", field="n", hint="duly pause holds tasks altogether")
    if rate is not None and not 1 <= rate <= RATE_MOST:
        raise Invalid(f"{rate} is not between 1 and {RATE_MOST}", field="per", hint="10/1m")
    with store.write() as session:
        lift_over(session)
        before = session.crowd.by_keys([word])[word]
        _check_room(session, before, most)
        after = replace(before, most=most, rate=rate, rate_for=rate_for, set_at=session.now, set_by=by)
        session.crowd.set(after)
        if (before.most, before.rate, before.rate_for, before.set_at is None) != (most, rate, rate_for, False):
            session.ledger.add([_entry(session, after, by, "set")])
        return session.crowd.by_keys([word])[word]


def read_rate(text: str, field: str) -> tuple[int, timedelta]:
    """Read how many may start in a span, such as `10/1m`."""
    number, mark, span = text.partition("/")
    word = number.strip()
    if not mark or not (word.isascii() and word.isdigit()) or len(word) > RATE_DIGITS:
        at = len(text) if not mark else 0
        raise Invalid(f"{shown(text)} is not a rate such as 10/1m", field=field, text=text, at=at)
    return int(word), read_span(span, field=field)


def remove_limit(store: Store, key: str, *, by: str) -> Limit:
    """Set a limit back to what its key means unset; refused while more runs than that, or a task weighs more."""
    word = read_word(key, "KEY")
    with store.write() as session:
        found = session.crowd.by_keys([word])[word]
        if found.set_at is None:
            keys = [one.key for one in session.crowd.all() if one.set_at is not None][:TASKS_TOLD]
            raise Refused(
                "unknown_id",
                f"no limit {shown(word)} is set",
                details={"key": word, "limits": keys},
                hint=f"one of {', '.join(keys)}" if keys else None,
            )
        bare = unset(word)
        _check_room(session, found, bare.most, removing=True)
        session.crowd.set(replace(found, most=bare.most, rate=None, rate_for=None, set_at=None, set_by=None))
        session.crowd.forget_unset()
        session.ledger.add([_entry(session, found, by, "removed")])
        return found


def limits(session: Session) -> list[Shown]:
    """List the limits that are set, and those that tasks name without anybody having set them."""
    out = []
    for limit in session.crowd.all():
        tasks = len(session.crowd.named_by(limit.key))
        if limit.set_at is not None or tasks or limit.used:
            out.append(Shown(limit=limit, tasks=tasks))
    return out


def check_fits(session: Session, definition: Definition) -> tuple[str, ...]:
    """Refuse a definition that weighs more than one of its limits allows; gives a warning for each that is not set."""
    weights = weights_of(definition)
    notes = []
    for key, limit in session.crowd.by_keys(list(weights)).items():
        if weights[key] > limit.most:
            unset_hint = f"duly limit set {key} {weights[key]}"
            what = "allows" if limit.set_at is not None else "allows until it is set:"
            raise Invalid(
                f"its weight is {weights[key]}, and {key} {what} {limit.most}",
                field=f"rules.limits.{key}",
                hint=unset_hint,
                details={"key": key, "weight": weights[key], "most": limit.most},
            )
        if limit.set_at is None and key in definition.rules.limits:
            notes.append(f"the limit {key} is not set, so it is {limit.most}: duly limit set {key} N")
    return tuple(notes)


def _check_room(session: Session, limit: Limit, most: int, *, removing: bool = False) -> None:
    verb = f"removing {limit.key} leaves {most}" if removing else f"{most} is too low for {limit.key}"
    if limit.used > most:
        runs = [run.id for run in session.runs.live() if limit.key in run.taken]
        raise Refused(
            "limit_reached",
            f"{verb}: {limit.used} of it are taken by what runs now",
            details={"key": limit.key, "most": most, "used": limit.used, "runs": runs},
            hint="wait for their end, or pause the tasks that name it",
        )
    heavy = [(task, weight) for task, weight in session.crowd.named_by(limit.key) if weight > most]
    if heavy:
        task = session.tasks.by_id(heavy[0][0])
        name = heavy[0][0] if task is None else told(task)
        raise Refused(
            "limit_reached",
            f"{verb}: {name} alone weighs {heavy[0][1]}",
            details={"key": limit.key, "most": most, "weight": heavy[0][1], "tasks": [id_ for id_, _ in heavy]},
            hint="a lower weight for that task first",
        )


def _entry(session: Session, limit: Limit, by: str, what: str) -> Entry:
    details: dict[str, object] = {
        "limit": limit.key,
        "change": what,
        "most": limit.most,
        "rate": limit.rate,
        "rate_for_s": None if limit.rate_for is None else limit.rate_for.total_seconds(),
    }
    return Entry(kind="defined", at=session.now, by=by, details=details)
