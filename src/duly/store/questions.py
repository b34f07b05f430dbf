"""Questions of runs: put by who holds the run, answered once, over when their run is."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, func, or_, select, update
from sqlalchemy.sql.elements import CompilerElement

from duly.clock import from_us, to_us
from duly.core.questions import Question
from duly.core.run import Step
from duly.store.line import Line
from duly.store.rows import at, dump, mapping, us
from duly.store.sql import Batch, Statement, insert_batch, rows_of
from duly.store.tables import questions

COLUMNS = tuple(column.name for column in questions.columns)


def _all() -> Select[Any]:
    return select(*[questions.c[name] for name in COLUMNS])


_text = questions.c.id.type
_of_task = or_(bindparam("task", type_=_text).is_(None), questions.c.task == bindparam("task"))
INSERT = insert_batch(questions, COLUMNS)
BY_ID = Statement(lambda: _all().where(questions.c.id == bindparam("id")))
BY_IDS = Batch(lambda size: _all().where(questions.c.id == rows_of(size, {"id": str}).c.id), ("id",))
IDS_LIKE = Statement(
    lambda: (
        select(questions.c.id).where(questions.c.id.like(bindparam("pattern"), escape="\\")).limit(bindparam("most"))
    )
)
LISTED = Statement(
    lambda: (
        _all()
        .where(questions.c.id < bindparam("before"), _of_task)
        .order_by(questions.c.id.desc())
        .limit(bindparam("most"))
    )
)
_waits = (questions.c.state == "open", questions.c.until_us > bindparam("now_us"))
LISTED_OPEN = Statement(
    lambda: (
        _all()
        .where(*_waits, questions.c.id < bindparam("before"), _of_task)
        .order_by(questions.c.id.desc())
        .limit(bindparam("most"))
    )
)
OPEN = Statement(lambda: select(func.count()).select_from(questions).where(*_waits))
OPEN_OF = Statement(
    lambda: _all().where(questions.c.run == bindparam("run"), questions.c.state == "open").order_by(questions.c.id)
)
OVER = Statement(
    lambda: (
        _all()
        .where(questions.c.state == "open", questions.c.until_us <= bindparam("now_us"))
        .order_by(questions.c.until_us)
        .limit(bindparam("most"))
    )
)
SOONEST = Statement(lambda: select(func.min(questions.c.until_us)).where(questions.c.state == "open"))
DECIDE = Statement(
    lambda: (
        update(questions)
        # Who reads it first and writes it last loses: one answer each.
        .where(questions.c.id == bindparam("que"), questions.c.state == "open")
        .values(
            state=bindparam("now_state"),
            answer=bindparam("now_answer"),
            said=bindparam("now_said"),
            note=bindparam("now_note"),
            answered_by=bindparam("now_by"),
            answered_us=bindparam("now_answered_us"),
        )
    )
)


def _close(size: int) -> CompilerElement:
    v = rows_of(size, {"run": str})
    return (
        update(questions)
        .where(questions.c.run == v.c.run, questions.c.state == "open")
        .values(state="expired")
        .returning(questions.c.id)
    )


CLOSE = Batch(_close, ("run",))


class Questions:
    """Questions are put by holders and answered by people, or by their deadlines."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def insert(self, put: Iterable[Question]) -> None:
        """Add questions."""
        self._line.many(INSERT, [_cells(one) for one in put])

    def by_id(self, id_: str) -> Question | None:
        """The question of this id."""
        row = self._line.row(BY_ID, id=id_)
        return None if row is None else _of(row)

    def by_ids(self, ids: Iterable[str]) -> dict[str, Question]:
        """The questions of these ids, by them."""
        return {row[0]: _of(row) for row in self._line.many(BY_IDS, [(id_,) for id_ in sorted(set(ids))])}

    def ids_like(self, pattern: str, most: int) -> list[str]:
        """Ids of questions that match a LIKE pattern."""
        return [row[0] for row in self._line.rows(IDS_LIKE, pattern=pattern, most=most)]

    def listed(self, *, before: str = "~", task: str | None = None, most: int = 50) -> list[Question]:
        """Questions with ids below `before`, the newest first."""
        return self._read(LISTED, before=before, task=task, most=most)

    def open(self, now: datetime, *, before: str = "~", task: str | None = None, most: int = 50) -> list[Question]:
        """Questions that wait for an answer and whose time is not over, the newest first."""
        return self._read(LISTED_OPEN, before=before, task=task, most=most, now_us=to_us(now))

    def open_count(self, now: datetime) -> int:
        """How many questions wait for an answer."""
        row = self._line.row(OPEN, now_us=to_us(now))
        return 0 if row is None else int(row[0])

    def open_of(self, run: str) -> list[Question]:
        """The open questions of a run, their time over or not, the oldest first."""
        return self._read(OPEN_OF, run=run)

    def over(self, now: datetime, most: int) -> list[Question]:
        """Open questions whose time is over, the first to run out at the front."""
        return self._read(OVER, now_us=to_us(now), most=most)

    def decide(self, after: Question) -> bool:
        """Write what an open question has come to; False where it was open no longer."""
        changed = self._line.run(
            DECIDE,
            que=after.id,
            now_state=after.state,
            now_answer=after.answer,
            now_said=after.said,
            now_note=after.note,
            now_by=after.answered_by,
            now_answered_us=us(after.answered_at),
        )
        return changed == 1

    def stepped(self, steps: Sequence[Step]) -> None:
        """Ask no longer what runs had asked that these steps, which were written, ended or let go."""
        over = [step.before.id for step in steps if step.before.question is not None and _is_past_asking(step)]
        if over:
            self._line.many(CLOSE, [(run,) for run in over])

    def _read(self, statement: Statement, **given: Any) -> list[Question]:
        return [_of(row) for row in self._line.rows(statement, **given)]


def _is_past_asking(step: Step) -> bool:
    before, after = step.before.state, step.after.state
    return before != after and before in {"held", "parked"} and after != "held"


def _of(row: Sequence[Any]) -> Question:
    q = dict(zip(COLUMNS, row, strict=True))
    return Question(
        id=q["id"],
        run=q["run"],
        task=q["task"],
        attempt=q["attempt"],
        asked_at=from_us(q["asked_us"]),
        until=from_us(q["until_us"]),
        otherwise=q["otherwise"],
        attached=bool(q["attached"]),
        kind=q["kind"],
        text=q["text"],
        options=tuple(json.loads(q["options"])),
        about=mapping(q["about"]),
        state=q["state"],
        answer=q["answer"],
        said=q["said"],
        note=q["note"],
        answered_by=q["answered_by"],
        answered_at=at(q["answered_us"]),
    )


def _cells(one: Question) -> tuple[Any, ...]:
    return (
        one.id,
        one.run,
        one.task,
        one.attempt,
        to_us(one.asked_at),
        to_us(one.until),
        one.otherwise,
        int(one.attached),
        one.kind,
        one.text,
        json.dumps(list(one.options), ensure_ascii=False),
        dump(one.about),
        one.state,
        one.answer,
        one.said,
        one.note,
        one.answered_by,
        us(one.answered_at),
    )
