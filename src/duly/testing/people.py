"""People of a simulated world: what they ask of the store between the turns of holders, drawn from its source."""

from collections.abc import Callable
from datetime import timedelta

from duly.errors import DulyError
from duly.operations import edits, missed, runs, tasks
from duly.testing.world import World

NAMES = ("one", "two", "three", "four")
TIMES = ("every 5s", "every 10s", "every 20s", "* * * * *", "*/30 * * * * *", "manual")
RULES: tuple[dict[str, object], ...] = (
    {},
    {"overlap": "queue", "queue": 2},
    {"overlap": "cancel_running"},
    {"overlap": "kill_running"},
    {"on_interrupt": "retry", "overlap": "queue"},
    {"on_interrupt": "retry", "max_age": "30s"},
    {"retries": 2, "retry_after": "3s", "on_interrupt": "retry"},
    {"limits": {"db": 1}, "overlap": "queue", "on_interrupt": "retry"},
    {"limits": {"db": 1}},
    {"seats": 2, "overlap": "queue", "on_interrupt": "retry"},
    {"on_missed": "offer", "grace": "2s"},
    {"on_missed": "skip", "grace": "3s"},
    {"on_missed": "run_all", "at_most": 3, "overlap": "queue"},
    {"spread": "4s"},
    {"timeout": "4s", "on_interrupt": "retry"},
    {"pause_after": 3},
    {"times": 8},
)
BY = "ann"


class People:
    """Ask something now and then; what is refused, or what the store's state forbids, changes nothing."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._draw = world.draw
        self._asks: tuple[Callable[[], object], ...] = (
            self.run_by_hand,
            self.run_by_hand,
            self.cancel,
            self.cancel,
            self.pause,
            self.unpause,
            self.unpause,
            self.disable,
            self.enable,
            self.enable,
            self.edit,
            self.edit,
            self.remove,
            self.accept,
        )

    def settle_in(self) -> None:
        """Add the tasks that the world begins with."""
        for name in NAMES[: self._draw.randint(2, len(NAMES))]:
            self.add(name)

    def add(self, name: str) -> None:
        """Add a task, and say how its work goes."""
        draw = self._draw
        self._world.add(name, draw.choice(TIMES[:5]), **draw.choice(RULES))
        if draw.random() < 0.7:
            lasts = timedelta(seconds=draw.choice([0.3, 2, 8, 25]))
            self._world.work(name, lasts=lasts, code=draw.choice([0, 0, 0, 1]), deaf=draw.random() < 0.3)

    def ask(self) -> None:
        """Ask one thing."""
        ask = self._draw.choice(self._asks)
        self._world.flow.say(f"a person asks: {ask.__name__}")
        try:
            ask()
        except DulyError as refused:
            self._world.flow.say(f"which is refused: {refused}")

    def run_by_hand(self) -> None:
        """Run a task now; the same key twice is the same run."""
        key = self._draw.choice([None, None, "a", "b"])
        more = self._draw.random() < 0.7
        runs.run_now(self._world.store, self._word(), by=BY, key=key, queue=more, anyway=more)

    def cancel(self) -> None:
        """Cancel a run that has not ended."""
        with self._world.store.read() as session:
            live = [run.id for run in session.runs.listed(most=30) if run.state != "ended"]
        if live:
            runs.cancel(self._world.store, self._draw.choice(live), by=BY)

    def pause(self) -> None:
        """Hold a task, or all of them."""
        whole = self._draw.random() < 0.3
        until = self._world.now + timedelta(seconds=self._draw.choice([5, 20]))
        scope, target = ("store", "") if whole else ("task", self._word())
        tasks.pause(self._world.store, scope, target, until=until, note=None, by=BY)

    def unpause(self) -> None:
        """Let go of a hold."""
        scope, target = self._draw.choice([("store", ""), ("task", self._word())])
        tasks.unpause(self._world.store, scope, target, by=BY)

    def disable(self) -> None:
        """Switch a task off."""
        tasks.disable(self._world.store, self._word(), by=BY)

    def enable(self) -> None:
        """Switch a task on."""
        tasks.enable(self._world.store, self._word(), by=BY)

    def edit(self) -> None:
        """Change when a task is due, or by which rules."""
        rules = dict(self._draw.choice(RULES))
        patch = {"rules": rules} if self._draw.random() < 0.4 else {"triggers": [self._draw.choice(TIMES)]}
        edits.edit(self._world.store, self._word(), patch, by=BY)

    def remove(self) -> None:
        """Remove a task, and add one of the same name."""
        name = self._word()
        tasks.remove(self._world.store, name, by=BY)
        self.add(name)

    def accept(self) -> None:
        """Accept or decline what is offered."""
        with self._world.store.read() as session:
            offers = [one.id for one in session.missed.listed(most=20) if one.state == "open"]
        if offers and self._draw.random() < 0.5:
            missed.decline(self._world.store, self._draw.choice(offers), by=BY)
        elif offers:
            missed.accept(self._world.store, self._draw.choice(offers), by=BY)

    def _word(self) -> str:
        return self._draw.choice(NAMES)
