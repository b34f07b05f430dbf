"""Which task or run a word means: ids and their unique beginnings and endings first, then names.

A word that may mean several is never guessed at: Invalid lists the candidates.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from duly.core.events import Event
from duly.core.names import key_of
from duly.core.questions import Question
from duly.core.reading import nearest, shown
from duly.core.run import Missed, Run
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.ids import ALPHABET, CHANCE_DIGITS, TIME_DIGITS
from duly.store.rows import HolderRow
from duly.store.store import Session

ENDING_LEAST = 6
ENDING_SHOWN = 8
CANDIDATES_MOST = 20
PROJECTS_TOLD = 5
NAMES_LOOKED_AT = 1000
ID_DIGITS = TIME_DIGITS + CHANCE_DIGITS


def find_task(session: Session, word: str) -> Task:
    """Find the live task a word means; Refused `unknown_task` with the nearest name, Invalid when it is ambiguous."""
    ids = _ids(session.tasks.ids_like, "tsk_", word)
    removed = None
    live = []
    for id_ in ids:
        task = session.tasks.by_id(id_)
        if task is not None and task.removed_at is None:
            live.append(task)
        elif task is not None and len(ids) == 1:
            removed = task
    if len(live) == 1:
        return live[0]
    if live:
        _ambiguous(word, [f"{told(task)} ({task.id})" for task in live])
    named = by_name(session, word)
    if named is not None:
        return named
    if removed is not None:
        raise Refused(
            "unknown_task",
            f"the task {told(removed)} was removed",
            details={"word": word, "id": removed.id},
            hint=f"duly ledger --task {removed.id}",
        )
    hint = _near(session, word)
    raise Refused(
        "unknown_task",
        f"there is no task {shown(word)}",
        details={"word": word, "near": hint},
        hint=hint or "duly list",
    )


def by_name(session: Session, word: str) -> Task | None:
    """Find a live task by `project/name`, or by a name that only one project has; Invalid when several do."""
    project, slash, name = word.partition("/")
    if slash:
        return session.tasks.by_name(key_of(project), key_of(name))
    found = session.tasks.named(key_of(word))
    if len(found) > 1:
        # With their projects, also the default one: the name alone is what was not understood.
        _ambiguous(word, [f"{task.definition.project}/{task.definition.name}" for task in found])
    return found[0] if found else None


def find_run(session: Session, word: str) -> Run:
    """Find the run a word means; Refused `unknown_run`, Invalid when it is ambiguous."""
    run = _run(session, word)
    if run is None:
        raise Refused("unknown_run", f"there is no run {shown(word)}", details={"word": word}, hint="duly runs")
    return run


def find_missed(session: Session, word: str) -> Missed:
    """Find the missed occurrence a word means; Refused `unknown_id`, Invalid when it is ambiguous."""
    ids = _ids(session.missed.ids_like, "mis_", word)
    if len(ids) > 1:
        _ambiguous(word, ids)
    one = session.missed.by_id(ids[0]) if ids else None
    if one is None:
        raise Refused(
            "unknown_id", f"nothing missed is called {shown(word)}", details={"word": word}, hint="duly missed"
        )
    return one


def find_question(session: Session, word: str) -> Question:
    """Find the question a word means; Refused `unknown_id`, Invalid when it is ambiguous."""
    ids = _ids(session.questions.ids_like, "que_", word)
    if len(ids) > 1:
        _ambiguous(word, ids)
    one = session.questions.by_id(ids[0]) if ids else None
    if one is None:
        raise Refused(
            "unknown_id", f"no question is called {shown(word)}", details={"word": word}, hint="duly questions"
        )
    return one


def find_event(session: Session, word: str) -> Event:
    """Find the event a word means; Refused `unknown_id`, Invalid when it is ambiguous."""
    ids = _ids(session.events.ids_like, "evt_", word)
    if len(ids) > 1:
        _ambiguous(word, ids)
    one = session.events.by_id(ids[0]) if ids else None
    if one is None:
        raise Refused("unknown_id", f"no event is called {shown(word)}", details={"word": word})
    return one


def find_holder(session: Session, word: str) -> HolderRow:
    """Find the holder a word means, gone or not; Refused `unknown_id`, Invalid when it is ambiguous."""
    ids = _ids(session.holders.ids_like, "hld_", word)
    if len(ids) > 1:
        _ambiguous(word, ids)
    one = session.holders.by_id(ids[0]) if ids else None
    if one is None:
        raise Refused("unknown_id", f"there is no holder {shown(word)}", details={"word": word}, hint="duly holders")
    return one


def find_any(session: Session, word: str) -> Task | Run:
    """Find the run or the task a word means, ids before names."""
    run = _run(session, word)
    if run is not None:
        if len(word) < ID_DIGITS and _ids(session.tasks.ids_like, "tsk_", word):
            _ambiguous(word, [run.id, *_ids(session.tasks.ids_like, "tsk_", word)])
        return run
    try:
        return find_task(session, word)
    except Refused as refused:
        if refused.reason != "unknown_task" or refused.details.get("id"):
            raise
        if word.startswith("run_"):
            find_run(session, word)
        near = refused.details.get("near")
        raise Refused(
            "unknown_id",
            f"there is no task and no run {shown(word)}",
            details={"word": word, "near": near},
            hint=f"duly show {near}" if near else "duly list, or duly runs",
        ) from refused


def project_key(session: Session, word: str) -> str:
    """Give the key of the project a word means; Refused `unknown_id` with those there are."""
    key = key_of(word)
    if session.projects.name(key) is None:
        names = session.projects.names()
        raise Refused(
            "unknown_id",
            f"there is no project {shown(word)}",
            details={"word": word, "projects": names[:PROJECTS_TOLD]},
            hint=f"one of {', '.join(names[:PROJECTS_TOLD])}" if names else None,
        )
    return key


def told(task: Task) -> str:
    """Name a task so that it is found again: its name, with the project unless it is the default one."""
    definition = task.definition
    return definition.name if definition.project == "default" else f"{definition.project}/{definition.name}"


def ending(id_: str) -> str:
    """Give the ending by which tables show an id."""
    return id_[-ENDING_SHOWN:]


def caller() -> str:
    """Name who asks, for the ledger: the user of this process, and the run whose work asks where there is one."""
    import pwd

    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    run = run_of(os.environ)
    return name if run is None else f"{name} in {run}"


def run_of(environ: Mapping[str, str]) -> str | None:
    """Give the run that a process with this environment is the work of, where it is one."""
    run = environ.get("DULY_RUN", "")
    digits = run.removeprefix("run_")
    ours = len(digits) == ID_DIGITS and run == f"run_{digits}" and all(char in ALPHABET for char in digits)
    return run if ours else None


def _run(session: Session, word: str) -> Run | None:
    ids = _ids(session.runs.ids_like, "run_", word)
    if len(ids) > 1:
        _ambiguous(word, ids)
    return session.runs.by_id(ids[0]) if ids else None


def _ids(like: Callable[[str, int], list[str]], prefix: str, word: str) -> list[str]:
    """Give the ids that a word can mean: itself, else those it begins, else those it ends."""
    low = word.lower()
    digits = low.removeprefix(prefix)
    if not digits or len(digits) > ID_DIGITS or any(char not in ALPHABET for char in digits):
        return []
    if low.startswith(prefix):
        return like(_escaped(low) + "%", CANDIDATES_MOST)
    if len(digits) < ENDING_LEAST:
        return []
    return like("%" + _escaped(low), CANDIDATES_MOST)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")


def _ambiguous(word: str, candidates: Sequence[str]) -> NoReturn:
    more = " …" if len(candidates) >= CANDIDATES_MOST else ""
    raise Invalid(
        f"{shown(word)} may mean {', '.join(candidates)}{more}",
        hint=candidates[0].partition(" (")[0],
        details={"word": word, "candidates": list(candidates)},
    )


def _near(session: Session, word: str) -> str | None:
    names = [told(task) for task in session.tasks.page(most=NAMES_LOOKED_AT)]
    found = nearest(word, [name.lower() for name in names])
    return next((name for name in names if name.lower() == found), None)
