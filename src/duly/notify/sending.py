"""Sending one message to one channel: its address and its secret are resolved here, at the last moment."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from duly import config
from duly.core.channel_reading import NAMED, is_webhook, names_in
from duly.core.channels import Channel
from duly.core.values import value
from duly.errors import Invalid
from duly.notify import people, webhook
from duly.notify.messages import Item, message
from duly.notify.outcome import NotSent
from duly.secrets import Missing, Secrets


@value
class Sender:
    """What every message of this host is made with: its secrets, and by which address it is reached from outside."""

    secrets: Secrets
    store: str | None = None
    """The id of the store."""
    public_url: str | None = None
    inside: bool = False
    """Whether names that lead to private addresses are followed, as for webhooks."""


def sender_of(environ: Mapping[str, str], *, store: str | None) -> Sender:
    """Give what messages are sent with here, by the config as it stands; all of its secrets are known to be hidden."""
    try:
        found = config.load(environ)
    except Invalid:
        found = config.Config(path=config.place(environ), exists=False, values={})
    secrets = config.secrets_of(found, environ)
    for name in found.secrets:
        try:
            secrets.value(name)
        except Missing:
            continue
    try:
        public_url = config.in_force("public_url", found, environ).value
    except Invalid:
        public_url = None
    try:
        inside = config.in_force("http.inside", found, environ).value is True
    except Invalid:
        inside = False
    return Sender(
        secrets=secrets, store=store, public_url=None if public_url is None else str(public_url), inside=inside
    )


def send(sender: Sender, channel: Channel, items: Sequence[Item], *, now: datetime) -> None:
    """Send these notices as one message; NotSent says why not, without any secret."""
    try:
        url = NAMED.sub(lambda found: sender.secrets.value(found[1]), channel.url)
        secret = None if channel.secret is None else sender.secrets.value(channel.secret)
    except Missing as error:
        raise NotSent(str(error)) from None
    mask = sender.secrets.mask
    made = message(items, store=sender.store, public_url=sender.public_url, mask=mask, now=now)
    try:
        if is_webhook(url):
            webhook.send(url, made, secret=secret, now=now)
        else:
            people.send(url, made)
    except NotSent as error:
        told = error.told if names_in(channel.url) == [] else error.told.replace(url, channel.url)
        raise NotSent(mask(told), wait=error.wait) from None
