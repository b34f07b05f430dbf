"""The runner for webhooks: one request an attempt, its answer in the attempt's log, its outcome by the status."""

import asyncio
import contextlib
import importlib
import os
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from duly import clock
from duly.core import successes
from duly.core.http_reading import check as check_action
from duly.core.reasons import Refusal
from duly.core.spans import write_span
from duly.core.successes import TEXT_MOST, Seen
from duly.errors import Invalid
from duly.ports import Assignment, How, Outcome
from duly.runners import folders, logs, processes
from duly.runners.streams import Streams
from duly.runners.webhook.exchange import Answered, Heard, NotSent, Progress, Unanswered, exchange
from duly.runners.webhook.reach import Reach
from duly.runners.webhook.request import Request, Unsendable, made
from duly.secrets import Secrets

ERROR_MOST = 500
SHOWN_MOST = 200
HIDDEN = frozenset({"set-cookie", "authorization", "proxy-authorization"})
"""Headers of an answer whose values are not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HungUp:
    """It was ended by us before there was an answer."""

    why: Literal["timeout", "cancelled"]


class Webhook:
    """Performs one attempt. `stop` may come before, during and after `perform`, from any thread."""

    kept = False
    """It works in this process: what is left of it when that is gone is a connection that is closed."""

    def __init__(self, secrets: Secrets, streams: Streams, reach: Reach | None = None) -> None:
        self._secrets = secrets
        self._streams = streams
        self._reach = reach or Reach()
        self._wished = False
        self._task: asyncio.Task[object] | None = None
        """What sends and hears; of the loop's thread alone."""

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        """Say what is wrong with the action; nothing is sent, and no name is looked up."""
        try:
            check_action(action)
        except Invalid as bad:
            return Refusal(reason="invalid", sentence=bad.message)
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome:
        """Send the request and stay until it was answered, or there will be no answer."""
        assert checkpoint is None, "what works in its holder is never adopted"
        importlib.import_module("httpx2")  # here, so that nobody waits for it in the loop of all
        try:
            request = made(assignment, self._secrets, clock.now())
        except Unsendable as fault:
            return Outcome(word="failed", reason="preflight", error=str(fault), side_effect=False)
        progress = Progress()
        idle_s = None if assignment.idle_timeout is None else assignment.idle_timeout.total_seconds()
        began_s = clock.monotonic_s()
        sending = exchange(request, self._reach, progress, idle_s=idle_s)
        heard = self._streams.run(self._within(assignment.timeout, sending)).result()
        return self._judged(assignment, request, progress, heard, clock.monotonic_s() - began_s)

    def stop(self, how: How) -> None:  # noqa: ARG002 - a request is hung up on, however it is asked for
        """Hang up; what was sent by then stays sent."""
        self._wished = True
        self._streams.call(lambda: self._task is not None and self._task.cancel())

    async def _within(self, timeout: timedelta, sending: Coroutine[Any, Any, Heard]) -> Heard | HungUp:
        """Send and hear until it is time, or until somebody wishes it to end; then nothing of it goes on."""
        self._task = asyncio.current_task()
        task = asyncio.ensure_future(sending)
        try:
            if self._wished:
                return HungUp(why="cancelled")
            await asyncio.wait([task], timeout=timeout.total_seconds())
            return task.result() if task.done() else HungUp(why="timeout")
        except asyncio.CancelledError:
            return HungUp(why="cancelled")
        finally:
            self._task = None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _judged(
        self, assignment: Assignment, request: Request, progress: Progress, heard: Heard | HungUp, took_s: float
    ) -> Outcome:
        log = _log(request, progress, heard)
        data, cut = self._keep(assignment, log, heard)
        told: dict[str, object] = {
            "method": request.method,
            "status": heard.status if isinstance(heard, Answered) else None,
            "answer_bytes": heard.size if isinstance(heard, Answered) else None,
            "took_s": round(took_s, 3),
            "tries": len(progress.tries) + 1,
        }
        outcome = _outcome(assignment, heard, progress)
        return replace(
            outcome,
            error=None if outcome.error is None else self._masked(outcome.error)[:ERROR_MOST],
            log_bytes=data + cut,
            log_cut=cut,
            details={"http": told},
        )

    def _keep(self, assignment: Assignment, log: bytes, heard: Heard | HungUp) -> tuple[int, int]:
        """Write the log; gives how many bytes it has, and how many of the answer it lacks."""
        data = self._masked(log.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        missing = heard.size - len(heard.body) if isinstance(heard, Answered) else 0
        try:
            folders.make_folder(assignment.folder)
            with folders.opened(assignment.folder) as folder:
                assert folder is not None
                if missing:
                    processes.write_whole(folder, logs.CUT, {"at": len(data), "bytes": missing})
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                with os.fdopen(os.open(logs.LOG, flags, 0o600, dir_fd=folder), "wb") as file:
                    file.write(data)
        except OSError:
            return 0, 0  # the outcome is told all the same
        return len(data), missing

    def _masked(self, text: str) -> str:
        return self._secrets.mask(text)


def _outcome(assignment: Assignment, heard: Heard | HungUp, progress: Progress) -> Outcome:
    match heard:
        case HungUp():
            until = "it was answered" if progress.sent else "it could be sent"
            if heard.why == "cancelled":
                told = f"it was cancelled before {until}"
                return Outcome(word="cancelled", reason="cancelled_by_hand", error=told, side_effect=progress.sent)
            told = f"its timeout of {write_span(_whole(assignment.timeout))} was over before {until}"
            return Outcome(word="timed_out", reason="timeout", error=told, side_effect=progress.sent)
        case NotSent():
            # Nothing can have happened, so that it may be sent once more by itself; but not where it is the same.
            again = not heard.for_good
            return Outcome(word="failed", reason="preflight", error=heard.why, side_effect=False, unseen=again)
        case Unanswered():
            if heard.idle:
                return Outcome(word="timed_out", reason="idle", error=heard.why)
            return Outcome(word="failed", reason="cut_off", error=heard.why)
        case Answered():
            return _of_status(assignment, heard)


def _of_status(assignment: Assignment, heard: Answered) -> Outcome:
    status = f"{heard.status} {heard.phrase}".strip()
    if not 200 <= heard.status < 300:
        where = next((text for name, text in heard.headers if name.lower() == "location"), None)
        if 300 <= heard.status < 400 and where is not None:
            told = f"the server answered {status} and sends on to {where[:SHOWN_MOST]}, which is not followed"
        else:
            said = _first_line(heard.body)
            told = f"the server answered {status}" + (f": {said}" if said else "")
        return Outcome(word="failed", reason="exit_status", error=told)
    rule = assignment.success_when
    if rule is not None:
        data = heard.body[-TEXT_MOST:]
        seen = Seen(
            text=data.decode("utf-8", "replace"),
            of="the answer",
            asked=successes.asked(len(data), heard.size - len(data), "bytes"),
        )
        fault = successes.unmet(rule, seen)
        if fault is not None:
            return Outcome(word="failed", reason="success_rule", error=fault)
    return Outcome(word="succeeded")


def _log(request: Request, progress: Progress, heard: Heard | HungUp) -> bytes:
    """Write what was sent where, and what came back: the head of the answer, and its body as it is."""
    lines = [f"> {request.method} {request.shown} ({len(request.body):,} bytes)"]
    lines += [f"! {why}; tried again" for why in progress.tries]
    if not isinstance(heard, Answered):
        why = heard.why if not isinstance(heard, HungUp) else f"ended before there was an answer: {heard.why}"
        return ("\n".join([*lines, f"! {why}"]) + "\n").encode("utf-8", "surrogateescape")
    lines.append(f"< {heard.status} {heard.phrase}".rstrip())
    lines += [f"< {name}: {'…' if name.lower() in HIDDEN else text}" for name, text in heard.headers]
    if not heard.whole:
        lines.append(f"! it was hung up on after {heard.size:,} bytes")
    return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogateescape") + heard.body


def _first_line(body: bytes) -> str:
    text = body[: 4 * SHOWN_MOST].decode("utf-8", "replace")
    shown = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return shown if len(shown) <= SHOWN_MOST else shown[: SHOWN_MOST - 1] + "…"


def _whole(span: timedelta) -> timedelta:
    return timedelta(seconds=max(1, round(span.total_seconds())))
