"""What counts as seen of a turn that failed (G10): whatever shows work, and all that cannot be known."""

from typing import Any

import pytest

from duly.core.turns import Ours, Turn, is_unseen
from duly.runners.opencode.messages import Reading, read

ERROR = {"error": {"name": "APIError", "data": {"message": "529 overloaded"}}, "time": {"completed": 1}}


def reading(*parts: dict[str, Any], further: int = 0) -> Reading:
    """What the messages of a server say of a turn whose last step ended with its provider's error."""
    answer = {"info": {"id": "a", "role": "assistant", **ERROR}, "parts": list(parts)}
    asked = {"info": {"id": "u", "role": "user"}, "parts": [{"type": "text", "text": "Do it."}]}
    return read([asked, *[{"info": {"id": "b", "role": "assistant"}, "parts": []}] * further, answer], "u")


@pytest.mark.parametrize(
    ("found", "stirred"),
    [
        (reading(), False),
        (reading({"type": "step-start"}), False),
        (reading({"type": "text", "text": "I begin."}), True),
        (reading({"type": "reasoning", "text": "hm"}), True),
        (reading({"type": "tool", "state": {"status": "running"}}), True),
        (reading({"type": "subtask"}), True),
        (reading(further=1), True),
    ],
)
def test_messages_of_a_server_prove_whether_anything_was_done(found: Reading, stirred: bool) -> None:
    assert (found.end, found.stirred) == ("error", stirred)


@pytest.mark.parametrize(
    ("turn", "unseen"),
    [
        (Turn(end="error"), True),
        (Turn(end="gone"), True),
        (Turn(end="error", stirred=True), False),
        (Turn(end="gone", said_anything=True), False),
        (Turn(end="error", tools=1), False),
        (Turn(end="error", denied=("rm x",)), False),
        (Turn(end="ended"), False),
        (Turn(end="refused"), False),
        (Turn(end="cut_off"), False),
    ],
)
def test_only_an_error_or_a_death_before_anything_was_shown_is_unseen(turn: Turn, unseen: bool) -> None:
    assert is_unseen(turn) is unseen


@pytest.mark.parametrize("ours", ["cancel", "timeout", "idle", "question"])
def test_what_we_ended_ourselves_is_never_unseen(ours: Ours) -> None:
    assert not is_unseen(Turn(end="error", ours=ours))
