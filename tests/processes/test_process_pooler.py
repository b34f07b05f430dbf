"""Behind a pooler that gives a connection for one transaction: all that is promised, without being woken."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import counting_holder
import pytest
from pooler import Pooler
from process_scene import Place, wait_for
from server_scene import Hosts

CONNECTIONS = 3
SLOWLY_S = 240.0


@pytest.fixture
def pooler(hosts: Hosts) -> Iterator[Pooler]:
    made = Pooler(str(hosts.server.folder / ".s.PGSQL.5432"), CONNECTIONS)
    yield made
    made.close()


def behind(hosts: Hosts, pooler: Pooler, name: str) -> Place:
    return hosts.host(name, f"postgresql://postgres@127.0.0.1:{pooler.port}/postgres")


def test_holders_behind_a_pooler_run_each_occurrence_once_and_doctor_says_what_is_missing(
    hosts: Hosts, pooler: Pooler
) -> None:
    places = [behind(hosts, pooler, name) for name in ("one", "two", "three")]
    first = places[0]
    for number in range(10):
        words = ["add", f"t{number}", "--when", "every 1s", "--times", "10", "--overlap", "queue", "--queue", "100"]
        first.duly(*words, "--on-missed", "run_all", "--at-most", "100", "--", "true")
    for place in places:
        place.program(sys.executable, str(Path(counting_holder.__file__)), str(place.store), "4")
    wait_for(lambda: first.rows("SELECT count(*) FROM runs WHERE state = 'ended'") == [(100,)], SLOWLY_S)
    starts = Counter(line[1] for place in places for line in place.seen() if line[0] == "+")
    assert (len(starts), set(starts.values())) == (100, {1})
    assert first.rows("SELECT DISTINCT outcome FROM runs") == [("succeeded",)]
    assert pooler.clients > CONNECTIONS, "they were shared"
    checks = {one["check"]: one for one in json.loads(first.duly("doctor", "--json", check=False).stdout)["items"]}
    assert "nobody hears of a write at once" in checks["pooled"]["message"]
    assert first.json("status")["polling_only"] is True
    assert "polling" in first.duly("status").stdout
    assert first.duly("verify").returncode == 0


def test_what_is_asked_of_a_holder_behind_a_pooler_is_heard_though_nothing_wakes_it(
    hosts: Hosts, pooler: Pooler
) -> None:
    one, two = behind(hosts, pooler, "one"), behind(hosts, pooler, "two")
    one.serve()
    two.duly("add", "long", "--when", "manual", "--shell", "echo begun; sleep 600")
    two.duly("run", "long")
    wait_for(lambda: two.rows("SELECT 1 FROM runs WHERE started_us IS NOT NULL"))
    [run] = two.json("runs")["items"]
    wait_for(lambda: two.duly("log", run["id"]).stdout == "begun\n")
    two.duly("cancel", run["id"])
    assert two.ended()["outcome"] == "cancelled"
    assert one.duly("verify").returncode == 0
