"""What a turn has besides asking and hearing: the id of its message, its stop, its cost, putting its session away."""

import asyncio
import contextlib
from collections.abc import Mapping

from duly import chance, clock
from duly.core import usage
from duly.runners.opencode import messages
from duly.runners.opencode.api import Api, Away, Strange, Told, reached
from duly.runners.opencode.hearing import Heard
from duly.runners.opencode.servers import Server, is_alive, last_words
from duly.runners.prompting import Talk

IDLE_BEFORE_ARCHIVE_S = 2.0
ARCHIVED_WITHIN_S = 10.0
LOOK_S = 0.2
GONE_WITHIN_S = 2.0
TAIL = 7
BEFORE = "What follows is standing knowledge of this project; the prompt comes after it.\n\n{knowledge}\n\n"


def message_id(run: str) -> str:
    """Make the id of a message of a run's, in the server's own form: it sorts by the time it was made."""
    number = (clock.to_us(clock.now()) // 1000 * 4096) % 2**48
    drawn = "".join(messages.DIGITS[byte % len(messages.DIGITS)] for byte in chance.token_bytes(TAIL))
    return f"msg_{number:012x}{messages.tag_of(run)}{drawn}"


def parts(talk: Talk) -> list[dict[str, object]]:
    """Give what is sent: standing knowledge, then the prompt."""
    asked: dict[str, object] = {"type": "text", "text": talk.prompt}
    if talk.knowledge is None:
        return [asked]
    return [{"type": "text", "text": BEFORE.format(knowledge=talk.knowledge), "synthetic": True}, asked]


async def stopped(api: Api, heard: Heard, server: Server, *, within_s: float) -> bool:
    """Stop a turn with those of its sub-agents, and say whether the server says so; with it a turn has ended, too."""
    confirmed = False

    async def until_so() -> None:
        nonlocal confirmed
        while not confirmed:
            with contextlib.suppress(Away, Told, Strange):
                busy = await api.fields("/session/status")
                for session in [heard.session, *(one for one in heard.family if one in busy)]:
                    await api.post(f"/session/{session}/abort")
                confirmed = not heard.family & set(await api.fields("/session/status"))
            confirmed = confirmed or not is_alive(server)
            if not confirmed:
                await asyncio.sleep(LOOK_S)

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(until_so(), within_s)
    return confirmed


async def looked(api: Api, session: str, *, always: bool = False) -> tuple[bool, list[messages.Message]]:
    """Whether a session is busy, and its messages where it is not, or always."""
    busy = session in await api.fields("/session/status")
    return busy, [] if busy and not always else await api.objects(f"/session/{session}/message")


async def is_gone(server: Server) -> bool:
    """Say whether a server of ours that does not answer has ended, or does so in a moment."""
    until_s = clock.monotonic_s() + GONE_WITHIN_S
    while (alive := is_alive(server)) and server.kept is not None and clock.monotonic_s() < until_s:
        await asyncio.sleep(LOOK_S)
    return not alive


async def commands(server: Server, directory: str) -> dict[str, str]:
    """Give the commands that the agent has in a directory, with their templates; Away, Told, Strange."""
    async with reached(server.url, server.password, directory, outside=server.kept is None) as api:
        found = {str(one.get("name")): one.get("template") for one in await api.objects("/command")}
    return {name: one for name, one in found.items() if isinstance(one, str)}


async def archive(server: Server, directory: str, session: str) -> str | None:
    """Put a session away, once it and its sub-agents have been idle for a while; says why not."""
    idle_s: float | None = None
    until = clock.monotonic_s() + ARCHIVED_WITHIN_S
    try:
        async with reached(server.url, server.password, directory, outside=server.kept is None) as api:
            family = {session, *(str(one.get("id")) for one in await api.objects(f"/session/{session}/children"))}
            while (now := clock.monotonic_s()) < until:
                busy = family & set(await api.fields("/session/status"))
                idle_s = None if busy else now if idle_s is None else idle_s
                if idle_s is not None and now - idle_s >= IDLE_BEFORE_ARCHIVE_S:
                    await api.ask(
                        "PATCH", f"/session/{session}", {"time": {"archived": clock.to_us(clock.now()) // 1000}}
                    )
                    return None
                await asyncio.sleep(LOOK_S)
    except (Away, Told, Strange) as error:
        return str(error)
    return "its session is not idle"


async def spent(api: Api, session: str) -> int:
    """Count the tokens that a session took so far, with its sub-agents'."""
    total = messages.tokens(await api.objects(f"/session/{session}/message"))
    for child in await api.objects(f"/session/{session}/children"):
        total += await spent(api, str(child.get("id")))
    return total


async def cost(api: Api, heard: Heard, since: str) -> dict[str, float]:
    """Sum what was answered since a message, with sub-agents; money is told of the whole session, as by all agents."""
    own = await api.objects(f"/session/{heard.session}/message")
    total, whole = messages.cost(messages.since(own, since)), messages.cost(own)
    for child in await api.objects(f"/session/{heard.session}/children"):
        its = messages.cost(await api.objects(f"/session/{child.get('id')}/message"))
        whole = messages.summed(whole, its)
        if child.get("id") in heard.family:
            total = messages.summed(total, its)
    return total | ({usage.COST: whole[usage.COST]} if usage.COST in whole else {})


def told(figures: Mapping[str, object]) -> str:
    """Tell in words what a turn cost."""
    spent = [figures.get(name, "?") for name in (*usage.TOKENS, usage.COST)]
    return f"{spent[0]} tokens in, {spent[1]} tokens out, {spent[2]} USD"


def ended_with(server: Server) -> str:
    """Tell the last line of a server of ours, where it wrote one, to be put behind an error."""
    said = last_words(server)
    return f" (the last line of its server: {said})" if said else ""
