"""The next instant of a cron line, with the law of gaps and folds: ours against CronSim, in one run.

`python -m bench.next_instant`; the targets are a median of at most 30 µs a next and a third of CronSim's time.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from time import perf_counter

from cronsim import CronSim

from duly import zones
from duly.core.triggers import Cron, next_after

LINES = (
    "*/5 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 9 * * 1-5",
    "*/10 8-18 * * mon-fri",
    "0 6 1,15 * *",
    "0 17 * * 5L",
    "0 0 29 2 *",
)
ZONE = "Europe/Berlin"
START = datetime(2026, 6, 1, tzinfo=UTC)
STEPS = 40
"""Instants asked for one after another; a rare line is asked from the same start again and again."""
ROUNDS = 7
RARE = "0 0 29 2 *"


def measure() -> dict[str, object]:
    """Give the microseconds a next for each line, both engines, their medians and the ratio."""
    lines = {line: (_median_us(_ours, line), _median_us(_cronsim, line)) for line in LINES}
    ours, theirs = (median(pair[side] for pair in lines.values()) for side in (0, 1))
    return {"lines": lines, "ours_us": ours, "cronsim_us": theirs, "ratio": ours / theirs}


def _median_us(run: Callable[[str, int], None], line: str) -> float:
    steps = 4 if line == RARE else STEPS
    run(line, steps)
    took = []
    for _ in range(ROUNDS):
        start = perf_counter()
        run(line, steps)
        took.append((perf_counter() - start) / steps * 1e6)
    return median(took)


def _ours(line: str, steps: int) -> None:
    zone, triggers = zones.zone(ZONE), (Cron(expression=line),)
    at: datetime | None = START
    for _ in range(steps):
        assert at is not None
        at = next_after(triggers, zone, at)


def _cronsim(line: str, steps: int) -> None:
    stream = CronSim(line.replace("mon-fri", "1-5"), START.astimezone(zones.zone(ZONE)))
    for _ in range(steps):
        next(stream)


def main() -> None:
    found = measure()
    lines = found["lines"]
    assert isinstance(lines, dict)
    print(f"{'line':<26}{'ours µs':>10}{'CronSim µs':>12}")
    for line, (ours, theirs) in lines.items():
        print(f"{line:<26}{ours:>10.1f}{theirs:>12.1f}")
    print(f"{'median':<26}{found['ours_us']:>10.1f}{found['cronsim_us']:>12.1f}   ratio {found['ratio']:.2f}")


if __name__ == "__main__":
    main()
