"""`duly serve` with nothing to do: what 1,000 and 100,000 tasks cost that are not due. `python -m bench.idle`."""

import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import rig
from duly.core.triggers import Daily
from duly.holder.holder import Holder
from duly.holder.wish import wish
from duly.runners.registry import Registry

FEW, MANY = 1_000, 100_000
SECONDS = 30.0
WARM_S = 3.0
STARTS = 3
TURNS = 300
BARS = {"cpu_s_min": 0.05, "many_core_percent": 1.0, "many_rss_mb": 150.0, "start_s": 1.0, "turn_ms": 1.0, "bytes": 500}


def measure(seconds: float = SECONDS) -> dict[str, float]:
    """Give CPU, memory, start and turn of an idle process, with few tasks and with many."""
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder:
        places = {number: Path(folder) / str(number) for number in (0, FEW, MANY)}
        for number, place in places.items():
            _filled(place, number)
        starts: dict[int, list[float]] = {0: [], MANY: []}
        for _ in range(STARTS):
            for number, took in starts.items():
                child, start_s = rig.serve(places[number])
                rig.end(child)
                took.append(start_s)
        few_cpu, few_woken, _ = _idle(places[FEW], seconds)
        empty_cpu, _, empty_rss = _idle(places[0], seconds / 3)
        many_cpu, _, many_rss = _idle(places[MANY], seconds)
        return {
            "cpu_s_min": round(few_cpu * 60, 4),
            "empty_cpu_s_min": round(empty_cpu * 60, 4),
            "wakeups_s": round(few_woken, 1),
            "many_core_percent": round(many_cpu * 100, 3),
            "many_rss_mb": round(many_rss / 1e6, 1),
            "bytes": round((many_rss - empty_rss) / MANY),
            "start_s": round(min(starts[MANY]), 3),
            "empty_start_s": round(min(starts[0]), 3),
            "turn_ms": round(_turn_ms(places[MANY]), 3),
        }


def _filled(place: Path, number: int) -> None:
    """A store with so many daily tasks, spread over two hours that are half a day away."""
    place.mkdir()
    half_a_day = (datetime.now(UTC) + timedelta(hours=11)).replace(second=0, microsecond=0, tzinfo=None)
    times = [(half_a_day + timedelta(seconds=second)).time() for second in range(0, 7200, 7)]
    store = rig.new_store(place / "duly.db")
    rig.fill(store, [(Daily(times=(times[one % len(times)],)),) for one in range(number)])
    store.close()


def _idle(place: Path, seconds: float) -> tuple[float, float, int]:
    """Cores used, wakeups a second and memory while nothing happens."""
    child, _ = rig.serve(place)
    try:
        time.sleep(WARM_S)
        cpu, woken, began = rig.threads_cpu_s(child.pid), rig.wakeups(child.pid), time.perf_counter()
        time.sleep(seconds)
        took = time.perf_counter() - began
        used = rig.threads_cpu_s(child.pid) - cpu
        return used / took, (rig.wakeups(child.pid) - woken) / took, rig.rss_bytes(child.pid)
    finally:
        rig.end(child)


def _turn_ms(place: Path) -> float:
    """The median turn of the writer that finds nothing due: its look, and a whole turn with its commit."""
    store = rig.open_store(place / "duly.db")
    holder = Holder(store, wish(), Registry(), tell=lambda _event, _told: None)
    try:
        took = []
        for _ in range(TURNS):
            began = time.perf_counter()
            assert not holder.writer.look()
            assert not holder.writer.step().progress
            took.append(time.perf_counter() - began)
        return rig.middle(took) * 1e3
    finally:
        holder.die()
        store.close()


def main() -> None:
    found = measure(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
    for name, figure in found.items():
        bar = f"target below {BARS[name]:g}" if name in BARS else ""
        print(f"{name:<20}{figure:>12}  {bar}")


if __name__ == "__main__":
    main()
