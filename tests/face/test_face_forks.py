"""Forks: pre-forked web workers over one store, and children of a process that serves."""

import os
import signal
from collections import Counter

import pytest
from face_scene import Home, until

from duly.runners import processes

LENGTH_S = 12
CHILDREN = 4

SITE = """
from duly import Duly, this_run
from pathlib import Path
import os, time, asyncio

duly = Duly("duly.db")
HERE = Path(__file__).parent

def witness():
    run = this_run()
    with (HERE / "witness").open("a") as file:
        file.write(f"{run.task} {run.occurrence} {run.attempt} {os.getpid()}\\n")

@duly.task("every 1s", overlap="queue")
def child():
    witness()

@duly.task("every 1s", overlap="queue", place="thread")
def thread():
    witness()

@duly.task("* * * * * *", overlap="queue", place="thread")
async def gently():
    await asyncio.sleep(0.01)
    witness()
"""
SERVER = f"""
import os, signal, sys, time, warnings
import site_of_shop as site   # preloaded, as a server does before it forks

children = []
for _ in range({CHILDREN}):
    pid = os.fork()
    if not pid:
        site.duly.start(slots=4, beat="1s", lease="8s")
        time.sleep({LENGTH_S})
        os._exit(0 if site.duly.stop(30) else 3)
    children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
print(codes)
"""


def children_of(pid: int) -> list[processes.Process]:
    return [one for one in processes.table().values() if one.parent == pid]


def lives(pid: int) -> bool:
    found = processes.read(pid)
    return found is not None and found.state not in processes.DEAD


def test_four_preforked_processes_over_one_store_run_each_occurrence_once(home: Home) -> None:
    home.write("site_of_shop.py", SITE)
    out = home.ran(SERVER)
    assert out.strip() == str([0] * CHILDREN)
    starts = Counter((task, occurrence) for task, occurrence, *_ in home.lines())
    assert [key for key, times in starts.items() if times > 1] == []
    for task in ("child", "thread", "gently"):
        assert sum(1 for one, _ in starts if one == task) >= LENGTH_S / 3, starts
    # Who defined the tasks, defined each once.
    assert home.rows("SELECT count(*), max(version) FROM tasks") == [(3, 1)]
    assert home.rows("SELECT count(*) FROM ledger WHERE kind = 'defined' AND task IS NOT NULL") == [(3,)]
    [(holders, worked)] = home.rows("SELECT count(*), sum(CASE WHEN claims > 0 THEN 1 ELSE 0 END) FROM holders")
    assert holders == CHILDREN
    assert worked >= 2, "who is quicker gets more, and not all"
    succeeded = home.rows("SELECT count(*) FROM runs WHERE outcome = 'succeeded'")[0][0]
    assert succeeded == len(starts)
    assert home.cli("verify").strip().endswith("hold on this store")


FORKED = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
from duly import Duly, StoreAway
import shop_of_test as shop
duly = Duly("duly.db")
duly.task("every 1s", place="thread")(shop.nightly)
duly.start(beat="1s", lease="60s", drain="0s")
duly.wait(duly.run("nightly", queue=True), 40)
duly.wait(duly.run(duly.define("true", command=["true"], cwd="/").id), 40)  # so that there is a nursery
reading, writing = os.pipe()
pid = os.fork()
if not pid:
    said = []
    again = lambda: Duly("duly.db").run("nightly")
    other = lambda: Duly("other.db").define("x", call="json:dumps")
    for use in (duly.tasks, duly.start, again, other):
        try:
            use()
            said.append("used")
        except StoreAway as error:
            said.append("refused")
            text = str(error)
    os.write(writing, f"{said} {duly.serving} {duly.stop()} {text}".encode())
    if sys.argv[1] == "stays":
        time.sleep(120)
    duly.close()
    sys.exit(0)   # the whole of an ordinary end: hooks, the closing of what is open
print(os.read(reading, 4000).decode(), flush=True)
if sys.argv[1] == "ends":
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(duly.serving, duly.wait(duly.run("nightly", queue=True), 40).outcome)
    print(duly.stop(40))
else:
    print(pid, flush=True)
    time.sleep(120)
"""


def test_a_child_of_a_process_that_serves_is_told_that_it_cannot_use_the_store_and_harms_nothing(home: Home) -> None:
    (home.folder / "shop_of_test.py").write_text("def nightly(): ...\n")
    out = home.ran(FORKED, "program.py", "ends").splitlines()
    assert out[0].startswith("['refused', 'refused', 'refused', 'used'] False True this process was forked while")
    assert "a connection cannot be carried over a fork" in out[0]
    assert out[1:] == ["0", "True succeeded", "True"]
    assert home.cli("verify").strip().endswith("hold on this store")


def test_a_living_child_does_not_make_its_dead_parent_look_alive(home: Home) -> None:
    (home.folder / "shop_of_test.py").write_text("def nightly(): ...\n")
    with home.program(FORKED, "program.py", "stays") as program:
        assert program.stdout is not None
        program.stdout.readline()
        child = int(program.stdout.readline())
        [nursery] = [one.pid for one in children_of(program.pid) if one.name == "duly-nursery"]
        program.send_signal(signal.SIGKILL)
        program.wait()
        duly = home.duly()
        duly.start()
        # At once, and not after a lease of a minute: the lock that proves its life is free though the child lives.
        until(lambda: home.rows("SELECT 1 FROM ledger WHERE kind = 'holder_ended' AND reason = 'holder_died'"), 20)
        until(lambda: not lives(nursery), 20)  # it has heard that its holder is gone
        assert child in home.leftovers()
        duly.stop()
        for pid in home.leftovers():
            os.kill(pid, signal.SIGKILL)


def test_a_process_that_only_uses_a_store_may_fork_and_its_children_use_it_too(home: Home) -> None:
    home.duly().define("nightly", call=home.shop.nightly, overlap="queue")
    out = home.ran(
        """
import os
from duly import Duly
duly = Duly("duly.db")
assert len(duly.tasks()) == 1
children = []
for number in range(4):
    pid = os.fork()
    if not pid:
        duly.run("nightly", key=str(number), queue=True)
        assert len(duly.tasks()) == 1
        duly.close()
        os._exit(0)
    children.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children], len(duly.runs()))
"""
    )
    assert out.strip() == "[0, 0, 0, 0] 4"


ORPHAN = """
import os, sys, time
from pathlib import Path
from duly import Duly
duly = Duly("duly.db")
duly.tasks()  # its connection stays, for the next who asks
if os.fork():
    os._exit(0)
duly.tasks()
Path("ready").touch()
while not Path("go").exists():
    time.sleep(0.02)
duly.run("nightly", key="late")
os._exit(0)
"""


def test_a_child_forked_while_another_thread_opens_the_store_is_told_that_it_cannot_use_it(home: Home) -> None:
    home.duly().define("nightly", call=home.shop.nightly)
    out = home.ran(
        """
import os, threading
from duly import Duly
from duly.errors import StoreAway
from duly.store.store import Store

opening, go = threading.Event(), threading.Event()
really = Store.open

def slowly(*args, **named):
    store = really(*args, **named)
    opening.set()
    go.wait(20)
    return store

Store.open = slowly
duly = Duly("duly.db")
thread = threading.Thread(target=duly.tasks)
thread.start()
assert opening.wait(20)
pid = os.fork()
if not pid:
    try:
        duly.tasks()
    except StoreAway as error:
        print(error.message, flush=True)
        os._exit(7)
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
go.set()
thread.join(20)
print(code, len(duly.tasks()))
"""
    )
    assert "was forked while process" in out
    assert out.split()[-2:] == ["7", "1"]


def test_what_a_child_writes_is_not_lost_when_its_parent_ends_and_another_thinks_it_is_the_last(home: Home) -> None:
    with home.duly() as duly:
        duly.define("nightly", call=home.shop.nightly)
    with home.program(ORPHAN) as program:
        program.wait(60)
        until((home.folder / "ready").exists)
        # Whoever closes the last connection to a file takes its log away; who has it open must be seen by that.
        home.ran("from duly import Duly\nwith Duly(\"duly.db\") as duly: duly.define('other', call='json:dumps')")
        (home.folder / "go").touch()
        until(lambda: not home.leftovers())
    assert [run.json["occurrence"] for run in home.duly().runs()] == ["manual:late"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_goes_on_as_before_beside_a_holder_in_the_background(home: Home, method: str) -> None:
    out = home.ran(
        """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")

def double(number):
    return 2 * number

if __name__ == "__main__":
    from duly import Duly
    with Duly("duly.db") as duly:
        duly.start()
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            print(pool.map(double, range(4)), duly.serving)
        print(duly.stop(40))
""",
        "program.py",
        method,
    )
    assert out.splitlines() == ["[0, 2, 4, 6] True", "True"]
