"""Being the first process of a container: a small process of ours takes that place and serves stand behind it.

The first process inherits whatever lost its parent, and has to take in the ends of all that. If it also had children
of its own whose ends it waits for, it could not tell the two apart: so the one in front has a single child, the server,
passes its signals on to it, takes in every other end, and ends with the server's status. The kernel ends what is left.
"""

import os
import signal

FIRST = 1
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def stand_behind_one() -> bool:
    """As the first process, leave that place to a process of ours and return in its child; else do nothing.

    Says whether that was so. Called before there is any thread.
    """
    if os.getpid() != FIRST:
        return False
    # Blocked, they wait until they are asked for: none is lost, not even one that comes before the child is there.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        # In a group of its own: a terminal's interrupt goes to the one in front, which passes it on once.
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return True
    os._exit(_stay(child))


def _stay(child: int) -> int:
    while True:
        heard = signal.sigwait({*PASSED_ON, signal.SIGCHLD})
        if heard != signal.SIGCHLD:
            _pass_on(child, heard)
            continue
        ended = _take_in(child)
        if ended is not None:
            return ended if ended >= 0 else 128 - ended


def _pass_on(child: int, number: int) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        return


def _take_in(child: int) -> int | None:
    """Take in every end there is; gives how the child ended, if it has: its status, or a signal as less than 0."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = os.waitstatus_to_exitcode(status)
