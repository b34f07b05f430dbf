"""`restore`: a backup back in its place, with nothing running, nothing owed, and a word on what would have been due."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from duly import ids, zones
from duly.clock import Clock
from duly.core import lifecycle
from duly.core.fates import Stretch
from duly.core.fields import NOTE_MOST
from duly.core.names import key_of
from duly.core.planning import owed
from duly.core.run import Entry, Run
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.errors import DulyError, Invalid, Refused, StoreAway
from duly.operations import shapes
from duly.operations.backups import taken
from duly.operations.serving import check_unserved, holders_alive
from duly.runners import keeping
from duly.store import Session, Store, copies, engine, making
from duly.store.address import Address, check_place, remember
from duly.store.plans import disarm
from duly.store.rows import Pause
from duly.store.switches import attempt, lift_over, switch_on, write
from duly.store.tasks import NEITHER

FENCES_AHEAD = 1_000_000
"""After a restore the fences of every task begin so much higher: what was claimed after the backup stays older."""
ENTRIES_AHEAD = 1_000_000
"""The same for the numbers of ledger entries, which readers have gone on from."""
PAGE = 1_000
NAMED = 10
WHY = "before-restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a task would have had due between the backup and now."""

    task: Task
    stretch: Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A backup that was put in its place: what it held, what would have been due since, which runs were ended."""

    contents: copies.Contents
    at: datetime
    kept: Path | None
    """Where what stood at the place is now."""
    due: Sequence[Due]
    ended: Sequence[Run]
    pause: Pause


def examine(file: Path) -> copies.Contents:
    """Look whether a file is a whole backup that this version may use; StoreAway or StoreNewer says why not."""
    if not file.exists():
        raise Invalid(f"there is no file {file}", field="FILE")
    if not file.is_file():
        raise Invalid(f"{file} is not a file", field="FILE")
    with copies.looked_at(file) as line:
        making.check_version(making.look(line, file), file)
        found = copies.faults(line)
        if found:
            raise StoreAway(f"the backup {file} is damaged: {found[0]}", details={"faults": found})
        return copies.contents(line, file)


def shape(done: Restored) -> dict[str, object]:
    """Show what a restore did; the names are those of a backup, then what is new."""
    return {
        **taken(done.contents),
        "restored_at": shapes.instant(done.at),
        "kept": None if done.kept is None else str(done.kept),
        "due": [
            {
                "task": one.task.id,
                "task_name": one.task.definition.name,
                "project": one.task.definition.project,
                "count": one.stretch.count,
                "first": shapes.instant(one.stretch.first),
                "last": shapes.instant(one.stretch.last),
            }
            for one in done.due
        ],
        "ended": [
            {
                "run": run.id,
                "task": run.task,
                "occurrence": run.occurrence,
                "outcome": run.outcome,
                "reason": run.reason,
            }
            for run in done.ended
        ],
        "pause": shapes.pause(done.pause),
    }


def check_free(address: Address, file: Path) -> None:
    """Refuse to restore over a store that is used, or from the store itself."""
    with contextlib.suppress(OSError):
        if address.path.samefile(file):
            raise Invalid("it is the store itself", field="FILE", hint="a backup of it")
    check_unserved(holders_alive(address.run_folder), address)
    living = sorted(_living(address.run_folder))
    if living:
        raise Refused(
            "already_running",
            f"work that the store {address.path} started is alive: {', '.join(living[:NAMED])}",
            details={"attempts": living},
            hint="duly serve lets it end or, with duly cancel, ends it; then stop that and restore",
        )


def restore(
    address: Address, file: Path, environ: Mapping[str, str], *, by: str, clock: Clock | None = None
) -> Restored:
    """Put a backup in a store's place; everything is paused, and what the store held is kept beside it.

    What waited or was held at the backup is ended, every cursor moves to now, and the fences begin higher than any
    that was given since. Nobody sees the store half restored: it is made ready beside its place.
    """
    check_place(address)
    contents = examine(file)
    check_free(address, file)
    with copies.looked_at(file) as line:
        ready = _ready(line, address, environ, file=file, contents=contents, by=by, clock=clock)
        with ready as (copy, told):
            kept = _put(copy, address, file)
    remember(address, environ)
    return replace(told, kept=kept)


@contextlib.contextmanager
def _ready(
    line: engine.FileLine,
    address: Address,
    environ: Mapping[str, str],
    *,
    file: Path,
    contents: copies.Contents,
    by: str,
    clock: Clock | None,
) -> Iterator[tuple[Path, Restored]]:
    """Make what shall stand there, in a file beside the place: the backup, up to date and at rest."""
    with copies.whole_copy(line, address.path.parent, address.path.name) as copy:
        making.bring_up(copy)
        store = Store.open(Address(path=copy), environ, noted=False, clock=clock)
        try:
            with store.write() as session:
                told = _at_rest(session, file=file, contents=contents, by=by)
        finally:
            store.close()
        copies.finish(copy, ENTRIES_AHEAD)
        yield copy, told


def _put(copy: Path, address: Address, file: Path) -> Path | None:
    """Put it there: into the standing store in one transaction, or in the place of one that is gone or damaged."""
    if not _is_usable(address):
        return copies.put_in_place(copy, address, WHY)
    with (
        copies.looked_at(address.path) as old,
        copies.whole_copy(old, address.path.parent, address.path.name) as before,
    ):
        check_free(address, file)  # making all of this took a while
        kept = copies.keep_beside(before, address, WHY)
    copies.overwrite(copy, address)
    return kept


def _is_usable(address: Address) -> bool:
    """Say whether a sound store of ours stands at the place."""
    if not address.path.exists():
        return False
    try:
        with copies.looked_at(address.path) as line:
            making.look(line, address.path)
            return not copies.faults(line)
    except DulyError:
        return False


def _at_rest(session: Session, *, file: Path, contents: copies.Contents, by: str) -> Restored:
    """Leave nothing that could start: what lived is ended, what would have been due is told, all is paused."""
    lift_over(session)
    why = f"restored from a backup of {write_instant(contents.taken_at.replace(microsecond=0))}"
    ended = _end_all(session, why, by)
    due = [one for task in _tasks(session) if (one := _owes_nothing(session, task)) is not None]
    for row in session.holders.living():
        session.holders.set_state(row.id, "gone")
        session.ledger.add(
            [
                Entry(
                    kind="holder_ended",
                    at=session.now,
                    holder=row.id,
                    by=by,
                    reason="holder_died",
                    details={"why": why},
                )
            ]
        )
    session.tasks.raise_fences([(id_, FENCES_AHEAD) for id_ in session.tasks.all_ids()])
    pause = _pause(session, why, by)
    details = {
        "cause": "restored",
        "since": write_instant(contents.taken_at),
        "until": write_instant(session.now),
        "file": str(file),
    }
    told = Entry(kind="outage", at=session.now, reason="restored", by=by, until_at=session.now, details=details)
    session.ledger.add([told])
    # What a person does here is no news; nor is what waited to be told when the backup was taken.
    session.notices.keep_quiet(session.now)
    if session.notices.read_to() is not None:
        session.notices.set_read_to(session.ledger.last())
    if session.pings.watched():
        session.pings.set_read_to(session.ledger.last())
    return Restored(contents=contents, at=session.now, kept=None, due=due, ended=ended, pause=pause)


def _end_all(session: Session, why: str, by: str) -> list[Run]:
    """End what waited, and what was held: of that nobody here knows how it went on."""
    waiting = list(_runs(session, "waiting"))
    steps = [lifecycle.skip(run, reason="paused", now=session.now, details={"why": why}, by=by) for run in waiting] + [
        lifecycle.not_confirmed(run, now=session.now, survivors=f"{why}, and how it went on is not known here")
        for run in _runs(session, "held")
    ]
    won = session.runs.move(steps)
    written = [step for step in steps if step.after.id in won]
    session.ledger.add([entry for step in written for entry in step.entries])
    ended = [step.after for step in written]
    # They are runs and no failures: how they went on is not known.
    session.tasks.count_end([(run.task, run.id, NEITHER) for run in ended if run.outcome != "skipped"])
    return ended


def _runs(session: Session, state: str) -> Iterator[Run]:
    before = "~"
    while page := session.runs.listed(before=before, state=state, most=PAGE):
        yield from page
        before = page[-1].id


def _tasks(session: Session) -> Iterator[Task]:
    after = ("", "")
    while page := session.tasks.page(after=after, most=PAGE):
        yield from page
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))


def _owes_nothing(session: Session, task: Task) -> Due | None:
    """Move a task's cursor to now, with the count of what would have been due; one that time opens nothing of stays."""
    if task.next_due_at is None:
        return None
    found: list[Due] = []

    def change() -> Task:
        stretch = owed(task.definition, zones.zone(task.definition.zone), task.planned_until, session.now)
        on = switch_on(session, task, reason="paused", at=session.now)
        found.extend([] if stretch is None else [Due(task=task, stretch=stretch)])
        return disarm(on)

    off = attempt(session, task, change)
    if off is not None:
        write(session, task, off)
    return found[0] if found else None


def _pause(session: Session, why: str, by: str) -> Pause:
    """Hold the whole store until a person lifts it; a hold that was there, and that may end by itself, is replaced."""
    for held in session.pauses.all():
        if held.scope == "store":
            session.pauses.delete(held.id)
            why = f"{why}; before: {held.note or 'paused'}"
    made = Pause(
        id=ids.new("pau"), scope="store", target="", since=session.now, until=None, note=why[:NOTE_MOST], by=by
    )
    session.pauses.insert(made)
    details = {"scope": "store", "target": "", "note": made.note, "pause": made.id}
    session.ledger.add([Entry(kind="paused", at=session.now, by=by, details=details)])
    return made


def _living(run_folder: Path) -> Iterator[str]:
    """Name the attempts of which something still has its lock."""
    try:
        entries = list(os.scandir(run_folder / "attempts"))
    except OSError:
        return
    for entry in entries:
        with contextlib.suppress(OSError):
            if keeping.lock_held(Path(entry.path)):
                yield entry.name
