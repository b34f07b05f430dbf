"""`token create`, `token list`, `token revoke` and `open`: who may ask over the network, and a browser's way in."""

from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import hint, open_for_change, reading
from duly.cli.table import Cell, Column, plain, render

if TYPE_CHECKING:
    from duly.store.tokens import Token

NAME = click.Argument(["name"], metavar="NAME")


@command(
    name="create",
    help="Make a token for a program that asks by HTTP; its secret is printed this once. read sees, run runs, cancels, "
    "decides what was missed and emits, answer answers questions, write defines and pauses, admin does all of it.",
    epilog="duly token create ci --rights read,run --project shop\ncurl -H 'Authorization: Bearer …' URL/api/v1/tasks",
    params=[
        NAME,
        click.Option(["--rights"], metavar="R,…", required=True, help="Some of read, run, answer, write, admin."),
        click.Option(
            ["--project", "projects"],
            metavar="P",
            multiple=True,
            help="Hold it to the tasks of a project (may be repeated).",
        ),
    ],
)
def create(name: str, rights: str, projects: tuple[str, ...]) -> None:
    """Make a token."""
    from duly.operations import tokens
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run, refuse_in_a_run

    refuse_in_a_run(asking_run(), "making a token", "duly token create, from a terminal of one's own")
    words = [word.strip() for word in rights.split(",") if word.strip()]
    with open_for_change(create=True) as store:
        made = tokens.create(store, name, rights=words, projects=projects, by=caller())
        with store.read() as session:
            told = tokens.shape(session, made.token)
    if settings().as_json:
        out.document(told | {"secret": made.secret})
        return
    out.line(made.secret)
    hint("this is shown once; the store keeps only a digest of it")


@command(name="list", help="List the tokens and the sessions of browsers: what each may do, and whether it counts.")
def list_() -> None:
    """List the tokens."""
    from duly.operations import tokens

    with reading() as session:
        found: list[Token] = [] if session is None else tokens.listed(session)
        items = [] if session is None else [tokens.shape(session, one) for one in found]
    if settings().as_json:
        out.document({"items": items, "next": None})
        return
    if not items:
        hint("there is no token: duly token create NAME --rights read")
        return
    columns = [
        Column(head="TOKEN", cut=True),
        Column(head="RIGHTS"),
        Column(head="PROJECTS", cut=True),
        Column(head="MADE"),
        Column(head="STATE"),
    ]
    out.lines(render(columns, [_row(item) for item in items]))


@command(name="revoke", help="Let a token, or a browser's session by its id, count no longer.", params=[NAME])
def revoke(name: str) -> None:
    """Revoke a token."""
    from duly.operations import tokens
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run, refuse_in_a_run

    refuse_in_a_run(asking_run(), "revoking a token", "duly token revoke, from a terminal of one's own")
    with open_for_change() as store:
        gone = tokens.revoke(store, name, by=caller())
        with store.read() as session:
            told = tokens.shape(session, gone)
    if settings().as_json:
        out.document(told)
        return
    out.line(f"the token {plain(gone.name)} counts no longer")


token = Verbs("token", create, list_, revoke, help="Tokens: who may ask over the network, and how far.")


@command(
    name="open",
    help="Open the interface of who serves here in a browser, logged in by a link that works once, for five minutes.",
    epilog="duly open\nduly open --print    # over SSH: the link, to be opened elsewhere",
    params=[click.Option(["--print", "printed"], is_flag=True, help="Print the link, and open nothing.")],
)
def open_(printed: bool) -> None:
    """Open the interface in a browser."""
    from duly.app import opening
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run, refuse_in_a_run

    refuse_in_a_run(asking_run(), "a link that logs in", "duly open, from a terminal of one's own")
    with open_for_change() as store:
        link = opening.link(store, by=caller())
        shown = printed or settings().as_json or not opening.show(store.run_folder, link)
    if settings().as_json:
        out.document({"url": link.url, "expires_at": link.expires_at})
    elif shown:
        out.line(link.url)
        hint("it works once, for five minutes")
    else:
        out.line(f"opened {plain(link.place)} in a browser")


def _row(item: dict[str, object]) -> list[Cell | str]:
    state = "revoked" if item["revoked_at"] else f"until {item['expires_at']}" if item["expires_at"] else "counts"
    styles = ("dim",) if item["revoked_at"] else ()
    projects, rights = item["projects"], item["rights"]
    assert isinstance(rights, list)
    name = str(item["name"]) if item["kind"] == "token" else f"browser of {item['name']} ({item['id']})"
    return [
        plain(name),
        ",".join(rights),
        plain(", ".join(projects)) if isinstance(projects, list) else "all",
        f"by {plain(str(item['created_by']))}",
        Cell(text=state, styles=styles),
    ]
