"""Loop files in the store: what comes of them, what becomes of their tasks, and what is refused."""

import shutil
from pathlib import Path

import pytest
from loop_scene import Scene

from duly.app import loops
from duly.definitions import read_definition
from duly.errors import Refused
from duly.operations import edits, projects, runs, standing, tasks
from duly.sources.toggling import says
from duly.store.store import Store

ON = "enabled: true\n"


def refused(scene: Scene, what: str, *words: object, **more: object) -> Refused:
    """What is asked is refused, and changes nothing; gives the refusal."""
    before = scene.ledger()
    asked = {
        "edit": edits.edit,
        "remove": tasks.remove,
        "enable": tasks.enable,
        "disable": tasks.disable,
        "run": runs.run_now,
    }
    with scene.store() as store, pytest.raises(Refused) as found:
        asked[what](store, *words, by="anna", **more)  # type: ignore[operator]
    assert scene.ledger() == before
    return found.value


def add(store: Store, name: str, **more: object) -> None:
    given = {"name": name, "project": "app", "triggers": ["daily 07:00"], "action": {"kind": "command", "argv": ["x"]}}
    with store.read() as session:
        read = read_definition({**given, **more}, now=session.now, default_zone="UTC")
    tasks.add(store, read.definition, by="anna", source={"kind": "cli"})


def test_naming_a_folder_makes_a_task_of_each_file_with_its_place(scene: Scene) -> None:
    path = scene.put("digest", more=ON + "timezone: Asia/Tokyo\nmodel: a/b/c\nmax_age: 2h\n")
    scene.put("off")
    assert scene.named().added == ("app/digest", "app/off")
    shape = scene.shape("digest")
    assert (shape["enabled"], shape["zone"], shape["rules"]["max_age"]) == (True, "Asia/Tokyo", "2h")
    assert shape["action"]["model"] == "a/b/c"
    assert shape["action"]["cwd"] == str(scene.app)
    assert shape["source"] == {"kind": "file", "set": None, "key": None, "path": str(path), "line": 2}
    assert shape["created_by"] == f"the file {path}"
    assert scene.task("digest").next_due_at is not None
    assert scene.task("off").next_due_at is None
    assert scene.task("off").definition.zone == "Europe/Berlin"


def test_looking_again_writes_nothing(scene: Scene) -> None:
    scene.put("a", more=ON)
    scene.put("a", at="twice")
    scene.put("bad", schedule="never")
    scene.named()
    before = scene.ledger()
    with scene.store() as store:
        store.changed()
        for _ in range(3):
            scene.look()
        assert not store.changed()
    assert scene.ledger() == before
    assert scene.task("a").version == 1


def test_a_change_in_the_file_is_one_in_the_task_and_owes_nothing_of_before(scene: Scene) -> None:
    scene.put("a", more=ON)
    scene.named()
    id_ = scene.task("a").id
    scene.put("a", more=ON, schedule="weekly mon 10:00", prompt="another")
    assert scene.look().changed == ("app/a",)
    task = scene.task("a")
    assert (task.id, task.version) == (id_, 2)
    assert task.definition.action["prompt"] == "another"


def test_an_interval_keeps_its_phase_while_its_file_says_the_same(scene: Scene) -> None:
    scene.put("a", more=ON, schedule="every 2h")
    scene.named()
    triggers = scene.task("a").definition.triggers
    scene.put("a", more=ON, schedule="every 2h", prompt="another")
    assert scene.look().changed == ("app/a",)
    assert scene.task("a").definition.triggers == triggers


def test_another_name_in_the_file_renames_the_task_with_its_history(scene: Scene) -> None:
    scene.put("a")
    scene.named()
    id_ = scene.task("a").id
    scene.put("b", at="a")
    scene.look()
    assert scene.names() == ["b"]
    assert scene.task("b").id == id_


def test_a_file_that_was_moved_and_a_task_made_by_hand_keep_their_history(scene: Scene) -> None:
    scene.put("a")
    scene.named()
    moved = scene.task("a").id
    with scene.store() as store:
        add(store, "hand")
    made = scene.task("hand").id
    scene.path("a").rename(scene.path("elsewhere"))
    scene.put("hand")
    assert sorted(scene.look().changed) == ["app/a", "app/hand"]
    assert (scene.task("a").id, scene.task("hand").id) == (moved, made)
    assert scene.task("hand").definition.action["kind"] == "agent"
    assert scene.shape("a")["source"]["path"] == str(scene.path("elsewhere"))


def test_a_file_that_is_gone_removes_its_task_and_its_folder_too(scene: Scene) -> None:
    scene.put("a")
    scene.put("b")
    scene.named()
    scene.path("a").unlink()
    assert scene.look().removed == ("app/a",)
    shutil.rmtree(scene.app / ".agents")
    assert scene.look().removed == ("app/b",)
    assert scene.names() == []


def test_a_file_that_is_only_on_its_way_removes_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scene.put("a")
    scene.named()
    id_ = scene.task("a").id
    kept = path.read_text()
    path.unlink()
    # An editor puts it back while it is looked for again.
    monkeypatch.setattr("duly.clock.pause", lambda _seconds: path.write_text(kept))
    assert scene.look().removed == ()
    assert scene.task("a").id == id_


def test_a_file_that_no_longer_reads_leaves_its_task_as_it_last_read_and_says_why(scene: Scene) -> None:
    path = scene.put("a", more=ON)
    scene.named()
    before = scene.task("a")
    path.write_text(path.read_text().replace("daily 09:00", "0 25 * * *"))
    scene.look()
    after = scene.task("a")
    assert (after.definition, after.next_due_at, after.version) == (before.definition, before.next_due_at, 1)
    broken = scene.shape("a")["broken"]
    assert broken["field"] == "schedule"
    assert broken["message"].startswith(f"{path}:3: schedule: ")
    with scene.store() as store, store.read() as session:
        assert standing.status(store, session)["tasks"]["broken"] == 1  # type: ignore[index]
    scene.put("a", more=ON)
    scene.look()
    assert scene.shape("a")["broken"] is None
    assert scene.task("a").version == 1


def test_a_file_that_never_read_is_kept_with_its_project_until_it_does(scene: Scene) -> None:
    path = scene.put("a", schedule="0 25 * * *")
    scene.put("past", schedule="once 2020-01-01 09:00")
    scene.put("fine")
    faults = scene.named().faults
    assert sorted((Path(where).name, fault.field, fault.line) for where, fault in faults) == [
        ("a.md", "schedule", 3),
        ("past.md", "schedule", 3),
    ]
    (told,) = scene.troubles()
    assert [fault["path"] for fault in told["faults"]] == [str(path), str(scene.path("past"))]
    scene.put("a")
    scene.path("past").unlink()
    scene.look()
    assert scene.names() == ["a", "fine"]
    assert scene.project().loops == {}


def test_what_the_store_refuses_of_a_change_is_the_files_fault_and_hinders_no_other(scene: Scene) -> None:
    scene.put("a")
    scene.put("b")
    scene.named()
    with scene.store() as store:
        add(store, "taken")
    scene.put("taken", at="a")
    scene.put("b", prompt="another")
    scene.look()
    assert scene.task("b").definition.action["prompt"] == "another"
    assert scene.shape("a")["broken"]["field"] == "name"


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_folder_that_is_away_removes_nothing_and_its_runs_are_refused(scene: Scene, how: str) -> None:
    scene.put("a", more=ON)
    scene.named()
    before = scene.task("a")
    away = scene.app.rename(scene.app.with_name("away"))
    if how == "empty":
        scene.app.mkdir()
    assert scene.look().missing is not None
    assert scene.task("a") == before
    found = refused(scene, "run", "a")
    assert found.reason == "project_missing"
    assert found.details["dir"] == str(scene.app)
    (told,) = scene.troubles()
    assert told["missing"] is not None
    if how == "empty":
        scene.app.rmdir()
    away.rename(scene.app)
    scene.look()
    assert scene.project().loops == {}
    with scene.store() as store:
        assert runs.run_now(store, "a", by="anna").state == "waiting"


def test_two_looks_at_one_moment_do_the_same_thing_once(scene: Scene) -> None:
    scene.put("a", more=ON)
    with scene.store() as store, scene.store() as other:
        projects.set_project(store, "app", folder=str(scene.app), by="anna")
        (project,) = loops.here(store)
        first = loops.reconcile(store, project, scene.env)
        second = loops.reconcile(other, project, scene.env)
    assert (first.added, second.added) == (("app/a",), ())
    assert scene.task("a").version == 1


def test_files_above_and_at_home_count_and_the_nearest_of_a_name_wins(scene: Scene) -> None:
    scene.put("shared", folder=scene.home, prompt="home")
    scene.put("shared", folder=scene.app.parent, prompt="above")
    scene.put("mine", folder=scene.home)
    done = scene.named()
    assert sorted(done.added) == ["app/mine", "app/shared"]
    assert scene.task("shared").definition.action["prompt"] == "above"
    assert [path for path, _ in done.faults] == [str(scene.path("shared", scene.home))]
    id_ = scene.task("shared").id
    scene.put("shared", prompt="near")
    scene.look()
    assert scene.task("shared").definition.action["prompt"] == "near"
    assert scene.task("shared").id == id_


def test_another_folder_takes_its_tasks_over_and_none_takes_them_away(scene: Scene) -> None:
    scene.put("a")
    scene.put("old")
    scene.named()
    id_ = scene.task("a").id
    other = scene.app.with_name("moved")
    other.mkdir()
    (other / "README").write_text("moved\n")
    scene.put("a", folder=other)
    scene.named(other)
    assert scene.names() == ["a"]
    assert scene.task("a").id == id_
    with scene.store() as store:
        projects.set_project(store, "app", folder=None, clear=True, by="anna")
    assert scene.names() == []


def test_switching_writes_the_file_and_then_the_store(scene: Scene) -> None:
    path = scene.put("a", more="enabled: false  # until May\nicon: sun\n")
    scene.named()
    before = path.read_text()
    with scene.store() as store:
        task = loops.switch(store, "a", on=True, by="anna", environ=scene.env)
        assert task.definition.enabled
        assert path.read_text() == before.replace("enabled: false", "enabled: true")
        assert scene.task("a").next_due_at is not None
        loops.switch(store, "a", on=False, by="anna", environ=scene.env)
    assert path.read_text() == before
    version = scene.task("a").version
    scene.look()
    assert scene.task("a").version == version
    assert not scene.task("a").definition.enabled


def test_all_else_is_refused_with_the_file_and_its_line_while_the_file_is_there(scene: Scene) -> None:
    path = scene.put("a", more=ON)
    scene.named()
    for found in (
        refused(scene, "edit", "a", {"description": "x"}),
        refused(scene, "remove", "a"),
        refused(scene, "disable", "a"),
    ):
        assert found.reason == "owned_by_file"
        assert (found.details["path"], found.details["line"]) == (str(path), 2)
        assert f"{path}:2" in found.message
    path.unlink()
    with scene.store() as store:
        tasks.remove(store, "a", by="anna")
    assert scene.names() == []


def test_a_file_that_does_not_read_is_not_switched(scene: Scene) -> None:
    path = scene.put("a", more=ON)
    scene.named()
    path.write_text("---\nname: [\n---\nhi")
    scene.look()
    with scene.store() as store, pytest.raises(Refused) as found:
        loops.switch(store, "a", on=False, by="anna", environ=scene.env)
    assert found.value.reason == "owned_by_file"
    assert scene.task("a").definition.enabled
    # Who must stop it now holds it.
    with scene.store() as store:
        assert tasks.pause(store, "task", "a", until=None, note=None, by="anna").tasks == 1


def test_a_run_names_no_folder_and_what_it_switches_on_waits_for_a_person(scene: Scene) -> None:
    path = scene.put("a")
    run = "run_01m8p37vrgrhfq3eex4h4tptbb"
    with scene.store() as store, pytest.raises(Refused) as found:
        projects.set_project(store, "app", folder=str(scene.app), by="anna", run=run)
    assert found.value.reason == "not_allowed"
    scene.named()
    with scene.store() as store:
        task = loops.switch(store, "a", on=True, by=f"anna in {run}", environ=scene.env, run=run)
        assert task.definition.enabled
        assert task.next_due_at is None
        assert says(path.read_bytes()) is True
        with pytest.raises(Refused):
            tasks.unpause(store, "task", "a", by=f"anna in {run}", run=run)
        assert tasks.unpause(store, "task", "a", by="anna") is not None
    assert scene.task("a").next_due_at is not None
