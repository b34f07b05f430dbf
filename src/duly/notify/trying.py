"""Trying a channel: one test notice, sent at once from this process, past the outbox."""

from collections.abc import Mapping

from duly import ids
from duly.core.channels import Channel
from duly.core.notices import of_test
from duly.notify.messages import Item
from duly.notify.outcome import NotSent
from duly.notify.sending import send, sender_of
from duly.store import Store
from duly.store.meta import STORE_ID


def attempt(store: Store, channel: Channel, environ: Mapping[str, str]) -> str | None:
    """Send a test notice to a channel; gives why it was not taken, or None where it was."""
    with store.read() as session:
        now, store_id = session.now, session.meta.said(STORE_ID)
    item = Item(id=ids.new("ntc"), notice=of_test(channel.name, at=now))
    try:
        send(sender_of(environ, store=store_id), channel, [item], now=now)
    except NotSent as error:
        return error.told
    return None
