"""What people decide, through real processes and by the work's own witness: answers, retries, skips, fills."""

import json
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

from process_scene import Place, wait_for

from duly.clock import now, to_us
from duly.core.spans import write_instant

WORK = 'echo "$DULY_OCCURRENCE $DULY_OPENED_BY $DULY_DUE_AT" >> "$HOME/witness"'


def started(place: Place, *words: str) -> subprocess.Popen[str]:
    """Start a command without waiting for its end."""
    command = [sys.executable, "-m", "duly", "--store", str(place.store), *words, "--json"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=place.env, cwd=place.home, stdout=pipe, stderr=pipe, text=True)


def offers(place: Place) -> list[dict[str, Any]]:
    return list(place.json("missed", "--open")["items"])


def passed(place: Place, count: int, **rules: str) -> None:
    """So many tasks whose only time passed while nobody served, and a process that serves now."""
    flags = [word for name, value in rules.items() for word in (f"--{name.replace('_', '-')}", value)]
    for number in range(count):
        words = ["add", f"t{number}", "--when", "once in 8s", "--on-missed", "offer", "--grace", "1s", *flags]
        place.duly(*words, "--shell", WORK)
    due = max(row[0] for row in place.rows("SELECT next_due_us FROM tasks"))
    wait_for(lambda: to_us(now()) > due + 1_500_000)
    place.serve()


def offered(place: Place, count: int) -> list[dict[str, Any]]:
    """So many tasks whose only time passed while nobody served, offered by a process that serves now."""
    passed(place, count)
    return wait_for(lambda: found if len(found := offers(place)) == count else None)  # type: ignore[no-any-return]


def test_of_two_processes_that_answer_one_offer_at_once_one_wins_and_its_run_happens_once(place: Place) -> None:
    found = offered(place, 4)
    for at, one in enumerate(found):
        verbs = ("accept", "accept") if at % 2 else ("accept", "decline")
        both = [started(place, verb, one["id"]) for verb in verbs]
        answers = [process.communicate(timeout=120) for process in both]
        codes = [process.returncode for process in both]
        assert sorted(codes) == [0, 3], answers
        no = json.loads(answers[codes.index(3)][1])
        assert no["reason"] == "already_answered"
        assert no["details"]["decided_by"]
    accepted = [one for one in place.json("missed")["items"] if one["state"] == "accepted"]
    wait_for(lambda: len(place.seen()) == len(accepted))
    assert sorted(line[0] for line in place.seen()) == sorted(one["occurrence"] for one in accepted)
    assert {line[1] for line in place.seen()} == {"offer"}
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE state != 'ended'"))
    assert place.duly("verify").returncode == 0


def test_accept_waits_for_the_end_of_its_run_and_tells_it_by_its_exit_code(place: Place) -> None:
    (one,) = offered(place, 1)
    done = place.json("accept", one["id"], "--wait")
    assert (done["outcome"], done["occurrence"], done["opened_by"]) == ("succeeded", one["occurrence"], "offer")
    assert [line[2] for line in place.seen()] == [one["due_at"]]


def test_an_offer_runs_out_by_itself_while_its_holder_has_nothing_else_to_do(place: Place) -> None:
    passed(place, 1, offer_for="5s")
    [(id_, expires_us)] = wait_for(lambda: place.rows("SELECT id, expires_us FROM missed"))
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'expired'"))
    [stands] = place.json("missed")["items"]
    assert (stands["id"], stands["state"], stands["decided_by"]) == (id_, "expired", None)
    assert to_us(datetime.fromisoformat(stands["decided_at"])) == expires_us
    assert place.duly("decline", id_, check=False).returncode == 3


def test_a_retry_does_what_the_run_did_with_its_input_and_its_due_instant(place: Place) -> None:
    line = 'echo "$DULY_OCCURRENCE $DULY_DUE_AT $DULY_INPUT" >> "$HOME/witness"; test -e "$HOME/there"'
    place.duly("add", "a", "--when", "manual", "--shell", line)
    place.serve()
    assert place.duly("run", "a", "--input", "words", "--wait", check=False).returncode == 1
    place.duly("edit", "a", "--shell", "false")
    [first] = place.json("runs")["items"]
    (place.home / "there").touch()
    again = place.json("retry", first["id"], "--wait")
    assert (again["outcome"], again["retry_of"], again["due_at"]) == ("succeeded", first["id"], first["due_at"])
    one, two = place.seen()
    assert one[1:] == two[1:] == [first["due_at"], "words"]
    assert one[0] != two[0]


def test_a_skipped_occurrence_does_not_run_and_the_next_one_does(place: Place) -> None:
    place.duly("add", "a", "--when", "*/5 * * * * *", "--shell", WORK)
    skipped = place.json("skip", "a", "--next")
    place.serve()
    wait_for(lambda: len(place.seen()) >= 2)
    assert f"at:{skipped['first']}" not in [line[0] for line in place.seen()]
    (fate,) = place.rows("SELECT occurrence, count FROM ledger WHERE reason = 'skipped_by_hand' AND kind = 'stretch'")
    assert fate == (f"at:{skipped['first']}", 1)
    assert place.duly("verify").returncode == 0


def test_a_backfill_beside_the_live_schedule_runs_each_once_and_takes_nothing_from_it(place: Place) -> None:
    since = write_instant(now() - timedelta(seconds=66))
    place.duly("add", "a", "--when", "*/3 * * * * *", "--shell", f"{WORK}; sleep 0.4")
    place.serve()
    place.serve()
    done = place.json("backfill", "a", "--from", since, "--to", "now")
    assert done["count"] >= 20
    assert place.json("backfill", "a", "--from", since, "--to", done["last"])["count"] == 0
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE opened_by = 'backfill' AND state != 'ended'"), 180)
    place.duly("pause", "a")
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE state != 'ended'"))
    starts = [line[0] for line in place.seen()]
    assert len(starts) == len(set(starts)), "each occurrence once"
    filled = {line[0] for line in place.seen() if line[1] == "backfill"}
    assert len(filled) == done["count"]
    lost = place.rows(
        "SELECT r.id FROM runs r JOIN ledger l ON l.run = r.id AND l.kind = 'skipped' "
        "JOIN runs other ON other.id = json_extract(l.details, '$.run') "
        "WHERE r.opened_by != 'backfill' AND r.reason = 'already_running' AND other.opened_by = 'backfill'"
    )
    assert lost == []
    assert place.rows("SELECT 1 FROM runs WHERE opened_by = 'schedule' AND outcome = 'succeeded'")
    assert place.duly("verify").returncode == 0
