"""Readers of the ledger: each entry once, whatever is cut and wherever; who does not read holds nobody up."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from stream_scene import ASGI, WITHIN_S, Reader, Streaming, aside, events_of, placed, stream_scope
from stream_scene import until as eventually

from duly.errors import Refused, StoreAway
from duly.operations import shapes
from duly.operations.following import Wanted
from duly.store.meta import LEDGER_PRUNED
from duly.store.pruning import DELETE_ENTRIES, Ages, Pruning
from duly.web import feeds, streaming, tail
from duly.web.feeds import LedgerFeed
from duly.web.streaming import EVENTS, Streamed


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Streaming]:
    with placed(tmp_path) as made:
        yield made


def following(place: Streaming, after: int | None, wanted: Wanted | None = None, still: Any = None) -> ASGI:
    return Streamed(
        place.tail,
        lambda wake: place.tail.ledger(wake, wanted=wanted or Wanted(), after=after, still=still),
        media_type=EVENTS,
    )


def read(place: Streaming, after: int | None, enough: Callable[[Reader], bool], **given: Any) -> Reader:
    return Reader(following(place, after, **given), stream_scope(), enough).read()


@contextmanager
def feed_of(place: Streaming, after: int | None, wanted: Wanted | None = None) -> Iterator[tuple[LedgerFeed, Any]]:
    """A feed without a loop around it, and what takes from it until something holds."""
    woken = threading.Event()
    with place.tail.ledger(woken.set, wanted=wanted or Wanted(), after=after) as feed:

        def until(holds: Callable[[bytes], bool]) -> bytes:
            raw = b""
            while not holds(raw):
                woken.clear()
                raw += feed.take()
                place.tail.ring()
                assert holds(raw) or woken.wait(WITHIN_S), raw[-2000:]
            return raw

        yield feed, until


def test_a_reader_that_is_cut_off_a_hundred_times_sees_each_entry_once(place: Streaming) -> None:
    draw = random.Random(5)
    first = place.tell(1)[0]
    total, told, seen, after = 600, threading.Event(), list[int](), first

    def tell() -> None:
        left = total
        while left:
            count = min(left, draw.randint(1, 9))
            place.tell(count)
            left -= count
        told.set()

    with aside(tell):
        for _ in range(100):
            most = draw.randint(0, 12)
            cut = draw.randint(0, 3_000)
            reader = read(place, after, lambda one, most=most: len(one.heard.seqs) >= most)  # type: ignore[misc]
            whole = events_of(reader.raw[:cut] if draw.random() < 0.5 else reader.raw)
            assert not [one for one in whole.events if one.kind == "reset"]
            seen += whole.seqs
            after = int(whole.last) if whole.last is not None else after
            if told.is_set() and seen and len(seen) == total:
                break
    rest = total - len(seen)
    seen += read(place, after, lambda one: len(one.heard.seqs) >= rest).heard.seqs[:rest]
    assert seen == list(range(first + 1, first + 1 + total))


def test_a_reader_goes_on_after_the_tail_was_made_anew(place: Streaming) -> None:
    seqs = place.tell(5)
    reader = read(place, seqs[0] - 1, lambda one: len(one.heard.seqs) >= 3)
    last = int(reader.heard.last or 0)
    place.tail.stop()
    place.tail = tail.Tail(place.pool, lambda *_: None)
    place.tail.start()
    more = place.tell(2)
    rest = read(place, last, lambda one: more[-1] in one.heard.seqs)
    assert reader.heard.seqs + rest.heard.seqs == [*seqs, *more]


def test_who_names_no_entry_begins_with_what_is_told_from_now_on_and_knows_where_that_is(place: Streaming) -> None:
    before = place.tell(3)
    with feed_of(place, None) as (_, until):
        raw = until(lambda raw: b"id: " in raw)
        assert events_of(raw).last == str(before[-1])
        assert events_of(raw).events == []
        assert raw.startswith(b"retry: ")
        fresh = place.tell(2)
        assert events_of(until(lambda raw: len(events_of(raw).seqs) >= 2)).seqs == fresh


def test_entries_are_in_the_shape_of_the_ledger(place: Streaming) -> None:
    task = place.add("ümlaut 🕘\u2028line")
    one = read(place, 0, lambda one: len(one.heard.seqs) >= 1).heard.events[0]
    with place.store.read() as session:
        assert one.data == shapes.entry(session.ledger.after(0, most=1)[0])
    assert one.data["task"] == task
    assert one.id == str(one.data["seq"])


def test_a_reader_gets_only_what_is_of_its_task_or_its_projects(place: Streaming) -> None:
    mine, other = place.add("mine", "Home"), place.add("other", "work")
    own = place.tell(2, task=mine)
    place.tell(2, task=other)
    place.tell(1)
    last = place.tell(1, task=mine)

    def seqs(wanted: Wanted) -> list[int]:
        reader = read(place, own[0] - 1, lambda one: last[0] in one.heard.seqs, wanted=wanted)
        return reader.heard.seqs

    assert seqs(Wanted(task=mine)) == [*own, *last]
    assert seqs(Wanted(projects=frozenset({"home"}))) == [*own, *last]
    with feed_of(place, own[0] - 1, Wanted(projects=frozenset({"nobody's"}))) as (feed, until):
        until(lambda raw: b"id: " in raw)
        # What was passed over is told by number alone, so that who comes again is not behind.
        eventually(lambda: feed.beat() == f": beat\nid: {last[0]}\n\n".encode())
        assert feed.beat() == b": beat\n\n"
        assert feed.take() == b""


def test_who_was_away_until_entries_were_pruned_is_told_to_begin_anew(place: Streaming) -> None:
    seqs = place.tell(4)
    with place.store.write() as session:
        session.meta.say(LEDGER_PRUNED, str(seqs[1]))
    gone = read(place, seqs[0], lambda one: bool(one.heard.events)).heard
    assert [one.kind for one in gone.events] == ["reset"]
    assert gone.events[0].data == {"after": seqs[0], "last": seqs[-1]}
    assert gone.last == str(seqs[-1])
    assert read(place, seqs[1], lambda one: len(one.heard.seqs) >= 2).heard.seqs == seqs[2:]


def test_who_has_read_more_than_this_store_holds_is_told_to_begin_anew(place: Streaming) -> None:
    seqs = place.tell(2)
    heard = read(place, seqs[-1] + 1_000, lambda one: bool(one.heard.events)).heard
    assert [one.kind for one in heard.events] == ["reset"]
    assert heard.last == str(seqs[-1])


def test_pruning_says_up_to_which_number_the_ledger_may_have_gaps(place: Streaming) -> None:
    seqs = place.tell(3)
    with place.store.write() as session:
        pruning = Pruning(session.line, Ages(cutoff=session.now, oldest=session.now), 10)
        pruning.delete(DELETE_ENTRIES, seqs[:2])
        assert session.meta.said(LEDGER_PRUNED) == str(seqs[1])
        pruning.delete(DELETE_ENTRIES, [])
        pruning.delete(DELETE_ENTRIES, seqs[:2])
        assert session.meta.said(LEDGER_PRUNED) == str(seqs[1])


def test_who_does_not_read_is_kept_a_bounded_part_and_goes_on_where_it_stopped(place: Streaming) -> None:
    first = place.tell(1)[0]
    with feed_of(place, first) as (slow, slowly), feed_of(place, first) as (_, quickly):
        slowly(lambda raw: b"id: " in raw)
        more = place.tell(700, big=300)
        assert events_of(quickly(lambda raw: raw.count(b"data: ") >= 700)).seqs == more
        assert not slow.has_room
        held = len(slow.take())
        assert 0 < held <= feeds.BYTES_MOST + 1_000
        place.tail.ring()
    with feed_of(place, first) as (_, until):
        assert events_of(until(lambda raw: raw.count(b"data: ") >= 700)).seqs == more


def test_there_is_room_for_so_many_readers_and_the_next_is_refused(
    place: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "READERS_MOST", 2)
    with feed_of(place, 0), feed_of(place, 0), pytest.raises(Refused) as refused, feed_of(place, 0):
        pass
    assert refused.value.reason == "rate_limited"
    assert place.tail.readers == 0


def test_a_quiet_stream_is_kept_open_by_comments(place: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BEAT_EVERY_S", 0.01)
    reader = read(place, None, lambda one: one.raw.count(b": beat\n") >= 3)
    assert reader.heard.events == []
    assert reader.headers["content-type"].startswith("text/event-stream")
    assert reader.headers["cache-control"] == "no-store"
    assert reader.headers["x-accel-buffering"] == "no"


def test_a_reader_that_takes_nothing_is_cut_off_and_forgotten(
    place: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SENT_WITHIN_S", 0.05)
    place.tell(3)

    async def stuck() -> None:
        async def receive() -> dict[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        await following(place, 0)(stream_scope(), receive, send)

    asyncio.run(asyncio.wait_for(stuck(), WITHIN_S))
    assert place.tail.readers == 0


def test_a_stream_ends_when_its_reader_may_read_no_more(place: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "STILL_EVERY_S", 0.0)
    answers = iter([True, True])
    reader = read(place, None, lambda _: False, still=lambda _: next(answers, False))
    assert reader.ended


def test_streams_end_with_the_process_and_come_after_its_end_to_no_other(place: Streaming) -> None:
    stop = threading.Timer(0, place.tail.stop)

    def begun(reader: Reader) -> bool:
        if reader.raw and not stop.is_alive() and not stop.finished.is_set():
            stop.start()
        return False

    reader = read(place, None, begun)
    stop.join()
    assert reader.ended
    with pytest.raises(Refused) as refused, feed_of(place, None):
        pass
    assert refused.value.reason == "draining"


def test_streams_wait_while_the_store_cannot_be_read_and_then_go_on(
    place: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "AGAIN_AFTER_S", 0.01)
    away = threading.Event()
    away.set()
    take = place.pool.take

    def taken() -> Any:
        if away.is_set():
            raise StoreAway("the store is away")
        return take()

    monkeypatch.setattr(place.pool, "take", taken)
    with feed_of(place, 0) as (_, until):
        eventually(lambda: place.told)
        seqs = place.tell(2)
        away.clear()
        assert events_of(until(lambda raw: len(events_of(raw).seqs) >= 2)).seqs == seqs
    assert place.told == ["streams wait: nothing can be read"]
