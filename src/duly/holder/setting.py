"""What a holder lives among: its inbox, its carriers, the traces that work leaves; a simulation gives it others."""

from collections.abc import Callable
from dataclasses import dataclass

from duly.clock import Clock
from duly.holder.abroad import Abroad
from duly.holder.carrier import Carrier, Carriers, Deliver
from duly.holder.inbox import Inbox
from duly.runners.traces import MACHINE, Traces
from duly.store.engines import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a holder comes to the parts that wait for something: for threads, processes, time."""

    inbox: Callable[[Callable[[], Watched]], Inbox]
    """Makes the inbox, woken by writes to the store; what watches for them is made where that is wished."""
    carrier: Callable[[Clock, int, Deliver], Carrier]
    """Makes what performs one attempt."""
    carriers: Callable[[Carrier, int], Carriers]
    """Makes so many slots."""
    traces: Traces
    abroad: type[Abroad]
    """What is done for hosts that cannot see this one."""


REAL = Setting(
    inbox=lambda watch: Inbox(watch()),
    carrier=Carrier,
    carriers=Carriers,
    traces=MACHINE,
    abroad=Abroad,
)
