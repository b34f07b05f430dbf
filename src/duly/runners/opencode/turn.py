"""One turn at an OpenCode server: what is asked is checked, a session is opened, prompted and heard to its end.

Runs in the loop of `streams`. It always ends: by the agent's word, by the server's death, or by a time that is over.
The events only wake it and feed the log; how the turn ended is read from the session's messages.
"""

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from duly import clock
from duly.core.turns import End, Ours, Turn, judge
from duly.prompts import goals, resuming
from duly.prompts.goals import Goal
from duly.runners.agent_process import Pipes
from duly.runners.bound import accepted, asking, is_bound, notes
from duly.runners.opencode import closing, fitting, hearing, messages, opening
from duly.runners.opencode.api import USER, Api, Away, Strange, Told, reached
from duly.runners.opencode.hearing import Heard
from duly.runners.opencode.messages import Reading
from duly.runners.opencode.opening import Wish
from duly.runners.opencode.servers import Server, is_alive
from duly.runners.prompting import Heeded, NotResumed, Talk, Unfit
from duly.runners.telling import Log
from duly.runners.turn_file import Left

HEARD_WITHIN_S = 20.0
BEGUN_WITHIN_S = 30.0
"""A server that took a prompt and has done nothing with it for so long never will."""
SETTLED_WITHIN_S = 2.0
"""What a session that is idle has to say of its turn comes within so long."""
POLL_S = 5.0
LOOK_S = 0.2
CANCELLED_WITHIN_S = 10.0
GONE_AFTER_S = 30.0
"""A server that does not answer for so long in the middle of a turn is gone."""
AGAIN_S = 0.3
LOOKED_WITHIN_S = 3.0
"""A look that takes longer is made anew, so that nobody waits for a server who wishes for the end."""


class Speaking:
    """Holds one turn; `run` in the loop, `end` from there too."""

    def __init__(
        self,
        server: Server,
        pipes: Pipes,
        talk: Talk,
        wish: Wish,
        *,
        keep: Callable[[Left], None],
        on_told: Callable[[Mapping[str, object]], None],
        clear: Callable[[], object],
        mask: Callable[[str], str],
        longest: Callable[[], int],
    ) -> None:
        self._server = server
        self._pipes = pipes
        self._talk = talk
        self._wish = wish
        self._keep = keep
        self._on_told = on_told
        self._clear = clear
        self._mask = mask
        self._longest = longest
        self._left = Left()
        self._heard: Heard | None = None
        self._accepted = False
        self._early: Ours | None = None
        self._bell = asyncio.Event()
        self._hearing = asyncio.Event()
        self._heard_s = clock.monotonic_s()
        self._over_s = self._heard_s + talk.timeout_s
        self.confirmed = True
        """Nothing of the turn goes on at the server, as far as that was asked to end."""

    async def run(self) -> Heeded:
        """Take the turn to its end, one way or another."""
        for descriptor in (self._pipes.stdout, self._pipes.stderr):
            os.close(descriptor)
        log = Log(self._pipes.log, self._mask, self._longest)
        server = self._server
        try:
            async with reached(server.url, server.password, self._talk.cwd, outside=server.kept is None) as api:
                return await self._guarded(api, log)
        finally:
            with contextlib.suppress(OSError):  # it is told that all is over, if it still listens
                os.write(self._pipes.stdin, b"over\n")
            os.close(self._pipes.stdin)
            log.close()

    def end(self, why: Ours) -> None:
        """Ask for the end of the turn; the first reason stays."""
        if self._heard is not None:
            self._heard.ours = self._heard.ours or why
        self._early = self._early or why
        self._bell.set()

    async def _guarded(self, api: Api, log: Log) -> Heeded:
        try:
            beginning = asyncio.create_task(self._begun(api, log))
            heard = await self._before_its_end(beginning)
            return await self._spoken(api, log, heard)
        except NotResumed as gone:
            turn = Turn(end="error", error=str(gone), ours=self._early)
            return Heeded(turn=turn, left=self._left, not_resumed=gone)
        except Unfit as unfit:
            turn = Turn(end="error", error=str(unfit), ours=self._early)
            return Heeded(turn=turn, left=self._left, unfit=unfit)
        except (Away, Told, Strange) as error:
            if not self._left.prompted:
                why = Unfit("agent_error", f"{error}{closing.ended_with(self._server)}")
                turn = Turn(end="error", error=str(why), ours=self._early)
                return Heeded(turn=turn, left=self._left, unfit=why)
            dead = isinstance(error, Away) and await closing.is_gone(self._server)
            return Heeded(turn=self._turn("gone" if dead else "error", str(error), None), left=self._left)

    async def _before_its_end(self, beginning: "asyncio.Task[Heard]") -> Heard:
        """Wait for what comes before the prompt, as long as nobody wishes for the end and there is time."""
        while not beginning.done():
            if self._early is None and clock.monotonic_s() >= self._over_s:
                self._early = "timeout"
            if self._early is not None:
                beginning.cancel()
                await asyncio.wait({beginning})
                raise Unfit("agent_error", "it was ended before its prompt")
            self._bell.clear()
            ringing = asyncio.create_task(self._bell.wait())
            left_s = max(0.0, self._over_s - clock.monotonic_s()) + 0.001
            await asyncio.wait({beginning, ringing}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            ringing.cancel()
        return beginning.result()

    async def _begun(self, api: Api, log: Log) -> Heard:
        """See that what is asked for is there, and open a session, whose id is on disk before anything is asked."""
        await fitting.check(api, self._talk.model, self._wish.profile, self._wish.variant)
        session = await opening.session_for(api, self._talk, self._wish, self._put)
        log.line(f"[agent] OpenCode, session {session}")
        for note in (*notes(self._talk.use, session), *self._talk.notes):
            log.line(note)
        return Heard(
            log,
            session,
            unattended=self._talk.unattended,
            rules=self._talk.permissions,
            answered=None if self._talk.resumes is None else self._talk.resumes.answer,
            mask=self._mask,
            steps=hearing.MAX_STEPS,
        )

    async def _put(self, session: str, under_way: bool) -> None:
        await self._put_down(replace(self._left, session=session, under_way=under_way))

    async def _spoken(self, api: Api, log: Log, heard: Heard) -> Heeded:
        self._heard = heard
        heard.ours = self._early
        self._tell_warden(heard.session)
        listening = asyncio.create_task(self._listen(api, heard))
        try:
            await self._listened()
            goal = self._wish.goal
            if goal is not None:
                heard.anew(goal.tokens - await closing.spent(api, heard.session))
            if not await self._goes_on(api, heard, log):
                await self._prompt(api, heard)
            since = heard.asked or ""
            turn = self._turn(*await self._followed(api, heard))
            if goal is not None:
                turn = await self._pursued(api, heard, log, goal, turn)
            with contextlib.suppress(Away, Told, Strange):
                self._left = replace(self._left, usage=await closing.cost(api, heard, since))
            log.line(f"[end] {judge(turn).word}, {closing.told(self._left.usage)}")
            return Heeded(turn=turn, left=self._left, parks=heard.parks if self.confirmed else None)
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _pursued(self, api: Api, heard: Heard, log: Log, goal: Goal, turn: Turn) -> Turn:
        """Have further turns until the goal is reached, or is not pursued any more; gives the last of them."""
        turns = 1
        while judge(turn).word == "succeeded":
            left = goal.tokens - await closing.spent(api, heard.session)
            more = goals.after(goal, turn.said, left=left, turns=turns)
            if not isinstance(more, str):
                log.line(f"[goal] reached, with {left:,} tokens left" if more is None else f"[goal] {more.told}")
                return turn if more is None else replace(turn, missed=(more.reason, more.told))
            log.line(f"[goal] not reached yet; {left:,} tokens are left")
            heard.anew(left)
            self._talk = replace(self._talk, prompt=more, knowledge=None)
            await self._prompt(api, heard)
            turn, turns = self._turn(*await self._followed(api, heard)), turns + 1
        return turn

    async def _listened(self) -> None:
        """Wait until events are heard: what comes of a prompt must not be missed."""
        waiting = asyncio.create_task(self._hearing.wait())
        await asyncio.wait({waiting}, timeout=HEARD_WITHIN_S)
        waiting.cancel()
        if not self._hearing.is_set():
            raise Unfit("agent_error", "the server's events cannot be heard")

    async def _goes_on(self, api: Api, heard: Heard, log: Log) -> bool:
        """Take up a turn that was asked for by an earlier attempt; False where something has to be sent.

        Where it is still busy, or had ended, it is only heard; where it was cut off the agent is told to go on. A
        prompt that never arrived is sent as it is. NotResumed where others have been at work in the session since.
        """
        resumes = self._talk.resumes
        if resumes is None or not resumes.prompted or heard.session != resumes.session:
            return False
        busy, found = await closing.looked(api, heard.session, always=True)
        last = messages.last_asked(found, self._wish.run)
        bound = is_bound(self._talk.use, heard.session)
        last = last if bound or last is not None else messages.last_asked(found)
        others = last is not None and messages.was_asked_since(found, last)
        if bound and resumes.answer is None and (others or (last is None and busy)):
            raise NotResumed(f"somebody else has gone on in its session {heard.session} since")
        if last is None:
            return False
        if not (bound and others) and (busy or messages.read(found, last).end == "ended"):
            heard.asked, heard.answering = last, True
            self._talk = replace(self._talk, knowledge=None)  # nothing is told now
            log.line("[goes on] its turn is still under way" if busy else "[goes on] its turn had ended")
            await self._put_down(replace(self._left, prompted=True, message=last))
            self._accept()
            return True
        log.line("[goes on] its turn was cut off" if resumes.answer is None else "[goes on] with the answer")
        await asyncio.get_running_loop().run_in_executor(None, self._clear)  # what its tools had started may live still
        told = resuming.resumed(None) if resumes.answer is None else resuming.answered(resumes.answer, None)
        self._talk = replace(self._talk, prompt=told, knowledge=None)
        return False

    async def _prompt(self, api: Api, heard: Heard) -> None:
        """Send the prompt, under an id of ours that is on disk before."""
        message = closing.message_id(self._wish.run)
        heard.asked = message
        knowledge = asking(self._talk.use, heard.session, self._talk.knowledge)
        self._talk = replace(self._talk, knowledge=knowledge)
        # From here on the agent may have been asked: nobody may ask it the same again.
        await self._put_down(replace(self._left, prompted=True, message=message))
        body: dict[str, object] = {"messageID": message, "parts": closing.parts(self._talk)}
        if self._wish.profile is not None:
            body["agent"] = self._wish.profile
        if self._talk.model is not None:
            provider, _, model = self._talk.model.partition("/")
            body["model"] = {"providerID": provider, "modelID": model}
        if self._wish.variant is not None:
            body["variant"] = self._wish.variant
        await api.post(f"/session/{heard.session}/prompt_async", body)

    async def _followed(self, api: Api, heard: Heard) -> tuple[End, str | None, Reading | None]:
        """Wait for the end of the turn, and see to it that there is one."""
        began_s = answered_s = clock.monotonic_s()
        idle_s: float | None = None
        reading: Reading | None = None
        while True:
            await self._rung(POLL_S if idle_s is None else LOOK_S, heard)
            now = clock.monotonic_s()
            self._timed(heard, now)
            if heard.ours is not None:
                return await self._aborted(api, heard)
            try:
                busy, found = await asyncio.wait_for(closing.looked(api, heard.session), LOOKED_WITHIN_S)
            except (Away, Strange, TimeoutError) as error:
                if now - answered_s > GONE_AFTER_S or not is_alive(self._server):
                    why = str(error) or "it does not answer"
                    return (
                        "gone",
                        f"the server went away in the middle of the turn{closing.ended_with(self._server)}: {why}",
                        None,
                    )
                await asyncio.sleep(AGAIN_S)
                continue
            answered_s = clock.monotonic_s()
            if busy:
                idle_s = None
                continue
            reading, before = messages.read(found, heard.asked or ""), reading
            if reading != before:
                idle_s = None  # it goes on, whatever it says of itself: its word and its messages are two looks
            taken = messages.is_there(found, heard.asked or "")
            if reading.end is not None:
                # Between two steps it says for a moment that it is idle, and an error may come a moment later.
                if reading.end == "ended" or (idle_s is not None and now - idle_s >= LOOK_S):
                    told = reading.error or heard.error
                    return "error" if reading.end == "cancelled" and told else reading.end, told, reading
            elif heard.error is not None and idle_s is not None and now - idle_s >= SETTLED_WITHIN_S:
                return "error", heard.error, reading
            elif reading.steps and idle_s is not None and now - idle_s >= SETTLED_WITHIN_S:
                return "gone", "the server cut the turn off in the middle", reading
            elif not reading.steps and now - began_s >= BEGUN_WITHIN_S:
                told = "took the prompt, and did nothing" if taken else "did not take the prompt"
                return "gone", f"the server {told} within {BEGUN_WITHIN_S:g} s", reading
            idle_s = now if idle_s is None else idle_s

    async def _rung(self, within_s: float, heard: Heard) -> None:
        """Wait for something that matters, or until it is time to look."""
        ends = [self._over_s] if heard.ours is None else []
        if self._talk.idle_s is not None and heard.ours is None:
            ends.append(self._heard_s + self._talk.idle_s)
        wait_s = max(0.0, min([within_s, *(end - clock.monotonic_s() for end in ends)]))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), wait_s + 0.001)
        self._bell.clear()

    def _timed(self, heard: Heard, now: float) -> None:
        if heard.ours is None and now >= self._over_s:
            heard.ours = "timeout"
        elif heard.ours is None and self._talk.idle_s is not None and now >= self._heard_s + self._talk.idle_s:
            heard.ours = "idle"

    async def _aborted(self, api: Api, heard: Heard) -> tuple[End, str | None, Reading | None]:
        """Stop the turn with those of its sub-agents, and wait until the server says so."""
        self.confirmed = await closing.stopped(api, heard, self._server, within_s=CANCELLED_WITHIN_S)
        if not self.confirmed:
            return "cancelled", None, None
        reading = None
        with contextlib.suppress(Away, Told, Strange):
            reading = messages.read(await api.objects(f"/session/{heard.session}/message"), heard.asked or "")
            if reading.end == "ended" and heard.ours not in ("question", "park", "max_steps"):
                heard.ours = self._early = None  # its success came first
                return "ended", None, reading
        return "cancelled", None, reading

    async def _listen(self, api: Api, heard: Heard) -> None:
        """Hear events until the turn is over; where the stream breaks, hear anew: what was missed is read otherwise."""
        while True:
            with contextlib.suppress(Away, Told):
                async for kind, told in api.events():
                    self._hearing.set()
                    lives, todo = heard.take(kind, told)
                    if lives:
                        self._heard_s = clock.monotonic_s()
                    if heard.answering:
                        self._accept()
                    if todo is not None:
                        with contextlib.suppress(Told, Strange):  # who asked may not wait any more
                            await api.post(todo.path, todo.body)
                    if heard.ours is not None or kind in ("session.idle", "session.error", "server.connected"):
                        self._bell.set()
            self._bell.set()
            await asyncio.sleep(AGAIN_S)

    def _turn(self, end: End, error: str | None, reading: Reading | None) -> Turn:
        heard = self._heard
        assert heard is not None
        denied = tuple(heard.denied)
        return Turn(
            end=end,
            error=error,
            said=reading.said if reading else "",
            said_anything=bool(reading and reading.said_anything),
            tools=reading.tools if reading else 0,
            # What cannot be read may have done anything: only messages prove that nothing was done.
            stirred=reading is None or reading.stirred,
            denied=denied or (("a tool",) if reading and reading.rejected else ()),
            said_since_denial=bool(reading and reading.said_since_denial),
            ours=heard.ours,
            last_line=heard.trouble if heard.ours is not None else None,
        )

    def _accept(self) -> None:
        """Tell that the prompt was accepted, once."""
        if not self._accepted:
            self._accepted = True
            self._on_told(accepted(self._talk.use, self._left.session, self._talk.knowledge))

    def _tell_warden(self, session: str) -> None:
        """Say to the process beside this turn where it is; it stops the turn when nobody watches it."""
        word = f"{USER}:{self._server.password}".encode()
        told: dict[str, Any] = {
            "url": self._server.url,
            "auth": "" if self._server.password is None else f"Basic {base64.b64encode(word).decode()}",
            "session": session,
            "directory": self._talk.cwd,
            "patience": str(self._wish.patience_s),
        }
        try:
            os.write(self._pipes.stdin, json.dumps(told).encode() + b"\n")
        except OSError as error:
            raise Unfit("agent_error", f"what watches over the turn is gone: {error}") from error

    async def _put_down(self, left: Left) -> None:
        """Have it on disk before anything that relies on it."""
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._keep, left)
        except OSError as error:
            raise Unfit("preflight", f"what the turn needs cannot be put on disk: {error}") from error
        self._left = left
