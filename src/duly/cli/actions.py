"""What a command line says shall be done: a command, a shell line, a function, an agent to prompt, an address."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from duly.cli.fields import spelled
from duly.cli.table import plain
from duly.core.action_fields import FIELDS_OF, bound_to
from duly.errors import Invalid

PROMPT_SHOWN = 120
SAYS = ("argv", "shell", "function", "agent", "url")
"""Fields each of which alone says what shall be done."""
KIND_BY: Mapping[str, str] = {
    "argv": "command",
    "shell": "command",
    "function": "call",
    "agent": "agent",
    "url": "http",
}
TOLD: Mapping[str, str] = {"agent": "an agent", "http": "a webhook"}
"""Kinds of actions that are not called a `kind` in a sentence."""
OF_KIND: Mapping[str, str] = {
    "args": "--call package.module:function",
    "in": "--call package.module:function",
    "env": "a command, or --call",
    "prompt": "--agent AGENT",
    "prompt_file": "--agent AGENT",
    "model": "--agent AGENT",
    "session": "--agent AGENT",
    "goal": "--agent AGENT",
    "worktree": "--agent AGENT",
    "method": "--url URL",
    "headers": "--url URL",
    "body": "--url URL",
    "sign": "--url URL",
}
"""Options that go with some kinds of action only, and with which."""


def check_words(extra: tuple[str, ...], given: Mapping[str, object]) -> None:
    """Refuse words that say nothing or too much; `given` holds the options, and under `argv` the words after `--`."""
    said = what_is_said(extra, given, verb="duly add NAME --when WHEN")
    if said is None:
        raise Invalid(
            "it is missing: what shall be done?",
            field="action.argv",
            hint="duly add NAME --when WHEN -- COMMAND ARG…, or --shell LINE, or --call package.module:function,"
            " or --agent AGENT --prompt TEXT, or --url URL",
        )
    kind = KIND_BY[said]
    for name, with_what in OF_KIND.items():
        if given.get(name) and name not in FIELDS_OF[kind]:
            raise Invalid(
                f"{TOLD.get(kind, f'a {kind}')} takes none", field=f"action.{name}", hint=f"it goes with {with_what}"
            )


def what_is_said(extra: tuple[str, ...], given: Mapping[str, object], *, verb: str) -> str | None:
    """Give the one field that says what shall be done, None where none does; refuse words that are not for us."""
    if extra:
        raise Invalid(
            f'"{plain(extra[0])}" was not expected: the command stands after --',
            field="action.argv",
            hint=f"{verb} -- {plain(' '.join(extra))}",
        )
    said = [name for name in SAYS if given.get(name) or (name != "argv" and given.get(name) is not None)]
    if len(said) > 1:
        words = ["a command after --" if name == "argv" else spelled(f"action.{name}") for name in said]
        raise Invalid(f"{' and '.join(words)} exclude each other", field=f"action.{said[1]}")
    return said[0] if said else None


def kind_of(given: Mapping[str, object]) -> str:
    """Give the kind of action that the words mean."""
    return next((KIND_BY[name] for name in SAYS if given.get(name)), "command")


def read_files(given: dict[str, Any]) -> None:
    """Put texts that lie in files, as `@FILE` names them, where these were named."""
    for name in ("prompt", "body"):
        if given[name] is not None:
            from duly.cli.running import text_or_file

            given[name] = text_or_file(given[name], f"--{name}")


def takes_folder(given: Mapping[str, object]) -> bool:
    """Say whether what is done works in a folder: a thread has its process's, and what is sent needs none."""
    return given.get("in") != "thread" and given.get("url") is None


def kind_told(action: Mapping[str, object]) -> str:
    """Give the word before what is done."""
    return {"call": "calls", "agent": "prompts", "http": "sends"}.get(str(action.get("kind")), "command")


def action_text(action: Mapping[str, object]) -> str:
    """Write what is done as it would be typed, or as it would be called."""
    from duly.cli.words import command_text

    if action.get("kind") == "agent":
        return _prompt_text(action)
    if action.get("kind") == "http":
        return f"{action.get('method', 'POST')} {action['url']}"
    if action.get("kind") != "call":
        return command_text(action)
    args = action.get("args") or ()
    if isinstance(args, Mapping):
        words = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in args.items()]
    else:
        assert isinstance(args, list | tuple)
        words = [json.dumps(value, ensure_ascii=False) for value in args]
    where = ", in a thread" if action.get("in") == "thread" else ""
    return f"{action['function']}({', '.join(words)}){where}"


def _prompt_text(action: Mapping[str, object]) -> str:
    """Write which agent is asked what, on one line."""
    model = f" ({action['model']})" if action.get("model") else ""
    prompt = action.get("prompt")
    asked = f"the file {action['prompt_file']}" if prompt is None else " ".join(str(prompt).split())
    asked = asked if len(asked) <= PROMPT_SHOWN else asked[: PROMPT_SHOWN - 1] + "…"
    apart = ", in a worktree of its own" if action.get("worktree") else ""
    session, goal = bound_to(action), action.get("goal")
    where = f", in the session {session}" if session is not None else ""
    until = f", until it is reached or {goal['tokens']:,} tokens are used" if isinstance(goal, Mapping) else ""
    return f"{action['agent']}{model}{apart}{where}{until}: {asked}"


def unfound(action: Mapping[str, object]) -> tuple[str, ...]:
    """Warn of a function or an agent that is not found from here; it may be where it will be called."""
    if action.get("kind") == "agent":
        return _unfound_agent(action)
    if action.get("kind") != "call":
        return ()
    import sys

    from duly.runners import functions

    cwd = action.get("cwd")
    path = [*([cwd] if isinstance(cwd, str) else []), *sys.path]
    fault = functions.fault(str(action["function"]), path, here=False)
    return () if fault is None else (f"--call: {fault}; a run that does not find it either fails",)


def _unfound_agent(action: Mapping[str, object]) -> tuple[str, ...]:
    from duly.cli.joining import config
    from duly.runners.agents import fault_of

    found = config()
    fault = fault_of(action, found.agents, found.agent_faults)
    told = [f"--agent: {fault}; a run that finds it so fails (preflight)"] if fault is not None else []
    file, cwd = action.get("prompt_file"), action.get("cwd")
    if isinstance(file, str) and not (Path(str(cwd or Path.cwd())) / file).is_file():
        told.append(f"--prompt-file: {file} is no file now; a run that cannot read it fails (preflight)")
    here = Path(str(cwd or Path.cwd()))
    if action.get("worktree") and not any((one / ".git").exists() for one in (here, *here.parents)):
        told.append(f"--worktree: {here} is in no git repository now; a run that finds it so fails (preflight)")
    return tuple(told)
