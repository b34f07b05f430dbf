"""Instants to come are told by the task's own rules, with its share of the spread, as many as there will be."""

from datetime import datetime, timedelta

from cli_scene import Scene

from duly.core.spreading import share_of

DAY = timedelta(days=1)
AUTUMN = "2026-10-24T00:00:00Z"


def test_the_spread_is_told_where_instants_to_come_are_told_and_is_the_same_everywhere(scene: Scene) -> None:
    made = scene.add("report", "--spread", "2h", when="daily 09:00")
    due = datetime.fromisoformat(made["next_due_at"])
    share = share_of(made["id"], due, spread=timedelta(hours=2), following=due + DAY)
    start = (due + share).isoformat().replace("+00:00", "Z")
    first = made["upcoming"][0]
    assert datetime.fromisoformat(first["start_at"]) == datetime.fromisoformat(start)
    assert (first["due_at"], made["next_start_at"]) == (made["next_due_at"], first["start_at"])
    (item,) = scene.ok("next", "report", "-n", "1", "--json").json["items"]
    assert (item["due_at"], item["start_at"]) == (first["due_at"], first["start_at"])
    shown = scene.ok("show", "report", "--json").json
    assert shown["upcoming"][0]["start_at"] == first["start_at"]
    for words in (["next", "report"], ["show", "report"]):
        assert "(spread)" in scene.ok(*words).out


def test_a_dry_run_tells_no_start_that_would_not_be_so(scene: Scene) -> None:
    told = scene.ok(
        "add", "report", "--when", "daily 09:00", "--spread", "2h", "--dry-run", "--json", "--", "true"
    ).json
    assert [one["start_at"] for one in told["upcoming"]] == [None, None, None]
    assert told["next_start_at"] is None
    plain = scene.ok("add", "report", "--when", "daily 09:00", "--dry-run", "--json", "--", "true").json
    assert [one["start_at"] for one in plain["upcoming"]] == [one["due_at"] for one in plain["upcoming"]]


def test_a_task_with_a_number_of_times_has_no_more_instants_to_come_than_that(scene: Scene) -> None:
    made = scene.add("three", "--times", "2", when="every 1h")
    assert len(made["upcoming"]) == 2
    assert len(scene.ok("next", "three", "-n", "9", "--json").json["items"]) == 2


def test_a_task_that_starts_and_ends_has_its_instants_between_both_included(scene: Scene) -> None:
    made = scene.add(
        "short", "--start", "2030-01-01T00:00:00Z", "--until", "2030-01-01T02:00:00Z", when="cron 0 * * * *"
    )
    assert [one["due_at"][11:16] for one in made["upcoming"]] == ["00:00", "01:00", "02:00"]
    assert len(scene.ok("next", "short", "-n", "9", "--json").json["items"]) == 3


def test_preview_shows_what_the_rules_for_gaps_and_folds_make_of_it(scene: Scene) -> None:
    def due(*rules: str, when: str = "daily 02:30", after: str = AUTUMN) -> list[str]:
        words = ["preview", when, "--zone", "Europe/Berlin", "--after", after, "-n", "3", *rules, "--json"]
        return [f"{one['due_at']} {one['note']}" for one in scene.ok(*words).json["items"]]

    assert due()[1] == "2026-10-25T00:30:00Z fold"
    assert due("--fold", "second")[1] == "2026-10-25T01:30:00Z fold"
    assert due("--fold", "both")[1:] == ["2026-10-25T00:30:00Z fold", "2026-10-25T01:30:00Z fold"]
    spring = "2027-03-27T12:00:00Z"
    assert due(after=spring)[0] == "2027-03-28T01:00:00Z gap"
    assert due("--gap", "skip", after=spring)[0] == "2027-03-29T00:30:00Z None"


def test_rules_for_gaps_and_folds_are_refused_where_no_trigger_means_a_local_time(scene: Scene) -> None:
    for when in ("*/15 * * * *", "every 1h", "manual"):
        for rule in (["--gap", "skip"], ["--fold", "both"]):
            called = scene.call("preview", when, *rule)
            assert called.code == 2
            assert called.first.startswith(f"duly: {rule[0]}: it says nothing here")
    assert scene.call("preview", "daily 02:30", "*/15 * * * *", "--fold", "both").code == 0
    assert scene.call("preview", "daily 02:30", "--fold", "third").code == 2
