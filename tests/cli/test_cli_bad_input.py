import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_scene import Scene

import databases
from by_hand import locked
from duly.core.action_fields import ARGUMENT_MOST
from duly.core.fields import DESCRIPTION_MOST, NAME_MOST

WHEN = ("--when", "daily 09:00")
WORK = ("--", "true")

# What is typed, the exit code, and how the first line begins.
BAD: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no command": (("lst",), 2, 'duly: there is no command "lst"'),
    "no option": (("add", "x", "--tim", "5m", *WORK), 2, "duly: there is no option --tim"),
    "no option like it": (("list", "--nope"), 2, "duly: there is no option --nope"),
    "option without value": (("add", "x", *WHEN, "--shell"), 2, "duly: --shell needs a value"),
    "switch with a value": (("list", "--json=5"), 2, "duly: --json takes no value"),
    "word not UTF-8": (("show", "caf\udcff"), 2, 'duly: "caf\\xff" is not valid UTF-8'),
    "demo in a store": (("demo", "--store", "x.db"), 2, "duly: --store: the demonstration has a store of its own"),
    "name missing": (("add", *WHEN, *WORK), 2, "duly: NAME is missing"),
    "name empty": (("add", "", *WHEN, *WORK), 2, "duly: NAME: a name has at least one character"),
    "name long": (("add", "x" * 81, *WHEN, *WORK), 2, 'duly: NAME: "xxxxx'),
    "name with slash": (("add", "a/b", *WHEN, *WORK), 2, 'duly: NAME: "a/b" has a slash'),
    "name with newline": (("add", "a\nb", *WHEN, *WORK), 2, 'duly: NAME: "a\\nb" has a control character (U+000A)'),
    "name begins with @": (("add", "@x", *WHEN, *WORK), 2, 'duly: NAME: "@x" begins with "@"'),
    "project": (("add", "x", "--project", "a/b", *WHEN, *WORK), 2, 'duly: --project: "a/b" has a slash'),
    "description": (("add", "x", "--description", "d" * 2001, *WHEN, *WORK), 2, "duly: --description: it has 2,001"),
    "label": (("add", "x", "--label", "k", *WHEN, *WORK), 2, 'duly: --label: "k" has no ='),
    "label twice": (("add", "x", "--label", "k=1", "--label", "k=2", *WHEN, *WORK), 2, 'duly: --label: "k" is given'),
    "when missing": (("add", "x", *WORK), 2, "duly: --when: it is missing"),
    "when empty": (("add", "x", "--when", "", *WORK), 2, "duly: --when: "),
    "when past": (("add", "x", "--when", "once 2020-01-01 09:00", *WORK), 2, "duly: --when: "),
    "when never": (("add", "x", "--when", "0 0 31 2 *", *WORK), 2, "duly: --when: "),
    "when backwards": (("add", "x", "--when", "weekly sat-mon 09:00", *WORK), 2, "duly: --when: "),
    "when without unit": (("add", "x", "--when", "every 15", *WORK), 2, "duly: --when: "),
    "when fraction": (("add", "x", "--when", "every 1.5h", *WORK), 2, "duly: --when: "),
    "when beside manual": (("add", "x", "--when", "manual", *WHEN, *WORK), 2, "duly: --when: "),
    "when too many": (("add", "x", *(WHEN * 21), *WORK), 2, "duly: --when: there are 21"),
    "zone unknown": (("add", "x", "--zone", "Europe/Berln", *WHEN, *WORK), 2, "duly: --zone: `Europe/Berln` is not"),
    "zone abbreviation": (("add", "x", "--zone", "CST", *WHEN, *WORK), 2, "duly: --zone: `CST` is an abbreviation"),
    "span without unit": (("add", "x", "--max-age", "6", *WHEN, *WORK), 2, "duly: --max-age: a span needs a unit"),
    "span of nothing": (("add", "x", "--timeout", "0s", *WHEN, *WORK), 2, "duly: --timeout: "),
    "span too long": (("add", "x", "--grace", "11d11h1x", *WHEN, *WORK), 2, "duly: --grace: "),
    "choice": (("add", "x", "--overlap", "que", *WHEN, *WORK), 2, 'duly: --overlap: "que" is not one of skip, queue'),
    "choice unknown": (("add", "x", "--on-missed", "run_some", *WHEN, *WORK), 2, "duly: --on-missed: "),
    "interrupt": (("add", "x", "--on-interrupt", "resume", *WHEN, *WORK), 2, "duly: --on-interrupt: "),
    "count": (("add", "x", "--queue", "0", *WHEN, *WORK), 2, "duly: --queue: 0 is not between 1 and 1000"),
    "count in words": (("add", "x", "--queue", "٣", *WHEN, *WORK), 2, "duly: --queue: "),
    "no work": (("add", "x", *WHEN), 2, "duly: COMMAND: it is missing"),
    "no work after --": (("add", "x", *WHEN, "--"), 2, "duly: COMMAND: it is missing"),
    "work twice": (("add", "x", *WHEN, "--shell", "true", *WORK), 2, "duly: --shell: "),
    "work without --": (("add", "x", "true", *WHEN), 2, 'duly: COMMAND: "true" was not expected'),
    "argument too long": (("add", "x", *WHEN, "--", "echo", "x" * (ARGUMENT_MOST + 1)), 2, "duly: COMMAND: it has"),
    "shell empty": (("add", "x", *WHEN, "--shell", " "), 2, "duly: --shell: the line to run is empty"),
    "env": (("add", "x", *WHEN, "--env", "=1", *WORK), 2, 'duly: --env: "" is not a variable\'s name'),
    "task unknown": (("show", "kept2"), 4, 'duly: there is no task and no run "kept2"'),
    "task unknown to run": (("run", "nobody"), 4, 'duly: there is no task "nobody"'),
    "run unknown": (("cancel", "run_0000"), 4, 'duly: there is no run "run_0000"'),
    "taken": (("add", "KEPT", *WHEN, *WORK), 3, "duly: there is a task kept already"),
    "unconfirmed": (("remove", "kept"), 3, "duly: removing kept needs a yes"),
    "key": (("run", "kept", "--key", ""), 2, "duly: --key: "),
    "further argument too long": (
        ("run", "kept", "--", "x" * (ARGUMENT_MOST + 1)),
        2,
        "duly: -- ARG: an argument is at most 131,071 bytes",
    ),
    "further arguments too many": (
        ("run", "kept", "--", *["x" * ARGUMENT_MOST] * 9),
        2,
        "duly: -- ARG: the arguments have 1,17",
    ),
    "further argument not UTF-8": (("run", "kept", "--", "caf\udcff"), 2, "duly: -- ARG: "),
    "leftovers": (("add", "x", "--leftovers", "kill", *WHEN, *WORK), 2, 'duly: --leftovers: "kill" is not one of end'),
    "idle timeout": (("add", "x", "--idle-timeout", "0s", *WHEN, *WORK), 2, "duly: --idle-timeout: "),
    "shell too long": (("add", "x", *WHEN, "--shell", "x" * 1048577), 2, "duly: --shell: it has 1,048,577 bytes"),
    "call without colon": (("add", "x", *WHEN, "--call", "a.b"), 2, 'duly: --call: "a.b" has no colon'),
    "call and command": (("add", "x", *WHEN, "--call", "a:b", *WORK), 2, "duly: --call: a command after -- and --call"),
    "args no JSON": (("add", "x", *WHEN, "--call", "a:b", "--args", "[1"), 2, "duly: --args: it is not JSON"),
    "args no list": (("add", "x", *WHEN, "--call", "a:b", "--args", "1"), 2, "duly: --args: 1 is neither a list"),
    "args of a command": (("add", "x", *WHEN, "--args", "[]", *WORK), 2, "duly: --args: a command takes none"),
    "place of a call": (("add", "x", *WHEN, "--call", "a:b", "--in", "space"), 2, 'duly: --in: "space" is not one of'),
    "folder in a thread": (
        ("add", "x", *WHEN, "--call", "a:b", "--in", "thread", "--cwd", "/"),
        2,
        "duly: --cwd: a function in a thread shares",
    ),
    "input file": (("run", "kept", "--input", "@/nowhere/x"), 2, "duly: --input: /nowhere/x cannot be read"),
    "source": (("emit", "a deploy"), 2, "duly: SOURCE: `a deploy` is no word"),
    "source of ours": (("emit", "duly.run.ended"), 3, "duly: only Duly itself emits duly.run.ended"),
    "event key": (("emit", "deploy", "--key", ""), 2, "duly: --key: a key has 1 to 200"),
    "event data": (("emit", "deploy", "--data", "{branch: main}"), 2, "duly: --data: it is not JSON"),
    "event number": (("emit", "deploy", "--data", '{"n": NaN}'), 2, "duly: --data: it is not JSON: NaN"),
    "event depth": (("emit", "deploy", "--data", "[" * 500 + "]" * 500), 2, "duly: --data: lists and objects"),
    "event file": (("emit", "deploy", "--data", "@/nowhere/x"), 2, "duly: --data: /nowhere/x cannot be read"),
    "event reused": (("emit", "seen", "--key", "k", "--data", "2"), 3, "duly: the key k of seen was used at"),
    "when where": (("add", "x", "--when", "on deploy where a = b", *WORK), 2, "duly: --when: no blanks round"),
    "when throttle": (("add", "x", "--when", "on deploy throttle 10", *WORK), 2, "duly: --when: a span needs"),
    "when misspelt": (("add", "x", "--when", "on deploy whre a=b", *WORK), 2, "duly: --when: `whre` is too much"),
    "when of ours": (("add", "x", "--when", "on duly.run.end", *WORK), 2, "duly: --when: Duly itself has no event"),
    "when in a circle": (
        ("add", "x", "--when", "on duly.run.ended where task=x", *WORK),
        2,
        'duly: --when: its end would start it again: "x" → "x"',
    ),
    "state": (("runs", "--state", "held"), 2, 'duly: --state: "held" is not one of'),
    "since": (("runs", "--since", "yesterday"), 2, "duly: --since: "),
    "cursor": (("ledger", "--cursor", "x"), 2, 'duly: --cursor: "x" is not what a list gave'),
    "number": (("runs", "-n", "0"), 2, "duly: -n: 0 is not between"),
    "pause of what": (("pause",), 2, "duly: TASK: one of TASK, --project P and --all"),
    "pause over": (("pause", "kept", "--until", "2020-01-01 00:00"), 2, "duly: --until: "),
    "beats": (("serve", "--beat", "1m", "--lease", "1m"), 2, "duly: --lease: "),
    "slots": (("serve", "--slots", "0"), 2, "duly: --slots: "),
    "store kind": (("list", "--store", "mysql://u:secret@h/d"), 5, "duly: a store cannot be at mysql://"),
    "store options": (("list", "--store", "sqlite:///x.db?mode=ro"), 5, "duly: a store's URL takes no options"),
    "store in memory": (("list", "--store", ":memory:"), 5, "duly: :memory: cannot be a store"),
    "store in no folder": (("list", "--store", "/nowhere/x.db"), 5, "duly: the folder /nowhere does not exist"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_in_one_line_and_changes_nothing(scene: Scene, name: str) -> None:
    scene.add("kept")
    scene.ok("emit", "seen", "--key", "k", "--data", "1")
    before = scene.dump()
    args, code, first = BAD[name]
    called = scene.call(*args)
    assert (called.code, called.out) == (code, ""), called
    assert called.first.startswith(first), called
    assert "Traceback" not in called.err
    assert "secret" not in called.err
    assert scene.dump() == before


@pytest.mark.parametrize("name", ["no command", "name with slash", "when never", "task unknown", "taken", "store kind"])
def test_bad_input_is_told_as_one_json_object_where_json_was_asked(scene: Scene, name: str) -> None:
    scene.add("kept")
    args, code, _ = BAD[name]
    called = scene.call("--json", *args)
    assert (called.code, called.out) == (code, "")
    assert set(called.fault) == {"reason", "message", "details"}
    assert called.fault["reason"] in {"invalid", "unknown_id", "already_exists", "store_away"}


@pytest.mark.parametrize("name", ["no option", "when never", "span without unit", "task unknown", "unconfirmed"])
def test_a_process_of_its_own_ends_with_the_same_code(scene: Scene, name: str) -> None:
    scene.add("kept")
    args, code, first = BAD[name]
    called = scene.process(*args)
    assert (called.code, called.out) == (code, "")
    assert called.first.startswith(first)


@pytest.mark.parametrize(
    ("args", "tried"),
    [
        (("list", "--nope"), "duly list --help"),
        (("list", "--jsn"), "--json"),
        (("add", "x", "--timeot", "5m", *WORK), "--timeout"),
        (("add", "x", *WHEN, "--nope", *WORK), "duly add --help"),
        (("add", "x", *WHEN, "--shell"), "duly add --help"),
    ],
)
def test_what_to_try_is_what_was_meant_or_the_help_of_the_command(
    scene: Scene, args: tuple[str, ...], tried: str
) -> None:
    assert scene.call(*args).err.splitlines()[-1] == f"try: {tried}"


def _directory(path: Path) -> None:
    path.mkdir()


def _no_database(path: Path) -> None:
    path.write_bytes(b"this is a shopping list\n" * 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE songs (name)")
    raw.close()


STORES: dict[str, Callable[[Path], None]] = {
    "a directory": _directory,
    "no database": _no_database,
    "an empty file": _empty,
    "another program's database": _foreign,
}
TABLES = "the tables of another program"
"""What can stand in a database of a server's too."""
ASKS = (("list",), ("add", "x", *WHEN, *WORK), ("run", "x"), ("init",))


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask[0])
@pytest.mark.parametrize("kind", [*(pytest.param(kind, marks=pytest.mark.file("damage")) for kind in STORES), TABLES])
def test_what_is_no_store_is_refused_and_left_as_it_is(scene: Scene, kind: str, ask: tuple[str, ...]) -> None:
    if kind == TABLES:
        if not databases.ON_SERVER:
            scene.file.touch()
        scene.sql("CREATE TABLE alembic_version (version_num TEXT)")
        scene.sql("INSERT INTO alembic_version VALUES ('4a1f')")
    else:
        STORES[kind](scene.file)
    before = scene.dump()
    called = scene.call(*ask)
    assert called.code == 5, called
    assert called.first.startswith("duly: ")
    assert "Traceback" not in called.err
    assert scene.dump() == before


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask[0])
def test_a_store_for_newer_versions_is_refused_and_left_as_it_is(scene: Scene, ask: tuple[str, ...]) -> None:
    scene.add("kept")
    scene.sql("UPDATE meta SET value = '99.0' WHERE key = 'lowest_version'")
    before = scene.dump()
    called = scene.call("--json", *ask)
    assert (called.code, called.fault["reason"]) == (5, "store_newer"), called
    assert scene.dump() == before


@pytest.mark.file("vanished")
@pytest.mark.parametrize("ask", ASKS[:3], ids=lambda ask: ask[0])
def test_a_store_that_vanished_is_an_error_until_init_makes_it_anew(scene: Scene, ask: tuple[str, ...]) -> None:
    scene.add("kept")
    for path in scene.home.glob("duly.db*"):
        if path.is_file():
            path.unlink()
    called = scene.call(*ask)
    assert called.code == 5
    assert "is gone" in called.first
    assert not scene.file.exists()
    scene.ok("init")
    assert scene.ok("list", "--json").json == {"items": [], "next": None}


def test_a_locked_store_is_told_after_a_while(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from duly.store import engine, postgres

    scene.add("kept")
    before = scene.dump()
    patient, waiting = engine.begin, postgres.ServerLine.begin_write
    monkeypatch.setattr(
        engine, "begin", lambda line, *, patience_s, company: patient(line, patience_s=0.05, company=company)
    )
    monkeypatch.setattr(
        postgres.ServerLine,
        "begin_write",
        lambda line, *, patience_s, first: waiting(line, patience_s=0.05, first=first),
    )
    with locked(scene.place):
        called = scene.call("disable", "kept")
        assert called.code == 5
        assert "is locked by another process" in called.first
        # Reading needs no lock.
        assert scene.ok("list", "--json").json["items"][0]["enabled"] is True
    assert scene.dump() == before


def test_a_place_that_cannot_be_written_is_told(scene: Scene) -> None:
    called = scene.call("add", "x", *WHEN, "--store", "/proc/duly.db", *WORK)
    assert (called.code, called.out) == (5, "")
    assert called.first.startswith("duly: no store can be made at /proc/duly.db")


def test_limits_are_exact(scene: Scene) -> None:
    scene.add("x" * NAME_MOST, "--description", "d" * DESCRIPTION_MOST)
    assert scene.call("add", "x" * (NAME_MOST + 1), *WHEN, *WORK).code == 2
