"""Events with real processes: what was acknowledged is kept, and starts its tasks once, whoever is killed when."""

import json
import signal
import subprocess
import sys

from process_scene import Place, wait_for

KILLED_BEFORE_IT_ANSWERS = """
import os, signal
from duly.cli import out
from duly.cli.frame import run

def die(*_given):
    os.kill(os.getpid(), signal.SIGKILL)

out.line = out.document = die
run({words!r})
"""


def emit(place: Place, *words: str) -> dict[str, object]:
    found: dict[str, object] = place.json("emit", *words)
    return found


def test_an_emitter_killed_after_its_commit_and_before_its_answer_has_emitted_once(place: Place) -> None:
    place.duly("add", "a", "--when", "on deploy", "--", "sh", "-c", f"echo $DULY_OCCURRENCE >> {place.witness}")
    words = ["emit", "deploy", "--key", "k1", "--data", '{"a": 1}', "--store", str(place.store)]
    script = KILLED_BEFORE_IT_ANSWERS.format(words=words)
    killed = subprocess.run([sys.executable, "-c", script], env=place.env, check=False, timeout=60, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert place.rows("SELECT count(*) FROM runs") == [(1,)]
    again = emit(place, "deploy", "--key", "k1", "--data", '{"a": 1}')
    assert again["again"] is True
    place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE outcome = 'succeeded'"))
    assert place.seen() == [["event:deploy:k1"]]
    assert place.duly("verify").returncode == 0


def test_emitting_processes_with_one_key_at_once_all_succeed_and_open_one_run(place: Place) -> None:
    place.duly("add", "a", "--when", "on deploy", "--", "true")
    words = [sys.executable, "-m", "duly", "--store", str(place.store), "emit", "deploy", "--key", "k", "--json"]
    started = [
        subprocess.Popen(words, env=place.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(6)
    ]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in started]
    assert [process.returncode for process in started] == [0] * 6
    assert sorted(answer["again"] for answer in answers) == [False, *[True] * 5]
    assert len({answer["runs"][0]["id"] for answer in answers}) == 1
    assert place.rows("SELECT count(*) FROM runs") == [(1,)]


def test_an_event_waits_for_somebody_to_serve_and_its_data_arrive_byte_for_byte(place: Place) -> None:
    place.duly("add", "a", "--when", "on deploy", "--", "sh", "-c", f"cat $DULY_EVENT_FILE > {place.witness}")
    data = json.dumps({"text": "ü\n" * 200_000, "n": 1.50}, ensure_ascii=False)
    (place.home / "data.json").write_text(data)
    emit(place, "deploy", "--data", f"@{place.home}/data.json")
    first = place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE outcome = 'succeeded'"))
    assert place.witness.read_text() == data
    run = place.ended()
    assert run["event"]["source"] == "deploy"
    wait_for(lambda: not list((place.run_folder / "attempts").glob("*")))
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == 0


def test_work_that_outlives_its_holder_still_finds_its_event_where_it_was(place: Place) -> None:
    script = (
        f'echo began >> {place.witness}; while [ ! -e {place.home}/go ]; do sleep 0.05; done; cat "$DULY_EVENT_FILE"'
    )
    place.duly("add", "a", "--when", "on deploy", "--shell", script)
    first = place.serve()
    emit(place, "deploy", "--data", '{"branch": "main"}')
    wait_for(place.seen)
    first.kill()
    first.wait()
    place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'adopted'"))
    (place.home / "go").touch()
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE outcome = 'succeeded'"))
    assert '{"branch": "main"}' in place.duly("log", "a").stdout
    assert place.seen() == [["began"]]
    assert place.duly("verify").returncode == 0


def test_a_failure_starts_an_alert_that_reads_what_failed_and_its_own_failure_starts_nothing(place: Place) -> None:
    place.duly("add", "bad", "--when", "on go", "--", "sh", "-c", "exit 7")
    alert = f'cat "$DULY_EVENT_FILE" >> {place.witness}; echo >> {place.witness}; exit 1'
    place.duly("add", "alert", "--when", "on duly.run.ended where outcome=failed", "--shell", alert)
    place.serve()
    emit(place, "go")
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE reason = 'suppressed'"))
    (line,) = place.witness.read_text().splitlines()
    told = json.loads(line)
    assert (told["task"], told["outcome"], told["exit_code"]) == ("bad", "failed", 7)
    assert place.rows("SELECT count(*) FROM runs") == [(2,)]
    assert place.duly("verify").returncode == 0


def test_a_holder_killed_in_the_middle_of_a_burst_loses_no_event(place: Place) -> None:
    place.duly(
        "add", "a", "--when", "on burst", "--overlap", "queue", "--queue", "100", "--seats", "4",
        "--shell", f"echo $DULY_EVENT_KEY >> {place.witness}",
    )  # fmt: skip
    first = place.serve()
    from duly.operations import events
    from duly.store import Store

    store = Store.open(place.address, place.env)
    try:
        for number in range(60):
            events.emit(store, "burst", by="eve", key=f"k{number}")
            if number == 30:
                wait_for(lambda: len(place.seen()) > 5)
                first.kill()
                first.wait()
                place.serve()
    finally:
        store.close()
    wait_for(lambda: place.rows("SELECT count(*) FROM runs WHERE state = 'ended'") == [(60,)])
    done = {key for (key,) in place.rows("SELECT occurrence FROM runs WHERE outcome = 'succeeded'")}
    ran = {f"event:burst:{line[0]}" for line in place.seen()}
    assert done <= ran
    others = place.rows("SELECT outcome FROM runs WHERE outcome != 'succeeded'")
    assert len(done) + len(others) == 60
    assert {outcome for (outcome,) in others} <= {"abandoned"}, "what the kill caught in the act"
    assert place.duly("verify").returncode == 0
