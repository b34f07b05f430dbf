"""One attempt's conversation with its agent: greet, open a session, choose the model, prompt, hear it to its end.

Runs in the loop of `streams`. It always ends: by the agent's word, by its death, or by a time that is over; then who
started the agent's process ends that.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duly import __version__, clock
from duly.core.turns import Ours
from duly.runners.acp import blocks
from duly.runners.acp.hearing import Heard, usage_told
from duly.runners.acp.wire import Wire, reader, writer
from duly.runners.agent_process import Pipes
from duly.runners.prompting import Heeded, Talk, Unfit
from duly.runners.telling import Log
from duly.runners.turn_file import Left

if TYPE_CHECKING:
    from acp.connection import Connection

PROTOCOL = 1
GREETED_WITHIN_S = 60.0
"""An agent that does not answer the first call in so long never will."""
HEARD_WITHIN_S = 1.0
CANCELLED_WITHIN_S = 10.0
"""A turn that was asked to end has so long to do it; then its process is ended."""
LAST_WORDS_WITHIN_S = 0.5
LAST_LINE_MOST = 500
STDERR_BYTES = 65_536


class Nonsense(Exception):
    """The agent answered what the protocol has not."""


class Conversation:
    """Holds one conversation; `run` in the loop, `end` from there too."""

    def __init__(
        self,
        pipes: Pipes,
        talk: Talk,
        *,
        keep: Callable[[Left], None],
        on_told: Callable[[Mapping[str, object]], None],
        mask: Callable[[str], str],
        longest: Callable[[], int],
    ) -> None:
        self._pipes = pipes
        self._talk = talk
        self._keep = keep
        self._on_told = on_told
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

    async def run(self) -> Heeded:
        """Talk to the agent until its turn is over, one way or another."""
        log = Log(self._pipes.log, self._mask, self._longest)
        self._heard = Heard(log, unattended=self._talk.unattended, permissions=self._talk.permissions)
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
        return replace(heeded, turn=replace(heeded.turn, last_line=self._heard.last_line))

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
        over_s = clock.monotonic_s() + self._talk.timeout_s
        while not talking.done():
            now = clock.monotonic_s()
            if self._hard_s is not None and now >= self._hard_s:
                talking.cancel()
            elif self._heard.ours is not None and self._hard_s is None:
                await self._cancel(talking)
                continue
            elif self._heard.ours is None and now >= over_s:
                self._heard.ours = "timeout"
                continue
            elif self._heard.ours is None and self._silent_since(now):
                self._heard.ours = "idle"
                continue
            self._bell.clear()
            ringing = asyncio.create_task(self._bell.wait())
            both: set[asyncio.Task[Any]] = {talking, ringing}
            await asyncio.wait(both, timeout=self._wait_s(over_s), return_when=asyncio.FIRST_COMPLETED)
            ringing.cancel()
        if talking.cancelled():
            return Heeded(turn=self._heard.turn("gone"), left=self._left)
        return talking.result()

    def _silent_since(self, now: float) -> bool:
        return self._talk.idle_s is not None and now >= self._heard_s + self._talk.idle_s

    def _wait_s(self, over_s: float) -> float:
        assert self._heard is not None
        ends = [self._hard_s] if self._hard_s is not None else []
        if self._heard.ours is None:
            ends += [over_s] + ([] if self._talk.idle_s is None else [self._heard_s + self._talk.idle_s])
        return max(0.0, min(ends) - clock.monotonic_s()) + 0.001 if ends else 1.0

    async def _cancel(self, talking: "asyncio.Task[Heeded]") -> None:
        """Ask the agent to end its turn, and give it a while; before its prompt there is no turn to end."""
        self._hard_s = clock.monotonic_s() + CANCELLED_WITHIN_S
        if self._connection is None or not self._left.prompted:
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

        assert self._heard is not None
        self._connection = connection = Connection(self._take, wire)
        greeting = await greet(connection)
        agent = named(greeting)
        opened = await self._asked(connection, "session/new", {"cwd": self._talk.cwd, "mcpServers": []})
        session = opened.get("sessionId")
        if not isinstance(session, str) or not session:
            raise Unfit("agent_error", "the agent opened a session without an id")
        await self._put_down(Left(session=session))
        log.line(f"[agent] {agent}, session {session}")
        for note in self._talk.notes:
            log.line(note)
        if self._talk.model is not None:
            await self._choose(connection, opened, self._talk.model)
        # From here on the agent may have been asked: nobody may ask it the same again.
        await self._put_down(replace(self._left, prompted=True))
        said = {"sessionId": session, "prompt": blocks.of(self._talk, greeting, log)}
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

    async def _asked(self, connection: "Connection", method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        result = await connection.send_request(method, dict(params))
        self._heard_s = clock.monotonic_s()
        if not isinstance(result, Mapping):
            raise Nonsense(f"the agent answered {method} with no object")
        return result

    async def _choose(self, connection: "Connection", opened: Mapping[str, Any], model: str) -> None:
        """Set the session's model, by whichever way this agent offers; Unfit where it does not know it."""
        from acp.exceptions import RequestError

        session = str(opened["sessionId"])
        option, known = model_option(opened)
        if known and model not in known:
            raise Unfit("preflight", f"the agent knows no model {model!r}; it knows {', '.join(sorted(known))}")
        try:
            if option is not None:
                params = {"sessionId": session, "configId": option, "value": model}
                await self._asked(connection, "session/set_config_option", params)
            else:
                await self._asked(connection, "session/set_model", {"sessionId": session, "modelId": model})
        except RequestError as error:
            raise Unfit("preflight", f"the agent does not take the model {model!r}: {error_told(error)}") from error

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
            if self._heard.ours is not None:
                self._bell.set()
            return answer
        if notification:
            return None
        raise RequestError.method_not_found(method)

    def _accept(self) -> None:
        """Tell that the prompt was accepted, once."""
        if not self._accepted:
            self._accepted = True
            self._on_told({"session": self._left.session})

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


async def greet(connection: "Connection") -> Mapping[str, Any]:
    """Say hello, which costs nothing, and hear which protocol the agent speaks; Unfit where that is not ours."""
    client = {"name": "duly", "title": "Duly", "version": __version__}
    offers = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    asked = {"protocolVersion": PROTOCOL, "clientCapabilities": offers, "clientInfo": client}
    call: Coroutine[Any, Any, Any] = connection.send_request("initialize", asked)
    try:
        greeting = await asyncio.wait_for(call, GREETED_WITHIN_S)
    except TimeoutError as error:
        raise Unfit("agent_error", f"the agent did not answer within {GREETED_WITHIN_S:g} s of its start") from error
    version = greeting.get("protocolVersion") if isinstance(greeting, Mapping) else None
    if version != PROTOCOL:
        raise Unfit("agent_error", f"the agent speaks version {version!r} of the protocol, and we speak {PROTOCOL}")
    found: Mapping[str, Any] = greeting
    return found


def model_option(opened: Mapping[str, Any]) -> tuple[str | None, frozenset[str]]:
    """Find by which option of a session its model is chosen, and which there are; nothing where it does not say."""
    options = opened.get("configOptions")
    for one in options if isinstance(options, list) else ():
        if isinstance(one, Mapping) and one.get("category") == "model" and isinstance(one.get("id"), str):
            return str(one["id"]), frozenset(_values(one.get("options")))
    models = opened.get("models")
    known = models.get("availableModels") if isinstance(models, Mapping) else None
    ids = [one.get("modelId") for one in known if isinstance(one, Mapping)] if isinstance(known, list) else []
    return None, frozenset(one for one in ids if isinstance(one, str))


def _values(options: object) -> list[str]:
    """The values of a choice, those in groups too."""
    found: list[str] = []
    for one in options if isinstance(options, list) else ():
        if isinstance(one, Mapping):
            found += [one["value"]] if isinstance(one.get("value"), str) else _values(one.get("options"))
    return found


def named(greeting: Mapping[str, Any]) -> str:
    """Give the agent's own name for itself, with its version."""
    info = greeting.get("agentInfo")
    if not isinstance(info, Mapping):
        return "an agent without a name"
    return " ".join(str(info[name]) for name in ("name", "version") if info.get(name)) or "an agent without a name"


def error_told(error: Any) -> str:
    """Tell an error of the protocol with what it says beside its message."""
    words, data = str(error), error.data
    if isinstance(data, Mapping):
        more = next((data[name] for name in ("message", "details", "detail", "error") if data.get(name)), None)
        words += f": {more}" if more is not None and str(more) not in words else ""
    elif isinstance(data, str) and data not in words:
        words += f": {data}"
    return " ".join(words.split())[:LAST_LINE_MOST]


def _junk(log: Log, text: str) -> None:
    log.line(f"[not of the protocol] {text}")


async def _closed(connection: "Connection | None", wire: Wire) -> None:
    with contextlib.suppress(Exception):
        await (wire.close() if connection is None else connection.close())
