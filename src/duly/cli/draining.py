"""`drain`: those who serve take no more work, let what they hold come to its end, and leave."""

import click

from duly import clock
from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import find, hint, open_for_change
from duly.cli.table import plain
from duly.cli.words import many

LOOK_EVERY_S = 0.1


@command(
    name="drain",
    help="Ask a process that serves, or all of them, to take no more work, to let what it runs come to its end however "
    "long that takes, and then to leave. TERM is the way to stop one soon.",
    epilog="duly drain --wait          # before an upgrade\nduly drain 7kq2m9xw",
    params=[
        click.Argument(["holder"], required=False),
        click.Option(["--wait"], is_flag=True, help="Wait until they have left."),
    ],
)
def drain(holder: str | None, wait: bool) -> None:
    """Drain holders."""
    from duly.errors import Refused
    from duly.operations import draining

    store = find()
    if store is None:
        if holder is not None:
            raise Refused("unknown_id", f"there is no holder {plain(holder)}", details={"word": holder})
        if settings().as_json:
            out.document({"items": [], "next": None})
        return
    store.close()
    with open_for_change() as changed:
        items = draining.drain(changed, holder)
        if not settings().as_json:
            _say(items)
            out.flush()  # before a wait that may be long
        while wait and any(one["state"] != "gone" for one in items):
            clock.pause(LOOK_EVERY_S)
            changed.check_here()
            items = draining.look(changed, [str(one["id"]) for one in items])
    if settings().as_json:
        out.document({"items": items, "next": None})
    elif wait and items:
        out.line("all have left" if len(items) > 1 else f"{items[0]['id']} has left")


def _say(items: list[dict[str, object]]) -> None:
    if not items:
        hint("nobody serves this store")
    for one in items:
        if one["state"] == "gone":
            out.line(f"{one['id']} is gone already")
            continue
        rest = f"{many(int(str(one['running'])), 'run')} to end" if one["running"] else "it runs nothing"
        out.line(plain(f"{one['id']} on {one['host']} (pid {one['pid']}) drains: {rest}"))
