"""Who asks over the network: what they may do, and the projects they are held to."""

from collections.abc import Collection
from dataclasses import dataclass

from duly.core.names import key_of
from duly.core.reading import nearest, shown
from duly.errors import Invalid, Refused

RIGHTS = ("read", "run", "answer", "write", "admin")
"""What may be allowed: to see; to run, cancel, decide and emit; to answer; to define and pause; all of it and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks: the name that is written down, the rights, the keys of the projects they are held to (None: all)."""

    name: str
    rights: frozenset[str]
    projects: frozenset[str] | None = None
    run: str | None = None
    """The run whose work asks, by the token it was given."""
    session: str | None = None
    """The browser's session that asks, by its id."""

    def may(self, right: str) -> bool:
        """Whether they have a right; `admin` has all of them."""
        return right in self.rights or "admin" in self.rights

    def sees(self, project: str) -> bool:
        """Whether they are held to other projects than this one, by its name or key."""
        return self.projects is None or key_of(project) in self.projects


def check_right(asker: Asker, right: str) -> None:
    """Refuse `not_allowed` who lacks a right."""
    if not asker.may(right):
        raise Refused(
            "not_allowed",
            f"it needs the right {right}",
            details={"right": right, "rights": sorted(asker.rights)},
            hint=f"duly token create NAME --rights {right}",
        )


def check_project(asker: Asker, project: str) -> None:
    """Refuse `not_allowed` who is held to other projects; tells nothing of what was asked for."""
    if not asker.sees(project):
        raise Refused("not_allowed", "it belongs to a project that this token does not reach")


def check_everything(asker: Asker, what: str) -> None:
    """Refuse `not_allowed` who is held to projects, where something is of the whole store."""
    if asker.projects is not None:
        raise Refused("not_allowed", f"{what} is of the whole store, and this token is held to projects")


def read_rights(words: Collection[str]) -> frozenset[str]:
    """Read rights as they are written: one at least."""
    for word in words:
        if word not in RIGHTS:
            raise Invalid(
                f"{shown(word)} is no right",
                field="rights",
                hint=nearest(word, RIGHTS) or f"one or several of {', '.join(RIGHTS)}",
                details={"allowed": list(RIGHTS)},
            )
    if not words:
        raise Invalid("a token without any right is of no use", field="rights", hint=f"some of {', '.join(RIGHTS)}")
    return frozenset(words)
