"""`doctor`: what is wrong with the store, who serves it and this machine, and what to do; the reasons there are."""

import os

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint
from duly.cli.table import Cell, Column, pairs, plain, render
from duly.cli.words import many

FINDINGS = 1
FACTS = (
    "store",
    "version",
    "revision",
    "python",
    "sqlite",
    "server",
    "zone_data",
    "bytes",
    "log_bytes",
    "holders_alive",
)


@command(
    name="doctor",
    help="Look for what is wrong with the store, with who serves it and with this machine, and say what to do. Reads "
    "the store through, changes nothing, and ends with 1 where it found something.",
    epilog="duly doctor\nduly doctor --reasons          # what the words in list, runs and the ledger mean",
    params=[click.Option(["--reasons"], is_flag=True, help="List the closed set of reasons with their sentences.")],
)
def doctor(reasons: bool) -> int:
    """Examine everything."""
    from duly.operations import diagnosis

    if reasons:
        _reasons(diagnosis.reasons())
        return 0
    found = diagnosis.examine(address(), os.environ)
    code = settings().code = FINDINGS if found.ailments else 0
    if settings().as_json:
        out.document(diagnosis.shape(found))
        return code
    out.lines(pairs([(name.replace("_", " "), plain(str(found.facts[name]))) for name in FACTS if name in found.facts]))
    if found.facts["revision"] is None and not found.ailments:
        hint(f"there is no store at {found.facts['store']} yet; `duly add` makes it with the first task")
    out.line()
    for one in found.ailments:
        mark = out.styled(f"{one.check}:", "red")
        out.line(f"{mark} {plain(one.text)}")
        out.line(f"  try: {plain(one.hint)}")
    checked = f"{len(found.checks)} checks: {', '.join(name.replace('_', ' ') for name in found.checks)}"
    out.line(many(len(found.ailments), "finding") if found.ailments else f"nothing wrong ({checked})")
    if not found.ailments and found.facts["revision"] is not None:
        hint("whether the promises were kept: duly verify")
    return code


def _reasons(items: list[dict[str, str]]) -> None:
    if settings().as_json:
        out.document({"items": items, "next": None})
        return
    columns = [Column(head="USE"), Column(head="REASON"), Column(head="MEANS", words=True, yields=1)]
    rows: list[list[Cell | str]] = [[item["use"].replace("_", " "), item["reason"], item["sentence"]] for item in items]
    out.lines(render(columns, rows))
