"""`channel set`, `channel list`, `channel test`, `channel remove`: where people and programs are told."""

import os
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import hint, open_for_change, reading
from duly.cli.moments import away
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import many

if TYPE_CHECKING:
    from datetime import datetime

    from duly.operations.channels import Shown

NAME = click.Argument(["name"], metavar="NAME")
FIELDS = {"name": "NAME", "url": "URL", "secret": "--sign", "every": "--every"}


@command(
    name="set",
    help="Set a channel, which hears when a task fails, recovers, misses its times or asks: a webhook by http or "
    "https, or people by an Apprise URL (the extra notify). Secrets are only named in it: ${NAME}.",
    epilog=(
        "duly channel set ops https://example.org/hook --sign HOOK_KEY\n"
        "duly channel set phone 'ntfys://${NTFY_TOKEN}@ntfy.sh/duly'\n"
        "duly add dump --when 'daily 02:00' --notify ops -- ./dump"
    ),
    params=[
        NAME,
        click.Argument(["url"], metavar="URL"),
        click.Option(
            ["--sign"], metavar="SECRET-NAME", help="Sign what is sent by this secret of the config (webhooks)."
        ),
        click.Option(
            ["--every"], metavar="SPAN", help="At most one message in so long; the rest goes together.  [10s]"
        ),
        click.Option(["--only-named"], is_flag=True, help="Hear only of tasks that name it (--notify NAME)."),
    ],
)
def set_(name: str, url: str, sign: str | None, every: str | None, only_named: bool) -> None:
    """Set a channel."""
    from duly.core import channel_reading
    from duly.core.channels import DEFAULT_EVERY
    from duly.core.spans import read_span
    from duly.operations import channels
    from duly.operations.lookup import caller

    span = DEFAULT_EVERY if every is None else read_span(every, field="--every", zero=True)
    wish = channels.read(name, url, secret=sign, every=span, only_named=only_named, fields=FIELDS)
    with open_for_change(create=True) as store:
        done, new = channels.set_channel(store, wish, by=caller())
        with store.read() as session:
            shown = channels.one(session, done.name)
    if settings().as_json:
        out.document(channels.shape(shown))
        return
    whom = "tasks that name it" if done.only_named else "all tasks that name no other"
    out.line(f"channel {plain(done.name)} is {'set' if new else 'set anew'}: {plain(channel_reading.masked(done.url))}")
    out.line(f"it hears of {whom} from now on")
    if channel_reading.has_secret(done.url):
        hint("the address seems to hold a secret, and is kept as it is: name it in [secrets] and write ${NAME} instead")
    hint(f"try it: duly channel test {plain(done.name)}")


@command(name="list", help="List the channels: whether they take what they are sent, and what waits for them.")
def list_() -> None:
    """List the channels."""
    from duly.operations import channels

    with reading() as session:
        found: list[Shown] = [] if session is None else channels.listed(session)
        now = None if session is None else session.now
    if settings().as_json:
        out.document({"items": [channels.shape(one) for one in found], "next": None})
        return
    if not found or now is None:
        hint("no channel is set, so nobody is told: duly channel set NAME URL")
        return
    columns = [
        Column(head="CHANNEL", cut=True),
        Column(head="ADDRESS", cut=True, yields=1),
        Column(head="HEARS OF"),
        Column(head="WAITING", right=True),
        Column(head="LAST"),
        Column(head="STATE", cut=True),
    ]
    out.lines(render(columns, [_row(one, now) for one in found]))


@command(
    name="test",
    help="Send a test notice to a channel, now and from here. Exit 1 where it is not taken.",
    params=[NAME],
)
def test(name: str) -> int:
    """Try a channel."""
    from duly.notify import trying
    from duly.operations import channels

    with open_for_change() as store:
        with store.read() as session:
            channel = channels.find(session, name)
        error = trying.attempt(store, channel, os.environ)
    if settings().as_json:
        out.document({"channel": channel.name, "taken": error is None, "error": error})
    elif error is None:
        out.line(f"channel {plain(channel.name)} has taken a test notice")
    else:
        out.line(f"channel {plain(channel.name)} has not taken it: {plain(error)}")
    return 0 if error is None else 1


@command(name="remove", help="Remove a channel; what waits for it is not told any more.", params=[NAME])
def remove(name: str) -> None:
    """Remove a channel."""
    from duly.operations import channels
    from duly.operations.lookup import caller

    with open_for_change() as store:
        with store.read() as session:
            shown = channels.one(session, name)
        channels.remove_channel(store, name, by=caller())
    if settings().as_json:
        out.document(channels.shape(shown))
        return
    out.line(f"channel {plain(shown.channel.name)} is removed")
    if shown.tasks:
        hint(f"{many(shown.tasks, 'task')} named it; the channels that hear of all tasks hear of them now")


channel = Verbs("channel", set_, list_, test, remove, help="Where people and programs are told what they should know.")


def _row(one: "Shown", now: "datetime") -> list[Cell | str]:
    from duly.core import channel_reading

    held = one.channel
    state = "fine" if held.last_at is not None else "nothing was due yet"
    if held.error is not None:
        state = f"fails ({held.failures}): {held.error}"
    return [
        plain(held.name),
        plain(channel_reading.masked(held.url)),
        f"{many(one.tasks, 'task')} that name it" if held.only_named else "all",
        str(one.waiting),
        "" if held.last_at is None else away(held.last_at, now),
        Cell(text=plain(state), styles=() if held.error is None else ("red",)),
    ]
