"""Gathering: what the ledger tells becomes notices in the outbox of each channel, once, whoever reads it first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from duly import ids
from duly.core import notices
from duly.core.amounts import UNITS, Amounts, figure
from duly.core.budgets import Lacking, key_of_budget, lacking
from duly.core.channels import heard_by
from duly.core.notices import ERROR_MOST, Notice, Told
from duly.core.run import Run
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.store import Session, Store
from duly.store.rows import Written

PAGE = 500
"""Entries that are read at once."""
BEHIND_MOST = 5_000
"""Entries of no interest after which it is written down all the same how far the ledger was read."""


class Gathering:
    """Reads the ledger from where the last notices were made of it; losing to another process is normal."""

    def __init__(self) -> None:
        self._seen = 0
        """Up to here this process has found nothing of interest."""

    def step(self, store: Store) -> int:
        """Put what is due into the outbox, and give how many rows that were."""
        put = 0
        while True:
            with store.read() as session:
                found = self._look(session)
                used_up = found is None and session.channels.any() and bool(_budgets(session))
            if found or used_up:
                with store.write() as session:
                    put += self._take(session) if found else _put(session, _budgets(session))
            if found is None:
                return put

    def _look(self, session: Session) -> bool | None:
        """Say whether anything of interest was written since the last look; None where nothing was written at all."""
        if not session.channels.any():
            return None
        read_to = session.notices.read_to()
        if read_to is None:
            return True
        page = session.ledger.after(max(read_to, self._seen), most=PAGE)
        if page:
            made, told = _folded(session, page)
            if made or told or page[-1].seq - read_to > BEHIND_MOST:
                return True
            self._seen = page[-1].seq
            return False
        return None

    def _take(self, session: Session) -> int:
        """Make notices of the next entries in one transaction, with the word of how far they go."""
        read_to = session.notices.read_to()
        if read_to is None:
            session.notices.set_read_to(session.ledger.last())
            return 0
        page = session.ledger.after(read_to, most=PAGE)
        made, told = _folded(session, page)
        for task, known in told.items():
            session.notices.tell(task, known)
        if page:
            session.notices.set_read_to(page[-1].seq)
        return _put(session, made)


def _folded(session: Session, page: Sequence[Written]) -> tuple[list[Notice], dict[str, Told]]:
    """Give the notices that are due by these entries, and what is known of tasks where that changed."""
    wanted = [one for one in page if one.entry.kind in notices.TOLD_KINDS]
    if not wanted:
        return [], {}
    names = {one.entry.task for one in wanted if one.entry.task is not None}
    before = session.notices.told(names)
    after = {id_: task.definition.rules.notify_after for id_, task in session.tasks.by_ids(names).items()}
    known = dict(before)
    made = []
    for one in wanted:
        task = one.entry.task
        told, notice = notices.of_entry(
            one.seq, one.entry, known.get(task or "", notices.WELL), after=after.get(task or "", 1)
        )
        if task is not None:
            known[task] = told
        made += [notice] if notice is not None else []
    return made, {id_: told for id_, told in known.items() if told != before[id_]}


def _put(session: Session, made: Sequence[Notice]) -> int:
    if not made:
        return 0
    channels = session.channels.all()
    tasks = session.tasks.by_ids({one.task for one in made if one.task is not None})
    runs = {run.id: run for run in session.runs.by_ids(sorted({one.run for one in made if one.run is not None}))}
    rows = []
    for notice in made:
        task = tasks.get(notice.task or "")
        told = replace(notice, details={**notice.details, **_about(task, runs.get(notice.run or ""))})
        rows += [(told, channel.name) for channel in heard_by(channels, _named(task))]
    # In the order of the ledger, which ids that were made within one moment do not keep by themselves.
    fresh = sorted(ids.several("ntc", len(rows)))
    return session.notices.put(((id_, *row) for id_, row in zip(fresh, rows, strict=True)), session.now)


def _named(task: Task | None) -> Sequence[str] | None:
    return None if task is None else task.definition.rules.notify


def _about(task: Task | None, run: Run | None) -> dict[str, object]:
    """Give what a person wants to know beside what the ledger says."""
    found: dict[str, object] = {}
    if task is not None:
        definition = task.definition
        found |= {"name": _name(task), "task_name": definition.name, "project": definition.project}
    if run is not None:
        found |= {"due_at": write_instant(run.due_at)}
        if run.state == "ended":
            error = None if run.error is None else run.error[:ERROR_MOST]
            found |= {"error": error, "exit_code": run.exit_code, "signal": run.signal}
        if run.agent.get("session") is not None:
            found |= {"session": run.agent["session"]}
    return {name: told for name, told in found.items() if told is not None}


def _name(task: Task) -> str:
    definition = task.definition
    return definition.name if definition.project == "default" else f"{definition.project}/{definition.name}"


def _budgets(session: Session) -> list[Notice]:
    """Give the notices of budgets of which nothing is left, for who was not told of it in this period."""
    made = []
    for budget in session.budgets.all():
        found = lacking([session.budgets.standing(budget, session.now)], Amounts(runs=1), spends=True)
        if found is not None:
            made.append(_of_budget(session, found))
    known = session.notices.known(one.cause for one in made)
    fresh = [one for one in made if one.cause not in known]
    if not fresh:
        return []
    channels, tasks = session.channels.all(), session.tasks.by_ids({one.task for one in fresh if one.task is not None})
    return [one for one in fresh if heard_by(channels, _named(tasks.get(one.task or "")))]


def _of_budget(session: Session, found: Lacking) -> Notice:
    standing, kind = found.standing, found.kind
    taken = getattr(standing.spent, kind) + getattr(standing.reserved, kind)
    details: Mapping[str, object] = {
        "key": _key(session, found),
        "taken": figure(kind, taken),
        "bound": figure(kind, getattr(standing.budget.allowed, kind)),
        "unit": UNITS[kind],
        "per": standing.budget.allowed.per,
        "until": write_instant(standing.until),
    }
    key = key_of_budget(standing.budget)
    made = notices.of_budget(key, since=standing.since, at=session.now, details=details)
    return replace(made, task=standing.budget.target) if standing.budget.scope == "task" else made


def _key(session: Session, found: Lacking) -> str:
    budget = found.standing.budget
    if budget.scope == "project":
        return f"project:{session.projects.name(budget.target) or budget.target}"
    task = session.tasks.by_id(budget.target) if budget.scope == "task" else None
    return "store" if task is None else f"task:{_name(task)}"


def standing_of(session: Session, wanted: Iterable[Notice]) -> dict[str, notices.Standing]:
    """Say how what these notices tell of stands now, by their causes."""
    found = list(wanted)
    tasks = session.tasks.by_ids({one.task for one in found if one.task is not None})
    pauses = session.pauses.all()
    out = {}
    for notice in found:
        task = tasks.get(notice.task or "")
        holds = [one for one in pauses if (one.scope, one.target) == ("task", notice.task)]
        out[notice.cause] = notices.Standing(
            open=_is_open(session, notice),
            removed=notice.task is not None and (task is None or task.removed_at is not None),
            enabled=task is None or task.definition.enabled,
            held_by_person=any(one.by != notices.DULY for one in holds),
            held_by_duly=any(one.by == notices.DULY for one in holds),
        )
    return out


def _is_open(session: Session, notice: Notice) -> bool | None:
    if notice.subject is None or notice.kind not in ("question", "offer"):
        return None
    if notice.kind == "question":
        question = session.questions.by_id(notice.subject)
        return question is not None and question.state == "open"
    offer = session.missed.by_id(notice.subject)
    return offer is not None and offer.state == "open"
