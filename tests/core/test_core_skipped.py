"""What was skipped beforehand, cut into pieces and passed over; what limits, lateness and offers say to the letter."""

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from core_values import HOUR, MINUTE, NINE, SECOND, TICK, every, task_of, waiting
from hypothesis import given
from hypothesis import strategies as st

from duly.core.admission import Waits, admit
from duly.core.lateness import offer_of, waited_too_long
from duly.core.limits import Limit, short_of, unset
from duly.core.pieces import Piece, pieces
from duly.core.skips import Range, covering, next_kept
from duly.core.task import Broken, Rules
from duly.core.triggers import Cron

UTC = ZoneInfo("UTC")


def skip(first: int, last: int, by: str = "ann") -> Range:
    return Range(first=NINE + first * TICK, last=NINE + last * TICK, by=by, note=None)


@given(
    ranges=st.lists(st.tuples(st.integers(-3, 22), st.integers(0, 8)), max_size=4),
    until=st.integers(0, 20),
)
def test_pieces_are_in_order_without_a_hole_and_each_moment_has_the_range_that_began_first(
    ranges: list[tuple[int, int]], until: int
) -> None:
    skipped = [skip(first, first + length, by=f"by {place}") for place, (first, length) in enumerate(ranges)]
    made = list(pieces(NINE, NINE + until * TICK, skipped))
    at = NINE
    for piece in made:
        assert piece.after == at < piece.until
        at = piece.until
    assert at == NINE + until * TICK
    for moment in range(1, until + 1):
        [piece] = [one for one in made if one.after < NINE + moment * TICK <= one.until]
        covers = [one for one in skipped if one.first <= NINE + moment * TICK <= one.last]
        assert (piece.by_hand is None) == (covers == [])
        assert piece.by_hand is None or piece.by_hand in covers


def test_pieces_are_named_by_their_ranges_wherever_these_stand() -> None:
    late, early = skip(8, 9, "late"), skip(2, 4, "early")
    assert list(pieces(NINE, NINE + 10 * TICK, [late, early])) == [
        Piece(after=NINE, until=NINE + TICK, by_hand=None),
        Piece(after=NINE + TICK, until=NINE + 4 * TICK, by_hand=early),
        Piece(after=NINE + 4 * TICK, until=NINE + 7 * TICK, by_hand=None),
        Piece(after=NINE + 7 * TICK, until=NINE + 9 * TICK, by_hand=late),
        Piece(after=NINE + 9 * TICK, until=NINE + 10 * TICK, by_hand=None),
    ]
    behind = skip(-5, -1, "behind")
    assert list(pieces(NINE, NINE + 3 * TICK, [behind, skip(1, 3)])) == [
        Piece(after=NINE, until=NINE + 3 * TICK, by_hand=skip(1, 3))
    ], "one that lies behind keeps no other from its place"


@pytest.mark.parametrize(
    ("at", "by"), [(0, None), (1, "first"), (3, "first"), (5, "first"), (6, "second"), (9, "second"), (10, None)]
)
def test_an_instant_is_covered_by_the_range_that_began_first_both_ends_included(at: int, by: str | None) -> None:
    ranges = [skip(3, 9, "second"), skip(1, 5, "first")]
    found = covering(ranges, NINE + at * TICK)
    assert (None if found is None else found.by) == by
    assert covering([], NINE) is None


@pytest.mark.parametrize(
    ("ranges", "want"),
    [
        ([], 1),
        ([(1, 1)], 2),
        ([(1, 3)], 4),
        ([(2, 3)], 1),
        ([(1, 2), (3, 6)], 7),
        ([(1, 2), (4, 6)], 3),
    ],
)
def test_the_next_that_is_kept_is_the_first_that_no_range_holds(ranges: list[tuple[int, int]], want: int) -> None:
    definition = task_of(every(MINUTE)).definition
    skipped = [
        Range(first=NINE + first * MINUTE, last=NINE + last * MINUTE, by="ann", note=None) for first, last in ranges
    ]
    assert next_kept(definition, UTC, NINE, skipped) == NINE + want * MINUTE
    bounded = replace(definition, rules=replace(definition.rules, until=NINE + (want - 1) * MINUTE))
    assert next_kept(bounded, UTC, NINE, skipped) is None


def test_an_offer_to_go_on_with_a_run_tells_all_of_it() -> None:
    run = replace(waiting(), due_at=NINE, occurrence="at:2026-03-02T09:00:00Z")
    offer = offer_of(run, Rules(offer_for=7 * HOUR), id_="mis_one", now=NINE + HOUR, holder="hld_a")
    told = (offer.id, offer.task, offer.occurrence, offer.due_at, offer.until_at, offer.count, offer.reason)
    assert told == ("mis_one", run.task, run.occurrence, NINE, NINE, 1, "missed_offer")
    stands = (offer.noticed_at, offer.holder, offer.state, offer.expires_at, offer.run)
    assert stands == (NINE + HOUR, "hld_a", "open", NINE + 8 * HOUR, run.id)


@pytest.mark.parametrize(("attempt", "opened", "late"), [(0, 0, False), (0, 1, True), (1, 0, True), (2, 0, True)])
def test_only_a_first_start_at_the_moment_of_its_opening_has_not_waited(attempt: int, opened: int, late: bool) -> None:
    now = NINE + 2 * HOUR
    run = replace(waiting(), due_at=NINE, attempt=attempt, opened_at=now - opened * SECOND)
    assert waited_too_long(run, Rules(max_age=HOUR), now) == late


def test_what_is_short_is_told_with_its_key_and_weight() -> None:
    assert unset("gate") == Limit(key="gate", most=1)
    full = Limit(key="gate", most=3, used=2)
    short = short_of({"gate": 2}, {"gate": full}, NINE)
    assert short is not None
    assert (short.what, short.limit, short.weight) == ("limit", full, 2)
    reached = Limit(key="gate", most=9, rate=1, rate_for=HOUR, free_at=NINE + TICK)
    short = short_of({"gate": 2}, {"gate": reached}, NINE)
    assert short is not None
    assert (short.what, short.limit, short.weight) == ("rate", reached, 2)


def test_a_run_waits_until_an_instant_only_where_its_rate_says_one() -> None:
    task, run = task_of(every(MINUTE)), replace(waiting(), opened_at=NINE, due_at=NINE)
    full = Limit(key="gate", most=1, used=1, free_at=NINE + HOUR)
    verdict = admit(
        run,
        task,
        task.definition.rules,
        paused=False,
        kinds={"command"},
        now=NINE,
        weights={"gate": 1},
        limits={"gate": full},
    )
    assert verdict == Waits(what="limit", key="gate", until=None)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("reads", [False, True])
def test_a_run_waits_for_a_definition_that_does_not_read_whichever_of_both_it_is(broken: bool, reads: bool) -> None:
    task = task_of(every(MINUTE))
    task = replace(task, broken=Broken(field="zone", message="gone") if broken else None)
    run = replace(waiting(), opened_at=NINE, due_at=NINE)
    rules = task.definition.rules if reads else None
    verdict = admit(run, task, rules, paused=False, kinds={"command"}, now=NINE + timedelta(seconds=1))
    assert (verdict == Waits(what="definition")) == (broken or not reads)


@pytest.mark.parametrize("place", ["Europe/Berlin", "Asia/Tokyo", "America/New_York"])
def test_the_next_that_is_kept_is_found_on_the_wall_of_its_zone(place: str) -> None:
    zone = ZoneInfo(place)
    definition = task_of(Cron(expression="0 12 * * *"), zone=place).definition
    [first, second] = [NINE.astimezone(zone).replace(day=day, hour=12, minute=0) for day in (3, 4)]
    assert next_kept(definition, zone, first - HOUR, []) == first
    skipped = [Range(first=first, last=first, by="ann", note=None)]
    assert next_kept(definition, zone, first - HOUR, skipped) == second
