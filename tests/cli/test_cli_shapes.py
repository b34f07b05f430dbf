from datetime import UTC, datetime, timedelta

from cli_scene import Scene, ended

from duly.core.rule_fields import RULES

# As the contract lists them.
TASK = """id project name description labels enabled done broken paused triggers zone action rules source version
created_at created_by updated_at next_due_at next_start_at last_run counts"""
RUN = """id task task_name project occurrence due_at opened_at opened_by opened_by_whom state outcome reason attempt
fence seat holder host definition_version input retry_of waiting_for not_before started_at stopping_since ended_at
late_by_s exit_code signal error session usage question log_bytes log_cut attempts notices"""
LAST_RUN = "id due_at started_at ended_at outcome reason error session"
COUNTS = "runs failures_in_a_row open_missed"
SOURCE = "kind set key path line"
PAUSE = "scope since until note by"
ATTEMPT = "attempt fence holder started_at ended_at outcome reason"
ENTRY = "seq at task occurrence run attempt kind reason holder by count until_at details"
PREVIEW = "due_at start_at local zone offset note words"
STATUS = """store holders_alive tasks runs open_missed open_questions failing budgets next_due_at version"""
MISSED = """id task occurrence due_at until_at count reason noticed_at holder state decided_by decided_at note run"""
HOLDER = (
    """id host pid started_at last_beat_at state slots passive running labels version zone_data claims claims_lost"""
)


def fields(listed: str) -> set[str]:
    return set(listed.split())


def test_a_task_has_every_field_of_the_contract(scene: Scene) -> None:
    added = scene.add("hello", "--label", "team=a", "--max-age", "12h", "--env", "K=V")
    scene.ok("pause", "hello", "--note", "why")
    ended(scene, added["id"])
    for task in (added, scene.ok("list", "--json").json["items"][0], scene.ok("show", "hello", "--json").json):
        assert fields(TASK) <= set(task)
        assert fields(COUNTS) <= set(task["counts"])
        assert fields(SOURCE) == set(task["source"])
        assert {field.name for field in RULES} == set(task["rules"])
    shown = scene.ok("show", "hello", "--json").json
    assert fields(LAST_RUN) <= set(shown["last_run"])
    assert shown["last_run"]["outcome"] == "failed"
    assert fields(PAUSE) == set(shown["paused"][0])
    assert shown["rules"] | {"max_age": "12h", "timeout": "1d", "grace": None} == shown["rules"]
    assert shown["own_rules"] == ["max_age"]
    assert shown["labels"] == {"team": "a"}
    assert shown["source"]["kind"] == "cli"
    assert shown["triggers"] == [{"kind": "daily", "times": ["09:00"]}]
    assert shown["zone"] == "Europe/Berlin"
    assert shown["action"] == {"kind": "command", "argv": ["true"], "cwd": shown["action"]["cwd"], "env": {"K": "V"}}
    assert shown["action"]["cwd"].startswith("/")


def test_a_run_has_every_field_of_the_contract(scene: Scene) -> None:
    task = scene.add("hello")["id"]
    waiting = scene.ok("run", "hello", "--json").json
    assert fields(RUN) <= set(waiting)
    assert (waiting["state"], waiting["opened_by"], waiting["task_name"]) == ("waiting", "manual", "hello")
    assert fields("what key since until") == set(waiting["waiting_for"])
    assert waiting["waiting_for"]["what"] == "slot"
    run = scene.ok("show", ended(scene, task), "--json").json
    assert fields(RUN) <= set(run)
    assert run["late_by_s"] == 2.0
    assert fields("tokens_in tokens_out cost_usd") == set(run["usage"])
    assert [fields(ATTEMPT) == set(one) for one in run["attempts"]] == [True, True]
    assert [(one["fence"], one["outcome"], one["reason"]) for one in run["attempts"]] == [
        (6, "abandoned", "holder_died"),
        (7, "failed", "exit_status"),
    ]


def test_a_ledger_entry_has_every_field_of_the_contract(scene: Scene) -> None:
    scene.add("hello")
    entries = scene.ok("ledger", "--json").json["items"]
    assert [fields(ENTRY) == set(entry) for entry in entries] == [True]
    assert entries[0]["kind"] == "defined"


def test_a_preview_item_has_every_field_of_the_contract(scene: Scene) -> None:
    found = scene.ok("preview", "daily 09:00", "--json").json
    assert fields("items next words canonical") <= set(found)
    assert fields(PREVIEW) == set(found["items"][0])
    scene.add("hello")
    assert fields(PREVIEW) <= set(scene.ok("next", "--json").json["items"][0])


def test_status_has_every_field_of_the_contract(scene: Scene) -> None:
    empty = scene.ok("status", "--json").json
    scene.add("hello")
    found = scene.ok("status", "--json").json
    for one in (empty, found):
        assert fields(STATUS) <= set(one)
        assert fields("total enabled paused broken") == set(one["tasks"])
        assert fields("waiting running parked") == set(one["runs"])
    assert (empty["tasks"]["total"], found["tasks"]["total"]) == (0, 1)
    assert found["holders_alive"] == 0


def test_what_a_holder_and_a_missed_occurrence_show_is_in_the_contract() -> None:
    from duly.core.run import Missed
    from duly.operations import shapes
    from duly.store.rows import HolderRow

    at = datetime(2026, 11, 1, tzinfo=UTC)
    missed = Missed(
        id="mis_1",
        task="t",
        occurrence="at:x",
        due_at=at,
        until_at=at,
        count=1,
        reason="stale",
        noticed_at=at,
        holder=None,
    )
    assert set(shapes.missed(missed)) >= fields(MISSED)
    row = HolderRow(
        id="hld_1",
        place="p",
        boot="b",
        host="h",
        pid=1,
        ticks=1,
        started_at=at,
        last_beat_at=at,
        beat_lease_us=0,
        lease_for=timedelta(seconds=100),
        state="alive",
        slots=4,
        labels=[],
        version="0",
        zone_data="2026a",
        claims=0,
        claims_lost=0,
    )
    assert set(shapes.holder(row, state="alive", running=0)) == fields(HOLDER)


def test_lists_go_on_where_their_cursor_ended(scene: Scene) -> None:
    for number in range(5):
        scene.add(f"task-{number}")
        scene.ok("run", f"task-{number}")
    for ask, key in ((("list", "-n", "2"), "name"), (("runs", "-n", "2"), "id")):
        seen: list[str] = []
        cursor: tuple[str, ...] = ()
        while True:
            page = scene.ok(*ask, *cursor, "--json").json
            seen += [item[key] for item in page["items"]]
            if page["next"] is None:
                break
            cursor = ("--cursor", page["next"])
        assert len(seen) == len(set(seen)) == 5
    first = scene.ok("ledger", "--cursor", "0", "-n", "3", "--json").json
    rest = scene.ok("ledger", "--cursor", first["next"], "--json").json
    assert [item["seq"] for item in first["items"] + rest["items"]] == list(range(1, 11))


def test_instants_are_told_in_utc_with_z(scene: Scene) -> None:
    task = scene.add("hello", "--zone", "America/New_York")
    assert task["next_due_at"].endswith("Z")
    assert task["upcoming"][0]["due_at"] == task["next_due_at"]
    assert task["upcoming"][0]["local"].endswith("T09:00:00")
    assert len(task["upcoming"]) == 3
