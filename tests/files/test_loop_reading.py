"""Loop files read: what people and other tools write becomes a definition, or is told with the line it stands in."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from duly.core import when
from duly.core.loops import Loop, Spoilt
from duly.sources.loop_file import agent_of, read_loop, understand

DATA = Path(__file__).parents[1] / "data" / "loops"
EXPECTED = json.loads((DATA / "expected.json").read_text())
NOW = datetime.fromisoformat(EXPECTED["now"])
HEAD = "---\nname: x\nschedule: daily 09:00\n"


def read(text: str | bytes, **more: Any) -> Loop | Spoilt:
    return read_loop(text.encode() if isinstance(text, str) else text, "/srv/app/.agents/loops/x.md", **more)


def loop(text: str | bytes, **more: Any) -> Loop:
    found = read(text, **more)
    assert isinstance(found, Loop), found
    return found


def wrong(text: str | bytes) -> list[tuple[str, int | None, str]]:
    """What is wrong with a file, whether it shows when it is read or when its definition is."""
    found = read(text)
    if isinstance(found, Spoilt):
        return [(fault.field, fault.line, fault.message) for fault in found.faults]
    _, faults = understand(found, now=datetime(2026, 12, 1, tzinfo=UTC), default_zone="UTC")
    return [(fault.field, fault.line, fault.message) for fault in faults]


@pytest.mark.parametrize("name", sorted(EXPECTED["files"]))
def test_a_loop_file_of_another_tool_becomes_what_it_means_there(name: str) -> None:
    wanted = EXPECTED["files"][name]
    found = read_loop((DATA / name).read_bytes(), name, agents=["opencode"], home="/house")
    if not wanted["jobs"]:
        assert isinstance(found, Spoilt)
        assert len(found.faults) == len(wanted["errors"])
        return
    assert isinstance(found, Loop)
    (job,) = wanted["jobs"]
    read_, faults = understand(found, now=NOW, default_zone="Asia/Tokyo")
    assert read_ is not None, faults
    definition = read_.definition
    assert [when.write(one) for one in definition.triggers] == [f"cron {job['expr']}"]
    assert definition.zone == ("Asia/Tokyo" if job["tz"] == "host" else job["tz"])
    assert definition.enabled is job["enabled"]
    assert definition.action["kind"] == "agent"
    assert str(definition.action["prompt"]).splitlines()[0] == job["text"]
    assert definition.action.get("model") == job.get("model", "example/large")
    assert definition.action["agent"] == "opencode"
    assert definition.action.get("profile") == job.get("agent", "local-agent" if name == "09.md" else None)
    assert "\r" not in str(definition.action["prompt"])
    assert all(any(word in told for told in found.warnings) for word in ("${…}",) if wanted["warnings"])


def test_what_is_wrong_with_those_files_is_told_with_its_lines() -> None:
    def told(name: str) -> list[tuple[str, int | None]]:
        found = read_loop((DATA / name).read_bytes(), name)
        assert isinstance(found, Spoilt)
        return [(fault.field, fault.line) for fault in found.faults]

    assert told("06.md") == [("enabled", 4), ("model", 5)]
    assert told("08.md") == [("file", 3)]
    found = read_loop((DATA / "08.md").read_bytes(), "08.md")
    assert isinstance(found, Spoilt)
    assert "conflict markers in lines 3 to 7" in found.faults[0].message


def test_a_file_that_does_not_say_so_is_switched_off() -> None:
    assert loop(HEAD + "---\nhi").given["enabled"] is False
    assert loop(HEAD + "enabled:\n---\nhi").given["enabled"] is False
    assert loop(HEAD + "enabled: true\n---\nhi").given["enabled"] is True
    assert loop(HEAD + "disabled: false\n---\nhi").given["enabled"] is True
    assert loop(HEAD + "disabled: false\nenabled: false\n---\nhi").given["enabled"] is False


def test_the_prompt_is_the_text_below_with_its_quotes_and_inner_lines() -> None:
    body = '  indented "quotes" \\n %\n\n```\n---\n```\nend'
    assert loop(f"{HEAD}---\n\n\n{body}\n\n").given["action"]["prompt"] == body
    assert loop(f"{HEAD}---\nno newline at the end").given["action"]["prompt"] == "no newline at the end"


def test_a_mark_of_the_editor_and_its_line_ends_change_nothing() -> None:
    plain = loop(HEAD + "enabled: true\n---\none\ntwo\n")
    windows = b"\xef\xbb\xbf" + (HEAD + "enabled: true\n---\none\ntwo\n").replace("\n", "\r\n").encode()
    assert loop(windows).given == plain.given
    assert loop(windows).digest == plain.digest


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("schedule: */30 8-18 * * 1-5", "*/30 8-18 * * 1-5"),
        ("schedule: * * * * *   # always", "* * * * *"),
        ("schedule: @daily", "@daily"),
        ("schedule: 0 9 * * *", "0 9 * * *"),
        ("schedule: '0 9 * * *'", "0 9 * * *"),
        ("schedule: [daily 09:00, daily 17:30]", "daily 09:00"),
        ("cron: 0 9 * * *", "0 9 * * *"),
        ("schedule: once 2027-01-01T09:00:00", "once 2027-01-01T09:00:00"),
    ],
)
def test_a_schedule_is_read_also_where_yaml_would_want_quotes(line: str, text: str) -> None:
    assert loop(f"---\nname: x\n{line}\n---\nhi").given["triggers"][0] == text


def test_a_description_with_a_colon_needs_no_quotes() -> None:
    found = loop("---\nname: x\ndescription: before noon: the desk's\nschedule: daily 09:00\n---\nhi")
    assert found.given["description"] == "before noon: the desk's"


def test_rules_are_further_keys_with_either_dash() -> None:
    keys = (
        "max-age: 2h\nretries: 2\non_missed: skip\nlimits: {gpu: 2}\nstart: 2026-12-01T08:00:00Z\nlabels:\n  team: a\n"
    )
    found = loop(HEAD + keys + "---\nhi")
    wanted = {"max_age": "2h", "retries": 2, "on_missed": "skip", "limits": {"gpu": 2}, "start": "2026-12-01T08:00:00Z"}
    assert found.given["rules"] == wanted
    assert found.given["labels"] == {"team": "a"}
    assert found.warnings == ()
    assert wrong(HEAD + keys + "---\nhi") == []


def test_what_nobody_knows_is_left_alone_and_told_with_what_was_meant() -> None:
    found = loop(HEAD + "retrys: 3\nicon: sun\n---\nhi")
    assert found.warnings[0].startswith("line 4: retrys is none of our keys")
    assert found.warnings[0].endswith("(did you mean retries?)")
    assert "icon" in found.warnings[1]


def test_a_folder_is_taken_from_where_the_files_lie_or_from_home() -> None:
    assert loop(HEAD + "cwd: web\n---\nhi").given["action"]["cwd"] == "/srv/app/web"
    assert loop(HEAD + "cwd: ~/web\n---\nhi", home="/house").given["action"]["cwd"] == "/house/web"
    assert "cwd" not in loop(HEAD + "---\nhi").given["action"]


def test_an_agent_is_one_of_the_config_or_else_a_profile_of_the_usual_one() -> None:
    assert agent_of("claude", ["claude", "opencode"]) == ("claude", None)
    assert agent_of("plan", ["claude", "opencode"]) == ("opencode", "plan")
    assert agent_of("plan", ["claude"]) == ("claude", "plan")
    assert agent_of(None, ["claude"]) == ("claude", None)
    assert agent_of(None, []) == ("opencode", None)


BOMB = "a: &a [x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
WRONG: dict[str, tuple[str | bytes, list[tuple[str, int | None]]]] = {
    "empty": (b"\xef\xbb\xbf\n", [("file", 1)]),
    "no front matter": ("# a page\n", [("file", 1)]),
    "no end": ("---\nname: x\n", [("file", 1)]),
    "a list": ("---\n- a\n---\nhi", [("file", 2)]),
    "no yaml": (HEAD + "labels: {a: [\n---\nhi", [("file", 4)]),
    "twice": (HEAD + "name: y\n---\nhi", [("name", 4)]),
    "utf-16": ("---\n".encode("utf-16"), [("file", 1)]),
    "bytes": (HEAD.encode() + b"---\n\xff\n", [("file", 5)]),
    "nul": (HEAD + "---\nh\0i", [("file", 5)]),
    "no name": ("---\nschedule: daily 09:00\n---\nhi", [("name", None)]),
    "a number for a name": ("---\nname: 7\nschedule: daily 09:00\n---\nhi", [("name", 2)]),
    "a long name": (f"---\nname: {'n' * 81}\nschedule: daily 09:00\n---\nhi", [("name", 2)]),
    "no schedule": ("---\nname: x\n---\nhi", [("schedule", None)]),
    "no text": (HEAD + "---\n \n", [("prompt", 6)]),
    "too long": (HEAD + "---\n" + "x" * 20_001, [("prompt", 5)]),
    "bad cron": ("---\nname: x\nschedule: 0 25 * * *\n---\nhi", [("schedule", 3)]),
    "a distance": ("---\nname: x\nschedule: once in 2h\n---\nhi", [("schedule", 3)]),
    "a zone": (HEAD + "timezone: Europe/Kyivv\n---\nhi", [("timezone", 4)]),
    "a model": (HEAD + "model: sonnet\n---\nhi", [("model", 4)]),
    "enabled as a text": (HEAD + "enabled: yes\n---\nhi", [("enabled", 4)]),
    "a rule": (HEAD + "timeout: 5\n---\nhi", [("timeout", 4)]),
    "removed when done": (HEAD + "remove_when_done: true\n---\nhi", [("remove_when_done", 4)]),
    "a conflict below": (HEAD + "---\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n", [("file", 5)]),
    "a bomb": (HEAD + BOMB + "---\nhi", [("file", 4)]),
    "a snake": (HEAD + "a: &a [*a]\n---\nhi", [("file", 4)]),
    "nested": (HEAD + "a: " + "[" * 5000 + "\n---\nhi", [("file", None)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_cannot_be_taken_says_what_is_wrong_and_in_which_line(name: str) -> None:
    text, places = WRONG[name]
    told = wrong(text)
    assert [(field, line) for field, line, _ in told] == places, told
    assert all(message and "\n" not in message for _, _, message in told)


def test_a_file_says_the_same_by_its_digest_however_it_is_written() -> None:
    one = loop("---\nname: x\nschedule: daily 09:00\n---\nhi\n")
    assert loop('---\nname: "x"\nschedule: "daily 09:00"   # early\n---\n\nhi').digest == one.digest
    assert loop("---\nname: x\nschedule: daily 09:01\n---\nhi\n").digest != one.digest
