"""Tasks from Python: defined by decorator and by calls, changed, held, removed; what they are answered with."""

import functools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from face_scene import Home

import duly as package
from duly import Duly, Invalid, Refused, Run, StoreAway, Task
from duly.app.values import Options, Rules, Serving, Work
from duly.core.rule_fields import RULES


def written(home: Home) -> list[Any]:
    """Everything that a definition may have written."""
    tables = ("tasks", "definitions", "ledger", "projects")
    return [home.rows(f"SELECT * FROM {table}") for table in tables]


def test_a_decorated_function_stays_as_it_is_and_nothing_is_written_before_the_store_is_used(home: Home) -> None:
    duly = home.duly()
    before = home.shop.nightly
    assert duly.task("daily 08:00", zone="Europe/Berlin", on_missed="skip")(before) is before
    assert not home.is_made()
    [task] = duly.tasks()
    assert (task.name, task.project, task.enabled, task.version) == ("nightly", "default", True, 1)
    assert task.json["action"]["function"] == f"{home.name}:nightly"
    assert task.json["source"]["kind"] == "library"
    assert task.json["rules"]["on_missed"] == "skip"
    assert task.json["own_rules"] == ["on_missed"]
    assert task.next_due_at == duly.next(before, 1)[0]
    assert task.next_due_at.tzinfo is UTC


def test_the_same_definition_again_writes_nothing_and_a_changed_one_is_a_new_version(home: Home) -> None:
    def define(**options: Any) -> Task:
        one = home.duly()
        one.task("every 15m", "daily 08:00", name="report", timeout="5m", args=["a", {"b": 1}], **options)(
            home.shop.nightly
        )
        return one.get("report")

    first = define()
    before = written(home)
    for _ in range(3):
        assert define() == first
    assert written(home) == before
    second = define(retries=2)
    assert (second.id, second.version, second.json["rules"]["retries"]) == (first.id, 2, 2)
    anchors = [next(one for one in task.json["triggers"] if one["kind"] == "every") for task in (first, second)]
    assert anchors[0] == anchors[1], "the phase of an interval is kept"
    kinds = [row[0] for row in home.rows("SELECT kind FROM ledger WHERE task IS NOT NULL")]
    assert kinds == ["defined", "defined"]


def test_what_a_person_switched_off_a_program_does_not_switch_on(home: Home) -> None:
    home.duly().define("report", "daily 08:00", call=home.shop.nightly)
    home.cli("disable", "report")
    assert not home.duly().define("report", "daily 09:00", call=home.shop.nightly).enabled


def test_a_name_that_another_road_made_is_refused_with_what_it_is(home: Home) -> None:
    home.cli("add", "report", "--when", "manual", "--", "true")
    with pytest.raises(Refused) as caught:
        home.duly().define("report", "daily 08:00", call=home.shop.nightly)
    assert caught.value.reason == "already_exists"
    assert caught.value.details["source"] == {"kind": "cli"}


def test_add_is_for_what_is_not_there_yet(home: Home) -> None:
    duly = home.duly(project="house")
    task = duly.add("backup", "daily 03:00", "once in 20m", command=["echo", "hello"], cwd="/tmp", labels={"a": "b"})
    assert (task.name, task.project, task.json["action"]["argv"]) == ("backup", "house", ["echo", "hello"])
    assert len(task.json["triggers"]) == 2
    with pytest.raises(Refused) as caught:
        duly.add("BACKUP", shell="true", cwd="/")
    assert caught.value.reason == "already_exists"
    assert home.duly().get("house/backup") == task


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: None, "a lambda, and cannot be imported"),
        (functools.partial(print, "x"), "has no name to be imported by"),
        ([].append, "has no name to be imported by"),
        ("shop.jobs.nightly", "has no colon"),
    ],
)
def test_what_cannot_be_imported_cannot_be_called_and_is_refused_when_it_is_defined(
    home: Home, function: Any, said: str
) -> None:
    with pytest.raises(Invalid) as caught:
        home.duly().define("x", call=function)
    assert said in caught.value.message
    assert not home.is_made() or home.duly().tasks() == []


def test_a_function_that_is_not_where_its_name_says_is_refused_and_a_mere_name_is_warned_of(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    hidden = home.shop.nightly
    hidden.__qualname__ = "nihgtly"
    duly = home.duly()
    duly.task("daily 08:00")(hidden)
    with pytest.raises(Invalid) as caught:
        duly.tasks()
    assert caught.value.message == f"{home.name} has no nihgtly; it has nightly"
    other = home.duly()
    assert other.add("elsewhere", call="no_such_module_here:f").json["action"]["function"] == "no_such_module_here:f"
    assert "there is no module no_such_module_here; whoever serves must be able to import it" in caplog.text


def test_a_function_inside_of_a_function_is_refused_and_those_of_classes_are_not(home: Home) -> None:
    def inner() -> None: ...

    with pytest.raises(Invalid) as caught:
        home.duly().task("daily 08:00")(inner)
    assert "inner is defined inside a function" in caught.value.message
    duly = home.duly()
    shelf = home.shop.Shelf
    assert duly.define("count", call=shelf.count).json["action"]["function"] == f"{home.name}:Shelf.count"
    assert duly.define("tidy", call=shelf.tidy).json["action"]["function"] == f"{home.name}:Shelf.tidy"
    with pytest.raises(Invalid):
        duly.define("own", call=shelf().own)


BAD: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "no such option": ((), {"call": "json:dumps", "onmissed": "skip"}, "there is no such field"),
    "no work": (("daily 08:00",), {}, "what shall be done is missing"),
    "two works": ((), {"call": "json:dumps", "shell": "true"}, "call and shell exclude each other"),
    "a command as a text": ((), {"command": "echo hello", "cwd": "/"}, '"echo hello" is a text'),
    "a line that is empty": ((), {"shell": " ", "cwd": "/"}, "the line to run is empty"),
    "a time that is none": (("daily 25:00",), {"call": "json:dumps"}, ""),
    "a time that goes on": (("once in 20m",), {"call": "json:dumps"}, ""),
    "a zone that is none": (("daily 08:00",), {"call": "json:dumps", "zone": "Europe/Berln"}, "`Europe/Berln` is not"),
    "a span of a fraction": ((), {"call": "json:dumps", "timeout": timedelta(seconds=0.5)}, "no span of whole seconds"),
    "a span backwards": ((), {"call": "json:dumps", "timeout": timedelta(seconds=-5)}, "no span of whole seconds"),
    "a span of a number": ((), {"call": "json:dumps", "timeout": 5}, "5 is not a span"),
    "a choice": ((), {"call": "json:dumps", "overlap": "both"}, '"both" is not one of'),
    "a count": ((), {"call": "json:dumps", "retries": "3"}, '"3" is not a whole number'),
    "args of a command": ((), {"shell": "true", "args": [1], "cwd": "/"}, "a command takes none"),
    "args that are no JSON": ((), {"call": "json:dumps", "args": [object()]}, "is not JSON"),
    "a folder in a thread": ((), {"call": "json:dumps", "place": "thread", "cwd": "/"}, "a function in a thread"),
    "a place that is none": ((), {"call": "json:dumps", "place": "space"}, '"space" is not one of'),
    "a folder that is relative": ((), {"shell": "true", "cwd": "here"}, '"here" is not an absolute path'),
    "a name": ((), {"call": "json:dumps", "name": "x"}, ""),
}


@pytest.mark.parametrize("name", BAD)
def test_what_means_nothing_is_refused_with_its_field_and_nothing_is_written(home: Home, name: str) -> None:
    when, work, said = BAD[name]
    with pytest.raises((Invalid, TypeError)) as caught:
        home.duly().define("x", *when, **work)
    assert said in str(caught.value)
    assert not home.is_made()


def test_the_keywords_of_python_are_the_rules_of_the_table() -> None:
    assert list(Rules.__annotations__) == [field.name for field in RULES]
    for more in (Options, Work):
        assert set(more.__annotations__) >= set(Rules.__annotations__)
    assert set(Serving.__annotations__) == {"slots", "drain", "labels", "beat", "lease", "on_stop"}


def test_spans_and_instants_are_values_of_python_or_texts(home: Home) -> None:
    task = home.duly().define(
        "x",
        "daily 08:00",
        call=home.shop.nightly,
        zone="Europe/Berlin",
        timeout=timedelta(minutes=90),
        grace="5m",
        start=datetime(2099, 1, 2, 3, 4),  # noqa: DTZ001 - on the task's wall
        until=datetime(2099, 2, 2, tzinfo=UTC),
        needs=("gpu",),
        limits={"api": 1},
    )
    rules = task.json["rules"]
    assert (rules["timeout"], rules["grace"], rules["needs"], rules["limits"]) == ("90m", "5m", ["gpu"], {"api": 1})
    assert (rules["start"], rules["until"]) == ("2099-01-02T02:04:00Z", "2099-02-02T00:00:00Z")


def test_parts_of_a_task_are_changed_by_name_and_none_goes_back_to_the_default(home: Home) -> None:
    duly = home.duly()
    duly.task("daily 08:00", timeout="5m", retries=2)(home.shop.nightly)
    task = duly.edit(home.shop.nightly, when="daily 09:00", timeout=timedelta(minutes=10), retries=None)
    assert (task.version, task.json["rules"]["timeout"], task.json["own_rules"]) == (2, "10m", ["timeout"])
    task = duly.edit("nightly", name="late", shell="true", cwd="/")
    assert (task.name, task.json["action"]) == ("late", {"kind": "command", "shell": "true", "cwd": "/", "env": {}})
    with pytest.raises(Refused) as caught:
        duly.edit("late", description="x", if_version=1)
    assert caught.value.reason == "version_conflict"
    with pytest.raises(Invalid):
        duly.edit("late", retrys=3)


def test_a_function_may_go_back_to_work_where_its_holder_does_and_a_command_needs_a_folder(home: Home) -> None:
    duly = home.duly()
    duly.define("call", call=home.shop.nightly, cwd=str(home.folder))
    assert duly.define("call", call=home.shop.nightly).json["action"]["cwd"] is None
    duly.define("command", shell="true", cwd="/")
    with pytest.raises(Invalid) as caught:
        duly.edit("command", cwd=None)
    assert caught.value.field == "action.cwd"


def test_tasks_are_switched_held_and_removed(home: Home) -> None:
    duly = home.duly()
    nightly = home.shop.nightly
    duly.task("daily 08:00", name="report")(nightly)
    assert not duly.disable(nightly).enabled
    assert duly.enable("report").next_due_at is not None
    duly.pause(nightly, until="2h", note="moving house")
    assert duly.get("report").paused
    assert duly.get("report").json["paused"][0]["note"] == "moving house"
    duly.unpause(nightly)
    duly.pause(project="default")
    duly.pause(everything=True, until=datetime(2099, 1, 1, tzinfo=UTC))
    with pytest.raises(Refused) as caught:
        duly.run(nightly)
    assert caught.value.reason == "paused"
    assert duly.run(nightly, anyway=True).state == "waiting"
    duly.unpause(everything=True)
    duly.unpause(project="default")
    assert not duly.get("report").paused
    with pytest.raises(Invalid):
        duly.pause()
    with pytest.raises(Invalid):
        duly.pause("report", everything=True)
    duly.remove(nightly)
    assert duly.tasks() == []
    with pytest.raises(Refused) as gone:
        duly.get("report")
    assert gone.value.reason == "unknown_task"


def test_runs_are_asked_for_with_input_and_arguments_found_and_cancelled(home: Home) -> None:
    duly = home.duly()
    duly.task(name="report")(home.shop.nightly)
    run = duly.run("report", "one", "two", input="numbers", key="k")
    assert isinstance(run, Run)
    assert (run.state, run.outcome, run.task_name, run.json["args"]) == ("waiting", None, "report", ["one", "two"])
    assert duly.run(home.shop.nightly, "one", "two", input="numbers", key="k") == run
    with pytest.raises(Refused) as caught:
        duly.run("report", "other", key="k")
    assert caught.value.reason == "key_reused"
    assert duly.runs(state="waiting") == [run] == duly.runs(home.shop.nightly, since=run.due_at)
    with pytest.raises(TimeoutError):
        duly.wait(run, 0.2)
    ended = duly.cancel(run)
    assert (ended.state, ended.outcome, ended.reason) == ("ended", "cancelled", "cancelled_by_hand")
    assert duly.wait(run.id) == ended
    assert duly.runs(outcome="succeeded") == []
    assert duly.log(run) == b""
    assert duly.why(run)["subject"]["id"] == run.id
    assert duly.why("report")["subject"]["name"] == "report"


def test_without_a_store_there_is_nothing_to_see_and_nothing_is_made(home: Home) -> None:
    duly = home.duly()
    assert (duly.tasks(), duly.runs(), duly.serving, duly.stop()) == ([], [], False, True)
    assert duly.status()["holders_alive"] == 0
    with pytest.raises(Refused):
        duly.get("x")
    with pytest.raises(StoreAway):
        duly.run("x")
    assert not home.is_made()
    for wrong in ("", ":memory:", "postgresql://host/db", "sqlite://x", str(home.folder)):
        with pytest.raises(StoreAway):
            Duly(wrong).define("x", call="json:dumps")


def test_the_store_is_what_the_command_line_would_take(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with Duly() as default:
        assert default.define("default", call="json:dumps").name == "default"
    assert (home.folder / ".local/share/duly/duly.db").exists()
    monkeypatch.setenv("DULY_STORE", home.store)
    with Duly() as named:
        named.define("named", call="json:dumps")
    assert [task.name for task in home.duly().tasks()] == ["named"]
    monkeypatch.chdir(home.folder)
    relative = Duly("other.db")
    monkeypatch.chdir(Path("/"))
    relative.define("moved", call="json:dumps")
    assert (home.folder / "other.db").exists()
    Duly().close()
    relative.close()


def test_one_object_is_used_by_many_threads_at_once(home: Home) -> None:
    duly = home.duly()
    duly.task(name="report", overlap="queue")(home.shop.nightly)
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda n: duly.run("report", key=str(n // 2), queue=True).id, range(32)))
    assert len(set(runs)) == 16
    assert len(duly.runs(most=100)) == 16


def test_the_package_names_what_it_gives_and_loads_it_late() -> None:
    assert {"Duly", "Task", "Run", "this_run", "Invalid", "Refused", "StoreAway"} <= set(dir(package))
    assert set(package.__all__) - {"__version__"} <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError):
        _ = package.Dully  # type: ignore[attr-defined]
    assert package.this_run() is None


def test_an_event_starts_the_tasks_that_listen_to_it_once_a_key(home: Home) -> None:
    duly = home.duly()
    listens = duly.task("on shop where kind=order")(home.shop.nightly)
    data = {"kind": "order", "lines": [1, 2], "to": "Zoë"}
    [run] = duly.emit("shop", data, key="order-1")
    assert (run.task_name, run.state) == ("nightly", "waiting")
    assert run.json["occurrence"] == "event:shop:order-1"
    assert [one.id for one in duly.emit("shop", data, key="order-1")] == [run.id]
    assert duly.emit("shop", {"kind": "return"}) == duly.emit("shop") == []
    assert [one.id for one in duly.runs(listens)] == [run.id]
    with pytest.raises(Refused) as refused:
        duly.emit("shop", {"kind": "order"}, key="order-1")
    assert refused.value.reason == "key_reused"
    for data_ in ({"at": datetime.now(UTC)}, float("nan"), {1, 2}):
        with pytest.raises(Invalid) as invalid:
            duly.emit("shop", data_)
        assert invalid.value.field == "data"
    assert len(duly.runs(listens)) == 1


def test_an_agent_is_prompted_from_python_as_from_the_command_line(home: Home) -> None:
    duly = home.duly()
    rules: dict[str, Any] = {"unattended": "fail", "budget": {"usd": 2.5, "per": "day"}, "estimate": {"usd": 0.2}}
    task = duly.define("digest", "daily 08:00", agent="claude", prompt="Read the news.", model="small", **rules)
    action = {"kind": "agent", "agent": "claude", "prompt": "Read the news.", "model": "small"}
    assert action.items() <= task.json["action"].items()
    assert {name: task.json["rules"][name] for name in rules} == rules
    edited = duly.edit(task.id, prompt_file="digest.md")
    assert edited.json["action"]["prompt"] is None
    assert edited.json["action"]["prompt_file"] == "digest.md"
    for wrong in (
        {"prompt": "x"},
        {"agent": "claude"},
        {"agent": "claude", "shell": "x"},
        {"shell": "x", "model": "y"},
    ):
        with pytest.raises(Invalid):
            duly.define("other", "daily 08:00", **wrong)  # type: ignore[arg-type]
    assert len(duly.tasks()) == 1
