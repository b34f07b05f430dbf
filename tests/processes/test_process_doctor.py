"""`doctor` looks at real processes: stopped ones, killed ones, and the PATH they were given."""

import json
import signal
from typing import Any

from process_scene import Place, wait_for


def found(place: Place) -> dict[str, Any]:
    done = place.duly("doctor", "--json", check=False)
    assert done.returncode in {0, 1}, done.stderr
    # The tests' server keeps nothing over a power cut, which is told of it and is not what these tests are about.
    items = [item for item in json.loads(done.stdout)["items"] if "fsync" not in item["message"]]
    return {item["check"]: item for item in items}


def test_doctor_tells_a_living_holder_from_a_stopped_one_and_from_one_that_was_killed(place: Place) -> None:
    process = place.serve(lease="5s")
    place.duly("add", "x", "--when", "manual", "--", "sleep", "60")
    assert found(place) == {}
    process.send_signal(signal.SIGSTOP)
    item = wait_for(lambda: found(place).get("holder_silent"))
    assert item["details"]["pid"] == process.pid
    process.send_signal(signal.SIGCONT)
    wait_for(lambda: found(place) == {})
    place.duly("run", "x")
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'held'"))
    process.kill()
    process.wait()
    items = found(place)
    assert set(items) == {"stale_locks", "held_by_nobody"}
    assert items["stale_locks"]["details"]["holders"] == [place.id_of(process)]
    place.serve()
    wait_for(lambda: found(place) == {})
    assert [one["state"] for one in place.json("holders")["items"]] == ["alive", "gone"]


def test_doctor_looks_for_programs_by_the_path_that_the_server_was_given(place: Place) -> None:
    tool = place.home / "tools" / "my-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    place.duly("add", "x", "--when", "manual", "--", "my-tool")
    here = place.env["PATH"]
    place.env["PATH"] = f"{tool.parent}:{here}"
    first = place.serve()
    place.env["PATH"] = here
    assert found(place) == {}, "it is not in this PATH, and need not be"
    first.terminate()
    first.wait(30)
    place.serve()
    place.env["PATH"] = f"{tool.parent}:{here}"
    assert "the PATH of who serves" in found(place)["program_missing"]["message"]
