"""The readers of what an agent is asked: prompt or prompt file, model, permissions; and of its action as a whole."""

from collections.abc import Mapping

from duly.core.field import Field
from duly.core.permissions import ANY, Permission
from duly.core.reading import read_text, refuse_unknown, shown
from duly.core.rule_fields import PATTERN_MOST
from duly.errors import Invalid


def read(field: Field, value: object) -> object:
    """Read a prompt, a model, a prompt's file or permissions; raises Invalid naming the field."""
    if field.kind == "permissions":
        return _permissions(field, value)
    return _file(field, value) if field.kind == "file" else _words(field, value)


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
