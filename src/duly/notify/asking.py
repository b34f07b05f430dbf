"""Asking a monitor: one GET of a ping's address, held to the same bounds as webhooks are."""

import asyncio

from duly import __version__
from duly.core.agent_config import SECRET
from duly.core.http_reading import fault_of_address
from duly.core.pings import Ending, address
from duly.notify.outcome import NotSent
from duly.notify.sending import Sender
from duly.runners.webhook.exchange import Answered, Heard, Progress, exchange
from duly.runners.webhook.exchange import NotSent as Unsent
from duly.runners.webhook.reach import Reach
from duly.runners.webhook.request import Request
from duly.secrets import Missing

WITHIN_S = 30.0
LATER = frozenset({408, 425, 429})
"""Answers that ask for another time, where others of their hundred say that there will be none."""


def ask(sender: Sender, url: str, ending: Ending) -> None:
    """Ask the address that this url means; NotSent where it does not answer with 2xx. No redirection is followed."""
    try:
        filled = SECRET.sub(lambda found: sender.secrets.value(found[1]), url)
    except Missing as error:
        raise NotSent(str(error)) from None
    fault = fault_of_address(filled)
    if fault is not None:
        raise NotSent(f"it is no address to ask: {fault}", for_good=True)
    headers = {"User-Agent": f"duly/{__version__}"}
    request = Request(method="GET", url=address(filled, ending), shown=url, headers=headers, body=b"")
    try:
        heard = asyncio.run(_within(request, Reach(inside=sender.inside)))
    except TimeoutError:
        raise NotSent(f"it gave no answer within {WITHIN_S:g} s") from None
    if not isinstance(heard, Answered):
        for_good = isinstance(heard, Unsent) and heard.for_good
        raise NotSent(sender.secrets.mask(heard.why), for_good=for_good)
    if not 200 <= heard.status < 300:
        raise NotSent(f"it answered {heard.status}", for_good=400 <= heard.status < 500 and heard.status not in LATER)


async def _within(request: Request, reach: Reach) -> Heard:
    async with asyncio.timeout(WITHIN_S):
        return await exchange(request, reach, Progress(), idle_s=WITHIN_S)
