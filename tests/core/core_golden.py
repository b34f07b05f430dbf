"""What people are told, word for word: pages of asks in `golden/`, each with its answer below it, indented.

`python tests/core/core_golden.py` answers the asks of every page anew; what changed is read before it is kept.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from duly import zones
from duly.core import call_reading, when
from duly.core.contradictions import contradictions
from duly.core.definition_json import definition_from_json, rules_from_json
from duly.core.event_text import read_path, read_source
from duly.core.explaining import judge
from duly.core.fields import BY_PATH
from duly.core.figures import Wall, distance, local_text
from duly.core.reading import read_field, read_name, read_word, shown
from duly.core.run import Entry
from duly.core.sentences import first_line, sentence
from duly.core.spans import write_instant
from duly.core.story import tell
from duly.core.task import Definition, Rules
from duly.core.words import describe_all
from duly.errors import Invalid

PAGES = Path(__file__).with_name("golden")
NOW = datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
BERLIN = zones.zone("Europe/Berlin")


def page(name: str) -> str:
    return (PAGES / f"{name}.txt").read_text(encoding="utf-8")


def blocks(name: str) -> list[str]:
    """The asks of a page, each with the lines below it."""
    found: list[str] = []
    for line in page(name).split("\n")[:-1]:
        if line.startswith(" "):
            found[-1] += f"{line}\n"
        else:
            found.append(f"{line}\n")
    return found


def answered(name: str, block: str) -> str:
    """The ask of a block with today's answer."""
    ask = block.partition("\n")[0]
    try:
        lines = ANSWERS[name](json.loads(ask))
    except Invalid as error:
        lines = _refusal(error)
    block = "".join(f"{line}\n" for line in [ask, *(f"    {line}" for line in lines)])
    return block.encode("utf-8", "backslashreplace").decode()


def _refusal(error: Invalid) -> list[str]:
    at = "" if error.at is None else f" at {error.at}"
    lines = [f"{error.field or 'refused'}{at}: {error.message}"]
    if error.hint is not None:
        lines.append(f"hint: {error.hint}")
    if error.details:
        lines.append(f"details: {_json(dict(error.details))}")
    if error.text is not None:
        lines.append(f"text: {_json(error.text[:80])}")
    return lines


def _json(value: object) -> str:
    def plain(one: object) -> object:
        if isinstance(one, datetime):
            return write_instant(one)
        if isinstance(one, timedelta):
            return f"{one.total_seconds()}s"
        return dict(one) if isinstance(one, Mapping) else str(one)

    return json.dumps(value, ensure_ascii=False, default=plain)


def _trigger(given: Any) -> list[str]:
    """A trigger as text, or one of its parts: a source, a path."""
    if isinstance(given, dict):
        kind, text = next(iter(given.items()))
        return [repr({"source": read_source, "path": read_path}[kind](text))]
    found = when.read(given, now=NOW, zone=BERLIN)
    words = describe_all((found.trigger,))
    return [when.write(found.trigger), words, *(f"warning: {text}" for text in found.warnings)]


def _object(given: Any) -> list[str]:
    """A trigger as JSON has it."""
    return [when.write(when.from_json(given))]


def _field(given: Any) -> list[str]:
    """One field of a definition by its path, or a definition, or its rules."""
    path, value = next((path, _spelled(value)) for path, value in given.items())
    if path == "definition":
        definition_from_json(value)
        return ["it reads"]
    if path == "rules":
        return [", ".join(sorted(rules_from_json(value)[1]))]
    readers: dict[str, Callable[[Any], object]] = {"a name": read_name, "shown": shown}
    if path in readers:
        return [repr(readers[path](value))]
    if path == "a word":
        return [repr(read_word(value, "--label"))]
    if path == "argument":
        return [repr(call_reading.read(BY_PATH["action.args"], value))[:200]]
    return [repr(read_field(BY_PATH[path], value))[:200]]


def _spelled(value: Any) -> Any:
    """What a page says short: `{"$": ["x", 81]}` is the text 81 times, `{"$keys": ["k", 51, 1]}` 51 keys."""
    if isinstance(value, list):
        return [_spelled(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "$" in value:
        part, times = value["$"]
        return part * times
    if "$nested" in value:
        return json.loads("[" * value["$nested"] + "]" * value["$nested"])
    if "$keys" in value:
        key, times, each = value["$keys"]
        return {f"{key}{number}": each for number in range(times)}
    return {key: _spelled(one) for key, one in value.items()}


def _told(given: Any) -> list[str]:
    """An entry, a reason with its figures, the first line of a fate."""
    wall = Wall(zone=zones.zone(given.pop("zone"))) if "zone" in given else Wall()
    if "fate" in given:
        return [first_line(given.pop("fate"), given, wall)]
    if "use" in given:
        return [sentence(given.pop("use"), given.pop("reason"), given, wall)]
    if "until_at" in given:
        given["until_at"] = datetime.fromisoformat(given["until_at"])
    return [tell(Entry(at=NOW, **given), wall)]


def _judged(given: Any) -> list[str]:
    """Why a moment is or is not one of a task's."""
    triggers = tuple(when.read(text, now=NOW, zone=BERLIN, past=True).trigger for text in given["when"])
    bounds: dict[str, Any] = {name: datetime.fromisoformat(given[name]) for name in ("start", "until") if name in given}
    bends: dict[str, Any] = {name: given[name] for name in ("gap", "fold") if name in given}
    one = Definition(name="x", triggers=triggers, zone="Europe/Berlin", rules=Rules(**bounds, **bends))
    found = judge(one, BERLIN, datetime.fromisoformat(given["at"]).astimezone(UTC))
    lines = [f"{found.reason or 'due'} {_json(dict(found.figures))}"]
    if found.reason is not None:
        lines.append(sentence("not_due", found.reason, found.figures, Wall(zone=BERLIN)))
    lines.append(
        f"between {found.before and write_instant(found.before)} and {found.after and write_instant(found.after)}"
    )
    for answer in found.answers:
        unmet = "; ".join(f"{one.what}: {one.has}, {one.wants}" for one in answer.unmet)
        lines.append(" ".join(filter(None, [f"- {answer.reason}", answer.mark, _json(dict(answer.figures)), unmet])))
    return lines


def _contradicted(given: Any) -> list[str]:
    """What contradicts in a task's rules."""
    triggers = tuple(when.read(text, now=NOW, zone=BERLIN, past=True).trigger for text in given["when"])
    rules, own = rules_from_json(given["rules"])
    action = {"kind": "command", "argv": ("true",)}
    one = Definition(name="x", triggers=triggers, zone="Europe/Berlin", action=action, rules=rules, own_rules=own)
    lines = []
    for found in contradictions(one, BERLIN, NOW):
        lines.append(f"{found.rule}: {found.message} {_json(dict(found.figures))}")
        lines += [f"hint: {found.hint}"] if found.hint else []
    return lines or ["nothing"]


def _figure(given: Any) -> list[str]:
    """A distance in seconds, or an instant on a wall."""
    if not isinstance(given, dict):
        return [distance(timedelta(seconds=given))]
    zone = zones.zone(given["zone"]) if "zone" in given else None
    beside = datetime.fromisoformat(given["beside"]) if "beside" in given else None
    wall = Wall(zone=zone, beside=beside)
    return [local_text(datetime.fromisoformat(given["at"]), wall, fine=given.get("fine", False))]


ANSWERS: Mapping[str, Callable[[Any], list[str]]] = {
    "triggers": _trigger,
    "objects": _object,
    "fields": _field,
    "told": _told,
    "judged": _judged,
    "contradicted": _contradicted,
    "figures": _figure,
}


if __name__ == "__main__":
    for name in ANSWERS:
        text = "".join(answered(name, block) for block in blocks(name))
        (PAGES / f"{name}.txt").write_text(text, encoding="utf-8")
