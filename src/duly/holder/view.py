"""What one turn of the dispatcher sees: each thing read at most once, and what the turn itself has taken so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from duly.core.amounts import Amounts, more
from duly.core.budgets import Scope, Standing, scopes_of, wanted
from duly.core.limits import Limit, next_start
from duly.core.names import key_of
from duly.core.run import Run
from duly.core.task import Broken, Definition, Task
from duly.store import Session
from duly.store.pauses import holding
from duly.store.rows import Pause

FIRST_SEAT = 1
NOTHING: Mapping[str, Task] = MappingProxyType({})
NO_LIMITS: Mapping[str, Limit] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run may start: its seat, its weights in limits, and these limits as they stand with it."""

    seat: int
    weights: Mapping[str, int]
    limits: Mapping[str, Limit]
    charge: Amounts | None = None
    """What is set aside for it; None where nothing counts that."""
    standings: Sequence[Standing] = ()
    """The budgets it is charged to, as they stand with it."""


class View:
    """Read in the turn's transaction and good for that turn alone."""

    def __init__(self, session: Session, read: Mapping[str, Task] = NOTHING) -> None:
        """Begin a turn; `read` are tasks by their ids that its transaction has read before."""
        self.session = session
        self.kinds_asked = False
        self._read = read
        self._tasks: dict[str, Task] = {}
        self._pauses: list[Pause] | None = None
        self._seats: dict[str, set[int]] = {}
        self._limits: dict[str, Limit] = {}
        self._starts: dict[str, int] = {}
        self._standings: dict[tuple[Scope, str], Standing | None] = {}
        self._budgeted: bool | None = None

    def read(self, runs: Sequence[Run]) -> None:
        """Read the tasks of these runs, all at once."""
        named = {run.task for run in runs} - self._tasks.keys()
        fresh = {id_: self._read[id_] for id_ in named & self._read.keys()}
        fresh |= self.session.tasks.by_ids(named - fresh.keys())
        self._tasks |= fresh
        roomy = [task.id for task in fresh.values() if task.definition.rules.seats > 1]
        # Of a task with one seat only runs are read whose seat is free.
        self._seats |= self.session.waiting.seats_taken(roomy) if roomy else {}

    def task(self, id_: str) -> Task:
        """A task that was read before."""
        return self._tasks[id_]

    def free_seat(self, task: Task) -> int | None:
        """The lowest seat of a task that is free, and that this turn has not given away."""
        taken = self._seats.get(task.id)
        if not taken:
            return FIRST_SEAT
        return next((seat for seat in range(FIRST_SEAT, task.definition.rules.seats + 1) if seat not in taken), None)

    def limits(self, weights: Mapping[str, int]) -> Mapping[str, Limit]:
        """These limits as they stand, with what this turn has taken of them."""
        if not weights:
            return NO_LIMITS
        fresh = [key for key in weights if key not in self._limits]
        if fresh:
            self._limits |= self.session.crowd.by_keys(fresh)
        return {key: self._limits[key] for key in weights}

    def standings(self, task: Task) -> list[Standing]:
        """The budgets to which a run of this task is charged as they stand, with what this turn has set aside."""
        if self._budgeted is None:
            self._budgeted = self.session.budgets.any()
        if not self._budgeted:
            return []
        scopes = scopes_of(task.id, key_of(task.definition.project))
        fresh = [scope for scope in scopes if scope not in self._standings]
        self._standings |= dict.fromkeys(fresh)
        for budget in self.session.budgets.of(fresh):
            standing = self.session.budgets.standing(budget, self.session.now)
            self._standings[budget.scope, budget.target] = standing
        return [found for scope in scopes if (found := self._standings[scope]) is not None]

    def wanted(self, run: Run, definition: Definition | None) -> Amounts:
        """What the next attempt of a run may cost: its estimate, and one run, once a run."""
        again = run.attempt > 0 and bool(self.session.budgets.charged([run.id]))
        return wanted(None if definition is None else definition.rules.estimate, again=again)

    def take(self, task: Task, seat: int, weights: Mapping[str, int], charge: Amounts | None = None) -> Place:
        """Give one run its seat, its places in limits and its share of budgets, for all that this turn asks after."""
        self._seats.setdefault(task.id, set()).add(seat)
        for key, weight in weights.items():
            limit = replace(self._limits[key], used=self._limits[key].used + weight)
            if limit.rate is not None and limit.rate_for is not None:
                self._starts[key] = self._starts.get(key, 0) + 1
                before = self.session.crowd.starts(key, self.session.now - limit.rate_for)
                now = [self.session.now] * self._starts[key]
                limit = replace(limit, free_at=next_start([*before, *now], limit.rate, limit.rate_for))
            self._limits[key] = limit
        if charge is not None:
            for one in self.standings(task):
                scope = one.budget.scope, one.budget.target
                self._standings[scope] = replace(one, reserved=more(one.reserved, charge))
        standings = () if charge is None else tuple(self.standings(task))
        return Place(seat=seat, weights=weights, limits=self.limits(weights), charge=charge, standings=standings)

    def is_paused(self, task: Task) -> bool:
        """A pause of the task, its project or the store holds it."""
        if self._pauses is None:
            self._pauses = self.session.pauses.all()
        return bool(self._pauses and holding(self._pauses, task=task.id, project_key=key_of(task.definition.project)))

    def definition(self, run: Run, task: Task) -> Definition | None:
        """The definition a run will be performed by; None where it does not read."""
        version = version_for(run, task)
        if version == task.definition_version:
            return None if task.broken else task.definition
        read = self.session.versions.read(task.id, version)
        return None if isinstance(read, Broken) else read


def version_for(run: Run, task: Task) -> int:
    """The definition a run is performed by: the task's at its first attempt, the same one ever after.

    A run that does again what another did is performed by that one's.
    """
    return task.definition_version if run.attempt == 0 and run.retry_of is None else run.definition_version
