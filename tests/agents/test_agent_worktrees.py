"""A worktree of a run's own (G13): made before the agent, kept while anything is in it, with real git."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agent_scene import Scene, say

from duly.core.successes import Success
from duly.ports import Outcome
from duly.runners import worktrees


class Repository:
    """A repository with one commit, and runs of agents that work in worktrees of it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.root = scene.folder / "repository"
        (self.root / "part").mkdir(parents=True)
        (self.root / "part" / "a.txt").write_text("one\n")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "first")

    def git(self, *words: str, at: Path | None = None) -> str:
        named = ("-c", "user.name=one", "-c", "user.email=one@example.org")
        done = subprocess.run(
            ["git", *named, "-C", str(at or self.root), *words], capture_output=True, check=True, text=True
        )
        return done.stdout.strip()

    def perform(self, prompt: str = "Do it.", *, cwd: Path | None = None, **more: Any) -> Outcome:
        return self.scene.perform(prompt, action={"cwd": str(cwd or self.root), "worktree": True}, **more)

    @property
    def branches(self) -> list[str]:
        return self.git("branch", "--format", "%(refname:short)").splitlines()

    @property
    def places(self) -> list[str]:
        return [path.name for path in sorted((self.scene.folder / "worktrees").iterdir()) if path.is_dir()]


@pytest.fixture
def repository(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return Repository(scene)


def shell(line: str) -> dict[str, str]:
    return {"do": "shell", "line": line}


def test_a_run_works_in_a_worktree_of_its_own_that_goes_when_nothing_is_in_it(repository: Repository) -> None:
    scene = repository.scene
    scene.writes([shell("pwd > ../../pwd; cat a.txt > ../../a"), say("Done.")])
    (repository.root / "part" / "a.txt").write_text("changed, and not committed\n")
    outcome = repository.perform(cwd=repository.root / "part")
    assert (outcome.word, outcome.details) == ("succeeded", {})
    assert scene.last is not None
    place = scene.folder / "worktrees" / scene.last.run
    assert scene.seen("new")[0]["cwd"] == str(place / "part")
    assert (scene.folder / "worktrees" / "pwd").read_text().strip() == str(place / "part")
    assert (scene.folder / "worktrees" / "a").read_text() == "one\n"
    assert repository.places == []
    assert repository.branches == ["main"]
    assert repository.git("worktree", "list").count("\n") == 0
    assert f"[worktree] {place}, on the branch duly/ask-{scene.last.run[-8:]}" in scene.log


def test_one_with_changes_stays_and_is_told_of(repository: Repository) -> None:
    scene = repository.scene
    scene.writes([shell("echo two >> part/a.txt"), say("Done.")])
    outcome = repository.perform()
    assert scene.last is not None
    place = scene.folder / "worktrees" / scene.last.run
    branch = f"duly/ask-{scene.last.run[-8:]}"
    assert outcome.details == {"worktree": str(place), "branch": branch}
    assert (place / "part" / "a.txt").read_text() == "one\ntwo\n"
    assert (repository.root / "part" / "a.txt").read_text() == "one\n"
    worktrees.tidy(scene.folder, scene.last.run)
    assert repository.places == [scene.last.run]
    repository.git("checkout", "--quiet", ".", at=place)
    worktrees.tidy(scene.folder, scene.last.run)
    assert (repository.places, repository.branches) == ([], ["main"])
    assert list(worktrees.runs_of(scene.folder)) == []


def test_one_with_a_new_file_stays_and_one_with_ignored_files_goes(repository: Repository) -> None:
    scene = repository.scene
    (repository.root / ".git" / "info" / "exclude").write_text("*.o\n")
    scene.writes([shell("touch new.txt"), say("Done.")], [shell("touch new.o"), say("Done.")])
    assert "worktree" in repository.perform().details
    assert repository.perform().details == {}


def test_commits_stay_on_their_branch(repository: Repository) -> None:
    scene = repository.scene
    commit = "git -c user.name=two -c user.email=two@example.org commit --quiet --allow-empty --message second"
    scene.writes([shell(commit), say("Done.")])
    outcome = repository.perform()
    assert outcome.details == {}
    assert scene.last is not None
    branch = f"duly/ask-{scene.last.run[-8:]}"
    assert (repository.places, repository.branches) == ([], [branch, "main"])
    assert repository.git("log", "--format=%s", branch) == "second\nfirst"


def test_a_further_attempt_goes_on_in_it_and_what_is_older_leaves_it_alone(repository: Repository) -> None:
    scene = repository.scene
    scene.writes(
        [shell("echo two >> part/a.txt"), {"do": "exit", "status": 1}], [shell("cat part/a.txt"), say("Done.")]
    )
    first = repository.perform()
    older = scene.last
    assert older is not None
    assert first.word == "failed"
    folder = scene.folder / "attempts" / f"{older.run}.4"
    second = repository.perform(run=older.run, fence=4, attempt=2, folder=folder)
    assert second.details == first.details
    assert [one["cwd"] for one in scene.seen("new")] == [first.details["worktree"]] * 2
    repository.git("checkout", "--quiet", ".", at=Path(str(first.details["worktree"])))
    assert worktrees.leave(older) is None
    assert repository.places == [older.run], "a later attempt may work in it"


def test_a_half_made_one_is_made_anew_and_what_is_not_ours_is_in_the_way(repository: Repository) -> None:
    scene = repository.scene
    scene.writes([say("Done.")])
    run = "run_half0001"
    place = scene.folder / "worktrees" / run
    place.mkdir(parents=True)
    (place / "half").touch()
    outcome = repository.perform(run=run)
    assert (outcome.reason, outcome.side_effect) == ("preflight", False)
    assert "is in the way" in (outcome.error or "")
    assert (place / "half").exists()
    told = {"cwd": "", "branch": "", "base": "", "repository": "", "fence": None}
    place.with_name(f"{run}.json").write_text(json.dumps(told))
    assert repository.perform(run=run, fence=4).word == "succeeded"
    assert repository.places == []


def test_a_success_is_asked_where_the_agent_worked(repository: Repository) -> None:
    scene = repository.scene
    scene.writes([shell("echo x > out.md"), say("Done.")])
    assert repository.perform(success_when=Success(file="out.md")).word == "succeeded"
    assert not (repository.root / "out.md").exists()


@pytest.mark.parametrize("fault", ["no repository", "no commit", "no such folder in it", "no git"])
def test_where_there_can_be_none_nothing_is_asked(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    scene = repository.scene
    scene.writes([say("Done.")])
    cwd, said = repository.root, ""
    if fault == "no repository":
        cwd, said = scene.folder, "is in no git repository"
    elif fault == "no commit":
        cwd, said = scene.folder / "fresh", "has no commit yet"
        cwd.mkdir()
        repository.git("init", "--quiet", at=cwd)
    elif fault == "no such folder in it":
        cwd, said = repository.root / "later", "is not in the last commit"
        cwd.mkdir()
    else:
        said = "git cannot be started"
    with monkeypatch.context() as patch:
        if fault == "no git":
            patch.setenv("PATH", str(scene.folder))
        outcome = repository.perform(cwd=cwd)
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert said in (outcome.error or "")
    assert (scene.seen("start"), repository.git("worktree", "list").count("\n")) == ([], 0)
