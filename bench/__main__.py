"""All benches in one run, one table: `python -m bench [--only NAME …]`."""

import argparse
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import burst, cold_list, crowd, hand_run, idle, late, next_instant, overdue, parties, rig, spawn, web_load


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a metric, its figure, what it is beside another, and what it should be."""

    metric: str
    figure: str
    ratio: str
    target: str
    met: bool | None


def bursts() -> list[Row]:
    return _bursts("SQLite", burst.measure(), (*burst.BARS, *burst.WIDE, *burst.SPINNING))


def server_bursts() -> list[Row]:
    return _bursts("PostgreSQL", burst.measure_on_server(), burst.SERVER_BARS)


def _bursts(where: str, found: dict[str, object], bars: tuple[tuple[str, str, float], ...]) -> list[Row]:
    rows = []
    for name, told in found.items():
        if isinstance(told, dict):
            most = burst.CPU_BARS_US.get(name)
            met = None if most is None else told["cpu_us"] <= most
            figure = f"{told['jobs_s']} jobs/s, {told['busy_percent']} % of all cores"
            target = "" if most is None else f"≤ {most} µs CPU each"
            rows.append(Row(f"{where}, {burst.JOBS} at once: {name}", figure, f"{told['cpu_us']} µs CPU", target, met))
            if told["gap_s"]:
                gap, most_s = told["gap_s"], 2 * parties.BEAT.total_seconds()
                rows.append(
                    Row(f"{where}: {name}, longest between beats", f"{gap} s", "", f"< {most_s} s", gap < most_s)
                )
    for ours, theirs, bar in bars:
        ratio = found[f"{ours} / {theirs}"]
        assert isinstance(ratio, float)
        rows.append(Row(f"{where}: {ours} / {theirs}", "", f"{ratio:.2f} ×", f"≥ {bar} ×", ratio >= bar))
    return rows


def lates() -> list[Row]:
    found = late.measure()
    rows = [
        Row(f"{late.JOBS} starts each second, p99: {name[:-4]}", f"{found[name]} ms", "", "", None)
        for name in found
        if name.endswith(", ms")
    ]
    for theirs, most in (("floor", late.FLOOR_BAR), ("apscheduler 3", late.APSCHEDULER_BAR)):
        ratio = found[f"duly 64 / {theirs}"]
        rows.append(Row(f"late, p99: duly 64 / {theirs}", "", f"{ratio:.2f} ×", f"≤ {most} ×", ratio <= most))
    return [*rows, Row("late: starts lost", f"{found['lost']:g}", "", "0", found["lost"] == 0)]


def overdues() -> list[Row]:
    found = overdue.measure()
    figure = f"{found['duly_ran']} run, {found['duly_dropped']} dropped"
    beside = f"APScheduler 3: {found['apscheduler_ran']} run, {found['apscheduler_dropped']} dropped"
    row = f"overdue by {overdue.LATE_S / 60:g} min, {overdue.JOBS} jobs, both by default"
    return [Row(row, figure, beside, "0 dropped", found["duly_dropped"] == 0)]


def idles() -> list[Row]:
    found, bars = idle.measure(), idle.BARS
    words = {
        "cpu_s_min": "idle, 1,000 tasks, CPU s/min",
        "many_core_percent": "idle, 100,000 tasks, % of a core",
        "many_rss_mb": "100,000 tasks, MB in RAM",
        "start_s": "100,000 tasks, start in s",
        "turn_ms": "100,000 tasks, a turn with nothing due, ms",
        "bytes": "100,000 tasks, bytes of memory each",
    }
    beside = {"start_s": f"{found['start_s'] / found['empty_start_s']:.2f} × an empty store's"}
    return [
        Row(word, f"{found[name]:g}", beside.get(name, ""), f"≤ {bars[name]:g}", found[name] <= bars[name])
        for name, word in words.items()
    ]


def hand_runs() -> list[Row]:
    found = hand_run.measure()
    figure = f"median {found['median_s']:.3f} s, longest {found['max_s']:.3f} s"
    return [
        Row("a run by hand, commit to work", figure, "", f"≤ {hand_run.BAR_S} s", found["median_s"] <= hand_run.BAR_S)
    ]


def crowds() -> list[Row]:
    found = crowd.measure()
    share, beat = found["worst_share"], found["longest_beat_s"]
    return [
        Row("4 processes on a file: doubles", f"{found['doubles']:g}", "", "0", found["doubles"] == 0),
        Row(
            "4 processes: worst share",
            "",
            f"{share:.2f} of a fair one",
            f"≥ {crowd.SHARE_BAR}",
            share >= crowd.SHARE_BAR,
        ),
        Row(
            "4 processes: longest beat",
            f"{beat * 1e3:.0f} ms",
            "",
            f"< {crowd.BEAT_BAR_S * 1e3:.0f} ms",
            beat < crowd.BEAT_BAR_S,
        ),
        Row("4 processes: all together", f"{found['jobs_s']:g} jobs/s", "", "", None),
    ]


def lists() -> list[Row]:
    found = cold_list.measure()
    figure = f"{found['list_s'] * 1e3:.0f} ms"
    ratio = f"{found['ratio']:.2f} × import sqlalchemy"
    return [Row("duly list, cold", figure, ratio, f"≤ {cold_list.BAR} ×", found["ratio"] <= cold_list.BAR)]


def instants() -> list[Row]:
    found = next_instant.measure()
    ours, ratio = found["ours_us"], found["ratio"]
    assert isinstance(ours, float)
    assert isinstance(ratio, float)
    return [
        Row(
            "next instant of a cron line",
            f"{ours:.1f} µs",
            f"{ratio:.2f} × CronSim",
            "≤ 30 µs, ≤ 0.33 ×",
            ours <= 30 and ratio <= 1 / 3,
        )
    ]


def spawns() -> list[Row]:
    rows = []
    for holder, ballast, bar in (("a small holder", False, spawn.BAR), ("a holder of 1 GiB", True, spawn.BALLAST_BAR)):
        found = spawn.measure(ballast=ballast)
        ratio = found["ratio"]
        assert isinstance(ratio, float)
        figure = f"{found['keepers_per_s']}/s"
        rows.append(Row(f"commands through keepers, {holder}", figure, f"{ratio} × Popen", f"≥ {bar} ×", ratio >= bar))
    return rows


def web_loads() -> list[Row]:
    found = web_load.measure()
    p99, ratio, memory = found["p99_s"], found["readers_ratio"], found["readers_mb"]
    ran = f"{found['succeeded']:g} run, {found['taken_out']:g} taken out, {found['most_at_once']:g} at once at most"
    right = (found["most_at_once"], found["findings"]) == (web_load.AT_ONCE, 0)
    return [
        Row(f"{web_load.MISSED} missed, limit {web_load.AT_ONCE}", ran, "", f"{web_load.AT_ONCE} at once", right),
        Row("meanwhile: answers by HTTP, p99", f"{p99 * 1e3:.0f} ms", "", "< 1000 ms", p99 < web_load.P99_BAR_S),
        Row(
            f"{web_load.READERS} readers that never read: p95",
            f"{found['beside_p95_s'] * 1e3:.0f} ms",
            f"{ratio:.2f} × without",
            f"≤ {web_load.READERS_BAR:g} ×",
            ratio <= web_load.READERS_BAR,
        ),
        Row("their memory", f"{memory:.1f} MB", "", "< 20 MB", memory < web_load.MEMORY_BAR_MB),
    ]


BENCHES: dict[str, Callable[[], list[Row]]] = {
    "burst": bursts,
    "server_burst": server_bursts,
    "late": lates,
    "overdue": overdues,
    "idle": idles,
    "hand_run": hand_runs,
    "crowd": crowds,
    "cold_list": lists,
    "next_instant": instants,
    "spawn": spawns,
    "web_load": web_loads,
}


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m bench", description="Speed, as ratios within one run.")
    words.add_argument("--only", action="append", choices=sorted(BENCHES), help="this one; may be repeated")
    chosen = words.parse_args().only or list(BENCHES)
    os.environ.pop(rig.UNCOMPILED, None)
    load = os.getloadavg()[0]
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} CPUs, load {load:.1f} before, {platform.machine()},")
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}\n")
    rows = []
    for name in chosen:
        sys.stderr.write(f"{name} …\n")
        rows += BENCHES[name]()
    table = [("metric", "figure", "ratio", "target", "met")]
    table += [
        (row.metric, row.figure, row.ratio, row.target, {None: "", True: "yes", False: "NO"}[row.met]) for row in rows
    ]
    widths = [max(len(cells[column]) for cells in table) for column in range(5)]
    for cells in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
