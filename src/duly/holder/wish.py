"""How a holder shall run: its slots, the figures of its lease, when it stops."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from duly.config import slots_default
from duly.core.reading import read_word
from duly.holder.figures import Figures, figures

CATCH_UP_DELAY = timedelta(seconds=10)
CATCH_UP_SPACING = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a holder shall run."""

    slots: int
    figures: Figures
    drain: timedelta
    until_idle: bool = False
    labels: Sequence[str] = ()
    outlasts: bool = False
    """The process goes on after this holder, which therefore stays as long as work in its threads."""
    catch_up_delay: timedelta = CATCH_UP_DELAY
    """After a start with nobody else alive, what was missed and needs more than this machine waits for so long."""
    catch_up_spacing: timedelta = CATCH_UP_SPACING
    """Between two such starts of one project."""


def wish(
    *,
    slots: int | None = None,
    beat: timedelta | None = None,
    lease: timedelta | None = None,
    drain: timedelta | None = None,
    until_idle: bool = False,
    labels: Sequence[str] = (),
    outlasts: bool = False,
) -> Wish:
    """Make a wish with the defaults filled in; Invalid when the figures leave no room for safety."""
    made = figures(**{name: value for name, value in (("beat", beat), ("lease", lease)) if value is not None})
    return Wish(
        slots=slots if slots is not None else slots_default(),
        figures=made,
        drain=drain if drain is not None else timedelta(seconds=30),
        until_idle=until_idle,
        labels=tuple(sorted({read_word(label, "--label") for label in labels})),
        outlasts=outlasts,
    )
