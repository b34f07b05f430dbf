"""`export`: definitions as text, to keep in a repository or to bring to another store."""

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import reading
from duly.cli.table import plain
from duly.cli.words import many
from duly.cli.yaml_text import yaml_lines

FAILED = 1


@command(
    name="export",
    help="Write the definitions of tasks as YAML (or, with --json, as JSON): all that their authors wrote, and nothing "
    "of what has happened. Exit 1 where a broken one had to be left out.",
    epilog="duly export > tasks.yaml\nduly export backup report --json",
    params=[click.Argument(["tasks"], nargs=-1, metavar="[TASK]...")],
)
def export(tasks: tuple[str, ...]) -> int:
    """Export definitions."""
    from duly.operations import exporting
    from duly.operations.lookup import told

    with reading() as session:
        nothing = exporting.Exported(definitions=[], broken=[])
        found = nothing if session is None else exporting.export(session, tasks)
    code = FAILED if found.broken else 0
    settings().code = code
    if settings().as_json:
        document: dict[str, object] = {"tasks": list(found.definitions)}
        if found.broken:
            document["broken"] = [exporting.left_out(task) for task in found.broken]
        out.document(document)
        return code
    for task in found.broken:
        assert task.broken is not None
        out.note(f"warning: {plain(told(task))} is left out: {task.broken.field}: {plain(task.broken.message)}")
    out.line(f"# {many(len(found.definitions), 'task')}, as duly export wrote them")
    out.lines(yaml_lines({"tasks": list(found.definitions)}))
    return code
