"""Who has asked what in a session of an OpenCode server: the run that goes on there, others, the server itself."""

import pytest

from duly.runners.opencode import closing, messages

OURS, OTHERS = "run_01mine", "run_01other"


def asked(id_: str, *parts: dict[str, object]) -> messages.Message:
    return {"info": {"id": id_, "role": "user"}, "parts": list(parts) or [{"type": "text", "text": "Do it."}]}


def answered(id_: str) -> messages.Message:
    said = {"type": "text", "text": "Done."}
    return {"info": {"id": id_, "role": "assistant", "finish": "stop", "time": {"completed": 1}}, "parts": [said]}


def test_the_last_message_of_a_run_is_known_among_those_of_others() -> None:
    mine, again, other = (closing.message_id(run) for run in (OURS, OURS, OTHERS))
    assert len({len(mine), len("msg_") + 26}) == 1, "in the form of the server's own"
    there = [asked("msg_b5aperson"), answered("msg_1"), asked(mine), answered("msg_2"), asked(again), asked(other)]
    assert messages.last_asked(there, OURS) == again
    assert messages.last_asked(there[:2], OURS) is None, "its prompt never arrived"
    assert messages.last_asked(there) == other


@pytest.mark.parametrize(
    ("later", "found"),
    [
        ((), False),
        (({"type": "text", "text": "And now?"},), True),
        (({"type": "compaction", "auto": True},), False),
        (({"type": "text", "synthetic": True, "text": "Continue."},), False),
        (({"type": "text", "synthetic": True, "text": "Known."}, {"type": "text", "text": "And now?"}), True),
    ],
    ids=["nothing", "a person", "a summary", "the server", "a person with knowledge"],
)
def test_whether_somebody_else_has_asked_since_is_told_from_what_the_server_tells_itself(
    later: tuple[dict[str, object], ...], found: bool
) -> None:
    mine = closing.message_id(OURS)
    there = [asked("msg_0before"), answered("msg_1"), asked(mine), answered("msg_2")]
    assert messages.was_asked_since([*there, *([asked("msg_3", *later)] if later else [])], mine) is found
