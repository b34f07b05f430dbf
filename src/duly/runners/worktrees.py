"""A git worktree of a run's own: made before its agent starts, kept while there is anything in it, else removed.

It lies in the run folder as `worktrees/RUN`, on a branch `duly/TASK-RUN` that begins at the last commit; a further
attempt of the run goes on in it. A line beside it proves that it was made whole. What git finds changed or unknown in
it keeps it; commits stay on their branch in any case, and a branch without any of its own goes with its worktree.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from duly import clock
from duly.ports import Assignment
from duly.runners.success import cwd_of

FOLDER = "worktrees"
GIT_WITHIN_S = 120.0
"""A worktree of a large repository takes its time; hooks of the repository run too."""
LOOK_EVERY_S = 0.05
NAME_MOST = 40
UNNAMEABLE = re.compile(r"[^a-z0-9]+")


class NoWorktree(Exception):
    """There can be none; in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """Where a run works: the worktree, the folder in it that stands for the task's, its branch and its origin."""

    path: Path
    cwd: Path
    branch: str
    base: str
    """The commit at which the branch began."""
    repository: Path


def make(assignment: Assignment) -> Worktree:
    """Make it, or find it from an attempt before; NoWorktree where that cannot be."""
    path = _path(assignment)
    try:
        with _alone(path):
            found = _of(path)
            made = found if found is not None and path.is_dir() else _made(assignment, path)
            _write(made, fence=assignment.fence)
            return made
    except OSError as error:
        raise NoWorktree(f"no worktree can be made at {path}: {error.strerror}") from None


def _made(assignment: Assignment, path: Path) -> Worktree:
    cwd = Path(cwd_of(assignment))
    root = Path(_git(cwd, "rev-parse", "--show-toplevel", asked=f"the folder {cwd} is in no git repository"))
    base = _git(root, "rev-parse", "--verify", "HEAD^{commit}", asked=f"the repository {root} has no commit yet")
    inside = cwd.resolve().relative_to(root.resolve())
    branch = f"duly/{_named(assignment.task_name)}-{assignment.run[-8:]}"
    made = Worktree(path=path, cwd=path / inside, branch=branch, base=base, repository=root)
    if path.exists() and not _clear(path, root):
        raise NoWorktree(f"{path} is in the way of the worktree")
    _write(made, fence=None)
    known = _quietly(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    way = [str(path), branch] if known else ["-b", branch, str(path), base]
    _git(root, "worktree", "add", "--quiet", *way, asked=f"no worktree of {root} can be made")
    if not made.cwd.is_dir():
        _remove(made)
        raise NoWorktree(f"the folder {inside} is not in the last commit of {root}, so its worktree has none")
    return made


def leave(assignment: Assignment) -> Worktree | None:
    """Remove it where nothing in it is changed; gives it where it stays. Nothing of the attempt lives any more.

    One in which a later attempt works by now is not touched.
    """
    path = _path(assignment)
    with contextlib.suppress(OSError), _alone(path):
        found = _of(path)
        if found is None or _told(path).get("fence") != assignment.fence:
            return None
        return None if _remove(found) else found
    return None


def tidy(run_folder: Path, run: str) -> None:
    """Remove the worktree of a run that is over, where nothing in it is changed and its process could not do it."""
    path = run_folder / FOLDER / run
    with contextlib.suppress(OSError), _alone(path):
        found = _of(path)
        if found is not None:
            _remove(found)


def runs_of(run_folder: Path) -> Iterator[str]:
    """Name the runs that have a worktree here, once or still."""
    with contextlib.suppress(OSError):
        yield from sorted(path.stem for path in (run_folder / FOLDER).glob("*.json"))


def folder_of(assignment: Assignment) -> str:
    """Give the folder in which an attempt works: that of its worktree, where it has one."""
    found = _of(_path(assignment)) if assignment.action.get("worktree") else None
    return cwd_of(assignment) if found is None else str(found.cwd)


def _path(assignment: Assignment) -> Path:
    return assignment.folder.parent.parent / FOLDER / assignment.run


def _line(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While this lasts, nobody else makes or removes a worktree here; TimeoutError where one does for too long."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path.parent / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = clock.monotonic_s() + GIT_WITHIN_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock.monotonic_s() > until:
                    raise TimeoutError(errno.ETIMEDOUT, "somebody else makes or removes one for too long") from None
                clock.pause(LOOK_EVERY_S)
        yield
    finally:
        os.close(descriptor)


def _write(one: Worktree, *, fence: int | None) -> None:
    """Note what it is, and who works in it; without a fence it is not whole yet, and nobody has."""
    told = {"cwd": str(one.cwd), "branch": one.branch, "base": one.base, "repository": str(one.repository)}
    aside = one.path.with_name(f"{one.path.name}.new")
    aside.write_text(json.dumps({**told, "fence": fence}), encoding="utf-8")
    aside.replace(_line(one.path))


def _told(path: Path) -> dict[str, object]:
    try:
        told = json.loads(_line(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _of(path: Path) -> Worktree | None:
    told = _told(path)
    if not isinstance(told.get("fence"), int):
        return None
    cwd, repository = Path(str(told["cwd"])), Path(str(told["repository"]))
    return Worktree(path=path, cwd=cwd, branch=str(told["branch"]), base=str(told["base"]), repository=repository)


def _remove(one: Worktree) -> bool:
    """Whether it is gone; git itself refuses to remove one that holds what is nowhere else."""
    if one.path.exists() and _quietly(one.repository, "worktree", "remove", str(one.path)) is None:
        return False
    _quietly(one.repository, "worktree", "prune")
    if _quietly(one.repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{one.branch}") == one.base:
        _quietly(one.repository, "branch", "--quiet", "-D", one.branch)
    _line(one.path).unlink(missing_ok=True)
    return True


def _clear(path: Path, root: Path) -> bool:
    """Take away what a killed process left half made, in which nobody has worked; False for anything else."""
    if not _line(path).exists():
        return False
    _quietly(root, "worktree", "remove", "--force", "--force", str(path))
    shutil.rmtree(path, ignore_errors=True)
    _quietly(root, "worktree", "prune")
    return not path.exists()


def _named(name: str) -> str:
    """The task's name as a part of a branch's."""
    return UNNAMEABLE.sub("-", name.lower()).strip("-")[:NAME_MOST].strip("-") or "task"


def _quietly(folder: Path, *words: str) -> str | None:
    """What git says, None where it does not do it."""
    try:
        return _git(folder, *words, asked="")
    except NoWorktree:
        return None


def _git(folder: Path, *words: str, asked: str) -> str:
    """Ask git in a folder, as its own variables of ours do not; NoWorktree with what it says where it refuses."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DULY_"))}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=GIT_WITHIN_S,
            env=env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        )
    except subprocess.TimeoutExpired:
        raise NoWorktree(f"{asked}: git took longer than {GIT_WITHIN_S:g} s") from None
    except OSError as error:
        raise NoWorktree(f"{asked}: git cannot be started: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise NoWorktree(f"{asked}: {said[-1]}" if said else asked)
    return done.stdout.decode("utf-8", "surrogateescape").strip()
