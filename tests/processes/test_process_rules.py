"""Rules of a command through whole processes: further arguments, silence, what is left running (F8 to F10, G2)."""

import os
import signal
from pathlib import Path

from process_scene import Place, alive, wait_for

SAY = 'printf "%s\\n" "$#" "$@" "in:$DULY_INPUT" >> "$HOME/witness"'


def shown(place: Place, word: str) -> str:
    return place.duly("show", word).stdout


def is_keeper(place: Place, comm: Path) -> bool:
    """Whether this process is a keeper of an attempt in this place."""
    try:
        held = [str(one.readlink()) for one in (comm.parent / "fd").iterdir()]
        return comm.read_text() == "duly-keeper\n" and any(link.startswith(str(place.home)) for link in held)
    except OSError:
        return False


def test_what_a_run_is_further_told_is_on_record_and_reaches_the_next_attempt(place: Place) -> None:
    place.duly("add", "a", "--when", "manual", "--on-interrupt", "retry", "--shell", f"{SAY}; test -e go || sleep 600")
    place.duly("run", "a", "--input", "numbers", "--", "two words", "--json", "ü", "")
    said = "4\ntwo words\n--json\nü\n\nin:numbers\n"
    first = place.serve("--slots", "1")
    wait_for(lambda: place.witness.exists() and place.witness.read_text() == said)
    [run] = place.json("runs")["items"]
    assert (run["args"], run["input"]) == (["two words", "--json", "ü", ""], "numbers")
    assert "'two words' --json 'ü' ''" in shown(place, run["id"])
    (place.home / "go").touch()
    [keeper] = [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/comm") if is_keeper(place, stat)]
    first.kill()
    first.wait()
    os.kill(keeper, signal.SIGKILL)  # so that nothing is left to adopt: its nursery ends the work
    place.serve()
    assert place.ended()["outcome"] == "succeeded"
    assert place.witness.read_text() == 2 * said


def test_the_same_key_with_other_arguments_is_refused_and_with_the_same_ones_answers_with_the_first(
    place: Place,
) -> None:
    place.duly("add", "a", "--when", "manual", "--", "echo")
    first = place.duly("run", "a", "--key", "k", "--", "one").stdout.split()[0]
    assert place.duly("run", "a", "--key", "k", "--", "one").stdout.split()[0] == first
    other = place.duly("run", "a", "--key", "k", "--", "two", check=False)
    assert (other.returncode, "other arguments" in other.stderr) == (3, True)


def test_a_silent_command_is_stopped_by_its_idle_timeout_and_says_so(place: Place) -> None:
    place.duly("add", "quiet", "--when", "manual", "--idle-timeout", "1s", "--shell", "echo hello; sleep 600")
    place.serve()
    done = place.duly("run", "quiet", "--wait", check=False)
    assert done.returncode == 1
    [run] = place.json("runs")["items"]
    assert (run["outcome"], run["reason"]) == ("timed_out", "idle")
    assert "silent for longer than its idle timeout" in shown(place, run["id"])


def test_what_a_command_leaves_running_is_told_with_what_became_of_it(place: Place) -> None:
    line = "sleep 600 & echo $! > $HOME/{name}"
    place.duly("add", "ends", "--when", "manual", "--shell", line.format(name="ends"))
    place.duly("add", "stays", "--when", "manual", "--leftovers", "leave", "--shell", line.format(name="stays"))
    server = place.serve()
    for name in ("ends", "stays"):
        place.duly("run", name, "--wait")
    ended, stays = (int(Path(place.home / name).read_text()) for name in ("ends", "stays"))
    assert (alive(ended), alive(stays)) == (False, True)
    runs = {run["task_name"]: run["id"] for run in place.json("runs")["items"]}
    assert f"ended after its end: sleep ({ended})" in " ".join(shown(place, runs["ends"]).split())
    assert f"left running sleep ({stays})" in " ".join(shown(place, runs["stays"]).split())
    server.terminate()
    assert server.wait(30) == 0
    assert alive(stays), "it outlives who served it"
    assert place.duly("verify").stdout.strip().endswith("hold on this store")


def test_what_a_task_calls_a_success_is_asked_by_whoever_settles_it(place: Place) -> None:
    rule = ("--success-when", "exit=0,7", "--success-when", "matches=^ok: [0-9]+$", "--success-when", "file=out.md")
    line = (
        'echo $$ >> pids; while ! test -e go; do sleep 0.02; done; echo ok: 12; test -e out.md; echo x > "$1"; exit 7'
    )
    place.duly("add", "a", "--when", "manual", *rule, "--shell", line)
    assert "success_when exit=0,7 'matches=^ok: [0-9]+$' file=out.md" in " ".join(shown(place, "a").split())
    place.duly("run", "a", "--", "other.md")
    place.duly("run", "a", "--queue", "--", "out.md")
    first = place.serve()
    wait_for((place.home / "pids").exists)
    first.kill()
    first.wait()
    (place.home / "go").touch()
    wait_for((place.home / "other.md").exists)
    place.serve()
    wait_for(lambda: [one["state"] for one in place.json("runs")["items"]] == ["ended", "ended"])
    second, run = place.json("runs")["items"]
    assert (run["outcome"], run["reason"], run["exit_code"]) == ("failed", "success_rule", 7)
    assert run["error"] == "there is no file out.md"
    assert "there is no file out.md" in shown(place, run["id"])
    assert (second["outcome"], second["reason"], second["exit_code"], second["error"]) == ("succeeded", None, 7, None)
    assert place.duly("verify").returncode == 0
