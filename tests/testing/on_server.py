"""`make sim SIM_STORE=postgresql`: the storm over hosts that share a server, which is started for it alone."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import databases
from duly.testing.__main__ import main


def play(words: list[str]) -> int:
    if (url := os.environ.get(databases.SERVER)) is not None:
        return main(["--server", url, *words])
    server = databases.Server()
    try:
        return main(["--server", server.url, *words])
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(play(sys.argv[1:]))
