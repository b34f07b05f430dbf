"""What a task does, as a table: the fields of its action, and which of them each kind of action has."""

from collections.abc import Mapping

from duly.core.field import Field

# What Linux takes for one argument of a program, its end mark included, and room for all of them together.
ARGUMENT_MOST = 128 * 1024 - 1
ARGUMENTS_MOST = 1024 * 1024
CWD_MOST = 4_095
ENV_MOST = 500
FUNCTION_MOST = 500
PROMPT_MOST = 20_000
PROMPT_FILE_MOST = 10 * 1024 * 1024
"""Bytes of a prompt that is read from a file, and of one with all that was put into it."""
MODEL_MOST = 200
PROFILE_MOST = 200
SESSION_MOST = 200
NEW = "new"
"""What `session.use` says where each run has a session of its own."""
GOAL_LEAST = 1_000
"""Tokens of the smallest goal: the least that one turn takes."""
GOAL_MOST = 1_000_000_000
OBJECTIVE_MOST = 5_000
"""Characters of a goal, with all that is put into it: it is told again in each further turn."""
URL_MOST = 2_000
HEADERS_MOST = 50
SENT_MOST = 256 * 1024
"""Bytes of a body that a webhook sends."""

ACTION: tuple[Field, ...] = (
    Field(
        name="argv", place=("action", "argv"), kind="argv", help="the program and its arguments", most=ARGUMENTS_MOST
    ),
    Field(
        name="shell",
        place=("action", "shell"),
        kind="shell",
        help="a line for sh -c, in place of -- COMMAND",
        most=ARGUMENTS_MOST,
        metavar="LINE",
    ),
    Field(
        name="function",
        place=("action", "function"),
        kind="function",
        help="a Python function to call, in place of -- COMMAND",
        most=FUNCTION_MOST,
        metavar="package.module:function",
    ),
    Field(
        name="args",
        place=("action", "args"),
        kind="arguments",
        help="what the function is called with: a JSON list, or an object of names",
        default=[],
        most=ARGUMENTS_MOST,
        metavar="JSON",
    ),
    Field(
        name="in",
        place=("action", "in"),
        kind="choice",
        help="where the function runs; what runs in a thread cannot be ended",
        default="child",
        allowed=("child", "thread"),
    ),
    Field(
        name="agent",
        place=("action", "agent"),
        kind="agent",
        help="an agent to prompt, by its name in the config, in place of -- COMMAND",
        metavar="AGENT",
    ),
    Field(
        name="prompt",
        place=("action", "prompt"),
        kind="prompt",
        help="what the agent is asked; @FILE is read now, @@… begins with @",
        most=PROMPT_MOST,
        metavar="TEXT|@FILE",
    ),
    Field(
        name="prompt_file",
        place=("action", "prompt_file"),
        kind="file",
        help="a file with the prompt, read at each start, from the folder to work in",
        most=CWD_MOST,
        metavar="PATH",
    ),
    Field(
        name="model",
        place=("action", "model"),
        kind="prompt",
        help="the model that the agent uses, as the agent names it",
        default_text="the agent's",
        most=MODEL_MOST,
        metavar="M",
    ),
    Field(
        name="worktree",
        place=("action", "worktree"),
        kind="switch",
        help="whether each run works in a git worktree of its own",
        default=False,
    ),
    Field(
        name="profile",
        place=("action", "profile"),
        kind="prompt",
        help="the profile with which the agent works (OpenCode: one of its agents)",
        default_text="the agent's",
        most=PROFILE_MOST,
        metavar="P",
    ),
    Field(
        name="variant",
        place=("action", "variant"),
        kind="prompt",
        help="the variant of the model, as how long it thinks (OpenCode)",
        default_text="the model's",
        most=PROFILE_MOST,
        metavar="V",
    ),
    Field(
        name="archive",
        place=("action", "archive"),
        kind="choice",
        help="whether the session of a run that succeeded is put away (OpenCode)",
        default="keep",
        allowed=("keep", "on_success"),
    ),
    Field(
        name="session",
        place=("action", "session"),
        kind="session",
        help="a session of the agent to go on in; while that is busy the run is skipped, or waits",
        default_text="new",
        most=SESSION_MOST,
        metavar="new|ID[,busy=skip|wait]",
    ),
    Field(
        name="goal",
        place=("action", "goal"),
        kind="goal",
        help="to go on until the agent says that what was asked is reached, for so many tokens (OpenCode)",
        default_text="one turn",
        least=GOAL_LEAST,
        most=GOAL_MOST,
        metavar="TOKENS",
    ),
    Field(
        name="url",
        place=("action", "url"),
        kind="url",
        help="an address to send to, in place of -- COMMAND; ${NAME} in it is a secret of who serves",
        most=URL_MOST,
        metavar="URL",
    ),
    Field(
        name="method",
        place=("action", "method"),
        kind="method",
        help="the method by which it is sent",
        default="POST",
        metavar="METHOD",
    ),
    Field(
        name="headers",
        place=("action", "headers"),
        kind="headers",
        help="a header to send; ${NAME} in it is a secret (may be repeated)",
        default={},
        most=HEADERS_MOST,
        metavar="NAME: VALUE",
    ),
    Field(
        name="body",
        place=("action", "body"),
        kind="body",
        help="what is sent; @FILE is read now, @@… begins with @",
        default_text="the run as JSON",
        most=SENT_MOST,
        metavar="TEXT|@FILE",
    ),
    Field(
        name="sign",
        place=("action", "sign"),
        kind="secret",
        help="sign what is sent with the secret of this name",
        metavar="SECRET-NAME",
    ),
    Field(
        name="cwd",
        place=("action", "cwd"),
        kind="path",
        help="the folder to work in",
        default_text="this folder",
        most=CWD_MOST,
        metavar="PATH",
    ),
    Field(
        name="env",
        place=("action", "env"),
        kind="env",
        help="a variable for the command (may be repeated)",
        default={},
        most=ENV_MOST,
        metavar="K=V",
    ),
)

FIELDS_OF: Mapping[str, tuple[str, ...]] = {
    "command": ("argv", "shell", "cwd", "env"),
    "call": ("function", "args", "in", "cwd", "env"),
    "agent": (
        "agent",
        "prompt",
        "prompt_file",
        "model",
        "profile",
        "variant",
        "session",
        "goal",
        "archive",
        "worktree",
        "cwd",
    ),
    "http": ("url", "method", "headers", "body", "sign"),
}
"""The kinds of actions, and the fields that each of them has."""
UNSAID: Mapping[str, Mapping[str, object]] = {
    "command": {"cwd": None, "env": {}},
    "call": {"args": [], "in": "child", "cwd": None, "env": {}},
    "agent": {
        "prompt": None,
        "prompt_file": None,
        "model": None,
        "session": {"use": "new"},
        "goal": None,
        "worktree": False,
        "cwd": None,
    },
    "http": {"method": "POST", "headers": {}, "body": None, "sign": None},
}
"""Fields of an action that are shown also where nothing was said of them, by its kind."""


def bound_to(action: Mapping[str, object]) -> str | None:
    """Give the session that an action is bound to; None where each run has one of its own."""
    session = action.get("session")
    use = session.get("use") if isinstance(session, Mapping) else None
    return use if isinstance(use, str) and use != NEW else None
