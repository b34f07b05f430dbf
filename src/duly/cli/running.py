"""`run`, `retry` and `cancel`: start a task by hand, do a run again, end a run."""

from typing import TYPE_CHECKING

import click

from duly import clock
from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint, hint_nobody, open_for_change
from duly.cli.parting import Parted, words
from duly.cli.table import plain
from duly.cli.words import failure, told
from duly.errors import Invalid, Refused

if TYPE_CHECKING:
    from duly.core.run import Run
    from duly.store.store import Store

LOOK_EVERY_S = 0.1
FAILED = 1
INTERRUPTED = 130
NOBODY = "the run waits until somebody does"


class Further(Parted):
    """`run` takes all after `--` as further arguments, for this run only."""

    tail = "[-- ARG...]"


@command(
    cls=Further,
    name="run",
    help=(
        "Run a task now, whatever its schedule says. With --wait the exit code tells whether it succeeded."
        " What stands after -- are further arguments for its command, for this run only."
    ),
    epilog=(
        "duly run backup --wait\n"
        "duly run report --input @numbers.csv --key 2026-12\n"
        "duly run import -- --from 2026-01 --dry-run"
    ),
    params=[
        click.Argument(["task"]),
        click.Option(
            ["--input", "input_"], metavar="TEXT|@FILE", help="What the work reads in DULY_INPUT; @@… begins with @."
        ),
        click.Option(["--key"], metavar="KEY", help="The same key again answers with the first run."),
        click.Option(["--queue"], is_flag=True, help="If the task is running, wait for its end."),
        click.Option(["--anyway"], is_flag=True, help="Run it though it is paused, and without asking its gate."),
        click.Option(["--wait"], is_flag=True, help="Wait for the end."),
    ],
)
def run(task: str, input_: str | None, key: str | None, queue: bool, anyway: bool, wait: bool) -> int:
    """Open a run by hand."""
    from duly.operations import runs
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run

    given = text_or_file(input_, "--input") if input_ is not None else None
    with open_for_change() as store:
        opened = runs.run_now(
            store,
            task,
            by=caller(),
            input_=given,
            args=words() or (),
            key=key,
            queue=queue,
            anyway=anyway,
            run=asking_run(),
        )
        return _opened(store, opened, wait=wait)


def wait_for(store: "Store", opened: "Run") -> int:
    """Wait for a run's end and show it; the exit code tells whether it succeeded."""
    from duly.operations.lookup import ending

    try:
        ended = _end_of(store, opened)
    except KeyboardInterrupt:
        out.note("")
        short = ending(opened.id)
        hint(f"the run goes on: duly show {short}, duly log -f {short}, duly cancel {short}")
        return INTERRUPTED
    _show(store, ended, told(_word(ended)) + _why(ended))
    return 0 if ended.outcome == "succeeded" else FAILED


def _why(run: "Run") -> str:
    if not run.error:
        return ""
    return f": {plain(failure(reason=run.reason, error=run.error, exit_code=run.exit_code))}"


def _end_of(store: "Store", opened: "Run") -> "Run":
    """Look until a run has ended; costs next to nothing while nobody writes."""
    run = opened
    store.changed()  # what is written from here on shows itself
    changed = True
    while run.state != "ended":
        if changed:
            with store.read() as session:
                found = session.runs.by_id(opened.id)
            if found is None:
                raise Refused("unknown_run", f"the run {opened.id} is gone: the store was restored or pruned")
            run = found
        if run.state != "ended":
            clock.pause(LOOK_EVERY_S)
            store.check_here()
            changed = store.changed()
    return run


def _show(store: "Store", run: "Run", text: str) -> None:
    if settings().as_json:
        from duly.operations import listing

        with store.read() as session:
            out.document(listing.run_shape(session, run, session.tasks.by_id(run.task)))
        return
    out.line(f"{run.id}  {text}")


def _word(run: "Run") -> str:
    return run.outcome or {"held": "running"}.get(run.state, run.state)


def text_or_file(given: str, option: str) -> str:
    """Read TEXT, or the file named by @FILE; @@… is a text that begins with @."""
    from pathlib import Path

    from duly.core.fields import INPUT_MOST

    if given.startswith("@@") or not given.startswith("@"):
        return given.removeprefix("@") if given.startswith("@@") else given
    path = Path(given[1:]).expanduser()
    try:
        with path.open("rb") as file:
            data = file.read(INPUT_MOST + 1)
        text = data.decode()
    except OSError as bad:
        raise Invalid(f"{plain(str(path))} cannot be read: {bad.strerror}", field=option, text=given, at=1) from bad
    except UnicodeDecodeError as bad:
        raise Invalid(f"{plain(str(path))} is not UTF-8 (byte {bad.start})", field=option) from bad
    if len(data) > INPUT_MOST:
        raise Invalid(f"{plain(str(path))} is larger than {INPUT_MOST:,} bytes", field=option)
    return text


@command(
    name="retry",
    help="Do again what an ended run did: by the same definition, for the same due instant, with the same input.",
    epilog="duly runs --outcome failed\nduly retry 7kq2m9xw --wait",
    params=[
        click.Argument(["run"]),
        click.Option(["--queue"], is_flag=True, help="If the task is running, wait for its end."),
        click.Option(["--anyway"], is_flag=True, help="Run it though its task is paused."),
        click.Option(["--wait"], is_flag=True, help="Wait for the end."),
    ],
)
def retry(run: str, queue: bool, anyway: bool, wait: bool) -> int:
    """Open a run by hand that does another one again."""
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run
    from duly.operations.retry import retry as open_again

    with open_for_change() as store:
        opened = open_again(store, run, by=caller(), queue=queue, anyway=anyway, run=asking_run())
        return _opened(store, opened, wait=wait)


def _opened(store: "Store", opened: "Run", *, wait: bool) -> int:
    """Answer with a run that was asked for, or wait for its end and answer with that."""
    from duly.operations.lookup import ending

    over = opened.state == "ended"
    if wait:
        if not over:
            hint_nobody(address(), NOBODY)
        return wait_for(store, opened)
    _show(store, opened, told(_word(opened)))
    if not over and not hint_nobody(address(), NOBODY):
        hint(f"duly log -f {ending(opened.id)}")
    return 0


@command(
    name="cancel",
    help="End a run: a waiting one at once, a running one by ending all its processes.",
    params=[click.Argument(["run"]), click.Option(["--wait"], is_flag=True, help="Wait until it has ended.")],
)
def cancel(run: str, wait: bool) -> int:
    """Put the wish to end a run on record."""
    from duly.operations import runs
    from duly.operations.lookup import caller, ending

    with open_for_change() as store:
        asked = runs.cancel(store, run, by=caller())
        if wait and asked.state != "ended":
            hint_nobody(address(), "a running run ends when somebody does")
            try:
                asked = _end_of(store, asked)
            except KeyboardInterrupt:
                out.note("")
                hint(f"the wish stays on record: duly show {ending(asked.id)}")
                return INTERRUPTED
        text = told(_word(asked)) if asked.state == "ended" else "asked to end"
        _show(store, asked, text)
    return 0
