"""The process of ours above an agent's server: it ends the server when nobody has used it for a while.

Whoever uses the server holds a shared lock on the file `users`, which is let go of even by who is killed. Standard
library only, and nothing of ours: it is started by path, under a keeper of its own.

`serving.py USERS LINGER_S PROGRAM ARGUMENT…`
"""

import fcntl
import os
import signal
import sys
import time
from types import FrameType

LOOK_EVERY_S = 0.5


def main(users: str, linger_s: float, argv: list[str]) -> int:
    """Start the server, and stay above it; gives its exit status."""
    child = os.posix_spawnp(argv[0], argv, os.environ)

    def told(_signal: int, _frame: FrameType | None) -> None:
        os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, told)
    lonely_s = 0.0
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) & 0xFF
        lonely_s = 0.0 if _used(users) else lonely_s + LOOK_EVERY_S
        if lonely_s >= linger_s:
            os.kill(child, signal.SIGTERM)
        time.sleep(LOOK_EVERY_S)  # noqa: TID251 - it imports nothing of ours


def _used(users: str) -> bool:
    descriptor = os.open(users, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
