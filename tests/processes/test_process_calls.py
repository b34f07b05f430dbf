"""Calls through whole processes: served, killed, adopted, cancelled; in a child and in a thread."""

import os
from pathlib import Path
from typing import Any

import pytest
from process_scene import Place, alive, wait_for

SHOP = """
import asyncio, os, time
from pathlib import Path

HERE = Path(__file__).parent

def waits(word=""):
    with (HERE / "witness").open("a") as file:
        file.write(f"{os.getpid()} {word}\\n")
    while not (HERE / "go").exists():
        time.sleep(0.01)
    print("went on", word)

async def gently():
    await asyncio.sleep(0)
    print("gently")
"""


@pytest.fixture
def shop(place: Place) -> Place:
    """A place whose servers find a module of functions, as an installed one would be found."""
    (place.home / "shop.py").write_text(SHOP)
    place.env["PYTHONPATH"] = f"{place.home}:{place.env['PYTHONPATH']}"
    return place


def add(place: Place, function: str, where: str, *more: str) -> None:
    place.duly("add", where, "--when", "manual", "--call", f"shop:{function}", "--in", where, *more)


def witnessed(place: Place) -> list[int]:
    """The processes that the function ran in, a number a start."""
    return [int(line[0]) for line in place.seen()]


def of(place: Place) -> Any:
    [run] = place.json("runs")["items"]
    return run


@pytest.mark.parametrize("where", ["child", "thread"])
def test_a_function_is_called_at_its_time_and_by_hand_with_its_output_where_it_is_a_process(
    shop: Place, where: str
) -> None:
    add(shop, "gently", where)
    shop.serve()
    assert "succeeded" in shop.duly("run", where, "--wait").stdout
    assert shop.duly("log", where).stdout == ("gently\n" if where == "child" else "")
    assert shop.duly("verify").stdout.strip().endswith("hold on this store")


def test_a_function_in_a_child_whose_holder_was_killed_is_adopted_and_runs_once(shop: Place) -> None:
    add(shop, "waits", "child")
    # On a server the work lives on only within its holder's trust, and the next holder may be slow to start.
    first = shop.serve(lease="100s")
    shop.duly("run", "child", "--", "once")
    wait_for(lambda: len(witnessed(shop)) == 1)
    first.kill()
    first.wait()
    shop.serve(lease="100s")
    wait_for(lambda: shop.rows("SELECT 1 FROM ledger WHERE kind = 'adopted'"))
    (shop.home / "go").touch()
    assert shop.ended()["outcome"] == "succeeded"
    assert len(witnessed(shop)) == 1
    assert shop.duly("log", "child").stdout == "went on once\n"


def test_a_function_in_a_thread_dies_with_its_holder_and_is_not_tried_again_unasked(shop: Place) -> None:
    add(shop, "waits", "thread")
    first = shop.serve()
    shop.duly("run", "thread")
    wait_for(lambda: witnessed(shop) == [first.pid])
    second = shop.serve()
    first.kill()
    first.wait()
    run = shop.ended()
    assert (run["outcome"], run["reason"]) == ("abandoned", "holder_died")
    assert witnessed(shop) == [first.pid]
    assert alive(second.pid)


@pytest.mark.parametrize("by", ["cancel", "timeout"])
def test_a_function_in_a_thread_that_should_end_stays_running_and_says_since_when_it_was_asked(
    shop: Place, by: str
) -> None:
    add(shop, "waits", "thread", *(["--timeout", "1s"] if by == "timeout" else []))
    server = shop.serve()
    run = shop.json("run", "thread")["id"]
    wait_for(lambda: witnessed(shop) == [server.pid])
    if by == "cancel":
        shop.duly("cancel", run)
    wait_for(lambda: of(shop)["stopping_since"])
    assert of(shop)["state"] == "running"
    assert "stopping" in shop.duly("show", run).stdout
    # Its seat is taken as long as it works, whatever was asked.
    assert shop.duly("run", "thread", check=False).returncode == 3
    (shop.home / "go").touch()
    ended = shop.ended()
    expected = ("cancelled", "cancelled_by_hand") if by == "cancel" else ("timed_out", "timeout")
    assert (ended["outcome"], ended["reason"], ended["stopping_since"]) == (*expected, None)
    assert "cannot be ended" in ended["error"]
    assert shop.duly("verify").stdout.strip().endswith("hold on this store")


def test_who_stops_serving_leaves_a_function_in_a_thread_to_its_own_death_and_the_next_one_settles_it(
    shop: Place,
) -> None:
    add(shop, "waits", "thread")
    first = shop.serve(drain="0s")
    shop.duly("run", "thread")
    wait_for(lambda: witnessed(shop) == [first.pid])
    first.terminate()
    assert first.wait(40) == 0, shop.errors()
    shop.serve()
    run = shop.ended()
    assert (run["outcome"], run["reason"]) == ("abandoned", "holder_died")
    assert len(witnessed(shop)) == 1


def test_a_function_that_is_not_there_fails_before_it_starts_and_says_so(shop: Place) -> None:
    added = shop.duly("add", "x", "--when", "manual", "--call", "shop:wait", "--timeout", "5s")
    assert "warning: --call: shop has no wait; it has waits" in added.stderr
    shop.serve()
    done = shop.duly("run", "x", "--wait", check=False)
    assert done.returncode == 1
    run = of(shop)
    assert (run["reason"], run["error"]) == ("preflight", "shop has no wait; it has waits")
    assert not (shop.run_folder / "attempts" / f"{run['id']}.{run['fence']}").exists()


@pytest.mark.parametrize("where", ["child", "thread"])
def test_a_function_that_names_no_store_means_the_one_it_is_served_from(place: Place, where: str) -> None:
    (place.home / "asks.py").write_text(
        "from duly import Duly\nfrom pathlib import Path\n"
        "def f():\n    Path(__file__).with_name('told').write_text(','.join(one.name for one in Duly().tasks()))\n"
    )
    place.env["PYTHONPATH"] = f"{place.home}:{place.env['PYTHONPATH']}"
    place.duly("add", "asks", "--when", "manual", "--call", "asks:f", "--in", where)
    place.serve()
    assert "succeeded" in place.duly("run", "asks", "--wait").stdout
    assert (place.home / "told").read_text() == "asks"
    assert not (place.home / ".local/share/duly").exists(), "the store of those who name none"


def test_a_function_in_a_child_works_in_the_folder_in_which_it_was_added(place: Place) -> None:
    inner = place.home / "inner"
    inner.mkdir()
    (inner / "only_there.py").write_text("import os\ndef f(): print(os.getcwd())\n")
    place.duly("add", "x", "--when", "manual", "--call", "only_there:f", "--cwd", str(inner))
    place.serve()
    place.duly("run", "x", "--wait")
    assert place.duly("log", "x").stdout == f"{inner}\n"
    assert Path.cwd() != inner
    assert os.environ.get("DULY_RUN") is None
