"""What an agent lets us know during its turn, gathered as the facts by which the turn is judged, and told to the log.

Everything comes from outside: whatever is missing or strange in it is passed over, and never an error of ours.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from duly.core import permissions, usage
from duly.core.permissions import Answer, Permission, Question, Unattended
from duly.core.questions import Answered, Asked
from duly.core.turns import End, Ours, Turn
from duly.runners.telling import Log

SAID_MOST = 1024 * 1024
"""Characters of the agent's last words that are kept to judge them; a longer text is no error in disguise."""
TOOLS_MOST = 10_000
"""Tool calls whose names are kept."""
DENIED_MOST = 100
STIRS = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"})
"""Updates that show something of the agent's work."""
ENDS: Mapping[str, End] = {
    "end_turn": "ended",
    "max_tokens": "cut_off",
    "max_turn_requests": "max_steps",
    "refusal": "refused",
    "cancelled": "cancelled",
}
PAST = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"})
"""Updates that show a session not to be empty."""
CANCELLED: dict[str, object] = {"outcome": {"outcome": "cancelled"}}
SELECTED: Mapping[str, tuple[str, ...]] = {
    "allow": ("allow_once", "allow_always"),
    "deny": ("reject_once", "reject_always"),
}
"""Which kinds of options are chosen for an answer: that for this once, before that for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A question that a person is to answer, with the options that the agent offers."""

    asked: Asked
    question: Question
    options: list[object]


class Heard:
    """Takes updates and questions of one session; `ours`: why we asked for the end, if we did."""

    def __init__(
        self,
        log: Log,
        *,
        unattended: Unattended,
        permissions: tuple[Permission, ...],
        answered: Answered | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._log = log
        self._answered = answered
        self._mask = mask
        self._unattended = unattended
        self._permissions = permissions
        self.ours: Ours | None = None
        self.replaying = False
        """What comes now is the past of a session that goes on."""
        self.replayed = False
        """Some of that past has come."""
        self.usage: dict[str, float] = {}
        self.last_line: str | None = None
        self._said = ""
        self._said_anything = False
        self._said_since_denial = False
        self._denied: list[str] = []
        self._tools: dict[str, dict[str, object]] = {}
        self._tools_used = 0
        self._stirred = False

    def turn(self, end: End, error: str | None = None) -> Turn:
        """Give the turn as it stands, ended so."""
        return Turn(
            end=end,
            error=error,
            said=self._said,
            said_anything=self._said_anything,
            tools=self._tools_used,
            stirred=self._stirred,
            denied=tuple(self._denied),
            said_since_denial=self._said_since_denial,
            ours=self.ours,
            last_line=self.last_line,
        )

    def update(self, params: object) -> None:
        """Take one update of the session."""
        update = params.get("update") if isinstance(params, Mapping) else None
        if not isinstance(update, Mapping):
            return
        if self.replaying:
            self.replayed = self.replayed or update.get("sessionUpdate") in PAST
            return
        kind = update.get("sessionUpdate")
        self._stirred = self._stirred or kind in STIRS
        take: Callable[[Mapping[str, object]], None] | None = {
            "agent_message_chunk": self._text,
            "agent_thought_chunk": self._thought,
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "plan": self._plan,
            "usage_update": self._usage,
        }.get(kind if isinstance(kind, str) else "")
        if take is not None:
            take(update)

    def answered(self, result: Mapping[str, object]) -> End | None:
        """Take the answer to the prompt; None where it is none."""
        stop = result.get("stopReason")
        tokens = result.get("usage")
        if isinstance(tokens, Mapping):
            self._tokens(tokens.get("inputTokens"), tokens.get("outputTokens"))
        else:
            counted = _inside(result, "_meta", "quota", "token_count")
            self._tokens(counted.get("input_tokens"), counted.get("output_tokens"))
        return ENDS.get(stop) if isinstance(stop, str) else None

    def asked(self, params: object) -> dict[str, object] | Open:
        """Answer a question for permission, or say that a person is to answer it.

        Under `fail` the caller is to end the turn, as `ours` says then.
        """
        self._stirred = True
        given = params if isinstance(params, Mapping) else {}
        call = given.get("toolCall")
        call = call if isinstance(call, Mapping) else {}
        known = self._tools.get(str(call.get("toolCallId")), {})
        question = permissions.question_of({**known, **{name: value for name, value in call.items() if value}})
        options = given.get("options")
        return self._answer(question, options if isinstance(options, list) else [])

    def decided(self, one: Open, answer: Answer) -> dict[str, object]:
        """Give the answer of a person to the agent."""
        return CANCELLED if self.ours is not None else self._given(one.question, one.options, answer)

    def _answer(self, question: Question, options: list[object]) -> dict[str, object] | Open:
        if self.ours is not None:
            return CANCELLED
        about = self._about(question)
        if self._answered is not None and about == self._answered.asked.about:
            return self._given(question, options, "allow" if self._answered.answer == "allow" else "deny")
        answer = permissions.answer_to(question, self._permissions, self._unattended)
        if answer == "park":
            text = permissions.told(question)
            self._log.line(f"[asked] {text}: a person is to answer")
            asked = Asked(kind="permission", text=self._mask(text), about=about)
            return Open(asked=asked, question=question, options=options)
        return self._given(question, options, answer)

    def _about(self, question: Question) -> dict[str, object]:
        """What of a question is kept, and compared when it comes again; it tells no secret."""
        about: dict[str, object] = json.loads(self._mask(json.dumps(permissions.facts_of(question))))
        return about

    def _given(
        self, question: Question, options: list[object], answer: Literal["allow", "deny", "fail"]
    ) -> dict[str, object]:
        asked = permissions.told(question)
        self._log.line(f"[asked] {asked}: {answer}")
        if answer != "allow":
            if len(self._denied) < DENIED_MOST:
                self._denied.append(asked)
            self._said_since_denial = False
        if answer == "fail":
            self.ours = "question"
            return CANCELLED
        chosen = _option(options, SELECTED[answer])
        if chosen is None and answer == "allow":
            self._log.line("[asked] the agent offers no option that allows it")
            self._denied.append(asked)
            self._said_since_denial = False
        return CANCELLED if chosen is None else {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _text(self, update: Mapping[str, object]) -> None:
        text = _inside(update, "content").get("text")
        if not isinstance(text, str):
            return
        self._log.stream("text", text)
        if len(self._said) <= SAID_MOST:
            self._said += text
        if text.strip():
            self._said_anything = self._said_since_denial = True

    def _thought(self, update: Mapping[str, object]) -> None:
        text = _inside(update, "content").get("text")
        if isinstance(text, str):
            self._log.stream("thinks", text)

    def _tool(self, update: Mapping[str, object]) -> None:
        name = str(update.get("toolCallId"))
        known = self._tools.get(name)
        if known is None:
            self._tools_used += 1
            self._said = ""
            known = {}
            if len(self._tools) < TOOLS_MOST:
                self._tools[name] = known
        fresh = not known
        before = known.get("status")
        for field in ("kind", "title", "status", "rawInput", "locations"):
            if update.get(field) is not None:
                known[field] = update[field]
        told = permissions.told(permissions.question_of(known))
        status = str(known.get("status") or "")
        if fresh:
            self._log.line(f"[tool] {known.get('kind') or 'other'}: {told}")
        if status in ("completed", "failed") and status != before:
            said = _text_of(update.get("content"))
            self._log.line(f"[tool] {status}: {told}" + (f": {said}" if said and status == "failed" else ""))

    def _plan(self, update: Mapping[str, object]) -> None:
        entries = update.get("entries")
        steps = [one for one in entries if isinstance(one, Mapping)] if isinstance(entries, list) else []
        marks = {"completed": "x", "in_progress": ">"}
        told = "; ".join(f"[{marks.get(str(one.get('status')), ' ')}] {one.get('content')}" for one in steps)
        self._log.line(f"[plan] {told}")

    def _usage(self, update: Mapping[str, object]) -> None:
        cost = _inside(update, "cost")
        amount = usage.number(cost.get("amount"))
        if amount is not None and str(cost.get("currency")).upper() == "USD":
            self.usage[usage.COST] = amount

    def _tokens(self, tokens_in: object, tokens_out: object) -> None:
        for name, given in zip(usage.TOKENS, (tokens_in, tokens_out), strict=True):
            found = usage.number(given)
            if found is not None:
                self.usage[name] = int(found)


def usage_told(figures: Mapping[str, float]) -> str:
    """Tell in words what a turn cost, as far as its agent told."""
    words = [f"{int(figures[name]):,} tokens {name[-3:].strip('_')}" for name in usage.TOKENS if name in figures]
    words += [f"{figures[usage.COST]:.4f} USD"] if usage.COST in figures else []
    return ", ".join(words)


def _option(options: list[object], kinds: tuple[str, ...]) -> str | None:
    for kind in kinds:
        for one in options:
            if isinstance(one, Mapping) and one.get("kind") == kind and isinstance(one.get("optionId"), str):
                return str(one["optionId"])
    return None


def _inside(given: Mapping[str, object], *path: str) -> Mapping[str, object]:
    found: object = given
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _text_of(content: object) -> str:
    if not isinstance(content, list):
        return ""
    texts = [_inside(one, "content").get("text") for one in content if isinstance(one, Mapping)]
    return " ".join(text for text in texts if isinstance(text, str))
