"""One attempt's conversation with its agent: greet, open a session, choose the model, prompt, hear it to its end.

Runs in the loop of `streams`. It always ends: by the agent's word, by its death, or by a time that is over; then who
started the agent's process ends that.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duly import chance, clock
from duly.core.permissions import Answer
from duly.core.questions import Answered, Asked
from duly.core.turns import Ours, is_unseen
from duly.core.values import changed
from duly.ports import Resumption
from duly.prompts import resuming
from duly.runners.acp import blocks
from duly.runners.acp.greeting import (
    LAST_LINE_MOST,
    Nonsense,
    choose,
    error_told,
    greet,
    loading_of,
    named,
)
from duly.runners.acp.hearing import CANCELLED, Heard, Open, usage_told
from duly.runners.acp.wire import Wire, reader, writer
from duly.runners.agent_process import Pipes
from duly.runners.bound import accepted, asking, is_bound, notes
from duly.runners.prompting import Heeded, NotResumed, Talk, Unfit
from duly.runners.telling import Log
from duly.runners.turn_file import Left

if TYPE_CHECKING:
    from acp.connection import Connection

HEARD_WITHIN_S = 1.0
CANCELLED_WITHIN_S = 10.0
"""A turn that was asked to end has so long to do it; then its process is ended."""
LAST_WORDS_WITHIN_S = 0.5
QUICK_AFTER_S = (0.5, 2.0)
"""Waits before a turn is asked again that failed before anything of it could be seen: three tries in all."""
QUICK_JITTER = 0.5
STDERR_BYTES = 65_536


class Conversation:
    """Holds one conversation; `run` in the loop, `end` from there too."""

    def __init__(
        self,
        pipes: Pipes,
        talk: Talk,
        *,
        keep: Callable[[Left], None],
        on_told: Callable[[Mapping[str, object]], None],
        on_asked: Callable[[Asked], None],
        mask: Callable[[str], str],
        longest: Callable[[], int],
    ) -> None:
        self._pipes = pipes
        self._talk = talk
        self._keep = keep
        self._on_told = on_told
        self._on_asked = on_asked
        self._over_s = 0.0
        self._goes_on_later = False
        """The agent can go on with its session when its process has ended."""
        self._informs: str | None = None
        """The standing knowledge that the prompt brings along."""
        self._parks: Asked | None = None
        self._open: dict[str, asyncio.Future[Answer | None]] = {}
        """Questions that a person is asked while the agent waits, by their keys."""
        self._mask = mask
        self._longest = longest
        self._left = Left()
        self._accepted = False
        self._bell = asyncio.Event()
        self._heard_s = clock.monotonic_s()
        self._hard_s: float | None = None
        self._heard: Heard | None = None
        self._connection: Connection | None = None
        self._early: Ours | None = None
        self._pausing = False
        """Between two tries, when there is no turn to end."""

    async def run(self) -> Heeded:
        """Talk to the agent until its turn is over, one way or another."""
        log = Log(self._pipes.log, self._mask, self._longest)
        resumes = self._talk.resumes
        self._heard = Heard(
            log,
            unattended=self._talk.unattended,
            permissions=self._talk.permissions,
            answered=None if resumes is None else resumes.answer,
            mask=self._mask,
        )
        self._heard.ours = self._early
        said, stdout = await reader(self._pipes.stdout)
        noise, stderr = await reader(self._pipes.stderr)
        wire = Wire(said, await writer(self._pipes.stdin), lambda text: _junk(log, text))
        draining = asyncio.create_task(self._drain(noise, log))
        try:
            heeded = await self._watched(asyncio.create_task(self._guarded(wire, log)))
        finally:
            await _closed(self._connection, wire)
            # Its last words come with its end; what holds the stream open afterwards is not waited for.
            await asyncio.wait({draining}, timeout=LAST_WORDS_WITHIN_S)
            draining.cancel()
            await asyncio.wait({draining})
            stdout.close()
            stderr.close()
            log.close()
        turn = replace(heeded.turn, last_line=self._heard.last_line)
        return replace(heeded, turn=turn, parks=self._parks)

    def end(self, why: Ours) -> None:
        """Ask for the end of the turn; the first reason stays."""
        if self._heard is None:
            self._early = self._early or why
            return
        if self._heard.ours is None:
            self._heard.ours = why
        self._bell.set()

    async def _watched(self, talking: "asyncio.Task[Heeded]") -> Heeded:
        """Wait for the end of the talk, and see to it that there is one."""
        assert self._heard is not None
        self._over_s = clock.monotonic_s() + self._talk.timeout_s
        while not talking.done():
            now = clock.monotonic_s()
            if self._hard_s is not None and now >= self._hard_s:
                talking.cancel()
            elif self._heard.ours is not None and self._hard_s is None:
                await self._cancel(talking)
                continue
            elif self._heard.ours is None and not self._open and now >= self._over_s:
                self._heard.ours = "timeout"
                continue
            elif self._heard.ours is None and not self._open and self._silent_since(now):
                self._heard.ours = "idle"
                continue
            self._bell.clear()
            ringing = asyncio.create_task(self._bell.wait())
            both: set[asyncio.Task[Any]] = {talking, ringing}
            await asyncio.wait(both, timeout=self._wait_s(), return_when=asyncio.FIRST_COMPLETED)
            ringing.cancel()
        if talking.cancelled():
            return Heeded(turn=self._heard.turn("gone"), left=self._left)
        return talking.result()

    def _silent_since(self, now: float) -> bool:
        return self._talk.idle_s is not None and now >= self._heard_s + self._talk.idle_s

    def _wait_s(self) -> float:
        assert self._heard is not None
        ends = [self._hard_s] if self._hard_s is not None else []
        if self._heard.ours is None and not self._open:
            ends += [self._over_s] + ([] if self._talk.idle_s is None else [self._heard_s + self._talk.idle_s])
        return max(0.0, min(ends) - clock.monotonic_s()) + 0.001 if ends else 1.0

    async def _cancel(self, talking: "asyncio.Task[Heeded]") -> None:
        """Ask the agent to end its turn, and give it a while; before its prompt there is no turn to end."""
        self._hard_s = clock.monotonic_s() + CANCELLED_WITHIN_S
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_result(None)
        if self._connection is None or not self._left.prompted or self._pausing:
            talking.cancel()
            await asyncio.wait({talking})
            return
        wish = self._connection.send_notification("session/cancel", {"sessionId": self._left.session})
        with contextlib.suppress(Exception):
            await asyncio.wait_for(wish, HEARD_WITHIN_S)  # an agent that reads nothing would keep us

    async def _guarded(self, wire: Wire, log: Log) -> Heeded:
        """Talk; what the agent's side does wrong is the turn's end, and no error of ours."""
        from acp.exceptions import RequestError

        assert self._heard is not None
        try:
            return await self._spoken(wire, log)
        except NotResumed as gone:
            return Heeded(turn=self._heard.turn("error", str(gone)), left=self._left, not_resumed=gone)
        except Unfit as unfit:
            return Heeded(turn=self._heard.turn("error", str(unfit)), left=self._left, unfit=unfit)
        except RequestError as error:
            return Heeded(turn=self._heard.turn("error", error_told(error)), left=self._left)
        except Nonsense as error:
            return Heeded(turn=self._heard.turn("error", str(error)), left=self._left)
        except ConnectionError:
            return Heeded(turn=self._heard.turn("gone", wire.fault), left=self._left)

    async def _spoken(self, wire: Wire, log: Log) -> Heeded:
        from acp.connection import Connection
        from acp.exceptions import RequestError

        assert self._heard is not None
        self._connection = connection = Connection(self._take, wire)
        greeting = await greet(connection)
        for pause_s in (*QUICK_AFTER_S, None):
            try:
                return await self._turned(connection, greeting, log)
            except RequestError as error:
                if pause_s is None or not self._left.prompted or not self._may_ask_again():
                    raise
                log.line(f"[error] {error_told(error)}; asked again in a new session, as nothing was done yet")
            self._pausing = True
            await asyncio.sleep(pause_s * (1 + chance.between(0, QUICK_JITTER)))
            self._pausing = False
            self._talk = replace(self._talk, resumes=None)  # never the same prompt twice in one session
        raise AssertionError("the last try has raised")

    def _may_ask_again(self) -> bool:
        """Whether nothing of what was asked can have been done: neither now nor by an attempt that this one goes on."""
        assert self._heard is not None
        resumes = self._talk.resumes
        had_it = (resumes is not None and resumes.prompted) or is_bound(self._talk.use, self._left.session)
        return is_unseen(self._heard.turn("error")) and not had_it

    async def _turned(self, connection: "Connection", greeting: Mapping[str, Any], log: Log) -> Heeded:
        """Open a session, and ask in it what is to be asked, once."""
        assert self._heard is not None
        agent = named(greeting)
        with contextlib.suppress(NotResumed):
            self._goes_on_later = bool(loading_of(greeting))
        opened, talk = await self._opened(connection, greeting)
        session = str(self._left.session)
        log.line(f"[agent] {agent}, session {session}")
        for note in (*notes(talk.use, session), *talk.notes):
            log.line(note)
        if self._talk.model is not None:
            await choose(connection, session, opened, self._talk.model)
            self._heard_s = clock.monotonic_s()
        talk = replace(talk, knowledge=asking(talk.use, session, talk.knowledge))
        # From here on the agent may have been asked: nobody may ask it the same again.
        await self._put_down(replace(self._left, prompted=True))
        parts = blocks.of(talk, greeting, log)
        self._informs = talk.knowledge if len(parts) > 1 else None
        said = {"sessionId": session, "prompt": parts}
        result = await self._asked(connection, "session/prompt", said)
        end = self._heard.answered(result)
        self._left = replace(self._left, usage=dict(self._heard.usage))
        self._accept()
        log.line(f"[end] {', '.join(filter(None, [str(result.get('stopReason')), usage_told(self._heard.usage)]))}")
        if end is None:
            raise Nonsense(
                f"the agent ended its turn with a word that the protocol has not: {result.get('stopReason')!r}"
            )
        return Heeded(turn=self._heard.turn(end), left=self._left)

    async def _opened(self, connection: "Connection", greeting: Mapping[str, Any]) -> tuple[Mapping[str, Any], Talk]:
        """Open a session, or go on with the one there is; gives what the agent told of it, and what to say in it."""
        resumes = self._talk.resumes
        if resumes is not None and resumes.session is not None:
            try:
                return await self._loaded(connection, greeting, resumes)
            except NotResumed:
                if resumes.prompted:
                    raise
        elif self._talk.use is not None:
            bound = self._talk.use.of.session
            try:
                loading_of(greeting)
            except NotResumed as unable:
                raise Unfit("preflight", f"{unable}, and its task is bound to {bound}") from unable
            with contextlib.suppress(NotResumed):
                goes_on = Resumption(session=bound, prompted=False, why="bound")
                return await self._loaded(connection, greeting, goes_on)
        opened = await self._asked(connection, "session/new", {"cwd": self._talk.cwd, "mcpServers": []})
        session = opened.get("sessionId")
        if not isinstance(session, str) or not session:
            raise Unfit("agent_error", "the agent opened a session without an id")
        await self._put_down(Left(session=session))
        return opened, self._talk

    async def _loaded(
        self, connection: "Connection", greeting: Mapping[str, Any], resumes: Resumption
    ) -> tuple[Mapping[str, Any], Talk]:
        """Go on with a session; NotResumed where the agent cannot."""
        from acp.exceptions import RequestError

        assert self._heard is not None
        method = loading_of(greeting)
        await self._put_down(Left(session=resumes.session, under_way=resumes.prompted))
        params: dict[str, object] = {"sessionId": resumes.session, "cwd": self._talk.cwd, "mcpServers": []}
        self._heard.replaying = True
        try:
            opened = await connection.send_request(method, params)
        except RequestError as error:
            raise NotResumed(f"the agent does not find its session {resumes.session}: {error_told(error)}") from error
        finally:
            self._heard.replaying = False
        self._heard_s = clock.monotonic_s()
        if not resumes.prompted:
            return opened or {}, self._talk
        known = self._heard.replayed or method != "session/load"
        lost = None if known else self._talk.prompt
        prompt = resuming.resumed(lost) if resumes.answer is None else resuming.answered(resumes.answer, lost)
        return opened or {}, replace(self._talk, prompt=prompt, knowledge=None if known else self._talk.knowledge)

    async def _asked(self, connection: "Connection", method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        result = await connection.send_request(method, dict(params))
        self._heard_s = clock.monotonic_s()
        if not isinstance(result, Mapping):
            raise Nonsense(f"the agent answered {method} with no object")
        return result

    async def _put_down(self, left: Left) -> None:
        """Have it on disk before anything that relies on it."""
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._keep, left)
        except OSError as error:
            raise Unfit("preflight", f"what the turn needs cannot be put on disk: {error}") from error
        self._left = left

    async def _take(self, method: str, params: Any, notification: bool) -> Any:
        """Take what the agent sends by itself."""
        from acp.exceptions import RequestError

        assert self._heard is not None
        self._heard_s = clock.monotonic_s()
        if method == "session/update":
            if self._left.prompted:
                self._accept()
            with contextlib.suppress(Exception):  # whatever an agent makes up, its turn goes on
                self._heard.update(params)
            return None
        if method == "session/request_permission":
            answer = self._heard.asked(params)
            if isinstance(answer, Open):
                return await self._person(answer)
            if self._heard.ours is not None:
                self._bell.set()
            return answer
        if notification:
            return None
        raise RequestError.method_not_found(method)

    async def _person(self, one: Open) -> dict[str, object]:
        """Have a person answer: later, in the same session, where the agent can; else while it waits."""
        assert self._heard is not None
        if self._goes_on_later:
            self._parks, self._heard.ours = one.asked, "park"
            self._bell.set()
            return CANCELLED
        key, since_s = f"{id(self):x}-{len(self._open)}-{clock.monotonic_s()}", clock.monotonic_s()
        waiting = self._open[key] = asyncio.get_running_loop().create_future()
        self._bell.set()
        self._on_asked(changed(one.asked, key=key))
        try:
            answer = await waiting
        finally:
            del self._open[key]
            self._heard_s = clock.monotonic_s()
            self._over_s += self._heard_s - since_s
            self._bell.set()
        return CANCELLED if answer is None else self._heard.decided(one, answer)

    def answer(self, given: Answered) -> None:
        """Pass on the answer to a question of this key; in the loop."""
        waiting = self._open.get(given.asked.key)
        if waiting is not None and not waiting.done():
            waiting.set_result("allow" if given.answer == "allow" else "deny")

    def _accept(self) -> None:
        """Tell that the prompt was accepted, once."""
        if not self._accepted:
            self._accepted = True
            self._on_told(accepted(self._talk.use, self._left.session, self._informs))

    async def _drain(self, stream: asyncio.StreamReader, log: Log) -> None:
        assert self._heard is not None
        last = ""
        while data := await stream.read(STDERR_BYTES):
            text = data.decode("utf-8", "replace")
            log.stream("stderr", text)
            self._heard_s = clock.monotonic_s()
            lines = [line for line in (last + text).splitlines() if line.strip()]
            last = (last + text).rpartition("\n")[2][-LAST_LINE_MOST:]
            if lines:
                self._heard.last_line = self._mask(lines[-1].strip())[-LAST_LINE_MOST:]


def _junk(log: Log, text: str) -> None:
    log.line(f"[not of the protocol] {text}")


async def _closed(connection: "Connection | None", wire: Wire) -> None:
    with contextlib.suppress(Exception):
        await (wire.close() if connection is None else connection.close())
