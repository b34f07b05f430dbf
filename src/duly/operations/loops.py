"""Loop files brought into the store: each change is a whole one, and a file that cannot be taken hinders no other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from duly import zones
from duly.clock import to_us
from duly.core.loop_keys import faults_of
from duly.core.loops import (
    Fault,
    Known,
    Looked,
    Loop,
    fault_of,
    fault_to_json,
    path_of,
    source_of,
    spoilt_source,
)
from duly.core.reconciling import Add, Change, Decision, Remove, Spoil, Write, decide
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.operations import edits, tasks
from duly.operations.lookup import told
from duly.store import Session, Store, removing
from duly.store.projects import Project
from duly.store.switches import lift_over

FAULTS_KEPT = 50
"""Faults of a project's files that are kept to be shown; how many there are is kept too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What came of it: names of tasks by what became of them, and files that could not be taken, with the reason."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    faults: tuple[tuple[str, Fault], ...] = ()
    missing: str | None = None


def decision(session: Session, key: str, looked: Looked) -> Decision:
    """Say what a look at a project's files would change."""
    return decide(looked, [_known(task) for task in session.tasks.in_scope("project", key)])


def reconcile(store: Store, key: str, folder: str, looked: Looked) -> Reconciled:
    """Bring the tasks of a project to what its files say, as looked at in this folder; nothing to do writes nothing.

    Whoever does it next finds it done.
    """
    with store.read() as session:
        project = session.projects.by_key(key)
        if project is None or project.dir != folder:
            return Reconciled()
        wanted = decision(session, key, looked)
        if not wanted.changes and project.loops == _kept(project, looked, wanted.faults, to_us(session.now)):
            return Reconciled(faults=wanted.faults, missing=looked.missing)
    with store.write() as session:
        lift_over(session)
        project = session.projects.by_key(key)
        if project is None or project.dir != folder:  # named anew in between
            return Reconciled()
        # Decided again, on what stands now that nobody else can write.
        wanted = decision(session, key, looked)
        faults, done = list(wanted.faults), list[tuple[str, str]]()
        for change in wanted.changes:
            what, name, wrong = _made(session, project, change)
            done.append((what, name))
            faults += [(change.loop.path if isinstance(change, Add | Write) else change.path, fault) for fault in wrong]
        kept = _kept(project, looked, faults, to_us(session.now))
        if project.loops != kept:
            session.projects.set_loops(key, kept)
        return Reconciled(
            added=tuple(name for what, name in done if what == "added"),
            changed=tuple(name for what, name in done if what == "changed"),
            removed=tuple(name for what, name in done if what == "removed"),
            faults=tuple(faults),
            missing=looked.missing,
        )


def _made(session: Session, project: Project, change: Change) -> tuple[str, str, tuple[Fault, ...]]:
    """Make one change, whole or not at all; gives what was done, to which task, and what kept it from being done."""
    try:
        with session.line.savepoint():
            match change:
                case Add():
                    return "added", _added(session, project, change.loop), ()
                case Write():
                    return "changed", _written(session, project, change), ()
                case Remove():
                    return "removed", _removed(session, change), ()
                case Spoil():
                    _spoil(session, change.task, change.fault)
                    return "", "", ()
    except (Invalid, Refused) as bad:
        assert isinstance(change, Add | Write)
        faults = faults_of(bad, change.loop.lines)
        if isinstance(change, Write):
            _spoil(session, change.task, faults[0])
        return "", "", faults if isinstance(change, Add) else ()


def _added(session: Session, project: Project, loop: Loop) -> str:
    from duly.definitions import read_definition

    given = {**loop.given, "project": project.name}
    read = read_definition(given, now=session.now, default_zone=zones.machine_zone())
    return told(tasks.add_in(session, read.definition, by=_by(loop.path), source=source_of(loop)))


def _written(session: Session, project: Project, change: Write) -> str:
    task = session.tasks.by_id(change.task)
    assert task is not None
    source = source_of(change.loop)
    given = {**change.loop.given, "project": project.name}
    done = edits.write_in(session, replace(task, source=source), given, by=_by(change.loop.path))
    # Where it comes from is written with a new version alone, and this may have needed none.
    if done.after.definition_version == task.definition_version:
        session.tasks.set_source(task.id, source)
    return told(done.after)


def _removed(session: Session, change: Remove) -> str:
    task = session.tasks.by_id(change.task)
    assert task is not None
    removing.remove(session, task, by=_by(change.path), details={"why": "file", "path": change.path})
    return told(task)


def _spoil(session: Session, id_: str, fault: Fault) -> None:
    task = session.tasks.by_id(id_)
    assert task is not None
    if fault_of(task.source) != fault:
        session.tasks.set_source(task.id, spoilt_source(task.source, fault))


def _by(path: str) -> str:
    return f"the file {path}"


def _known(task: Task) -> Known:
    kind, digest = task.source.get("kind"), task.source.get("digest")
    return Known(
        task=task.id,
        name=task.definition.name,
        kind=None if kind is None else str(kind),
        path=path_of(task.source),
        digest=str(digest) if digest is not None else None,
        fault=fault_of(task.source),
    )


def _kept(project: Project, looked: Looked, faults: Sequence[tuple[str, Fault]], now_us: int) -> dict[str, object]:
    """Make what the store keeps of what is wrong with a project's files; since when its folder cannot be used."""
    if looked.missing is not None:
        since = project.loops.get("since_us", now_us)
        return {**project.loops, "missing": looked.missing, "since_us": since}
    told_ = [{"path": path, **fault_to_json(fault)} for path, fault in faults[:FAULTS_KEPT]]
    return {"faults": told_, "count": len(faults)} if faults else {}
