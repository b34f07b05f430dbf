"""`outages`: what people see of the time in which nobody served."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_scene import Scene
from golden_scene import HOLDER, HOUR, MINUTE, SECOND, World, compare, world

from duly.core.outages import Outage, entry
from duly.operations import events

GOLDEN = Path(__file__).parent / "golden"
SUNDAY = datetime(2026, 11, 29, 8, 0, tzinfo=UTC)
OUTAGE = """seq cause since until for_s words noticed_at holder host others missed caught_up interrupted tasks unknown
details"""


def note(w: World, outage: Outage, *, others: int = 0) -> None:
    """Let the world's holder write down an outage, as one that noticed it does."""
    with w.store() as store, store.write() as session:
        told = entry(outage, now=session.now, holder=HOLDER, host="edith", others=others)
        session.ledger.add([told])


def lived(w: World) -> None:
    w.add("backup", "daily 03:00", "--zone", "UTC", "--on-missed", "skip")
    w.add("report", "daily 07:00", "--zone", "UTC")
    w.add("deploy", "on ci.done where branch=main")
    w.add("quiet", "weekly wed 12:00", "--zone", "UTC")
    w.serve()
    w.turn()
    w.at(w.clock.moment + HOUR)
    with w.store() as store:
        events.emit(store, "ci.done", by="ci", key="build-17", data='{"branch": "dev"}')
    w.at(w.clock.moment + HOUR)
    note(w, Outage(cause="stopped", since=w.clock.moment - 3 * SECOND, until=w.clock.moment))
    w.at(w.clock.moment + MINUTE)
    slept = w.clock.moment
    w.at(SUNDAY)
    note(w, Outage(cause="suspend", since=slept, until=SUNDAY))
    w.turn()
    w.at(SUNDAY + HOUR)
    back = Outage(cause="clock_step", since=SUNDAY, until=SUNDAY + HOUR, details={"step_s": -3600.0, "way": "back"})
    note(w, back, others=2)
    w.at(SUNDAY + 2 * HOUR)


@pytest.mark.parametrize(("width", "columns"), [("80", 80), ("140", 140), ("piped", None)])
def test_outages_are_told_with_what_came_of_each_and_what_cannot_be_known(
    scene: Scene, width: str, columns: int | None
) -> None:
    with world(scene) as w:
        lived(w)
        compare(GOLDEN / f"outages.{width}.txt", w.screen(columns, "outages"))


def test_as_json_they_are_a_list_that_goes_on_where_a_page_ended(scene: Scene) -> None:
    with world(scene) as w:
        lived(w)
        whole = scene.ok("outages", "--json").json
        going_on, *past = whole["items"]
        assert all(set(one) == set(OUTAGE.split()) for one in whole["items"])
        assert (going_on["seq"], going_on["until"], going_on["cause"]) == (None, None, "boot")
        assert [one["cause"] for one in past] == ["clock_step", "suspend", "stopped"]
        slept = past[1]
        assert (slept["missed"], slept["caught_up"], slept["since"]) == (5, 1, "2026-11-26T09:31:00Z")
        assert {one["task_name"]: one["reasons"] for one in slept["tasks"]} == {
            "backup": {"missed_skip": 3},
            "report": {"coalesced": 2},
        }
        assert slept["unknown"] == [{"source": "ci.done", "last_key": "build-17", "last_at": "2026-11-26T08:30:00Z"}]
        assert past[0]["unknown"] == []
        assert whole["next"] is None
        first = scene.ok("outages", "-n", "1", "--json").json
        rest = scene.ok("outages", "-n", "5", "--json", "--cursor", first["next"]).json
        assert first["items"][1:] + rest["items"] == past
        since = scene.ok("outages", "--json", "--since", "2026-11-28T00:00:00Z").json["items"]
        assert [one["cause"] for one in since] == ["boot", "clock_step", "suspend"]


def test_without_a_store_or_without_outages_there_are_none(scene: Scene) -> None:
    assert scene.ok("outages", "--json").json == {"items": [], "next": None}
    scene.add("hello")
    assert scene.ok("outages").out == "none is on record\n"
    refused = scene.call("outages", "--cursor", "x", "--json")
    assert refused.code == 2
