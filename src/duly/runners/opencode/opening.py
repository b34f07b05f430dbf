"""The session of a turn: the one that an earlier attempt opened, the one that its task is bound to, or a new one."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from duly.prompts.goals import Goal
from duly.runners.opencode.api import Api, Strange, Told, reached
from duly.runners.opencode.hearing import ruleset
from duly.runners.opencode.servers import Server
from duly.runners.prompting import NotResumed, Talk, Unfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a turn at a server has beside what all prompts have."""

    title: str
    run: str
    profile: str | None
    variant: str | None
    metadata: Mapping[str, object]
    patience_s: float
    goal: Goal | None = None
    """What its turns go on for until that is reached; None: one turn."""


PutDown = Callable[[str, bool], Awaitable[None]]
"""Has it on disk which session it is, and whether a prompt may have reached it."""


async def session_for(api: Api, talk: Talk, wish: Wish, put_down: PutDown) -> str:
    """Find or open it, and put that down; NotResumed, Unfit, Away, Told, Strange. Nothing is asked in it yet."""
    resumes = talk.resumes
    if resumes is not None and resumes.session is not None:
        try:
            await api.fields(f"/session/{resumes.session}")
        except Told as error:
            if resumes.prompted:
                raise NotResumed(f"the agent does not find its session {resumes.session}: {error}") from error
        else:
            await put_down(resumes.session, resumes.prompted)
            return resumes.session
        return await _opened(api, talk, wish, put_down)
    if talk.use is None:
        return await _opened(api, talk, wish, put_down)
    bound = talk.use.of.session
    found = await there(api, bound)
    if found is None:
        return await _opened(api, talk, wish, put_down)
    await _enrolled(api, talk, wish, found)
    await put_down(bound, False)
    return bound


async def there(api: Api, session: str) -> Mapping[str, Any] | None:
    """Give what a server says of a session; None where it has none of that id."""
    try:
        return await api.fields(f"/session/{session}")
    except Told as error:
        if error.status in (400, 404):
            return None
        raise


def fits(found: Mapping[str, Any], cwd: str) -> None:
    """Raise Unfit where a session that is gone on in works in another folder than its task."""
    where = found.get("directory")
    if isinstance(where, str) and os.path.realpath(where) != os.path.realpath(cwd):
        raise Unfit("preflight", f"the session {found.get('id')} works in {where}, and the task in {cwd}")


async def is_busy(server: Server, cwd: str, session: str) -> bool:
    """Say whether a session is there and at work; Unfit where it is none for this folder, Away, Told, Strange."""
    async with reached(server.url, server.password, cwd, outside=server.kept is None) as api:
        found = await there(api, session)
        if found is None:
            return False
        fits(found, cwd)
        return session in await api.fields("/session/status")


async def _enrolled(api: Api, talk: Talk, wish: Wish, found: Mapping[str, Any]) -> None:
    """Give a session of somebody's the task's rules for its permissions; of several rules the last ones count."""
    fits(found, talk.cwd)
    ours = ruleset(talk.permissions, talk.unattended)
    if not _ends_with(found, ours):
        found = await _changed(api, found, {"permission": ours})
        if not _ends_with(found, ours):
            raise Unfit("preflight", f"the session {found.get('id')} does not take the task's permissions")
    kept = found.get("metadata")
    await _changed(api, found, {"metadata": {**(kept if isinstance(kept, Mapping) else {}), "duly": _told(wish)}})


async def _changed(api: Api, found: Mapping[str, Any], body: Mapping[str, object]) -> Mapping[str, Any]:
    answer = await api.ask("PATCH", f"/session/{found.get('id')}", body)
    if not isinstance(answer, Mapping):
        raise Strange("the server answered a change of a session with no object")
    return answer


def _ends_with(found: Mapping[str, Any], rules: list[dict[str, object]]) -> bool:
    there = found.get("permission")
    return isinstance(there, list) and there[-len(rules) :] == rules


async def _opened(api: Api, talk: Talk, wish: Wish, put_down: PutDown) -> str:
    body: dict[str, object] = {
        "title": wish.title,
        "permission": ruleset(talk.permissions, talk.unattended),
        "metadata": {"duly": _told(wish)},
    }
    opened = await api.post("/session", body)
    session = opened.get("id") if isinstance(opened, Mapping) else None
    if not isinstance(session, str) or not session:
        raise Strange("the server opened a session without an id")
    kept = opened.get("metadata")
    if wish.goal is not None and (not isinstance(kept, Mapping) or kept.get("duly") != _told(wish)):
        raise Unfit("preflight", "the goal cannot be written into its session: this server keeps no metadata")
    await put_down(session, False)
    return session


def _told(wish: Wish) -> dict[str, object]:
    goal = wish.goal
    return dict(wish.metadata) | (
        {} if goal is None else {"goal": {"objective": goal.objective, "tokens": goal.tokens}}
    )
