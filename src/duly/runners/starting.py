"""Starting a program as the work of an attempt, and saying in words why it could not be started.

Standard library only and nothing of ours but its siblings of the same kind: keepers load it by path.
"""

import errno
import os
import signal

from duly.runners.ask import Ask

ARGUMENT_BYTES = 131_072  # Linux takes no single argument or variable larger than this, its NUL included
SIGNALS = tuple(int(one) for one in signal.valid_signals() if one not in (signal.SIGKILL, signal.SIGSTOP))


class NoDirectory(OSError):
    """The working directory is missing, is none, or is closed to us."""


class TooLong(OSError):
    """One argument or variable is longer than the system takes; the kernel's own word says less."""


def check(ask: Ask) -> None:
    """Say in words what the kernel would say with an error number."""
    sizes = [len(os.fsencode(text)) + 1 for text in ask.argv]
    sizes += [len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in ask.env.items()]
    for size in sizes:
        if size > ARGUMENT_BYTES:
            raise TooLong(errno.E2BIG, f"one argument or variable of {size:,} bytes; the most is {ARGUMENT_BYTES:,}")


def why(error: OSError | ValueError, ask: Ask) -> tuple[str, str]:
    """Give the reason of the closed set and a sentence for a work that did not start."""
    program, folder = ask.argv[0], ask.cwd
    if isinstance(error, NoDirectory):
        return "no_directory", f"the working directory {folder} cannot be entered: {error.strerror}"
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT and "/" in program and os.access(program, os.F_OK):
        return "not_found", f"{program} is there, but the interpreter that its first line names is not"
    if number in (errno.ENOENT, errno.ENOTDIR):
        return "not_found", f"the program {program} was not found"
    if number in (errno.EACCES, errno.EPERM):
        return "not_executable", f"{program} cannot be executed: {os.strerror(number)}"
    if number == errno.ENOEXEC:
        return "not_executable", f"{program} cannot be executed: it is no program and has no #! line"
    if number == errno.E2BIG:
        return "preflight", (
            f"the command line is too long ({_sizes(error, ask)}); give the text by a file, or as the run's input,"
            " which the command reads from $DULY_INPUT_FILE"
        )
    return "preflight", f"the work could not be started: {error}"


def _sizes(error: OSError | ValueError, ask: Ask) -> str:
    if isinstance(error, TooLong):
        return str(error.args[1])
    words = sum(len(os.fsencode(text)) + 1 for text in ask.argv)
    variables = sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in ask.env.items())
    return f"arguments of {words:,} bytes and variables of {variables:,} are more than this system takes together"


def enter(folder: str) -> None:
    """Make the working directory ours, and so the work's, or raise NoDirectory."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise NoDirectory(error.errno, error.strerror, folder) from error


def spawn(argv: list[str], env: dict[str, str], streams: tuple[int, int, int]) -> int:
    """Start the program, found by the work's own PATH, in a group of its own with every signal as it is by default."""
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)]
    failed: OSError | None = None
    for path in _candidates(argv[0], env):
        try:
            return os.posix_spawn(path, argv, env, file_actions=actions, setpgroup=0, setsigmask=(), setsigdef=SIGNALS)
        except (FileNotFoundError, NotADirectoryError) as error:
            failed = failed or error
        except PermissionError as error:
            # Like a shell, look further, and say in the end that there was one that may not be executed.
            failed = error if not isinstance(failed, PermissionError) else failed
    assert failed is not None
    raise failed


def _candidates(program: str, env: dict[str, str]) -> list[str]:
    if "/" in program:
        return [program]
    return [f"{folder or '.'}/{program}" for folder in env.get("PATH", os.defpath).split(":")]
