"""A holder inside of another program: in the background in a thread of its own, or in the foreground of a script.

It installs no signal handler in the background, is no subreaper, and leaves no thread and no process behind once it
was stopped. What serves is never carried over a fork: a child serves only when it starts to by itself.
"""

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import nullcontext

from duly.app.agents import agents_of
from duly.app.lines import Lines
from duly.app.loops import Watching
from duly.app.service import opened, stopped_by_signals
from duly.errors import StoreAway
from duly.holder.holder import Holder
from duly.holder.wish import Wish
from duly.runners.registry import Registry
from duly.store.store import Store

LOG = logging.getLogger("duly")
AGAIN_AFTER_S = 10.0
"""A store that is away for longer than a holder stays is tried again every so often."""
AT_EXIT_WITHIN_S = 5.0
TROUBLE = frozenset(
    {
        "a loop file",
        "beat unanswered",
        "forgotten",
        "look failed",
        "loop files are no longer looked after",
        "loop files could not be looked at",
        "run lost",
        "store away",
        "store blocked",
        "store newer",
        "the folder of a project cannot be used",
        "turn failed",
    }
)


class Background:
    """One holder after the other, from `start` to `stop`: a new one where others took the last for dead."""

    def __init__(self, lines: Lines, wish: Wish) -> None:
        self._lines = lines
        self._wish = wish
        self._holder: Holder | None = None
        self._store: Store | None = None
        self._loops: Watching | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._ended.set()

    @property
    def alive(self) -> bool:
        """It serves, or is about to end."""
        return not self._ended.is_set()

    def start(self) -> None:
        """Serve from now on, in a thread of its own; what keeps it from that is raised here."""
        self._begin()
        self._thread = threading.Thread(target=self._serve_on, name="duly", daemon=True)
        self._thread.start()
        atexit.register(_end, weakref.ref(self))

    def stop(self, within_s: float | None = None, *, hurry: bool = False) -> bool:
        """Stop serving, and wait so long for that; False if a function in a thread goes on, and with it the holder.

        `hurry`: live commands are left to whoever serves next at once, else after the drain.
        """
        self._ask_to_stop()
        if hurry:
            self._ask_to_stop()
        ended = self._ended.wait(within_s)
        if ended and self._thread is not None:
            self._thread.join()
        return ended

    def serve_here(self, *, signals: bool) -> None:
        """Serve in this thread until stopped; TERM, INT and HUP stop it where `signals` says so, and only meanwhile."""
        self._begin()
        with stopped_by_signals(self._ask_to_stop) if signals else nullcontext():
            self._serve()

    def forget(self) -> bool:
        """In a forked child: let go of what proves the parent alive; whether anything of it was open."""
        serving = self._holder is not None
        if self._holder is not None:
            self._holder.forget()
        self._ended = threading.Event()
        self._ended.set()
        return serving

    def _begin(self) -> None:
        self._make()
        self._lines.serving.add(self)
        self._ended.clear()

    def _ask_to_stop(self) -> None:
        self._stopping.set()
        holder = self._holder
        if holder is not None:
            holder.stop()

    def _serve(self) -> None:
        """Run one holder after the other until asked to stop; what goes wrong is raised."""
        try:
            while True:
                assert self._holder is not None
                self._holder.run()
                again = self._holder.forgotten and not self._stopping.is_set()
                self._close()
                if not again:
                    return
                self._make()
        finally:
            self._close()
            self._ended.set()

    def _serve_on(self) -> None:
        """Serve, and go on after trouble that may pass; nothing that happens here may end the program around it."""
        while True:
            try:
                self._serve()
                return
            except StoreAway as error:
                LOG.warning("duly: the store is away, and is tried again every %g s: %s", AGAIN_AFTER_S, error)
            except Exception:
                LOG.exception("duly: serving has ended")
                return
            self._ended.clear()
            if not self._next():
                self._ended.set()
                return

    def _next(self) -> bool:
        """Make the next holder when the store is to be had; False once asked to stop."""
        while not self._stopping.wait(AGAIN_AFTER_S):
            try:
                self._make()
                return True
            except StoreAway as error:
                LOG.debug("duly: the store is still away: %s", error)
            except Exception:
                LOG.exception("duly: serving cannot go on")
                break
        return False

    def _make(self) -> Holder:
        self._lines.check()
        store = opened(self._lines.address)
        try:
            holder = Holder(store, self._wish, Registry(agents=agents_of(os.environ)), tell=_tell)
            holder.start()
        except BaseException:
            store.close()
            raise
        self._holder, self._store = holder, store
        self._loops = None if self._wish.passive else Watching(store, os.environ, _tell)
        if self._loops is not None:
            self._loops.start()
        return holder

    def _close(self) -> None:
        if self._loops is not None:
            self._loops.stop()
        self._loops = None
        if self._holder is not None:
            self._holder.quit()
        if self._store is not None:
            self._store.close()
        self._holder = self._store = None


def _tell(event: str, figures: Mapping[str, object]) -> None:
    level = logging.WARNING if event in TROUBLE else logging.INFO
    known = " ".join(f"{name}={value}" for name, value in figures.items() if value is not None)
    LOG.log(level, "duly: %s%s", event, f" ({known})" if known else "")


def _end(kept: "weakref.ref[Background]") -> None:
    """At the end of the program: leave what lives to whoever serves next. In a forked child there is nothing to end."""
    background = kept()
    if background is not None and background.alive:
        background.stop(AT_EXIT_WITHIN_S, hurry=True)
