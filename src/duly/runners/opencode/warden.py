"""The process of ours beside one turn: it stops that turn at its server when nobody watches it any more.

It is what an attempt's keeper keeps, so that leases, orders and deadlines mean the turn as they mean a command. It
hears by its input where the turn is, then that it is over. It stops the turn when it is told to end, and when its input
ends without that word and nobody has come for so long.

Standard library only, and nothing of ours: it is started by path, a process for each turn.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from types import FrameType

WITHIN_S = 8.0
AGAIN_S = 0.1
ASK_S = 2.0


def main() -> None:
    """Watch one turn."""
    turn: dict[str, str] = {}

    def told(_signal: int, _frame: FrameType | None) -> None:
        os._exit(0 if not turn or stop(turn) else 1)

    signal.signal(signal.SIGTERM, told)
    line = sys.stdin.readline()
    if not line:
        return
    turn.update(json.loads(line))
    if sys.stdin.readline():
        return
    time.sleep(float(turn["patience"]))  # noqa: TID251 - it imports nothing of ours
    sys.exit(0 if stop(turn) else 1)


def stop(turn: Mapping[str, str]) -> bool:
    """Tell the server to stop the turn, and say whether it did."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    until = time.monotonic() + WITHIN_S  # noqa: TID251 - it imports nothing of ours
    while time.monotonic() < until:  # noqa: TID251 - it imports nothing of ours
        try:
            _ask(turn, "POST", f"/session/{turn['session']}/abort")
            if turn["session"] not in json.loads(_ask(turn, "GET", "/session/status")):
                return True
        except ConnectionRefusedError:
            return True  # with its server it has ended
        except (OSError, ValueError):
            pass
        time.sleep(AGAIN_S)  # noqa: TID251 - it imports nothing of ours
    return False


def _ask(turn: Mapping[str, str], method: str, path: str) -> bytes:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from urllib.parse import quote, urlsplit

    parts = urlsplit(turn["url"])
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    line = kind(parts.netloc, timeout=ASK_S)
    try:
        headers = {"Authorization": turn["auth"]} if turn["auth"] else {}
        place = f"{parts.path.rstrip('/')}{path}?directory={quote(turn['directory'], safe='')}"
        line.request(method, place, headers=headers)
        return line.getresponse().read()
    except HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        line.close()


if __name__ == "__main__":
    main()
