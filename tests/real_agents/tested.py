"""docs/agents-tested.md from the titles of the tests: which rule of agents is tried with which; run it to write it."""

import ast
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "agents-tested.md"
AGENTS = ("real OpenCode", "Python ACP agent", "real ACP agent")
FOLDERS: Mapping[str, Sequence[str]] = {
    "real OpenCode": ("tests/real_agents/test_opencode_*.py",),
    "Python ACP agent": (
        "tests/agents/test_*.py",
        "tests/runners/test_*.py",
        "tests/processes/test_process_agent*.py",
    ),
    "real ACP agent": ("tests/real_agents/test_acp_*.py",),
}
SAME = "why not: the same code as for the Python agent, which the real one reaches no other way"
LATER = "why not: it is not asked again at once; a later attempt is made by the run, whichever its agent"
NO_GOAL = "why not: an agent over ACP is refused a goal, as it does not tell its tokens turn by turn"

RULES: Sequence[tuple[str, str, Sequence[str], Sequence[str], Sequence[str]]] = (
    (
        "G1",
        "model, profile, variant, title, folder",
        ("model_profile_and_variant", "session_is_titled", "folder_that_is_missing"),
        ("model_is_set_before", "prompt_file_is_read_at_each_start"),
        (SAME,),
    ),
    ("G2", "places in the prompt", ("slash_command_of_the_agent",), ("places_in_the_prompt",), (SAME,)),
    (
        "G3",
        "slash commands",
        ("slash_command_of_the_agent",),
        ("why not: an agent over ACP knows its commands itself",),
        (SAME,),
    ),
    (
        "G4",
        "snippets and standing knowledge",
        ("slash_command_of_the_agent", "hears_its_knowledge_once"),
        ("knowledge",),
        (SAME,),
    ),
    ("G5", "goal mode", ("goal_",), ("goal_",), (NO_GOAL,)),
    (
        "G6",
        "permissions, sub-agents, questions that wait",
        (
            "nobody_allows_is_denied",
            "sub_agent_is_answered",
            "where_a_rule_denies",
            "waits_for_a_person",
            "answered_from",
        ),
        ("fit_the_last_decides", "person"),
        ("denied_a_permission", "that_is_allowed_does_it"),
    ),
    ("G7", "bound sessions", ("bound_session",), ("bound_session",), (SAME,)),
    (
        "G8",
        "the session is durable and linked",
        ("session_and_message_are_on_disk", "text_tokens_cost"),
        ("session_is_told_when",),
        ("text_tokens_and_a_session",),
    ),
    (
        "G9",
        "the outcome is the agent's own end",
        ("has_the_outcome_that_is_true", "asks_its_model_without_end", "cuts_again_and_again", "cost_of_sub_agents"),
        ("no_success_fails_with_its_reason",),
        ("provider_wants_a_key",),
    ),
    ("G10", "safe retry", (LATER,), ("asked_again_in_a_new_session", "never_asked_again", "three_tries"), (SAME,)),
    (
        "G11",
        "going on after an interruption",
        (
            "cut_off_goes_on",
            "still_under_way",
            "had_ended_before",
            "opened_and_never_prompted",
            "session_that_is_gone",
            "whatever_is_killed_in_it",
            "whichever_point",
            "frozen_holder",
        ),
        (
            "cannot_be_gone_on_with",
            "never_asked_the_same_twice",
            "deploy_leaves",
            "interrupted_three_times",
            "before_it_was_passed_on",
        ),
        ("goes_on_in_its_session_after",),
    ),
    (
        "G12",
        "cancel and timeout end the turn and all it started",
        ("cancel_stops_the_turn", "tools_left_running", "ignores_a_cancel", "after_the_success"),
        ("ignores_the_wish",),
        ("cancelled_and_ends", "takes_too_long"),
    ),
    ("G13", "origin, archive", ("session_is_titled", "archived_after_a_success"), ("worktree_of_its_own",), (SAME,)),
    (
        "G14",
        "the server: started, shared, restarted, or elsewhere",
        ("two_holders_share", "cannot_be_started", "somebody_else_started", "killed_in_a_turn"),
        ("why not: an agent over ACP has no server",),
        ("why not: an agent over ACP has no server",),
    ),
)


def page() -> str:
    """Write the page; a word that no title has, or that is no reason, is an error."""
    lines = [
        "# Agents: which rule is tried with which agent",
        "",
        "Written by `python tests/real_agents/tested.py` from the titles of the tests, and kept true by one of them.",
        "The real agents are OpenCode's server and `opencode acp`, of the version that `tests/real_agents`",
        "pins, with a model that answers by a script; the Python agent speaks the protocol and misbehaves as told.",
        "",
    ]
    for rule, what, *cells in RULES:
        lines += [f"## {rule}: {what}", ""]
        for agent, words in zip(AGENTS, cells, strict=True):
            lines += [f"**{agent}**", ""]
            lines += [f"- {one}" for word in words for one in _told(agent, word)]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _told(agent: str, word: str) -> list[str]:
    if word.startswith("why not: "):
        return [f"*no test: {word.removeprefix('why not: ')}*"]
    found = [title for title in _titles(agent) if word in title]
    assert found, f"no test of {agent} has {word!r} in its title"
    return [one.removeprefix("test_").replace("_", " ") for one in found]


def _titles(agent: str) -> list[str]:
    files = [path for pattern in FOLDERS[agent] for path in sorted(ROOT.glob(pattern))]
    return [
        node.name
        for path in files
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is written\n")
