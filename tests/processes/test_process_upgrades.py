"""Versions side by side over one server: what an older one may still do, and how it leaves when it may not."""

import subprocess
import sys
from pathlib import Path

import later_version
from process_scene import Place, wait_for
from server_scene import Hosts

import duly

RUNNING = 'echo begun >> "$WITNESS"; while [ ! -e "$GO" ]; do sleep 0.1; done; echo done'


def later_words(place: Place, lowest: str, end: str = "whole") -> list[str]:
    folder = place.home.parent / f"later-{lowest}-{end}"
    return [sys.executable, later_version.__file__, str(folder), lowest, end, "--store", str(place.store)]


def later(place: Place, lowest: str, *words: str, end: str = "whole") -> "subprocess.CompletedProcess[str]":
    return place.call(*later_words(place, lowest, end), *words)


def succeeded(place: Place) -> int:
    return int(place.rows("SELECT count(*) FROM runs WHERE outcome = 'succeeded'")[0][0])


def begin_long(place: Place, go: Path) -> None:
    """A task whose command runs until a file is there, begun by hand."""
    words = ["--env", f"GO={go}", "--env", f"WITNESS={place.witness}"]
    place.duly("add", "long", "--when", "manual", *words, "--shell", RUNNING)
    place.duly("run", "long")


def test_hosts_of_the_older_version_go_on_while_a_newer_one_expands_the_store_and_joins(hosts: Hosts) -> None:
    old, new = hosts.host("old"), hosts.host("new")
    old.duly("add", "tick", "--when", "every 1s", "--overlap", "queue", "--", "true")
    holder = old.serve(drain="5s")
    wait_for(lambda: succeeded(old) > 1)
    for words in (["list"], ["serve", "--until-idle"], ["add", "more", "--when", "manual", "--", "true"]):
        early = later(old, duly.__version__, *words)
        assert early.returncode == 5, words
        assert "duly migrate" in early.stderr
    assert hosts.admin("SELECT version_num FROM alembic_version") == [("0002",)], "nobody brings it up by the way"
    migrated = later(new, duly.__version__, "migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert migrated.stdout.splitlines()[0].endswith(" from revision 0002 to 9999")
    assert later(new, duly.__version__, "migrate").stdout.endswith(" is up to date (revision 9999)\n")
    before = succeeded(old)
    wait_for(lambda: succeeded(old) > before + 2)
    assert holder.poll() is None
    joined = new.program(*later_words(new, duly.__version__), "serve", "--slots", "1", "--beat", "1s", "--lease", "8s")
    # One slot is not enough for both, so that two holders have to share them.
    old.duly("add", "second", "--when", "every 1s", "--overlap", "queue", "--", "sleep", "0.8")
    assert later(new, duly.__version__, "edit", "tick", "--description", "by the newer one").returncode == 0
    holder.terminate()
    assert holder.wait(60) == 0
    before = succeeded(old)
    wait_for(lambda: succeeded(old) > before + 2)
    again = old.serve("--slots", "1")
    both = "SELECT DISTINCT holder FROM ledger WHERE kind = 'claimed'"
    wait_for(lambda: {(old.id_of(again),), (new.id_of(joined),)} <= set(old.rows(both)))
    assert old.duly("verify").returncode == 0
    assert later(new, duly.__version__, "verify").returncode == 0
    assert old.rows("SELECT DISTINCT hue FROM runs") == [("grey",)]


def test_a_store_that_is_for_newer_versions_only_is_left_by_the_older_holder_with_its_work_ended_and_told(
    hosts: Hosts, tmp_path: Path
) -> None:
    old, new = hosts.host("old"), hosts.host("new")
    go = tmp_path / "go"
    holder = old.serve(drain="60s")
    begin_long(old, go)
    wait_for(lambda: old.seen() == [["begun"]])
    assert later(new, later_version.VERSION, "migrate").returncode == 0
    for words in (["list"], ["run", "long"], ["pause", "--all"], ["verify"], ["migrate"], ["serve"]):
        done = old.duly(*words, check=False)
        assert done.returncode == 5, words
        assert later_version.VERSION in done.stderr
    waiting = later(new, later_version.VERSION, "add", "next", "--when", "manual", "--", "true")
    assert waiting.returncode == 0, waiting.stderr
    wait_for(lambda: "store newer" in old.errors())
    assert holder.poll() is None, "it drains"
    assert later(new, later_version.VERSION, "run", "next").returncode == 0
    go.touch()
    assert holder.wait(60) == 5
    run = old.rows("SELECT outcome, attempt, exit_code FROM runs r JOIN tasks t ON t.id = r.task WHERE t.name = 'long'")
    assert run == [("succeeded", 1, 0)]
    assert old.rows("SELECT count(*) FROM ledger WHERE kind = 'claimed'") == [(1,)], "it claimed nothing since"
    new.program(*later_words(new, later_version.VERSION), "serve", "--beat", "1s", "--lease", "8s")
    wait_for(lambda: succeeded(old) >= 2)
    assert later(new, later_version.VERSION, "verify").returncode == 0


def test_a_migration_that_is_killed_leaves_the_old_schema_whole_and_its_holders_at_work(hosts: Hosts) -> None:
    old, new = hosts.host("old"), hosts.host("new")
    old.duly("add", "tick", "--when", "every 1s", "--overlap", "queue", "--", "true")
    holder = old.serve()
    wait_for(lambda: succeeded(old))
    columns = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    )
    whole = hosts.admin(columns)
    assert later(new, later_version.VERSION, "migrate", end="killed").returncode == -9
    assert hosts.admin(columns) == whole
    before = succeeded(old)
    wait_for(lambda: succeeded(old) > before + 2)
    assert holder.poll() is None
    assert old.duly("verify").returncode == 0
    assert later(new, duly.__version__, "migrate").returncode == 0
    assert hosts.admin(columns) != whole
