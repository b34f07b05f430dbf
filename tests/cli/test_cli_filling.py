"""`backfill` as people and scripts use it."""

import pytest
from cli_scene import Scene
from deciding_scene import eight

from duly.core.spans import write_instant

FIELDS = "task task_name count first last until ahead ran not_started overlap dry_run runs"


def span(first: int, last: int) -> tuple[str, ...]:
    """From eight o'clock so many days ago to eight o'clock so many days ago."""
    return ("--from", write_instant(eight(first)), "--to", write_instant(eight(last)))


@pytest.fixture
def daily(scene: Scene) -> Scene:
    scene.add("report", "--zone", "UTC", when="daily 08:00")
    return scene


def test_a_dry_run_says_what_would_be_opened_and_the_backfill_opens_just_that(daily: Scene) -> None:
    told = daily.ok("backfill", "report", *span(5, 2), "--dry-run", "--json").json
    assert set(told) == set(FIELDS.split())
    assert (told["count"], told["first"], told["last"]) == (4, write_instant(eight(5)), write_instant(eight(2)))
    assert (told["dry_run"], told["runs"], told["ran"], told["overlap"]) == (True, [], 0, "queue")
    assert daily.ok("runs", "--json").json["items"] == []
    done = daily.ok("backfill", "report", *span(5, 2), "--json").json
    assert (done["count"], len(done["runs"]), done["dry_run"]) == (4, 4, False)
    runs = daily.ok("runs", "--json").json["items"]
    assert [run["id"] for run in reversed(runs)] == done["runs"]
    assert [run["due_at"] for run in reversed(runs)] == [write_instant(eight(days)) for days in (5, 4, 3, 2)]
    assert {(run["opened_by"], run["state"]) for run in runs} == {("backfill", "waiting")}
    again = daily.ok("backfill", "report", *span(6, 2), "--json").json
    assert (again["count"], again["ran"]) == (1, 4)


def test_a_person_is_told_how_many_from_when_to_when_and_that_nobody_serves(daily: Scene) -> None:
    dry = daily.ok("backfill", "report", *span(5, 2), "--dry-run")
    assert dry.out.startswith(f"would open 4 runs of report, from {eight(5):%a %Y-%m-%d} 08:00:00 +00:00 to ")
    assert "nobody serves" not in dry.err
    done = daily.ok("backfill", "report", *span(5, 2))
    assert done.out.startswith("opened 4 runs of report, from ")
    assert "nobody serves" in done.err
    assert daily.ok("backfill", "report", *span(5, 2)).out == (
        "nothing to fill: every occurrence of report there has a run\n"
    )
    more = daily.ok("backfill", "report", *span(6, 2)).out.splitlines()
    assert more[1:] == ["4 occurrences there have a run already"]
    daily.monkeypatch.setenv("COLUMNS", "80")
    assert all(len(line) <= 80 for line in daily.ok("backfill", "report", *span(9, 2)).out.splitlines())


def test_what_lies_ahead_is_left_to_the_schedule_and_said_so(daily: Scene) -> None:
    (item,) = daily.ok("next", "report", "-n", "1", "--json").json["items"]
    done = daily.call("backfill", "report", "--from", "2d", "--to", item["due_at"], "--dry-run")
    assert done.code == 0
    assert "is the schedule's own" in done.err
    assert daily.ok("backfill", "report", "--from", "2d", "--to", item["due_at"], "--json").json["ahead"] == 1


BAD = {
    "no span": (("backfill", "report"), 2, "duly: --from is missing"),
    "no end": (("backfill", "report", "--from", "7d"), 2, "duly: --to is missing"),
    "backwards": (("backfill", "report", "--from", "1d", "--to", "7d"), 2, "duly: --to: "),
    "ahead": (("backfill", "report", "--from", "+1d", "--to", "+7d"), 2, "duly: --from: it lies ahead"),
    "no instant": (("backfill", "report", "--from", "monday", "--to", "now"), 2, "duly: --from: `monday` is not"),
    "overlap": (
        ("backfill", "report", "--from", "7d", "--to", "now", "--overlap", "kill_running"),
        2,
        "duly: --overlap",
    ),
    "too many": (("backfill", "busy", "--from", "10d", "--to", "now"), 2, "duly: --to: 1"),
    "far too many": (("backfill", "busy", "--from", "100d", "--to", "now"), 2, "duly: --to: the span has 14"),
    "by hand only": (("backfill", "hand", "--from", "7d", "--to", "now"), 2, "duly: hand has no times of its own"),
    "unknown": (("backfill", "nobody", "--from", "7d", "--to", "now"), 4, 'duly: there is no task "nobody"'),
    "removed": (("backfill", "GONE", "--from", "7d", "--to", "now"), 4, "duly: the task gone was removed"),
    "paused": (("backfill", "held", "--from", "7d", "--to", "now"), 3, "duly: held is paused since"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_filled_is_refused_with_its_figures_and_nothing_is_opened(daily: Scene, name: str) -> None:
    daily.add("busy", when="* * * * *")
    daily.add("hand", when="manual")
    daily.add("held")
    daily.ok("pause", "held")
    gone = daily.add("gone")["id"]
    daily.ok("remove", "gone", "--yes")
    args, code, first = BAD[name]
    before = daily.dump()
    called = daily.call(*(gone if arg == "GONE" else arg for arg in args))
    assert (called.code, called.first[: len(first)]) == (code, first), called
    assert daily.dump() == before
