"""`serve`: a holder in this process, with its signals and its log, until it is stopped."""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from duly.app.agents import agents_of
from duly.app.first import stand_behind_one
from duly.app.interface import Listening, check, served
from duly.core.spans import write_instant
from duly.errors import StoreAway
from duly.holder.holder import Holder, Tell
from duly.holder.wish import CATCH_UP_DELAY, CATCH_UP_SPACING, OnStop, wish
from duly.metrics.traces import traced
from duly.runners.registry import Registry
from duly.store import Store, making, mounts
from duly.store.address import Address, Place, ServerAddress
from duly.store.engines import engine_of

SWITCH_INTERVAL_S = 0.0005
"""One computing Python thread otherwise takes nine tenths of the writer's turns."""
FORGOTTEN = 1
CHECKED_BYTES = 16 * 1024 * 1024
"""A store up to this size is read through at the start; damage in a larger one is met where it is read."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Each stops cleanly; a closed terminal too, unless the caller had it ignored (nohup)."""


def serve(
    address: Place,
    *,
    slots: int | None = None,
    until_idle: bool = False,
    beat: timedelta | None = None,
    lease: timedelta | None = None,
    drain: timedelta | None = None,
    on_stop: OnStop = "hand-over",
    passive: bool = False,
    catch_up_delay: timedelta = CATCH_UP_DELAY,
    catch_up_spacing: timedelta = CATCH_UP_SPACING,
    as_json: bool = False,
    allow_network_fs: bool = False,
    labels: Sequence[str] = (),
    web: Listening | None = None,
    log_format: str = "text",
) -> int:
    """Serve a store until TERM or INT, or until idle where that was wished; gives the exit code.

    The store is made where there was none and brought up to date where it is older. StoreAway, StoreNewer and
    Invalid say why it cannot be served. As the first process of a container it stands behind a small one of its own,
    and ends all that runs when it stops.
    """
    if web is not None:
        check(web)
    wanted = wish(
        slots=slots,
        beat=beat,
        lease=lease,
        drain=drain,
        until_idle=until_idle,
        on_stop="cancel" if stand_behind_one() else on_stop,
        passive=passive,
        labels=labels,
        catch_up_delay=catch_up_delay,
        catch_up_spacing=catch_up_spacing,
    )
    store = opened(address, allow_network_fs=allow_network_fs)
    try:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        # What a function in a child of ours means by the store.
        os.environ["DULY_STORE"] = address.url if isinstance(address, ServerAddress) else str(address)
        with traced(store, log(log_format), os.environ) as tell:
            holder = Holder(store, wanted, Registry(agents=agents_of(os.environ)), tell=tell)
            with (
                stopped_by_signals(holder.stop),
                served(store, web, tell, holder=holder, environ=os.environ) as url,
                looked_after(store, tell, passive=passive, who=holder.id),
            ):
                holder.start()
                _tell_ready(str(address), holder.id, url, as_json=as_json)
                holder.run()
    finally:
        store.close()
    return FORGOTTEN if holder.forgotten else 0


def _tell_ready(store: str, holder: str, url: str | None, *, as_json: bool) -> None:
    """Say in one line that what is due will be claimed from now on; flushed, for who waits for it."""
    ready = f"duly: serving {store} as {holder}" + (f" at {url}" if url else "")
    told = {"store": store, "holder": holder, "url": url}
    sys.stdout.write((json.dumps(told) if as_json else ready) + "\n")
    sys.stdout.flush()


@contextmanager
def looked_after(store: Store, tell: Tell, *, who: str, passive: bool = False) -> Iterator[None]:
    """Look after the loop files of this host and tell of what happens while inside; who is passive does neither."""
    if passive:
        yield
        return
    from duly.app.loops import Watching
    from duly.notify.notifying import Notifying

    watching, notifying = Watching(store, os.environ, tell), Notifying(store, os.environ, tell, who=who)
    watching.start()
    notifying.start()
    try:
        yield
    finally:
        watching.stop()
        notifying.stop()


def opened(address: Place, *, allow_network_fs: bool = False) -> Store:
    """Open a store to serve it: made where there was none, brought up to date, and sound as far as can be told."""
    if not allow_network_fs and isinstance(address, Address):
        mounts.check_local(address.path)
    store = Store.open(address, create=True, migrate=True)
    try:
        small = isinstance(address, Address) and address.path.stat().st_size <= CHECKED_BYTES
        sound = store.quick_check() if small else "ok"
        if sound != "ok":
            raise StoreAway(f"the store {address} is damaged ({sound}); it was left as it is")
        if allow_network_fs and isinstance(address, Address):
            _check_one_machine(store)
    except BaseException:
        store.close()
        raise
    return store


def _check_one_machine(store: Store) -> None:
    """Refuse to be the second machine on a file whose locks may not reach over the network."""
    with store.read() as session:
        for row in session.holders.living():
            fresh = session.now - row.last_beat_at <= row.lease_for
            if fresh and row.boot != store.clock.boot_id() and row.host != socket.gethostname():
                raise StoreAway(
                    f"{row.host} serves this store too (its last beat was at {write_instant(row.last_beat_at)}),"
                    " and a SQLite store has room for one machine",
                    details={"host": row.host, "holder": row.id},
                    hint="for several machines PostgreSQL is the store; or stop it there, and wait one lease",
                )


def init(address: Place) -> bool:
    """Make an empty store, also where a remembered one has vanished; False when one stands there and is usable."""
    if isinstance(address, Address):
        made = making.make(address, os.environ, again=True)
    else:
        engine = engine_of(address, os.environ)
        made = not engine.exists()
        engine.make()
        engine.leave()
    Store.open(address).close()
    return made


def log(log_format: str = "text") -> Tell:
    """What a holder has to say, a line each on standard error: as text, or as a JSON object (`json`)."""
    import structlog

    if log_format == "json":
        stamp = structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%fZ", utc=True, key="at")
        processors: list[Any] = [stamp, structlog.processors.JSONRenderer(default=str)]
    else:
        processors = [structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%SZ", utc=True), _line]
    logger = structlog.wrap_logger(structlog.PrintLogger(sys.stderr), processors=processors)

    def tell(event: str, figures: Mapping[str, object]) -> None:
        logger.msg(event, **figures)

    return tell


def _line(_logger: object, _name: str, said: MutableMapping[str, Any]) -> str:
    """One line of the log: when, what, and the figures that are known."""
    timestamp, event = said.pop("timestamp"), said.pop("event")
    known = {name: value for name, value in said.items() if value is not None}
    figures = " ".join(f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in known.items())
    return f"{timestamp} {event} {figures}".rstrip()


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on each of SIGNALS while inside; leaves the handlers as they were. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [one for one in SIGNALS if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: stop()) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
