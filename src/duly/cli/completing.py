"""`completion`: the words that may stand where the cursor is, for bash, zsh and fish; names of tasks too."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete

from duly.cli import out
from duly.cli.frame import Settings, command, frame
from duly.cli.table import plain
from duly.core.reading import shown
from duly.errors import DulyError, Invalid

if TYPE_CHECKING:
    from duly.store.store import Session

NAMES_MOST = 2_000
RUNS_MOST = 50
CHOICES = re.compile(r"[a-z_-]+(\|[a-z_-]+)+")
TASKS = frozenset({"task", "tasks"})
FILES = frozenset({"file", "store", "cwd", "input_"})

BASH = r"""# bash completion for duly; in ~/.bashrc: source <(duly completion bash)
_duly() {
    local line lines
    COMPREPLY=()
    mapfile -t lines < <("$1" completion bash -- "${COMP_LINE:0:COMP_POINT}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
    if [[ "${lines[0]}" == files ]]; then
        compopt -o default
        return
    fi
    for line in "${lines[@]:1}"; do
        COMPREPLY+=("$line")
    done
}
complete -F _duly duly
"""
ZSH = r"""#compdef duly
# zsh completion for duly; in ~/.zshrc, after compinit: source <(duly completion zsh)
_duly() {
    local line
    local -a lines values told
    lines=("${(@f)$("${(Q)words[1]}" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ "${lines[1]}" == files ]]; then
        _files
        return
    fi
    for line in "${(@)lines[2,-1]}"; do
        values+=("${line%%$'\t'*}")
        told+=("${line/$'\t'/  -- }")
    done
    (( ${#values} )) && compadd -l -d told -a values
}
if [[ "${funcstack[1]}" == _duly ]]; then
    _duly "$@"
else
    compdef _duly duly
fi
"""
FISH = r"""# fish completion for duly; in ~/.config/fish/config.fish: duly completion fish | source
function __duly
    set -l words (commandline -opc)
    set -l lines (duly completion fish -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test "$lines[1]" = files
        __fish_complete_path (commandline -ct)
    else if test (count $lines) -gt 1
        printf '%s\n' $lines[2..-1]
    end
end
complete -c duly -f -a '(__duly)'
"""
SCRIPTS: Mapping[str, str] = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@command(
    name="completion",
    help="Print what makes a shell complete duly's commands, options and the names of tasks. (With what was typed "
    "after --, the words that may stand at its end: so the script asks.)",
    epilog="source <(duly completion bash)      # in ~/.bashrc\n"
    "source <(duly completion zsh)       # in ~/.zshrc, after compinit\n"
    "duly completion fish | source       # in ~/.config/fish/config.fish",
    params=[click.Argument(["shell"], metavar="bash|zsh|fish"), click.Argument(["typed"], nargs=-1, metavar="")],
)
def completion(shell: str, typed: tuple[str, ...]) -> None:
    """Print a script, or the words that it asks for."""
    if shell not in SCRIPTS:
        raise Invalid(f"{shown(shell)} is not one of {', '.join(SCRIPTS)}", field="SHELL", text=shell, at=0)
    if not typed:
        out.line(SCRIPTS[shell].rstrip("\n"))
        return
    current = ""
    if shell == "bash":
        line, current = typed[0], typed[-1]
        words = _split(line)[1:]
    elif shell == "fish":
        words = [*typed[:-1], _split(typed[-1])[-1]]  # fish gives what stands before the cursor without its quotes
    else:
        words = [_split(word)[-1] for word in typed]
    found = offered(words or [""])
    if any(item.type == "file" for item in found):
        out.line("files")
        return
    out.line("words")
    for item in found:
        value = str(item.value)
        if "\n" in value or "\t" in value:
            continue  # the lines between us and the shell cannot carry it
        if shell == "bash":
            out.line(_for_bash(value, words[-1], current))
            continue
        option, mark, _ = words[-1].partition("=")
        whole = f"{option}={value}" if mark and option.startswith("--") else value
        out.line(f"{whole}\t{plain(item.help)}" if item.help else whole)


def offered(words: Sequence[str]) -> list[CompletionItem[str]]:
    """Give what may stand in place of the last word, which may be empty; nothing where that is not known."""
    if "--" in words[:-1]:
        return [CompletionItem("", type="file")]
    ask = ShellComplete(frame(), {"obj": Settings()}, "duly", "")
    try:
        return list(ask.get_completions(list(words[:-1]), words[-1]))
    except (DulyError, click.ClickException, OSError, ValueError):
        return []


def values(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Give the values that a parameter may have, those that begin as typed."""
    name, metavar = param.name or "", param.metavar or ""
    if name in FILES:
        return [CompletionItem(incomplete, type="file")]
    if CHOICES.fullmatch(metavar):
        found: Sequence[tuple[str, str]] = [(word, "") for word in metavar.split("|")]
    elif name in {"state", "outcome"}:
        found = [(word, "") for word in _states(ctx.command.name or "", name)]
    elif name == "zone":
        from duly import zones

        found = [(zone, "") for zone in zones.names()]
    else:
        found = _stored(ctx, name)
    return [CompletionItem(value, help=told or None) for value, told in found if value.startswith(incomplete)]


def _states(called: str, name: str) -> Sequence[str]:
    from duly.operations import holding, listing

    if name == "outcome":
        return listing.OUTCOMES
    return holding.STATES if called == "holders" else listing.STATES


def _stored(ctx: click.Context, name: str) -> list[tuple[str, str]]:
    """Ask the store for names; one that is not there, or cannot be read, has none."""
    from duly.cli.joining import address_of
    from duly.store.store import Store

    called = ctx.command.name
    asked: Mapping[str, Callable[[Session], Iterator[tuple[str, str]]]] = {
        **dict.fromkeys(TASKS, _tasks),
        "which": _tasks_and_runs,
        "run": _live_runs,
        "holder": _holders,
        "id": _questions if called == "answer" else _nothing,
        "project": _projects,
        "key": {"limit": _limits, "budget": _budgets}.get((ctx.parent and ctx.parent.command.name) or "", _nothing),
    }
    if name not in asked:
        return []
    store = Store.find(address_of(ctx.find_root().obj), os.environ)
    if store is None:
        return []
    try:
        with store.read() as session:
            return list(asked[name](session))
    finally:
        store.close()


def _tasks(session: "Session") -> Iterator[tuple[str, str]]:
    from duly.operations import previewing
    from duly.operations.lookup import told

    for task in session.tasks.page(most=NAMES_MOST):
        triggers = task.definition.triggers
        yield told(task), task.definition.description or (previewing.say(triggers) if triggers else "")


def _tasks_and_runs(session: "Session") -> Iterator[tuple[str, str]]:
    yield from _tasks(session)
    yield from _runs(session, live=False)


def _live_runs(session: "Session") -> Iterator[tuple[str, str]]:
    return _runs(session, live=True)


def _runs(session: "Session", *, live: bool) -> Iterator[tuple[str, str]]:
    from duly.operations.listing import name_of
    from duly.operations.lookup import ending

    for run in session.runs.listed(most=RUNS_MOST):
        if live and run.state == "ended":
            continue
        word = run.outcome or {"held": "running"}.get(run.state, run.state)
        yield ending(run.id), f"{name_of(session.tasks.by_id(run.task), run.task)}: {word}"


def _projects(session: "Session") -> Iterator[tuple[str, str]]:
    for name in session.projects.names():
        yield name, ""


def _questions(session: "Session") -> Iterator[tuple[str, str]]:
    from duly.operations.lookup import ending

    for one in session.questions.open(session.now, most=RUNS_MOST):
        yield ending(one.id), " ".join(one.text.split())


def _holders(session: "Session") -> "Iterator[tuple[str, str]]":
    for row in session.holders.living():
        yield row.id, f"{row.host}, pid {row.pid}"


def _limits(session: "Session") -> Iterator[tuple[str, str]]:
    for limit in session.crowd.all():
        yield limit.key, f"{limit.used} of {limit.most} taken"


def _budgets(session: "Session") -> Iterator[tuple[str, str]]:
    yield "store", "all tasks"
    for name in session.projects.names():
        yield f"project:{name}", "the tasks of one project"


def _nothing(_: "Session") -> Iterator[tuple[str, str]]:
    return iter(())


def _split(line: str) -> list[str]:
    """Part a line into words as a shell would, also where a quote is still open; the last word is at its end."""
    words, word, quote, at = list[str](), "", "", 0
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'" and at + 1 < len(line):
            escaped = line[at + 1]
            word += escaped if not quote or escaped in '"\\$`' else char + escaped
            at += 1
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif not quote and char in " \t\n":
            if at and line[at - 1] not in " \t\n":
                words.append(word)
            word = ""
        else:
            word += char
        at += 1
    return [*words, word]


def _for_bash(value: str, word: str, current: str) -> str:
    """Write a value as bash shall insert it: quoted as it was begun, and without what bash holds for another word.

    Bash parts a word at `=` and `:`, and replaces only what follows the last of them.
    """
    quote = current[:1] if current[:1] in {"'", '"'} else ""
    begun = word.partition("=")[2] if word.startswith("--") and "=" in word else word
    replaced = "" if current in {"=", ":"} else _split(current)[-1]
    rest = value[len(begun) - len(replaced) :] if begun.endswith(replaced) else value
    if quote == "'":
        return rest.replace("'", "'\\''")
    if quote:
        return re.sub(r'(["\\$`])', r"\\\1", rest)
    return re.sub(r"([^\w%+,./:=@^-])", r"\\\1", rest)
