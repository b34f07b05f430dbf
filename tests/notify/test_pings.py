"""Pings: a monitor outside hears of starts, successes and failures, in their order, once, and never of a secret."""

import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from notify_scene import FAILED, SUCCEEDED, WITHIN_S
from store_scene import SECOND, Scene

from duly import clock
from duly.clock import monotonic_s
from duly.core.channels import CLAIMED_FOR, Channel
from duly.core.fields import BY_PATH
from duly.core.http_reading import fault_of_address
from duly.core.notices import of_test
from duly.core.pings import AGAIN_AFTER, OLD_AFTER, address
from duly.core.reading import read_field
from duly.errors import Invalid
from duly.notify.asking import ask
from duly.notify.messages import Item
from duly.notify.notifying import Notifying
from duly.notify.outcome import NotSent
from duly.notify.pinging import Pinging
from duly.notify.sending import Sender, send, sender_of
from duly.operations import channels, diagnosis_channels, edits, runs
from duly.ports import Outcome
from duly.secrets import Secrets


class Monitor:
    """Hears pings on a port of this machine, and answers as it is told to."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        monitor = self

        class Hearing(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                monitor.heard.append(self.path)
                self.send_response(monitor.status)
                for name, text in monitor.headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Hearing)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{self.base}/k"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WITHIN_S)


class Pinged:
    """A store, and who makes and sends its pings, as one process."""

    def __init__(self, s: Scene) -> None:
        self.s = s
        self.log: list[tuple[str, Mapping[str, object]]] = []
        self.rang = threading.Event()
        self.pinging = Pinging(self._sender, lambda event, told: self.log.append((event, told)), self.rang)

    def run(self, name: str, url: str, outcome: Outcome = SUCCEEDED, **rules: Any) -> str:
        """Let a task have one more run, which ends so."""
        with self.s.store.read() as session:
            known = session.tasks.by_name("default", name)
        task = known or self.s.add(name, ping=url, **rules)
        runs.run_now(self.s.store, task.id, by="ann")
        [won] = self.s.claim()
        self.s.settle(won, outcome)
        return won.run.id

    def send(self, after: timedelta = timedelta(0)) -> None:
        """Let some time pass, and send what is due then, until nothing is on its way."""
        self.s.at(self.s.clock.moment + after)
        self.pinging.gather(self.s.store)
        until = monotonic_s() + WITHIN_S
        self.pinging.step(self.s.store)
        while self.pinging.busy:
            assert monotonic_s() < until
            self.rang.wait(1)
            self.rang.clear()
            self.pinging.step(self.s.store)

    def states(self, run: str) -> list[tuple[object, ...]]:
        with self.s.store.read() as session:
            shown = channels.of_run(session, run)
        return [(one["channel"], one["kind"], one["state"], one["tries"]) for one in shown]

    def _sender(self) -> Sender:
        return sender_of(self.s.environ, store="sto")


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    made = Monitor()
    yield made
    made.close()


@pytest.fixture
def pinged(s: Scene) -> Pinged:
    return Pinged(s)


def test_a_monitor_hears_of_a_start_and_a_success_in_their_order_and_of_a_failure(
    pinged: Pinged, monitor: Monitor
) -> None:
    first = pinged.run("backup", monitor.url)
    pinged.send()
    second = pinged.run("backup", monitor.url, FAILED)
    pinged.send()
    assert monitor.heard == ["/k/start", "/k", "/k/start", "/k/fail"]
    assert pinged.states(first) == [("ping", "start", "sent", 1), ("ping", "success", "sent", 1)]
    assert pinged.states(second) == [("ping", "start", "sent", 1), ("ping", "fail", "sent", 1)]


def test_a_task_without_a_monitor_pings_nobody_and_one_that_was_given_it_only_for_what_comes(
    pinged: Pinged, monitor: Monitor, s: Scene
) -> None:
    plain = s.add("plain")
    runs.run_now(s.store, plain.id, by="ann")
    [won] = s.claim()
    edits.edit(s.store, plain.id, {"rules": {"ping": monitor.url}}, by="ann")
    s.settle(won, SUCCEEDED)
    pinged.send()
    assert monitor.heard == ["/k"]
    edits.edit(s.store, plain.id, {"rules": {"ping": None}}, by="ann")
    runs.run_now(s.store, plain.id, by="ann")
    s.settle(s.claim()[0], SUCCEEDED)
    pinged.send()
    assert monitor.heard == ["/k"]


def test_a_ping_is_sent_once_though_two_processes_serve_and_again_when_the_one_that_took_it_died(
    pinged: Pinged, monitor: Monitor, s: Scene
) -> None:
    run = pinged.run("backup", monitor.url)
    other = Pinged(s)
    pinged.pinging.gather(s.store)
    other.pinging.gather(s.store)
    with s.store.write() as session:
        [start, _] = session.notices.of_run(run)
        assert session.pings.claim(start, 1_000_000 * int(s.clock.moment.timestamp()))
        assert not session.pings.claim(start, 1)
    pinged.send()
    other.send()
    assert monitor.heard == []
    other.send(CLAIMED_FOR)
    pinged.send()
    # What it died with may have arrived; the end, which came after it, says all that it would say.
    assert monitor.heard == ["/k"]
    assert pinged.states(run) == [("ping", "start", "quiet", 1), ("ping", "success", "sent", 1)]


def test_a_ping_that_nobody_takes_is_tried_for_some_minutes_then_told_of_once_and_changes_nothing_of_its_run(
    pinged: Pinged, monitor: Monitor, s: Scene
) -> None:
    monitor.status = 503
    run = pinged.run("backup", monitor.url)
    pinged.send()
    for wait in AGAIN_AFTER:
        pinged.send(wait - SECOND)
        pinged.send(SECOND)
    assert monitor.heard == ["/k/start", *["/k"] * 5]
    assert pinged.states(run) == [("ping", "start", "quiet", 1), ("ping", "success", "failed", 5)]
    assert [(event, told["error"]) for event, told in pinged.log] == [("ping failed", "it answered 503")]
    assert s.run(run).outcome == "succeeded"
    pinged.run("backup", monitor.url)
    for wait in (timedelta(0), *AGAIN_AFTER):
        pinged.send(wait)
    assert len(pinged.log) == 1


def test_what_says_that_it_is_no_use_is_not_tried_again(pinged: Pinged, monitor: Monitor) -> None:
    monitor.status = 404
    run = pinged.run("backup", monitor.url)
    pinged.send()
    pinged.send(timedelta(minutes=10))
    assert monitor.heard == ["/k/start", "/k"]
    assert pinged.states(run) == [("ping", "start", "failed", 1), ("ping", "success", "failed", 1)]
    with pinged.s.store.read() as session:
        found = list(diagnosis_channels.channels(pinged.s.store, session))
    assert [(one.check, one.subject, one.details["given_up"]) for one in found] == [("pings_given_up", "backup", 2)]


def test_what_happened_long_ago_is_not_told_a_monitor_as_if_it_were_now(pinged: Pinged, monitor: Monitor) -> None:
    run = pinged.run("backup", monitor.url)
    pinged.send(OLD_AFTER)
    assert monitor.heard == []
    assert {state for _, _, state, _ in pinged.states(run)} == {"failed"}


def test_a_secret_in_the_address_is_filled_in_and_told_nowhere(pinged: Pinged, monitor: Monitor, s: Scene) -> None:
    s.environ["CHECK_KEY"] = "c0ffee-c0ffee"
    url = monitor.base + "/${CHECK_KEY}?token=x"
    pinged.run("backup", url)
    pinged.send()
    assert monitor.heard == ["/c0ffee-c0ffee/start?token=x", "/c0ffee-c0ffee?token=x"]
    s.environ["AWAY"] = "169.254.169.254"
    gone = pinged.run("gone", "http://${AWAY}/k")
    pinged.send()
    with s.store.read() as session:
        errors = [one.error or "" for one in session.notices.of_run(gone)]
        known = [task.definition for task in session.tasks.in_scope("store", "")]
    assert [error.partition(" ")[0] for error in errors] == ["${AWAY}", "${AWAY}"]
    assert not [word for word in ("c0ffee", "169.254") if word in str((errors, pinged.log, known))]


def test_a_monitor_is_asked_only_where_a_webhook_may_go_and_is_not_followed_elsewhere(monitor: Monitor) -> None:
    sender = Sender(secrets=Secrets({}, {}))
    for url in ("http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/", "http://0.0.0.0/"):
        with pytest.raises(NotSent) as refused:
            ask(sender, url, "success")
        assert "nothing is sent to" in refused.value.told
        assert refused.value.for_good
    monitor.status, monitor.headers = 302, {"Location": monitor.base + "/elsewhere"}
    with pytest.raises(NotSent, match="302"):
        ask(sender, monitor.url, "success")
    assert monitor.heard == ["/k"]


@pytest.mark.parametrize("held", ["https://host:s3cr3t/k", "https://[s3cr3t/k", "https://h\u2100s3cr3t/k"])
def test_a_secret_that_is_no_address_is_refused_without_a_part_of_it(held: str) -> None:
    sender = Sender(secrets=Secrets({}, {"HOOK": held}))
    with pytest.raises(NotSent) as unasked:
        ask(sender, "${HOOK}", "success")
    assert unasked.value.for_good
    now = clock.now()
    channel = Channel(name="ops", url="${HOOK}", set_at=now, set_by="ann", next_at=now)
    with pytest.raises(NotSent) as untold:
        send(sender, channel, [Item(id="ntc_1", notice=of_test("ops", at=now))], now=now)
    assert "s3cr3t" not in f"{unasked.value.told} {untold.value.told} {fault_of_address(held)}"


@pytest.mark.parametrize("url", ["hc-ping.com/x", "ftp://x/y", "https://ann:pw@x/y", "https://", "https://x/ y", "", 7])
def test_what_is_no_address_of_a_monitor_is_refused(url: object) -> None:
    with pytest.raises(Invalid) as refused:
        read_field(BY_PATH["rules.ping"], url)
    assert str(refused.value.field) == "rules.ping"


def test_the_endings_stand_behind_the_path_of_the_address() -> None:
    assert address("https://x/a/b", "start") == "https://x/a/b/start"
    assert address("https://x/a/?q=1", "fail") == "https://x/a/fail?q=1"
    assert address("https://x", "fail") == "https://x/fail"
    assert address("https://x/a/?q=1", "success") == "https://x/a/?q=1"


def test_who_serves_asks_the_monitor_while_it_lives_and_for_what_has_just_ended_before_it_ends(
    pinged: Pinged, monitor: Monitor, s: Scene
) -> None:
    thread = Notifying(s.store, s.environ, lambda event, told: pinged.log.append((event, told)), who="hld_a")
    thread.start()
    try:
        pinged.run("backup", monitor.url)
        until = monotonic_s() + WITHIN_S
        while "/k" not in monitor.heard:
            assert monotonic_s() < until
            threading.Event().wait(0.02)
        pinged.run("backup", monitor.url, FAILED)
    finally:
        thread.stop()
    assert monitor.heard == ["/k/start", "/k", "/k/start", "/k/fail"]
    assert not pinged.log
