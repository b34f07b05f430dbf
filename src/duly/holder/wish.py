"""How a holder shall run: its slots, the figures of its lease, when it stops."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast

from duly.config import slots_default
from duly.core.reading import read_word
from duly.core.settings import BY_KEY
from duly.holder.figures import Figures, figures

OnStop = Literal["hand-over", "cancel"]
"""What becomes at a stop of work that could go on without this process."""
FIRST = 1
"""The first process of a pid namespace: the kernel ends all others with it, so nothing could be handed over."""
CATCH_UP_DELAY = cast(timedelta, BY_KEY["serve.catch_up_delay"].default)
CATCH_UP_SPACING = cast(timedelta, BY_KEY["serve.catch_up_spacing"].default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a holder shall run."""

    slots: int
    figures: Figures
    drain: timedelta
    until_idle: bool = False
    on_stop: OnStop = "hand-over"
    passive: bool = False
    """Open and claim nothing; only what others leave is looked after. It has no slots."""
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
    on_stop: OnStop = "hand-over",
    passive: bool = False,
    labels: Sequence[str] = (),
    outlasts: bool = False,
    catch_up_delay: timedelta = CATCH_UP_DELAY,
    catch_up_spacing: timedelta = CATCH_UP_SPACING,
) -> Wish:
    """Make a wish with the defaults filled in; Invalid when the figures leave no room for safety."""
    made = figures(**{name: value for name, value in (("beat", beat), ("lease", lease)) if value is not None})
    return Wish(
        slots=0 if passive else slots if slots is not None else slots_default(),
        figures=made,
        drain=drain if drain is not None else timedelta(seconds=30),
        until_idle=until_idle,
        on_stop="cancel" if os.getpid() == FIRST else on_stop,
        passive=passive,
        labels=tuple(sorted({read_word(label, "--label") for label in labels})),
        outlasts=outlasts,
        catch_up_delay=catch_up_delay,
        catch_up_spacing=catch_up_spacing,
    )
