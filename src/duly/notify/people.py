"""Channels of people (mail, chats, telephones), by Apprise, where the extra `notify` is installed."""

import logging
from collections.abc import Mapping

from duly.core.notices import Severity
from duly.notify.messages import Message
from duly.notify.outcome import NotSent

EXTRA = "the extra `notify` is not installed here: pip install 'duly[notify]'"
TYPES: Mapping[Severity, str] = {"info": "info", "success": "success", "warning": "warning", "failure": "failure"}
"""Apprise's words for severities."""


def send(url: str, message: Message) -> None:
    """Send a message through Apprise; NotSent where it is not there, knows no such address, or did not deliver."""
    try:
        import apprise
    except ImportError:
        raise NotSent(EXTRA) from None
    # What it logs may name addresses whole; what matters of it is told as the channel's error.
    logger = logging.getLogger("apprise")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = False
    asset = apprise.AppriseAsset(app_id="Duly", async_mode=False)
    to = apprise.Apprise(asset=asset)
    if not to.add(url):
        raise NotSent("Apprise knows no such address")
    try:
        done = to.notify(title=message.title, body=message.text or message.title, notify_type=TYPES[message.severity])
    except Exception as error:  # noqa: BLE001 - a plug-in of its may raise anything
        raise NotSent(f"Apprise failed: {type(error).__name__}") from None
    if not done:
        raise NotSent("Apprise did not deliver it")
