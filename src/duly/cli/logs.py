"""`log`: what a run wrote, byte for byte, and on while it writes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from duly import clock
from duly.cli import out
from duly.cli.fields import whole_number
from duly.cli.frame import command, settings
from duly.cli.joining import address, find, hint_nobody
from duly.errors import Refused

if TYPE_CHECKING:
    from duly.core.run import Run
    from duly.store.store import Store

LOOK_EVERY_S = 0.1


@command(
    name="log",
    help="Print what a run wrote; of a task, what its newest run wrote.",
    epilog="duly log backup\nduly log -f 7kq2m9xw",
    params=[
        click.Argument(["which"], metavar="RUN|TASK"),
        click.Option(["-f", "--follow"], is_flag=True, help="Go on printing until the run ends."),
        click.Option(["--attempt"], metavar="N", help="Of several attempts this one.  [the last]"),
    ],
)
def log(which: str, follow: bool, attempt: str | None) -> None:
    """Print a run's output."""
    from duly.operations import outputs

    number = whole_number(attempt, "--attempt") if attempt is not None else None
    store = find()
    if store is None:
        raise Refused(
            "unknown_id", f'there is no task and no run "{which}": there is no store yet', details={"word": which}
        )
    try:
        store.changed()  # what is written from here on shows itself
        with store.read() as session:
            run = outputs.run_of(session, which)
            folder = outputs.folder_of(store, session, run, number)
        if settings().as_json and not follow:
            _document(store, run, folder)
        elif folder is not None or follow:
            _print(store, run, folder, number, follow=follow)
    finally:
        store.close()


def _document(store: "Store", run: "Run", folder: Path | None) -> None:
    from duly.operations import outputs

    data = b""
    cut = 0
    position = 0
    while folder is not None:
        piece = outputs.read(store, folder, position)
        cut += piece.cut
        if not piece.data:
            break
        data, position = data + piece.data, piece.next
    out.document(
        {
            "run": run.id,
            "attempt": run.attempt,
            "text": data.decode(errors="replace"),
            "log_bytes": position,
            "log_cut": cut,
        }
    )


def _print(store: "Store", run: "Run", folder: Path | None, number: int | None, *, follow: bool) -> None:
    from duly.operations import outputs

    printer = _Json(run) if settings().as_json else _Bytes()
    if follow and run.state == "waiting":
        hint_nobody(address(), "the run waits until somebody does")
    position = 0
    fence = run.fence
    while True:
        # Asked before reading, so that what was written up to the end is still read.
        over = not follow or run.state == "ended"
        while folder is not None:
            piece = outputs.read(store, folder, position)
            if piece.cut:
                out.note(f"duly: {piece.cut:,} bytes were cut here")
            if not piece.data:
                break
            printer.add(piece.data)
            position = piece.next
        printer.flush()
        if over:
            printer.end()
            return
        clock.pause(LOOK_EVERY_S)
        if store.changed() or folder is None:
            with store.read() as session:
                run = session.runs.by_id(run.id) or run
                if number is None and run.attempt and (run.fence != fence or folder is None):
                    fence, position = run.fence, 0
                    folder = outputs.folder_of(store, session, run)


class _Bytes:
    """Prints the work's bytes as they are."""

    def add(self, data: bytes) -> None:
        out.flush()
        sys.stdout.buffer.write(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()

    def end(self) -> None:
        """Nothing is owed at the end."""


class _Json:
    """Prints pieces of text as documents, one a line; a letter is never parted."""

    def __init__(self, run: "Run") -> None:
        import codecs

        self._run = run.id
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, data: bytes) -> None:
        self._tell(self._decoder.decode(data))

    def flush(self) -> None:
        out.flush()

    def end(self) -> None:
        self._tell(self._decoder.decode(b"", final=True))

    def _tell(self, text: str) -> None:
        if text:
            out.entry({"run": self._run, "text": text})
