"""Keeping what a command writes: the head and the tail of it, in bounded memory and on a bounded disk.

Standard library only and nothing of ours: keepers load it by path. While the work runs, `log` holds the first
HEAD_BYTES and `log.1`, `log.2`, … hold what follows, TAIL_BYTES each, of which the newest two are kept. In the end
`log` is the head and the last TAIL_BYTES in one file.
"""

import contextlib
import os

HEAD_BYTES = 5 * 1024 * 1024
TAIL_BYTES = 5 * 1024 * 1024
COPY_BYTES = 256 * 1024
LAST_BYTES = 4096  # of these the last line is taken when a failure needs a text
LOG = "log"


def segment(number: int) -> str:
    """Name the file that holds the output of this stretch; 0 is the head."""
    return f"{LOG}.{number}" if number else LOG


class Log:
    """Takes output as it comes and never fails: what the disk refuses is counted, and `error` says why."""

    def __init__(self, folder: int) -> None:
        self.total = 0
        self.stored = 0
        self.error: str | None = None
        self.last = b""
        self._folder = folder
        self._number = 0
        self._room = HEAD_BYTES
        self._file: int | None = None

    def add(self, data: bytes) -> None:
        """Write on; readers see it at once."""
        self.total += len(data)
        self.last = data[-LAST_BYTES:] if len(data) >= LAST_BYTES else (self.last + data)[-LAST_BYTES:]
        if self.error is not None:
            return
        try:
            self._write(data)
        except OSError as error:
            self.error = error.strerror or str(error)

    def finish(self) -> int:
        """Make `log` the whole of what is kept; give the number of bytes cut out of its middle."""
        try:
            if self._number:
                self._append_tail()
        except OSError as error:
            self.error = error.strerror or str(error)
        if self._file is not None:
            os.close(self._file)
            self._file = None
        return self.total - self.stored

    def clear(self) -> None:
        """Take the files of the tail away; asked only after the end is on record, since readers use them before."""
        for number in range(max(1, self._number - 2), self._number + 1):
            with contextlib.suppress(OSError):
                os.unlink(segment(number), dir_fd=self._folder)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._room == 0:
                self._turn()
            if self._file is None:
                # Made at the first byte: an attempt without output leaves no log.
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(segment(self._number), flags, 0o600, dir_fd=self._folder)
            count = os.write(self._file, view[: self._room])
            self._room -= count
            self.stored += count
            view = view[count:]

    def _turn(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._number += 1
        self._room = TAIL_BYTES
        if self._number > 2:
            os.unlink(segment(self._number - 2), dir_fd=self._folder)
            self.stored -= TAIL_BYTES

    def _append_tail(self) -> None:
        numbers = [number for number in (self._number - 1, self._number) if number > 0]
        sizes = [TAIL_BYTES] * (len(numbers) - 1) + [TAIL_BYTES - self._room]
        skip = max(0, sum(sizes) - TAIL_BYTES)
        target = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            for number in numbers:
                source = os.open(segment(number), os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
                try:
                    os.lseek(source, skip, os.SEEK_SET)
                    while piece := memoryview(os.read(source, COPY_BYTES)):
                        while piece:
                            piece = piece[os.write(target, piece) :]
                finally:
                    os.close(source)
                self.stored -= skip
                skip = 0
        finally:
            os.close(target)
