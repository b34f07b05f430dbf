"""What a holder lives among: its inbox, its carriers, the traces that work leaves; a simulation gives it others."""

from collections.abc import Callable
from dataclasses import dataclass

from duly.clock import Clock
from duly.holder.carrier import Carrier, Carriers, Deliver
from duly.holder.inbox import Inbox
from duly.holder.watch import Watch
from duly.runners.traces import MACHINE, Traces


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a holder comes to the parts that wait for something: for threads, processes, time."""

    inbox: Callable[[str], Inbox]
    """Makes the inbox, woken by writes to this file."""
    carrier: Callable[[Clock, int, Deliver], Carrier]
    """Makes what performs one attempt."""
    carriers: Callable[[Carrier, int], Carriers]
    """Makes so many slots."""
    traces: Traces


REAL = Setting(
    inbox=lambda path: Inbox(Watch(path)),
    carrier=Carrier,
    carriers=Carriers,
    traces=MACHINE,
)
