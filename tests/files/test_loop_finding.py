"""Where loop files are looked for, and what is told of those that cannot be read."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from duly.core.loops import Looked, Loop, Spoilt
from duly.sources import finding
from duly.there import missing

TEXT = "---\nname: {}\nschedule: daily 09:00\n---\nhi\n"
AS_ROOT = os.geteuid() == 0


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A worktree with a project two folders below its root; a home beside it."""
    (tmp_path / "home").mkdir()
    app = tmp_path / "repo" / "apps" / "web"
    app.mkdir(parents=True)
    (app / "README").write_text("a project\n")
    (tmp_path / "repo" / ".git").mkdir()
    return app


def put(folder: Path, name: str, text: str | None = None) -> Path:
    loops = folder / ".agents" / "loops"
    loops.mkdir(parents=True, exist_ok=True)
    path = loops / f"{name}.md"
    path.write_text(TEXT.format(name) if text is None else text)
    return path


def look(app: Path) -> Looked:
    return finding.look(str(app), str(app.parents[2] / "home"))


def names(looked: Looked) -> list[str]:
    return [one.name for one in looked.found if isinstance(one, Loop)]


def spoilt(looked: Looked) -> dict[str, str]:
    return {Path(one.path).name: one.faults[0].message for one in looked.found if isinstance(one, Spoilt)}


def test_files_count_in_the_project_above_it_up_to_the_worktrees_root_and_at_home(app: Path) -> None:
    repo = app.parents[1]
    folders = (app, repo / "apps", repo, repo.parent / "home", repo.parent)
    for folder, name in zip(folders, "abcde", strict=True):
        put(folder, name)
    assert names(look(app)) == ["a", "b", "c", "d"]


def test_outside_of_a_worktree_only_the_project_and_home_count(app: Path) -> None:
    (app.parents[1] / ".git").rmdir()
    put(app, "a")
    put(app.parent, "b")
    put(app.parents[2] / "home", "d")
    assert names(look(app)) == ["a", "d"]


def test_a_worktree_of_git_is_known_by_its_file_too_and_home_inside_counts_once(app: Path) -> None:
    repo = app.parents[1]
    (repo / ".git").rmdir()
    (repo / ".git").write_text("gitdir: elsewhere\n")
    put(repo, "c")
    assert [one.path for one in finding.look(str(app), str(repo)).found] == [str(repo / ".agents/loops/c.md")]


def test_only_plain_md_files_directly_in_the_folder_are_loop_files(app: Path) -> None:
    put(app, "a")
    put(app, ".hidden")
    loops = app / ".agents" / "loops"
    (loops / "note.txt").write_text("no")
    (loops / "sub").mkdir()
    (loops / "sub" / "b.md").write_text(TEXT.format("b"))
    (loops / "dir.md").mkdir()
    os.mkfifo(loops / "pipe.md")
    looked = look(app)
    assert names(looked) == ["a"]
    assert spoilt(looked) == {"dir.md": "it is no plain file", "pipe.md": "it is no plain file"}


def test_a_link_may_lead_about_the_worktree_and_not_out_of_it(app: Path) -> None:
    repo = app.parents[1]
    put(app, "a")
    inside = repo / "inside.md"
    inside.write_text(TEXT.format("in"))
    outside = repo.parent / "outside.md"
    outside.write_text(TEXT.format("out"))
    loops = app / ".agents" / "loops"
    (loops / "in.md").symlink_to(inside)
    (loops / "out.md").symlink_to(outside)
    (loops / "gone.md").symlink_to(repo / "nothing.md")
    (loops / "round.md").symlink_to(loops / "round.md")
    looked = look(app)
    assert names(looked) == ["a", "in"]
    assert set(spoilt(looked)) == {"out.md", "gone.md", "round.md"}
    assert "a link that leaves" in spoilt(looked)["out.md"]


def test_a_folder_of_loops_that_is_a_link_out_of_the_worktree_is_not_read(app: Path) -> None:
    other = app.parents[2] / "other"
    put(other, "x")
    (app / ".agents").symlink_to(other / ".agents")
    looked = look(app)
    assert names(looked) == []
    assert list(looked.unread) == [str(app / ".agents/loops")]


def test_a_huge_file_and_a_huge_folder_are_told_and_not_read(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(app, "a")
    put(app, "huge", TEXT.format("huge") + "x" * (2 * 1024 * 1024))
    looked = look(app)
    assert names(looked) == ["a"]
    assert spoilt(looked)["huge.md"].startswith("it has 2,097,")
    monkeypatch.setattr(finding, "FILES_MOST", 1)
    assert look(app).unread[str(app / ".agents/loops")] == "it has 2 files, and 1 are allowed"


@pytest.mark.skipif(AS_ROOT, reason="root reads what nobody may read")
def test_what_may_not_be_read_is_told_and_the_rest_is_read(app: Path) -> None:
    put(app, "a")
    put(app, "locked").chmod(0)
    folder = put(app.parent, "b").parent
    folder.chmod(0)
    try:
        looked = look(app)
    finally:
        folder.chmod(0o700)
    assert names(looked) == ["a"]
    assert spoilt(looked)["locked.md"] == "it cannot be read: Permission denied"
    assert looked.unread[str(folder)] == "it cannot be read: Permission denied"


def test_a_project_that_is_away_or_empty_is_missing_and_says_nothing_of_its_files(app: Path) -> None:
    put(app.parents[2] / "home", "d")
    assert look(app / "nowhere") == Looked(missing="it is not there")
    empty = app / "empty"
    empty.mkdir()
    assert look(empty).missing == "it is empty, as a disk that is not mounted would be"
    assert missing(str(app)) is None


def test_traces_change_with_every_change_that_matters(app: Path) -> None:
    home = str(app.parents[2] / "home")
    seen = [finding.traces(str(app), home)]
    path = put(app, "a")
    seen.append(finding.traces(str(app), home))
    path.write_text(TEXT.format("other"))
    seen.append(finding.traces(str(app), home))
    path.chmod(0o600)
    seen.append(finding.traces(str(app), home))
    path.unlink()
    seen.append(finding.traces(str(app), home))
    assert all(before != after for before, after in pairwise(seen))
    assert finding.traces(str(app), home) == seen[-1]


def test_a_file_with_a_name_that_is_no_utf_8_is_told_and_not_taken(app: Path) -> None:
    put(app, "café")
    (app / ".agents" / "loops" / os.fsdecode(b"caf\xe9.md")).write_text(TEXT.format("b"))
    looked = look(app)
    assert names(looked) == ["café"]
    assert spoilt(looked) == {"caf?.md": "its name is not valid UTF-8"}
