"""The keeper: the small process of ours around one command; it owns the tree, the log, the timeout and the end.

Standard library only and nothing of ours but its siblings of the same kind: the nursery loads it by path and forks
as many as there are commands at a time. It sleeps without a timeout while no timer runs, and is through with an
attempt only after its last descendant.
"""

import contextlib
import fcntl
import os
import select
import signal
import socket
import time
import traceback

from duly.runners import ask as asking
from duly.runners import deadlines, endings, output, processes, starting

LEFTOVERS_AFTER_S = 2.0  # what a finished command leaves running has so long to end by itself
AGAIN_AFTER_S = 0.02  # the first look after a KILL; each next look waits twice as long
AGAIN_UP_TO_S = 1.0
STRAYS_EVERY_MS = 100
STRAYS_WITHIN_S = 5.0  # what is no descendant of ours and outlives its KILL for so long is named a survivor
READ_BYTES = 256 * 1024
DRAIN_BYTES = 4 * 1024 * 1024  # more than a pipe holds, so that a stranger who writes on cannot keep us
ATTEMPTS = 100  # so many a keeper keeps at most, one after the other
DONE, LEAVING = b"+", b"-"  # what a keeper tells its nursery: free for another, or only staying with what was left
POLL_MS = 2**31 - 1
RUNNING, LEFT, ENDING, KILLING, STAYING = "running", "left", "ending", "killing", "staying"


def main(line: socket.socket, message: bytes, descriptors: list[int], origin: asking.Origin) -> None:
    """Keep one attempt after the other, as the nursery hands them on; the caller ends the process afterwards.

    A fork and what it copies cost more than all the rest of a short command. Only a keeper that nobody but its
    holder can be watching, and of whose last attempt nothing is left, takes another.
    """
    os.setsid()
    wake_in, wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
    for _ in range(ATTEMPTS):
        folder = os.fsdecode(message)
        try:
            again, left = _attempt(folder, descriptors, wake_in, origin, line)
            if left is not None:
                left.stay()
            if not again:
                return
        except BaseException:
            _tell(folder)
            raise
        message, descriptors = asking.take(line)
        if not message:
            return


def _attempt(
    name: str, descriptors: list[int], wake: int, origin: asking.Origin, line: socket.socket
) -> "tuple[bool, Keeper | None]":
    """Keep one attempt from the ask on its channel to its exit file; tell the nursery if another may follow.

    Gives whether one may, and the keeper that has to stay with what its work was allowed to leave running.
    """
    held = [os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), descriptors[1]]
    folder, lock = held
    with socket.socket(fileno=descriptors[0]) as channel:
        try:
            ask = asking.receive(channel)
            if ask is None:
                return False, None
            keeper = Keeper(ask, folder, lock, wake, asking.mark(ask, origin))
            if asking.hung_up(channel) or keeper.deadline.over():
                return False, None
            begun = processes.create_whole(folder, "begun", keeper.mark)
            if begun is None:
                asking.answer(channel, asking.FORBIDDEN)
                return False, None
            held.append(begun)
            asking.answer(channel, b"%d %d" % asking.identity(keeper.mark["keeper"]))
            alone = keeper.keep(begun, descriptors[2:])
            # What was left on purpose is no attempt of anybody's: if we are killed now, nobody ends it for that.
            left = keeper if keeper.stays else None
            # Who adopts writes the order first and looks for the exit then; we do it the other way round.
            if not alone or asking.hung_up(channel) or processes.read_whole(folder, "adopt") is not None:
                _say(line, LEAVING if left is not None else b"")
                return False, left
            # Before the channel closes: the holder's next ask comes after it.
            return _say(line, DONE), None
        finally:
            for descriptor in held:
                os.close(descriptor)


def _say(line: socket.socket, word: bytes) -> bool:
    """Tell the nursery, if there is a word; say whether it was told."""
    try:
        return bool(word) and line.send(word) > 0
    except OSError:
        return False


class Keeper:
    """One attempt's life, from the mark to the exit file."""

    def __init__(self, ask: asking.Ask, folder: int, lock: int, wake: int, mark: dict[str, object]) -> None:
        self.mark = mark
        self.deadline = deadlines.Deadline(folder, ask.holder)
        self._ask = ask
        self._folder = folder
        self._lock = lock
        self._wake = wake
        self._holder = ask.holder
        self._log = output.Log(folder)
        self._poll = select.poll()
        self._poll.register(wake, select.POLLIN)
        self._pipe: int | None = None
        self._begun = -1
        self._leader = 0
        self._status: int | None = None
        self._start_error: tuple[str, str] | None = None
        self._phase = RUNNING
        self._childless = False
        self._ended_by = "self"
        self._next_at: float | None = None
        self._timeout_at: float | None = None
        self._heard_at = 0.0
        self._deaf = False
        self._again_s = AGAIN_AFTER_S
        self._killed_at: float | None = None
        self._leftovers: list[str] = []
        self._survivors: list[str] = []
        self._began_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000

    def keep(self, begun: int, more: list[int]) -> bool:
        """Start the work, stay beside it until nothing of it lives, write how it ended; False if something lives."""
        self._begun = begun
        self._start(more)
        if self._start_error is None:
            self._heard_at = time.monotonic()
            if self._ask.timeout_s is not None:
                self._timeout_at = self._heard_at + self._ask.timeout_s
            self._arm()
            with contextlib.suppress(OSError):
                # An order is seen by the rename that brings it, even from where we cannot be signalled.
                fcntl.fcntl(self._folder, fcntl.F_NOTIFY, fcntl.DN_RENAME | fcntl.DN_MULTISHOT)
            self._reap()
            self._obey()  # an order may have come before we could hear of it
            while not self._over():
                self._step()
            self._drain(DRAIN_BYTES)
        self._finish()
        if self._pipe is not None and not self.stays:
            os.close(self._pipe)  # a stranger holds the other end
        os.chdir("/")
        return not self._survivors and not self.stays

    @property
    def stays(self) -> bool:
        """The work has succeeded, and what it left running shall live."""
        return self._phase == STAYING

    def stay(self) -> None:
        """Be parent to what was left running until the last of it has ended; what it writes is kept by nobody."""
        self._deaf = True
        while True:
            self._reap()
            if self._childless:
                return
            for descriptor, _ in self._poll.poll():
                if descriptor == self._wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake, READ_BYTES)
                else:
                    self._drain(READ_BYTES)

    def _start(self, more: list[int]) -> None:
        ask = self._ask
        if ask.spoken:
            stdin, stdout, stderr, read_end = more  # of who is spoken to, its holder hears all and says what is logged
        else:
            read_end, stdout = os.pipe2(os.O_CLOEXEC)
            stdin, stderr = 0, stdout  # ours is the null device
        os.set_blocking(read_end, False)
        os.set_inheritable(self._lock, True)  # of all that we hold, the work gets the lock and these three
        try:
            starting.check(ask)
            starting.enter(ask.cwd)
            self._leader = starting.spawn(ask.argv, ask.env, (stdin, stdout, stderr))
        except (OSError, ValueError) as error:
            self._start_error = starting.why(error, ask)
            os.close(read_end)
            return
        finally:
            os.set_inheritable(self._lock, False)
            for descriptor in {stdin, stdout, stderr} - {0}:
                os.close(descriptor)
        self._pipe = read_end
        self._poll.register(read_end, select.POLLIN)
        self.mark["work"] = {"pid": self._leader, "group": self._leader, "session": os.getpid()}
        self._write_mark()

    def _arm(self) -> None:
        """Set the next look at the clock while the work runs: its timeout, or its idle one if that is sooner."""
        ends = [self._timeout_at, None if self._ask.idle_s is None else self._heard_at + self._ask.idle_s]
        self._next_at = min((at for at in ends if at is not None), default=None)

    def _over(self) -> bool:
        if not self._childless:
            return self.stays
        if self._phase not in (ENDING, KILLING):
            return True
        # What was ended may have left the tree by other roads than a fork; then its environment names the run.
        strays = self._strays()
        if strays and self._killed_at is not None and time.monotonic() > self._killed_at + STRAYS_WITHIN_S:
            self._survivors = endings.names(strays)
            return True
        if strays and self._next_at is None:
            self._next_at = time.monotonic() + self._again_s
        return not strays

    def _step(self) -> None:
        wait = None
        if self._next_at is not None:
            wait = min(POLL_MS, max(0, int((self._next_at - time.monotonic()) * 1000) + 1))
        if self._phase == ENDING and self._childless:
            wait = min(STRAYS_EVERY_MS, POLL_MS if wait is None else wait)  # their end sends us no SIGCHLD
        for descriptor, _ in self._poll.poll(self.deadline.wait_ms(wait)):
            if descriptor == self._wake:
                with contextlib.suppress(BlockingIOError):
                    signals = os.read(self._wake, READ_BYTES)
                    if signal.SIGCHLD in signals:
                        self._reap()
                    if signal.SIGUSR1 in signals or signal.SIGIO in signals:
                        self._obey()
            else:
                self._drain(READ_BYTES)
        if self._phase in (RUNNING, LEFT) and self.deadline.over():
            self._end("deadline")
        elif self._phase == ENDING and self.deadline.kill():
            self._kill()
        if self._next_at is not None and time.monotonic() >= self._next_at:
            # What has ended by now ended first: a success that waits to be reaped is no timeout.
            self._reap()
            if not self._childless and time.monotonic() >= self._next_at:
                self._timer()

    def _reap(self) -> None:
        """Take in every end; the leader's is the outcome's, whoever else is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._childless = True
                return
            if pid == 0:
                self._childless = False
                break
            if pid == self._leader:
                self._status = status
        if self._status is not None and self._phase == RUNNING:
            self._phase = LEFT
            self._next_at = time.monotonic() + LEFTOVERS_AFTER_S

    def _obey(self) -> None:
        """Read the orders: `end` from the present holder, `adopt`, then `end` again, for it may be the new holder's."""
        self._obey_end()
        adopt = self._order("adopt")
        if adopt is not None and adopt["holder"] != self._holder:
            self._holder = self.deadline.holder = str(adopt["holder"])
            self.mark["holder"] = self._holder
            self._write_mark()
            self._obey_end()

    def _obey_end(self) -> None:
        order = self._order("end")
        if order is None or order["holder"] != self._holder:
            return
        if order.get("how") == "kill":
            self._end("kill")
        elif order.get("how") == "term" and self._phase in (RUNNING, LEFT):
            self._end("term")

    def _order(self, name: str) -> dict[str, object] | None:
        try:
            order = processes.read_whole(self._folder, name)
        except (OSError, ValueError):
            return None
        if order is None or not isinstance(order.get("holder"), str):
            return None
        fence = order.get("fence")
        return order if isinstance(fence, int) and fence >= self._ask.fence else None

    def _timer(self) -> None:
        if self._phase == RUNNING:
            self._drain(READ_BYTES)  # what was written by now was said in time, though we were frozen and heard nothing
            now = time.monotonic()
            if self._timeout_at is not None and now >= self._timeout_at:
                self._end("timeout")
            elif self._ask.idle_s is not None and now >= self._heard_at + self._ask.idle_s:
                self._end("idle")
            else:
                self._arm()  # it was heard since
        elif self._phase == LEFT:
            self._leftovers = endings.names(self._members())
            if self._ask.leave and self._status == 0:
                self._phase = STAYING
            else:
                self._end("leftovers")
        else:
            self._kill()

    def _end(self, by: str) -> None:
        if self._phase == RUNNING:
            self._ended_by = by
        if by == "kill":
            self._kill()
            return
        self._phase = ENDING
        self._next_at = time.monotonic() + self._ask.grace_s
        members = self._members()
        if self._status is None:
            # One call for the whole group, so that a shell does not start its next line between two of ours. The
            # leader is not reaped yet, so the number of its group cannot be another's.
            with contextlib.suppress(OSError):
                os.killpg(self._leader, signal.SIGTERM)
                os.killpg(self._leader, signal.SIGCONT)
            members = [member for member in members if member.group != self._leader]
        processes.ask_to_end(members)

    def _kill(self) -> None:
        if self._killed_at is None:
            self._killed_at = time.monotonic()
        self._phase = KILLING
        if self._status is None:
            with contextlib.suppress(OSError):
                os.killpg(self._leader, signal.SIGKILL)
        for member in self._members():
            processes.send(member, signal.SIGKILL)
        # Who forked while we looked is found by the next look.
        self._next_at = time.monotonic() + self._again_s
        self._again_s = min(AGAIN_UP_TO_S, self._again_s * 2)

    def _members(self) -> list[processes.Process]:
        everybody = processes.table()
        inside = processes.below([os.getpid()], everybody)
        return inside + self._outside(everybody, {member.pid for member in inside})

    def _strays(self) -> list[processes.Process]:
        return self._outside(processes.table(), set())

    def _outside(self, everybody: dict[int, processes.Process], known: set[int]) -> list[processes.Process]:
        others = [one for pid, one in everybody.items() if pid not in known and pid != os.getpid()]
        return processes.of_run(self._ask.run, self._ask.fence, others)

    def _drain(self, most: int) -> None:
        while self._pipe is not None and most > 0:
            try:
                data = os.read(self._pipe, min(most, READ_BYTES))
            except BlockingIOError:
                return
            if not data:
                self._poll.unregister(self._pipe)
                os.close(self._pipe)
                self._pipe = None
                return
            if not self._deaf:
                self._log.add(data)
                self._heard_at = time.monotonic()
            most -= len(data)

    def _write_mark(self) -> None:
        with contextlib.suppress(OSError):  # it adds to what the first mark said; the work goes on without
            processes.write_all(self._begun, processes.line(self.mark))

    def _finish(self) -> None:
        endings.write(
            self._folder,
            endings.Ending(
                run=self._ask.run,
                fence=self._ask.fence,
                holder=self._holder,
                status=self._status,
                ended_by=self._ended_by,
                start_error=self._start_error,
                leftovers=self._leftovers,
                left=self.stays,
                survivors=self._survivors,
                began_us=self._began_us,
                spoken=self._ask.spoken,
            ),
            self._log,
        )


def _tell(folder: str) -> None:
    """Leave what broke us in the attempt's folder; the nursery ends our tree as if we had been killed."""
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{folder}/fault", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(descriptor, traceback.format_exc().encode())
