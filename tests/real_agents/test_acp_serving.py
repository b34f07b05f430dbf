"""`opencode acp` behind `duly serve`: a real agent over the protocol whose holder is killed in its turn."""

from pathlib import Path

from fake_model import HOLD, FakeModel, say, shell
from served_scene import Served, wait_for


def test_a_real_agent_over_acp_goes_on_in_its_session_after_its_holder_was_killed(
    model: FakeModel, tmp_path: Path
) -> None:
    served = Served(tmp_path, model, kind="acp", word="acp")
    place = served.place
    try:
        first = place.serve()
        steps = (shell("echo once >> effects"), HOLD, say("I went on."))
        run = served.begins("--unattended", "allow", steps=steps)
        wait_for(lambda: served.calls == 2)
        first.kill()
        first.wait()
        place.serve()
        ended = place.ended()
        log = place.duly("log", run).stdout
        assert (ended["outcome"], ended["attempt"], ended["error"]) == ("succeeded", 2, None), log
        assert (place.home / "effects").read_text() == "once\n"
        history = model.calls(served.name)[-1].history
        assert history.count(f"[[{served.name}]]") == 1
        assert "You were interrupted" in history
    finally:
        place.close()
