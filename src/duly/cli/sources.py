"""`source set`, `source list`, `source remove`: what is wanted of who sends events without a token of ours."""

from typing import TYPE_CHECKING, Any

import click

from duly.cli import out
from duly.cli.fields import whole_number
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import hint, open_for_change, reading
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import many
from duly.core.senders import PRESETS

if TYPE_CHECKING:
    from duly.operations.senders import Known

SOURCE = click.Argument(["source"], metavar="NAME")


@command(
    name="set",
    help=(
        "Set what is wanted of who sends events to a source over HTTP and has no token of ours: a signature, or a"
        " secret in a header. Secrets are only named: they are in the config or the environment of who serves."
    ),
    epilog=(
        "duly source set repo --hmac REPO_SECRET --preset github\n"
        "duly source set orders --hmac ORDERS_KEY\n"
        "duly source set alarms --token ALARM_TOKEN --header X-Alarm-Token"
    ),
    params=[
        SOURCE,
        click.Option(["--hmac"], metavar="SECRET-NAME", help="A signature made with the secret of this name."),
        click.Option(["--token"], metavar="SECRET-NAME", help="The secret of this name itself, in a header."),
        click.Option(
            ["--preset"],
            type=click.Choice(PRESETS),
            help="How it is signed: generic is Standard Webhooks.  [generic]",
        ),
        click.Option(["--header"], metavar="NAME", help="Where the token stands.  [Duly-Token]"),
        click.Option(["--within"], metavar="SPAN", help="How far a signature's moment may be from now.  [5m]"),
        click.Option(
            ["--queue"], metavar="N", help="How many runs may wait of what it sent before no more is taken.  [1000]"
        ),
    ],
)
def set_(source: str, within: str | None, queue: str | None, **given: Any) -> None:
    """Set what a source wants."""
    from duly.core.spans import read_span
    from duly.operations import senders
    from duly.operations.lookup import caller

    with open_for_change() as store:
        known = senders.set_source(
            store,
            source,
            by=caller(),
            within=None if within is None else read_span(within, field="--within"),
            queue=None if queue is None else whole_number(queue, "--queue"),
            **given,
        )
    if settings().as_json:
        out.document(senders.shape(known))
        return
    out.line(f"source {plain(known.name)} wants {_wanted(known)} ({many(known.tasks, 'task')} listening)")
    if known.sender is not None and known.sender.by is not None:
        hint(f"it is sent to POST /api/v1/events/{plain(known.name)} of who serves")


@command(name="list", help="List the sources: what each wants, and the last that came from it.")
def list_() -> None:
    """List the sources."""
    from duly.operations import senders

    with reading() as session:
        found: list[Known] = [] if session is None else senders.sources(session)
    if settings().as_json:
        out.document({"items": [senders.shape(one) for one in found], "next": None})
        return
    if not found:
        hint("no event has come, and no task listens: duly source set NAME --hmac SECRET-NAME")
        return
    columns = [
        Column(head="SOURCE", cut=True),
        Column(head="WANTS"),
        Column(head="TASKS", right=True),
        Column(head="EVENTS", right=True),
        Column(head="LAST KEY", cut=True, yields=1),
    ]
    out.lines(render(columns, [_row(one) for one in found]))


@command(name="remove", help="Want a token of ours of who sends to a source, and nothing else.", params=[SOURCE])
def remove(source: str) -> None:
    """Remove what a source wants."""
    from duly.operations import senders
    from duly.operations.lookup import caller

    with open_for_change() as store:
        gone = senders.remove_source(store, source, by=caller())
    if settings().as_json:
        out.document(senders.shape(gone))
        return
    out.line(f"source {plain(gone.name)} is no longer set: who sends to it needs a token")


source = Verbs("source", set_, list_, remove, help="Sources of events: what is wanted of who sends to them.")


def _wanted(known: "Known") -> str:
    sender = known.sender
    if sender is None or sender.by is None:
        return "a token of ours"
    if sender.by == "token":
        return f"{sender.secret} in {sender.header}"
    return f"a signature by {sender.secret}" + (" as GitHub makes it" if sender.preset == "github" else "")


def _row(one: "Known") -> list[Cell | str]:
    return [
        Cell(text=plain(one.name), styles=("bold",)),
        plain(_wanted(one)),
        str(one.tasks),
        "0" if one.heard is None else f"{one.heard.received:,}",
        "" if one.heard is None else plain(one.heard.last_key or ""),
    ]
