"""Sessions and goals in definitions: read exactly, and refused by their own field."""

from datetime import UTC, datetime
from typing import Any

import pytest

from duly import zones
from duly.core.contradictions import refuse_contradictions
from duly.core.definition_json import action_from_json, action_to_json, definition_from_json
from duly.errors import Invalid

ASKS: dict[str, Any] = {"kind": "agent", "agent": "opencode", "prompt": "Do it."}


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"session": "ses_1"}, {"session": {"use": "ses_1", "busy": "skip"}}),
        ({"session": {"use": "ses_1", "busy": "wait"}}, {"session": {"use": "ses_1", "busy": "wait"}}),
        ({"session": {"use": "new"}}, {"session": {"use": "new"}}),
        ({"session": {"use": "new", "busy": None}}, {"session": {"use": "new"}}),
        ({"session": None, "goal": None}, {}),
        ({"goal": {"tokens": 200_000}}, {"goal": {"tokens": 200_000}}),
    ],
)
def test_a_session_and_a_goal_are_read_exactly_and_read_the_same_when_written_back(
    written: dict[str, Any], kept: dict[str, Any]
) -> None:
    read = action_from_json({**ASKS, **written})
    assert read == {**ASKS, **kept}
    assert action_from_json(action_to_json(read)) == read


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ({"session": 7}, "action.session"),
        ({"session": {"use": ""}}, "action.session.use"),
        ({"session": {"use": " ses_1"}}, "action.session.use"),
        ({"session": {"use": "x" * 201}}, "action.session.use"),
        ({"session": {"use": "ses_1", "busy": "queue"}}, "action.session.busy"),
        ({"session": {"use": "new", "busy": "wait"}}, "action.session.busy"),
        ({"session": {"used": "ses_1"}}, "action.session.used"),
        ({"session": "ses_1", "worktree": True}, "action.worktree"),
        ({"session": "ses_1", "archive": "on_success"}, "action.archive"),
        ({"session": "ses_1", "goal": {"tokens": 5_000}}, "action.goal"),
        ({"goal": 200_000}, "action.goal"),
        ({"goal": {}}, "action.goal.tokens"),
        ({"goal": {"tokens": 10}}, "action.goal.tokens"),
        ({"goal": {"tokens": True}}, "action.goal.tokens"),
        ({"goal": {"tokens": 5_000, "turns": 2}}, "action.goal.turns"),
    ],
)
def test_what_is_no_session_or_no_goal_is_refused_by_its_own_field(written: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as bad:
        action_from_json({**ASKS, **written})
    assert bad.value.field == field


def test_a_bound_session_is_not_prompted_anew_after_an_interruption() -> None:
    given = {"name": "ask", "action": {**ASKS, "session": "ses_1"}, "rules": {"on_interrupt": "retry"}}
    with pytest.raises(Invalid, match="the same prompt into the session ses_1 once more"):
        refuse_contradictions(definition_from_json(given), zones.zone("UTC"), datetime(2026, 12, 1, tzinfo=UTC))
