"""Versions that a writer saw last: the headers If-Match of requests, and what they allow (428, 412)."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

from duly.core.task import Task
from duly.web.problems import Unreadable

TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e]{0,64})"\s*')
VERSION = re.compile(r"v([1-9][0-9]{0,17})")
HEADER_MOST = 2_000
NONE = 0
"""A version that no task has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The versions that are allowed to be changed; `any_`: whichever there is."""

    given: bool
    any_: bool
    versions: frozenset[int]


def _match(if_match: Annotated[str | None, Header(alias="If-Match", description='such as `"v7"`')] = None) -> Match:
    if if_match is None:
        return Match(given=False, any_=False, versions=frozenset())
    if if_match.strip() == "*":
        return Match(given=True, any_=True, versions=frozenset())
    tags = [TAG.fullmatch(part) for part in if_match[:HEADER_MOST].split(",")]
    if len(if_match) > HEADER_MOST or not all(tags):
        raise Unreadable(400, "the header If-Match is no list of versions", field="If-Match", hint='If-Match: "v7"')
    # A weak tag never says that nothing has changed (RFC 9110, 13.1.1).
    strong = [VERSION.fullmatch(tag[2]) for tag in tags if tag is not None and tag[1] is None]
    return Match(given=True, any_=False, versions=frozenset(int(one[1]) for one in strong if one is not None))


Matched = Annotated[Match, Depends(_match)]


def wanted(match: Match) -> None:
    """Refuse (428) to write over what nobody said to have seen."""
    if not match.given:
        raise Unreadable(
            428, "the header If-Match names the version that is written over", field="If-Match", hint='If-Match: "v7"'
        )


def version_of(match: Match, task: Task) -> int | None:
    """Give the version at which the task must be when it is written; None for any."""
    if not match.given or match.any_:
        return None
    return task.version if task.version in match.versions else max(match.versions, default=NONE)
