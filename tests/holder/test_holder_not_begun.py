"""What keeps a claimed run from beginning at all: it is skipped with its reason, and no attempt has failed."""

from datetime import timedelta

import pytest
from holder_scene import Scripted, Stage, until_idle
from test_holder_gates import only, wait_for

from duly.definitions import read_definition
from duly.operations import projects, tasks
from duly.operations.audit import verify
from duly.ports import Assignment, Busy

MINUTE = timedelta(minutes=1)


def test_a_run_whose_bound_session_is_busy_is_skipped_and_its_seat_is_free(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(_self: Scripted, _assignment: Assignment, _checkpoint: object) -> Busy:
        return Busy(told="the session ses-1 is busy")

    monkeypatch.setattr(Scripted, "perform", taken)
    holder = stage.holder()
    stage.add("a", "once in 1m")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    wait_for(lambda: only(stage).state == "ended", holder)
    run = only(stage)
    assert (run.outcome, run.reason, run.error) == ("skipped", "already_running", "the session ses-1 is busy")
    assert stage.read().kinds(run.id) == ["opened", "claimed", "returned", "skipped"]
    assert len(holder.holdings) == 0
    assert verify(stage.store) == []


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_scheduled_run_of_a_file_whose_project_is_away_is_refused_and_goes_on_when_it_is_back(
    stage: Stage, how: str
) -> None:
    app, away = stage.folder / "app", stage.folder / "away"
    app.mkdir()
    (app / "there").touch()
    with stage.store.read() as session:
        given = {"name": "a", "project": "app", "triggers": ["every 1m"], "action": {"kind": "command", "argv": ["x"]}}
        read = read_definition(given, now=session.now, default_zone="UTC")
    source = {"kind": "file", "path": str(app / ".agents/loops/a.md"), "line": 1}
    task = tasks.add(stage.store, read.definition, by="test", source=source)
    projects.set_project(stage.store, "app", folder=str(app), by="test")
    app.rename(away)
    if how == "empty":
        app.mkdir()
    holder = stage.holder()
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    wait_for(lambda: only(stage).state == "ended", holder)
    run = only(stage)
    assert (run.outcome, run.reason) == ("skipped", "project_missing")
    assert str(app) in (run.error or "")
    assert stage.script.starts == []
    assert stage.read().kinds(run.id) == ["opened", "claimed", "returned", "skipped"]
    if how == "empty":
        app.rmdir()
    away.rename(app)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    assert stage.script.starts[0].task == task.id
    assert verify(stage.store) == []
