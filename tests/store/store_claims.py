"""What the tests of the guards share: claims and steps as two holders write them."""

from collections.abc import Sequence

from store_scene import (
    HOUR,
    LEASE_US,
    MINUTE,
    NINE,
    SUCCEEDED,
    Scene,
    minutely,
)

from duly.core.run import Run, Step
from duly.holder.dispatcher import Won
from duly.store import Store
from duly.store.waiting import Claim

A, B = "hld_a", "hld_b"


def claim_of(run: Run, *, holder: str, seat: int = 1, token: str = "token") -> Claim:
    return Claim(
        run=run,
        holder=holder,
        token=token,
        lease_end_us=1_000_000_000 + LEASE_US,
        lease_boot="boot-one",
        seat=seat,
        definition_version=1,
        started_at=NINE,
    )


def write_claims(store: Store, claims: Sequence[Claim], *, raise_by: int = 1) -> list[Run]:
    with store.write() as session:
        for task in {claim.run.task for claim in claims}:
            session.tasks.raise_fences([(task, raise_by)])
        return session.waiting.claim(claims)


def move(store: Store, step: Step, *, naming_lease: bool = False) -> set[str]:
    with store.write() as session:
        return session.runs.move([step], naming_lease=naming_lease)


def waiting_two(s: Scene) -> tuple[Run, Run]:
    """Two waiting runs of one task."""
    task = s.add("one", minutely(), grace=HOUR, overlap="queue")
    s.at(NINE + 2 * MINUTE)
    first, second = [run for run in s.plan() if run.task == task.id]
    return first, second


def end(s: Scene, won: Won, holder: str = A) -> None:
    assert s.settle(won, SUCCEEDED, holder=holder).run is not None
