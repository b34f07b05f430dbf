"""What a server's events let us know during one turn: told to the log, counted, and asked of us.

Everything comes from outside: whatever is missing or strange in it is passed over, and never an error of ours.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from duly.core import permissions
from duly.core.permissions import ANY, Permission, Question, Unattended
from duly.core.questions import Answered, Asked
from duly.core.turns import Ours
from duly.runners.opencode import messages
from duly.runners.opencode.api import words_of
from duly.runners.telling import Log

MAX_STEPS = 100
"""How often a session may ask its model in one turn."""
KEPT_MOST = 10_000
"""Names of messages, parts and tools that are kept."""
DENIED_MOST = 100
KINDS: Mapping[str, tuple[str, ...]] = {
    "bash": ("execute",),
    "edit": ("edit",),
    "write": ("edit",),
    "read": ("read",),
    "glob": ("search",),
    "grep": ("search",),
    "list": ("search", "read"),
    "webfetch": ("fetch",),
    "websearch": ("fetch", "search"),
}
"""What a rule may call the tools of OpenCode beside their own names: the kinds that all agents have."""
TASK = "task"
"""The tool that starts sub-agents."""
NOBODY = "Nobody is there to allow this. Go on without it, or say what you would need."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a question of the server is answered: a call of its API."""

    path: str
    body: Mapping[str, object]


class Heard:
    """Takes the events of a directory, of which one session and those below it are ours."""

    def __init__(
        self,
        log: Log,
        session: str,
        *,
        unattended: Unattended,
        rules: tuple[Permission, ...],
        answered: Answered | None,
        mask: Callable[[str], str],
        steps: int,
    ) -> None:
        self._log = log
        self._unattended = unattended
        self._rules = rules
        self._most = steps
        self._answered = answered
        self._mask = mask
        self.parks: Asked | None = None
        """What a person is to answer, before the session goes on."""
        self.session = session
        self.family = {session}
        """Our session, and those of its sub-agents."""
        self.asked: str | None = None
        """The message of ours that this turn answers; ids sort by time, and its answers come after it."""
        self.ours: Ours | None = None
        self.denied: list[str] = []
        self.error: str | None = None
        """The error that the server told of our session."""
        self.trouble: str | None = None
        """Why a provider is asked again and again."""
        self.left: int | None = None
        """Tokens that this turn may take, with those of its sub-agents; None: as many as it likes."""
        self._took: dict[str, float] = {}
        self.answering = False
        self.busy: set[str] = set()
        self._steps: dict[str, set[str]] = {}
        self._parts: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def anew(self, left: int | None) -> None:
        """Begin a further turn of the session, which may take so many tokens."""
        self.left, self.error, self.trouble = left, None, None
        self.denied.clear()
        self._steps.clear()
        self._took.clear()

    def take(self, kind: str, told: Mapping[str, Any]) -> tuple[bool, Reply | None]:
        """Take an event; gives whether the agent lives by it, and what has to be done."""
        if kind == "session.created":
            self._born(told)
            return False, None
        part = told.get("part")
        session = told.get("sessionID") or (part.get("sessionID") if isinstance(part, Mapping) else None)
        if session not in self.family:
            return False, None
        match kind:
            case "message.updated":
                self._message(str(session), told.get("info"))
            case "message.part.delta":
                self._delta(told)
            case "message.part.updated":
                self._part(str(session), part)
            case "session.status":
                return self._status(str(session), told.get("status")), None
            case "session.error":
                if session == self.session and self.error is None:
                    self.error = words_of(told.get("error")) or "an error without a word"
            case "permission.asked":
                return True, self._permission(told)
            case "question.asked":
                return True, self._question(told)
        return kind != "session.idle", None

    def _born(self, told: Mapping[str, Any]) -> None:
        info = told.get("info")
        if not isinstance(info, Mapping) or info.get("parentID") not in self.family:
            return
        session = str(info.get("id"))
        if session not in self.family and len(self.family) < KEPT_MOST:
            self.family.add(session)
            self._log.line(f"[sub-agent] {info.get('title')}, session {session}")

    def _message(self, session: str, info: object) -> None:
        if not isinstance(info, Mapping):
            return
        name = str(info.get("id"))
        if self.asked is None or name < self.asked:
            return
        self.answering = True
        if info.get("role") != "assistant":
            return
        steps = self._steps.setdefault(session, set())
        steps.add(name)
        if len(steps) > self._most and self.ours is None:
            self.ours = "max_steps"
        if self.left is not None and len(self._took) < KEPT_MOST:
            self._took[name] = messages.tokens([{"info": info}])
            if sum(self._took.values()) > self.left and self.ours is None:
                self.ours = "goal"

    def _delta(self, told: Mapping[str, Any]) -> None:
        kind, text = self._parts.get(str(told.get("partID"))), told.get("delta")
        if kind is not None and isinstance(text, str) and told.get("field") == "text":
            self._log.stream(kind, text)

    def _part(self, session: str, part: object) -> None:
        if not isinstance(part, Mapping) or part.get("messageID") not in self._steps.get(session, ()):
            return
        kind, name = part.get("type"), str(part.get("id"))
        if kind in ("text", "reasoning"):
            shown = "thinks" if kind == "reasoning" else "text" if session == self.session else "sub-agent"
            fresh = name not in self._parts
            if len(self._parts) < KEPT_MOST:
                self._parts[name] = shown
            text = part.get("text")
            if fresh and isinstance(text, str) and text:
                self._log.stream(shown, text)  # what came before its first piece
        elif kind == "tool":
            self._tool(name, part)

    def _tool(self, name: str, part: Mapping[str, Any]) -> None:
        state = part.get("state")
        state = state if isinstance(state, Mapping) else {}
        status, before = str(state.get("status")), self._tools.get(name)
        if status == before or status == "pending":
            return
        if len(self._tools) < KEPT_MOST:
            self._tools[name] = status
        told = permissions.told(_question(str(part.get("tool")), (), state.get("input")))
        if before is None:
            self._log.line(f"[tool] {told}")
        if status in ("completed", "error"):
            said = f": {state.get('error')}" if status == "error" else ""
            self._log.line(f"[tool] {'failed' if status == 'error' else status}: {told}{said}")

    def _status(self, session: str, status: object) -> bool:
        kind = status.get("type") if isinstance(status, Mapping) else None
        (self.busy.discard if kind == "idle" else self.busy.add)(session)
        if kind == "retry" and isinstance(status, Mapping):
            self.trouble = f"its provider is asked again: {status.get('message')}"
            self._log.line(f"[waits] {self.trouble} (try {status.get('attempt')})")
        return False  # who is only asked again and again says nothing

    def _permission(self, told: Mapping[str, Any]) -> Reply | None:
        patterns = told.get("patterns")
        named = [str(one) for one in patterns] if isinstance(patterns, list) else []
        question = _question(str(told.get("permission")), named, told.get("metadata"))
        answer = self._answer(question)
        if answer is None:
            return None
        body = {"reply": "once"} if answer == "allow" else {"reply": "reject", "message": NOBODY}
        return Reply(path=f"/permission/{told.get('id')}/reply", body=body)

    def _question(self, told: Mapping[str, Any]) -> Reply | None:
        asked = told.get("questions")
        first = asked[0] if isinstance(asked, list) and asked and isinstance(asked[0], Mapping) else {}
        text = " ".join(str(first.get("question") or "a question").split())
        self._log.line(
            f"[asked] {text}: {'a person is to answer' if self._unattended == 'park' else 'nobody is there'}"
        )
        if self._unattended != "park":
            self._deny(f"an answer: {text}")
        if self._unattended == "fail":
            self.ours = self.ours or "question"
            return None
        if self._unattended == "park":
            given = first.get("options")
            options = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
            labels = tuple(self._mask(str(one.get("label"))) for one in options)
            self._park(Asked(kind="question", text=self._mask(text), options=labels))
            return None
        return Reply(path=f"/question/{told.get('id')}/reject", body={})

    def _park(self, asked: Asked) -> None:
        """Leave a question to a person: the turn is ended, and its session goes on with the answer."""
        if self.ours is None:
            self.parks, self.ours = asked, "park"

    def _answer(self, question: Question) -> Literal["allow", "deny"] | None:
        """Answer by what a person said, else by the task's rules; None where the turn is to be ended instead."""
        answer: Unattended = permissions.answer_to(question, self._rules, self._unattended)
        asked = permissions.told(question)
        about: dict[str, object] = json.loads(self._mask(json.dumps(permissions.facts_of(question))))
        if self._answered is not None and about == self._answered.asked.about:
            answer = "allow" if self._answered.answer == "allow" else "deny"
        self._log.line(f"[asked] {asked}: {answer}")
        if answer == "park":
            self._park(Asked(kind="permission", text=self._mask(asked), about=about))
            return None
        if answer != "allow":
            self._deny(asked)
        if answer == "fail":
            self.ours = self.ours or "question"
            return None
        return answer

    def _deny(self, asked: str) -> None:
        if len(self.denied) < DENIED_MOST:
            self.denied.append(asked)


def ruleset(rules: tuple[Permission, ...], unattended: Unattended) -> list[dict[str, object]]:
    """Give the rules that a session has from us: what ours are about is asked, and nobody is there for a question.

    Where questions wait for a person, the agent may ask one in words, too.

    The answer is ours then, by one way of reading for all agents; a rule that fails to arrive allows nothing. Sessions
    of sub-agents have none of these: where something is denied, there are no sub-agents, unless a rule names them.
    """
    tools = [tool for one in rules for tool in _tools_of(one.tool)]
    found: list[dict[str, object]] = [{"permission": tool, "pattern": ANY, "action": "ask"} for tool in tools]
    if any(one.action == "deny" for one in rules) and not any(one.tool == TASK for one in rules):
        found.append({"permission": TASK, "pattern": ANY, "action": "deny"})
    answering = "allow" if unattended == "park" else "deny"
    return [*found, {"permission": "question", "pattern": ANY, "action": answering}]


def _tools_of(named: str) -> list[str]:
    """The permissions of OpenCode that a rule's tool means; a rule of no known kind means what it says."""
    kinds = [tool for tool, kinds in KINDS.items() if named in kinds and tool != "write"]
    return list(dict.fromkeys([*kinds, named] if named not in ("execute", "fetch", "search") else kinds))


def _question(tool: str, patterns: list[str] | tuple[()], given: object) -> Question:
    found = given if isinstance(given, Mapping) else {}
    command = found.get("command")
    place = next((found[name] for name in ("filepath", "filePath", "path", "url") if found.get(name)), None)
    places = tuple(patterns) or ((str(place),) if place else ())
    return Question(
        tools=(*KINDS.get(tool, ()), tool),
        command=command if isinstance(command, str) else None,
        places=places,
        title=tool,
    )
