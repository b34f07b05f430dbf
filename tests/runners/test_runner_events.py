"""What a command that an event started sees of it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from runner_scene import assign, perform

from duly.core.events import Event
from duly.ports import Outcome
from duly.runners import folders, logs
from duly.runners.call import Call
from duly.runners.nurseries import Nursery

MODULE = """
from pathlib import Path
from duly.told import this_run

def told(path):
    event = this_run().event
    Path(path).write_text(repr(None if event is None else (event.source, event.key, event.data)))
"""
NOW = datetime(2026, 12, 1, 8, tzinfo=UTC)
TOLD = 'printf "%s|%s|%s" "${DULY_EVENT_FILE-none}" "${DULY_EVENT_SOURCE-none}" "${DULY_EVENT_KEY-none}"'


def event(body: str, key: str | None = "k 1") -> Event:
    return Event(id="evt_1", source="git.push", key=key, body=body, at=NOW, by="somebody")


def test_the_data_of_an_event_lie_whole_and_as_they_were_written_in_a_file_of_the_attempt(
    nursery: Nursery, tmp_path: Path
) -> None:
    body = json.dumps({"text": "ü" * 400_000, "n": 1.50}, ensure_ascii=False, indent=1)
    assignment = assign(tmp_path, 'cp "$DULY_EVENT_FILE" got; stat -c %a "$DULY_EVENT_FILE"', event=event(body))
    assert perform(nursery, assignment).word == "succeeded"
    assert (tmp_path / "got").read_text() == body
    assert logs.tail(assignment.folder) == b"600\n"
    folders.remove_traces(assignment.folder)
    assert [path.name for path in assignment.folder.iterdir()] == ["log"]


def test_a_command_is_told_where_its_event_lies_and_one_without_an_event_nothing(
    nursery: Nursery, tmp_path: Path
) -> None:
    for number, (cause, told) in enumerate(
        (
            (event("1"), "{folder}/event.json|git.push|k 1"),
            (event("1", None), "{folder}/event.json|git.push|"),
            (None, "none|none|none"),
        )
    ):
        assignment = assign(tmp_path, TOLD, event=cause, fence=number + 1)
        assert perform(nursery, assignment).word == "succeeded"
        assert logs.tail(assignment.folder).decode() == told.format(folder=assignment.folder)


@pytest.mark.parametrize("where", ["child", "thread"])
def test_a_function_reads_its_event_from_the_run_it_is_part_of(
    nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    name = f"told_{where}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    action = {"kind": "call", "function": f"{name}:told", "args": [str(tmp_path / "got")], "in": where}
    for number, (cause, told) in enumerate(
        (
            (event('{"a": [1.5, null]}'), "('git.push', 'k 1', {'a': [1.5, None]})"),
            (event("null", None), "('git.push', None, None)"),
            (None, "None"),
        )
    ):
        outcome = Call(nursery).perform(assign(tmp_path, action, event=cause, fence=number + 1), None)
        assert isinstance(outcome, Outcome)
        assert outcome.word == "succeeded", outcome
        assert (tmp_path / "got").read_text() == told
