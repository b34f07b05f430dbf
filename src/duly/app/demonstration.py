"""`demo`: five small tasks in a store of its own, served for a while, each run shown with its output."""

import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path

from duly import clock
from duly.app.service import stopped_by_signals
from duly.core.run import Run
from duly.core.spans import write_instant
from duly.core.task import Definition, Task
from duly.core.triggers import Every
from duly.holder.holder import Holder
from duly.holder.wish import wish
from duly.operations import tasks
from duly.runners import logs
from duly.runners.folders import folder_of
from duly.runners.registry import Registry
from duly.store import Store
from duly.store.address import resolve

SHOWN_BYTES = 2_000
LOOK_EVERY_S = 0.2
STOP_WITHIN_S = 5.0
DRAIN = timedelta(seconds=5)
TASKS: tuple[tuple[str, int, str], ...] = (
    ("clock", 3, "date '+it is %H:%M:%S'"),
    ("disk", 7, "df -h / | tail -n 1"),
    ("count", 5, 'for n in 1 2 3; do echo "line $n"; sleep 0.3; done'),
    ("load", 11, "cut -d ' ' -f 1-3 /proc/loadavg"),
    ("flaky", 13, 'test $(( $(date +%s) % 2 )) = 0 && echo "an even second" || { echo "an odd second" >&2; exit 3; }'),
)


def demo(length: timedelta, *, as_json: bool = False) -> int:
    """Show real commands run at their times for so long, or until INT; gives 0. As JSON: a line each run that ended."""
    with tempfile.TemporaryDirectory(prefix="duly-demo-") as folder:
        address = resolve(f"{folder}/demo.db", {})
        store = Store.open(address, {"HOME": folder}, create=True)
        try:
            _show(store, length, Path(folder), as_json=as_json)
        finally:
            store.close()
    return 0


def _show(store: Store, length: timedelta, folder: Path, *, as_json: bool) -> None:
    names = {task.id: task for task in _add(store, folder)}
    holder = Holder(store, wish(drain=DRAIN), Registry(), tell=_quiet)
    if not as_json:
        _open_curtain(store, length, names.values())
    with stopped_by_signals(holder.stop):
        holder.start()
        ends = threading.Timer(length.total_seconds(), holder.stop)
        ends.daemon = True
        ends.start()
        watching = threading.Event()
        watcher = threading.Thread(target=_watch, args=(store.another(), names, watching, as_json), daemon=True)
        watcher.start()
        holder.run()
        watching.set()
        watcher.join(STOP_WITHIN_S)
        ends.cancel()
    if not as_json:
        _say_goodbye()


def _open_curtain(store: Store, length: timedelta, shown: Iterable[Task]) -> None:
    _say(f"five tasks in {store.address}, served for {length.total_seconds():g} s (Ctrl-C ends it sooner)\n")
    for task in shown:
        trigger = task.definition.triggers[0]
        assert isinstance(trigger, Every)
        _say(f"  {task.definition.name:<6} every {trigger.span.total_seconds():g}s   {task.definition.action['shell']}")
    _say("")


def _say_goodbye() -> None:
    duly = _called()
    _say(
        "\nThat was Duly. To go on with a store of your own:\n"
        f'  {duly} add hello --when "every 10s" -- echo hello\n'
        f"  {duly} serve\n"
        f"  {duly} list"
    )


def _add(store: Store, folder: Path) -> list[Task]:
    anchor = clock.now().replace(microsecond=0)
    return [
        tasks.add(
            store,
            Definition(
                name=name,
                triggers=(Every(span=timedelta(seconds=span), anchor=anchor),),
                action={"kind": "command", "shell": line, "cwd": str(folder)},
            ),
            by="demo",
            source={"kind": "cli"},
        )
        for name, span, line in TASKS
    ]


def _watch(store: Store, names: dict[str, Task], ended: threading.Event, as_json: bool) -> None:
    """Show each run once when it has ended, with what it printed."""
    seq = 0
    try:
        while True:
            last = ended.wait(LOOK_EVERY_S)
            with store.read() as session:
                news = session.ledger.after(seq)
                told = [one.entry.run for one in news if one.entry.kind in {"ended", "skipped"} and one.entry.run]
                shown = [run for run in map(session.runs.by_id, told) if run is not None]
            seq = news[-1].seq if news else seq
            for run in shown:
                _tell(store, names[run.task], run, as_json=as_json)
            if last:
                return
    finally:
        store.close()


def _tell(store: Store, task: Task, run: Run, *, as_json: bool) -> None:
    out = logs.tail(folder_of(store.run_folder, run.id, run.fence), SHOWN_BYTES).decode("utf-8", "replace")
    if as_json:
        told = {
            "id": run.id,
            "task_name": task.definition.name,
            "due_at": write_instant(run.due_at),
            "outcome": run.outcome,
            "exit_code": run.exit_code,
            "output": out,
        }
        _say(json.dumps(told, ensure_ascii=False))
        return
    mark = {"succeeded": "✓", "failed": "✗"}.get(run.outcome or "", "·")
    when = f"{run.due_at.astimezone():%H:%M:%S}"
    how = f"{run.outcome} (exit {run.exit_code})" if run.exit_code else f"{run.outcome}"
    _say(f"{when}  {mark} {task.definition.name:<6} {how}")
    for line in out.splitlines():
        _say(f"            {line}")


def _called() -> str:
    """How this user calls the command: by its name where that is found, else by the path it was called by."""
    if shutil.which("duly"):
        return "duly"
    called = Path(sys.argv[0])
    return str(called) if called.name == "duly" else f"{sys.executable} -m duly"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _quiet(event: str, figures: Mapping[str, object]) -> None:
    """What a holder has to say is not part of the show."""
