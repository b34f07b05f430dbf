"""`doctor`: each finding provoked, told with its figures, and gone when what it advises was done."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from cli_scene import Scene
from test_cli_holding import register

import databases
from duly import clock
from duly.core.reasons import ENDED, NO_START, REFUSED
from duly.store import mounts
from duly.store.server_engine import ServerEngine

HOUR_US = 3_600_000_000
DOCUMENT = {"ok", "items", "next", "checks", "facts"}
ITEM = {"check", "subject", "message", "details", "hint"}


@pytest.fixture(autouse=True)
def _durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' server keeps nothing over a power cut, which is told of it and is not what these tests are about."""
    faults = ServerEngine.faults
    monkeypatch.setattr(
        ServerEngine, "faults", lambda self, line: [one for one in faults(self, line) if "fsync" not in one]
    )


def found(scene: Scene) -> dict[str, dict[str, Any]]:
    """What doctor finds, by check; its exit code and its shape are right."""
    called = scene.call("doctor", "--json")
    told = called.json
    assert set(told) == DOCUMENT
    assert all(set(item) == ITEM for item in told["items"])
    assert (called.code, told["ok"]) == ((1, False) if told["items"] else (0, True))
    assert all(item["hint"] for item in told["items"])
    return {item["check"]: item for item in told["items"]}


def served(scene: Scene) -> None:
    """Somebody serves, for all that a look from outside can see."""
    register(scene, "alive")
    scene.run_folder.chmod(0o700)
    (scene.run_folder / "holders").chmod(0o700)
    with scene.opened() as store, store.read() as session:
        now = session.lease_us
    scene.sql("UPDATE holders SET beat_lease_us = ?", now)


def test_a_store_in_good_health_has_no_findings(scene: Scene) -> None:
    scene.add("hello")
    assert found(scene) == {}
    called = scene.ok("doctor")
    what = "server" if databases.ON_SERVER else "file"
    assert f"nothing wrong (14 checks: settings, stores, agents, {what}, " in called.out
    assert "hint: whether the promises were kept: duly verify" in called.err
    facts = scene.ok("doctor", "--json").json["facts"]
    assert facts["faults"] == []
    if not databases.ON_SERVER:
        assert (facts["synchronous"], facts["journal_mode"]) == (2, "wal")


def test_whoever_dies_three_times_within_a_day_is_told_and_two_deaths_or_older_ones_are_not(scene: Scene) -> None:
    scene.add("hello")
    served(scene)

    def die(ago_us: int) -> None:
        at = clock.to_us(clock.now()) - ago_us
        details = '{"cause": "died", "since": "2026-01-01T00:00:00Z", "last": "hld_0", "for_s": 5}'
        scene.sql(
            "INSERT INTO ledger (at_us, kind, reason, until_us, details) VALUES (?, 'outage', 'died', ?, ?)",
            *(at, at, details),
        )

    for ago_us in (30 * HOUR_US, 25 * HOUR_US, 2 * HOUR_US, HOUR_US):
        die(ago_us)
    assert found(scene) == {}
    die(HOUR_US // 2)
    told = found(scene)
    assert told.keys() == {"dies_often"}
    assert told["dies_often"]["details"]["deaths"] == 3
    assert told["dies_often"]["subject"] == "hld_0"


@pytest.mark.parametrize("how", ["slots = 0", "state = 'draining'"])
def test_somebody_who_is_passive_or_drains_starts_nothing_so_that_nobody_serves(scene: Scene, how: str) -> None:
    scene.add("hello")
    served(scene)
    assert found(scene) == {}
    scene.sql("UPDATE tasks SET next_due_us = 1, next_start_us = 1")
    assert "nobody_serves" not in found(scene)
    scene.sql(f"UPDATE holders SET {how}")
    assert "nobody_serves" in found(scene)


def test_looking_changes_nothing(scene: Scene) -> None:
    scene.add("hello")
    before = scene.dump(), sorted(scene.home.rglob("*"))
    scene.ok("doctor")
    assert (scene.dump(), sorted(scene.home.rglob("*"))) == before


def test_where_there_is_no_store_the_machine_is_looked_at_and_nothing_is_made(scene: Scene) -> None:
    called = scene.ok("doctor")
    assert "there is no store at" in called.err
    assert list(scene.home.iterdir()) == []
    assert scene.ok("doctor", "--json").json["checks"] == ["settings", "stores", "agents"]


def due(scene: Scene) -> None:
    scene.add("hello", when="every 1h")
    scene.sql("UPDATE tasks SET next_due_us = next_due_us - ?", 2 * HOUR_US)


def waiting(scene: Scene) -> None:
    scene.add("hello")
    scene.ok("run", "hello")


def held(scene: Scene) -> None:
    waiting(scene)
    scene.sql("UPDATE runs SET state = 'held', holder = 'hld_gone', lease_end_us = 0, seat = 1")


def silent(scene: Scene) -> None:
    scene.add("hello")
    served(scene)
    scene.sql("UPDATE holders SET beat_lease_us = beat_lease_us - ?", 150_000_000)


def slow_clock(scene: Scene) -> None:
    scene.add("hello")
    scene.sql("UPDATE ledger SET at_us = at_us + ?", 48 * HOUR_US)


def fast_clock(scene: Scene) -> None:
    scene.add("hello", when="every 1h")
    scene.sql("UPDATE tasks SET planned_until_us = planned_until_us + ?", 50 * HOUR_US)


def old_zones(scene: Scene) -> None:
    scene.add("hello")
    scene.sql("UPDATE tasks SET zone_data = '2099a'")


def broken(scene: Scene) -> None:
    scene.add("hello")
    scene.sql("UPDATE tasks SET definition = '{}'")


def no_program(scene: Scene) -> None:
    scene.add("hello", argv=("surely-no-such-program",))


def no_folder(scene: Scene) -> None:
    (scene.home / "there").mkdir()
    scene.add("hello", "--cwd", str(scene.home / "there"))
    (scene.home / "there").rmdir()


def open_store(scene: Scene) -> None:
    scene.add("hello")
    scene.file.chmod(0o644)


def open_folder(scene: Scene) -> None:
    scene.add("hello")
    scene.run_folder.mkdir(parents=True)
    scene.run_folder.chmod(0o755)


def stale_lock(scene: Scene) -> None:
    scene.add("hello")
    register(scene, "dead")
    for folder in (scene.run_folder, scene.run_folder / "holders"):
        folder.chmod(0o700)
    (scene.run_folder / "holders/hld_0.lock").touch()


def gone(scene: Scene) -> None:
    scene.add("hello")
    scene.ok("init", "--store", str(scene.home / "other.db"))
    (scene.home / "other.db").unlink()


def network(scene: Scene) -> None:
    scene.add("hello")
    table = scene.home / "mountinfo"
    table.write_text("22 1 0:1 / / rw - nfs4 server:/ rw\n")
    scene.monkeypatch.setattr(mounts, "MOUNTS", table)


def full(scene: Scene) -> None:
    scene.add("hello")

    class Disk:
        f_bavail, f_blocks, f_frsize, f_files, f_favail, f_flag = 10_000, 1_000_000, 4096, 1000, 900_000, 0

    scene.monkeypatch.setattr(os, "statvfs", lambda _: Disk)


def no_inodes(scene: Scene) -> None:
    scene.add("hello")

    class Disk:
        f_bavail, f_blocks, f_frsize, f_files, f_favail, f_flag = 900_000, 1_000_000, 4096, 1_000_000, 12, 0

    scene.monkeypatch.setattr(os, "statvfs", lambda _: Disk)


def damaged(scene: Scene) -> None:
    scene.add("hello")
    with closing(sqlite3.connect(scene.file)) as raw:
        page = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tasks_name'").fetchone()[0]
    with scene.file.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


def older(scene: Scene) -> None:
    scene.add("hello")
    scene.sql("UPDATE alembic_version SET version_num = '0001'")


def no_log(scene: Scene) -> None:
    scene.add("hello")
    scene.sql("PRAGMA journal_mode=DELETE")


def unknown_key(scene: Scene) -> None:
    config(scene, "[serve]\nslotz = 1\n")


def unusable(scene: Scene) -> None:
    config(scene, "[serve]\nslots = 0\n")


def unread(scene: Scene) -> None:
    config(scene, "[serve\n")


def config(scene: Scene, text: str) -> None:
    scene.add("hello")
    (scene.home / ".config/duly").mkdir(parents=True)
    (scene.home / ".config/duly/config.toml").write_text(text)


# What is wrong, the check that finds it, what its sentence and its advice hold, a figure among its details.
WRONG: dict[Callable[[Scene], None], tuple[str, str, str, tuple[str, object] | None]] = {
    due: ("nobody_serves", "1 task is due and nobody serves the store: hello", "duly serve", ("due", 1)),
    waiting: ("nobody_serves", "1 run wait", "duly serve", ("waiting", 1)),
    held: ("held_by_nobody", "1 run is held by holders that are gone", "duly serve", ("held", 1)),
    silent: ("holder_silent", "hld_0 (pid 100 on here) lives, and has not beaten for 15", "kill -CONT 100", None),
    slow_clock: ("clock_behind", "is 1 day, 23:5", "timedatectl", None),
    fast_clock: ("cursor_ahead", "hello opens nothing before ", "duly run hello", None),
    old_zones: ("zone_data_older", "with 2099a", "tzdata", ("store", "2099a")),
    broken: ("broken_task", "hello cannot run: name: it is missing", "duly show hello", ("field", "name")),
    no_program: ("program_missing", "hello starts surely-no-such-program", "whole path", None),
    no_folder: ("folder_missing", "there, which is no folder now", "mkdir -p", None),
    open_store: ("open_to_others", "(mode 0644, not 0600)", "chmod 0600", ("mode", "0644")),
    open_folder: ("open_to_others", "(mode 0755, not 0700)", "chmod 0700", ("wanted", "0700")),
    stale_lock: ("stale_locks", "the lock file of hld_0 is left", "duly serve", ("holders", ["hld_0"])),
    gone: ("store_gone", "other.db is gone", "duly restore BACKUP --store", None),
    network: ("network_fs", "lies on a network file system (nfs4 at /)", "local disk", ("file_system", "nfs4")),
    full: ("disk_almost_full", "40,960,000 of 4,096,000,000 bytes are free", "duly prune", ("free_bytes", 40_960_000)),
    no_inodes: ("disk_almost_full", "only 12 more files", "duly prune", ("free_files", 12)),
    damaged: ("damaged", "the store is damaged: ", "duly restore BACKUP", None),
    older: ("migration_pending", "of revision 0001, and this version works with", "duly migrate", None),
    no_log: ("no_log", "journal is delete, not wal", "any command that writes", ("journal_mode", "delete")),
    unknown_key: ("config_unknown", '"serve.slotz" is not known', "duly config show", None),
    unusable: ("config_unusable", "serve.slots: 0 is not between", "duly config show", None),
    unread: ("config_unread", "the config file is not TOML", "config.toml", None),
}


OF_A_FILE = {open_store: "place", damaged: "damage", no_log: "settings"}
"""What can be wrong with a file of our own."""


@pytest.mark.parametrize(
    "wrong",
    [pytest.param(one, marks=[pytest.mark.file(OF_A_FILE[one])] if one in OF_A_FILE else []) for one in WRONG],
    ids=lambda wrong: wrong.__name__,
)
def test_what_is_wrong_is_found_with_its_figures_and_what_to_do(scene: Scene, wrong: Callable[[Scene], None]) -> None:
    wrong(scene)
    check, text, hint, figure = WRONG[wrong]
    items = found(scene)
    assert set(items) == {check}, items
    assert text in items[check]["message"]
    assert hint in items[check]["hint"]
    if figure is not None:
        assert items[check]["details"][figure[0]] == figure[1]
    called = scene.call("doctor")
    assert called.code == 1
    assert f"{check}: {items[check]['message'][:40]}" in called.out
    assert f"  try: {items[check]['hint'][:40]}" in called.out
    assert called.out.endswith("1 finding\n")


@pytest.mark.file("damage")
def test_a_store_whose_very_tables_are_damaged_is_found_damaged(scene: Scene) -> None:
    scene.add("hello")
    with scene.file.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 8)
    assert set(found(scene)) == {"damaged"}


@pytest.mark.file("damage")
def test_what_is_no_store_of_ours_is_refused_and_left_as_it_is(scene: Scene) -> None:
    scene.file.write_text("a diary")
    called = scene.call("doctor")
    assert (called.code, called.out) == (5, "")
    assert scene.file.read_text() == "a diary"
    scene.file.unlink()
    scene.add("hello")
    scene.file.unlink()
    assert scene.call("doctor").code == 5, "and so is one that is gone"


def test_a_store_for_newer_versions_only_is_refused_by_doctor_too(scene: Scene) -> None:
    scene.add("hello")
    scene.sql("UPDATE meta SET value = '99.0' WHERE key = 'lowest_version'")
    assert scene.call("doctor").code == 5


def test_programs_are_looked_for_by_the_path_of_who_serves(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = scene.home / "tools" / "my-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    scene.add("hello", argv=("my-tool",))
    assert set(found(scene)) == {"program_missing"}
    scene.add("own", "--env", f"PATH={tool.parent}", argv=("my-tool",))
    scene.add("here", "--cwd", str(tool.parent), argv=("./my-tool",))
    scene.add("off", "--disabled", argv=("my-tool",))
    assert found(scene)["program_missing"]["subject"] == "hello"
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
        assert found(scene) == {}
        served(scene)
        # This very process serves, for all that can be seen, and was started without the folder in its PATH.
        from duly.runners import processes

        mine = processes.read(os.getpid())
        assert mine is not None
        scene.sql("UPDATE holders SET pid = ?, ticks = ?", os.getpid(), mine.ticks)
        item = found(scene)["program_missing"]
    assert "the PATH of who serves" in item["message"]


def test_a_holder_that_serves_clears_the_locks_of_others_so_they_are_no_finding(scene: Scene) -> None:
    scene.add("hello")
    served(scene)
    (scene.run_folder / "holders/hld_x.lock").touch()
    assert found(scene) == {}


def test_of_very_many_findings_of_one_kind_the_first_are_told_and_the_rest_counted(scene: Scene) -> None:
    for number in range(55):
        scene.add(f"t{number}")
    scene.sql("UPDATE tasks SET definition = '{}'")
    items = scene.call("doctor", "--json").json["items"]
    assert len(items) == 51
    assert items[-1]["message"] == "and 5 more of this kind"


def test_reasons_are_listed_by_use_with_their_sentences(scene: Scene) -> None:
    told = scene.ok("doctor", "--reasons", "--json").json
    assert told["next"] is None
    listed = {(item["use"], item["reason"]): item["sentence"] for item in told["items"]}
    for use, table in (("no_start", NO_START), ("refused", REFUSED), ("ended", ENDED)):
        assert {(use, reason): sentence for reason, sentence in table.items()}.items() <= listed.items()
    assert "coalesced" in scene.ok("doctor", "--reasons").out
    assert list(scene.home.iterdir()) == [], "no store is asked for them"


@pytest.mark.parametrize(
    ("args", "code", "first"),
    [
        (("doctor", "now"), 2, "duly: got unexpected extra argument"),
        (("doctor", "--reason"), 2, "duly: there is no option --reason"),
        (("doctor", "--store", "/nowhere/x.db"), 5, "duly: the folder /nowhere does not exist"),
    ],
)
def test_bad_input_to_doctor_is_told(scene: Scene, args: tuple[str, ...], code: int, first: str) -> None:
    called = scene.call(*args)
    assert (called.code, called.out) == (code, "")
    assert called.first.startswith(first)
