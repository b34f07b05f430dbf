"""A process that serves a store with work that asks: its sessions lie on the disk, as those of an agent do."""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from duly.core.questions import Answered, Asked
from duly.holder.holder import Holder
from duly.holder.wish import wish
from duly.ports import Assignment, How, Outcome, Parked
from duly.runners.registry import Registry
from duly.store import Store
from duly.store.address import resolve

MAY_I = Asked(kind="permission", text="execute: make clean", about={"tool": "execute"}, key="call_1")
LIVES = "lives"
"""A task of this name has work that lives while it asks."""


class Asking:
    """Says what it is asked to do in a session of its own, once, and asks; with the answer it goes on there."""

    kept = False
    at_once = True

    def __init__(self) -> None:
        self._given: Answered | None = None
        self._bell = threading.Event()
        self.on_asked: Callable[[Asked], None] = lambda _asked: None

    def check(self, action: Mapping[str, object]) -> None:
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome | Parked:
        resumes = assignment.resumes
        if resumes is None:
            session = f"ses_{assignment.run[-8:]}_{assignment.attempt}"
            _say(session, "prompt")
            if assignment.task_name != LIVES:
                return Parked(asked=MAY_I, agent={"session": session, "prompted": True})
            self.on_asked(MAY_I)
            self._bell.wait()
            if self._given is None:
                return Outcome(word="cancelled", reason="cancelled_by_hand")
            _say(session, f"told {self._given.answer}")
        else:
            assert resumes.answer is not None
            session = str(resumes.session)
            _say(session, f"resumed with {resumes.answer.answer} of {resumes.answer.asked.text}")
        return Outcome(word="succeeded", agent={"session": session, "prompted": True})

    def answer(self, given: Answered) -> None:
        self._given = given
        self._bell.set()

    def stop(self, how: How) -> None:
        self._bell.set()


def _say(session: str, line: str) -> None:
    with (Path(os.environ["HOME"]) / session).open("ab", buffering=0) as kept:
        kept.write(f"{line}\n".encode())


def main(path: str, *flags: str) -> None:
    wanted = wish(slots=1, beat=timedelta(seconds=1), lease=timedelta(seconds=8), until_idle="--until-idle" in flags)
    store = Store.open(resolve(path, os.environ), create=True)
    holder = Holder(store, wanted, Registry(extra={"command": Asking}), tell=lambda event, told: None)
    holder.start()
    print(f"duly: serving {path} as {holder.id}", flush=True)
    holder.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
