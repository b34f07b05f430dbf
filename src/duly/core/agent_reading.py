"""The readers of what an agent is asked: prompt or file, session, goal, permissions; and of its action as a whole."""

from collections.abc import Mapping

from duly.core.action_fields import NEW, OBJECTIVE_MOST, bound_to
from duly.core.field import Field
from duly.core.permissions import ANY, Permission
from duly.core.reading import read_text, refuse_unknown, shown
from duly.core.rule_fields import PATTERN_MOST
from duly.errors import Invalid

BUSY = ("skip", "wait")


def read(field: Field, value: object) -> object:
    """Read a prompt, a model, a prompt's file or permissions; raises Invalid naming the field."""
    match field.kind:
        case "permissions":
            return _permissions(field, value)
        case "session":
            return _session(field, value)
        case "goal":
            return _goal(field, value)
        case "file":
            return _file(field, value)
        case _:
            return _words(field, value)


def check(action: Mapping[str, object]) -> None:
    """Refuse an action without an agent, without a prompt, or with two of them."""
    if "agent" not in action:
        raise Invalid("which agent is prompted is missing", field="action.agent", hint="its name in the config")
    if ("prompt" in action) == ("prompt_file" in action):
        both = "prompt" in action
        raise Invalid(
            "prompt and prompt_file exclude each other" if both else "what the agent is asked is missing",
            field="action.prompt_file" if both else "action.prompt",
        )
    prompt = action.get("prompt")
    if "goal" in action and isinstance(prompt, str) and len(prompt) > OBJECTIVE_MOST:
        told = f"it has {len(prompt):,} characters, and a goal has {OBJECTIVE_MOST:,} at most"
        raise Invalid(told, field="action.prompt", hint="the goal in short, with what belongs to it in a file")
    if bound_to(action) is None:
        return
    for name, why in (
        ("worktree", "a session works where it was opened, and in no worktree of the run's own"),
        ("goal", "a goal has a session of its own, whose tokens are counted"),
    ):
        if action.get(name):
            raise Invalid(why, field=f"action.{name}", hint="session new")
    if action.get("archive") == "on_success":
        raise Invalid("a session that every run goes on in is not put away", field="action.archive", hint="session new")


def _words(field: Field, value: object) -> str:
    text = read_text(value, field.path)
    if not text.strip():
        raise Invalid("it is empty", field=field.path)
    if len(text) > field.most:
        hint = "--prompt-file takes a longer one" if field.name == "prompt" else None
        raise Invalid(f"it has {len(text):,} characters, and {field.most:,} are allowed", field=field.path, hint=hint)
    return text


def _file(field: Field, value: object) -> str:
    path = read_text(value, field.path)
    if not path.strip():
        raise Invalid("the file's name is empty", field=field.path)
    if len(path.encode()) > field.most:
        raise Invalid(f"it has {len(path.encode()):,} bytes, and {field.most:,} are allowed", field=field.path)
    return path


def _permissions(field: Field, value: object) -> tuple[Permission, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        hint = '[{"tool": "execute", "pattern": "git *", "action": "allow"}]'
        raise Invalid(f"{shown(value)} is not a list of rules", field=field.path, hint=hint)
    if len(value) > field.most:
        raise Invalid(f"there are {len(value)}, and {field.most} are allowed", field=field.path)
    return tuple(_permission(item, f"{field.path}[{at}]") for at, item in enumerate(value))


def _permission(item: object, path: str) -> Permission:
    if not isinstance(item, Mapping):
        raise Invalid(f"{shown(item)} is not an object", field=path)
    refuse_unknown(item, ("tool", "pattern", "action"), path)
    if "tool" not in item:
        raise Invalid(
            "which tool it is about is missing", field=f"{path}.tool", hint="execute, edit, read, fetch, or *"
        )
    action = item.get("action")
    if action not in ("allow", "deny"):
        raise Invalid(f"{shown(action)} is not one of allow, deny", field=f"{path}.action")
    tool = _pattern(item["tool"], f"{path}.tool")
    return Permission(tool=tool, pattern=_pattern(item.get("pattern", ANY), f"{path}.pattern"), action=action)


def _pattern(value: object, path: str) -> str:
    text = read_text(value, path)
    if not text or len(text) > PATTERN_MOST:
        raise Invalid(f"it has {len(text)} characters, and 1 to {PATTERN_MOST} are allowed", field=path)
    return text


def _session(field: Field, value: object) -> dict[str, object]:
    given = {"use": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        hint = '{"use": "ses_…", "busy": "wait"}'
        raise Invalid(f"{shown(value)} is not a session's id", field=field.path, hint=hint)
    refuse_unknown(given, ("use", "busy"), field.path)
    use, busy = read_text(given.get("use", NEW), f"{field.path}.use"), given.get("busy")
    if not 1 <= len(use) <= field.most or not use.isprintable() or use != use.strip():
        raise Invalid(f"{shown(use)} is not a session's id", field=f"{field.path}.use", hint=f"{NEW}, or an id")
    if busy is not None and busy not in BUSY:
        raise Invalid(
            f"{shown(busy)} is not one of {', '.join(BUSY)}", field=f"{field.path}.busy", details={"allowed": [*BUSY]}
        )
    if use == NEW and busy is not None:
        raise Invalid("a new session is never busy", field=f"{field.path}.busy", hint="use: the id of a session")
    return {"use": use} if use == NEW else {"use": use, "busy": busy or BUSY[0]}


def _goal(field: Field, value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise Invalid(f"{shown(value)} is not a goal", field=field.path, hint='{"tokens": 200000}')
    refuse_unknown(value, ("tokens",), field.path)
    tokens, path = value.get("tokens"), f"{field.path}.tokens"
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        raise Invalid("how many tokens it may take is missing" if tokens is None else "it is no number", field=path)
    if not field.least <= tokens <= field.most:
        raise Invalid(f"{tokens} is not between {field.least:,} and {field.most:,}", field=path)
    return {"tokens": tokens}
