"""People who edit, pause, remove and run tasks between the steps of several holders, drawn from a seed."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from store_scene import DAY, HOUR, MINUTE, Scene, hourly, minutely
from store_walk import Walk

from duly.clock import from_us
from duly.core.defaults import without_defaults
from duly.core.definition_json import definition_to_json
from duly.core.lifecycle import last_outcome
from duly.core.occurrences import instant_of, is_of_time
from duly.core.spans import write_instant
from duly.core.task import Definition, Task
from duly.core.triggers import Cron, On, Trigger
from duly.errors import Invalid, Refused
from duly.operations import defaults, edits, events
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.store import Store

WEIGHTS = {"edit": 14, "rewrite": 3, "run_by_hand": 6, "pause": 4, "unpause": 5, "remove": 2, "add": 4, "emit": 2}
WEIGHTS |= {"pass_time": 9, "plan": 8, "claim": 8, "settle": 8, "plan_what_was_read_before": 2, "sweep": 2}
ONES = ["one", "two", "three"]


class EditWalk(Walk):
    """Two holders and people over one file; every definition that was accepted is kept to be compared."""

    def __init__(self, s: Scene, seed: int) -> None:
        super().__init__(s, seed)
        self.written: dict[str, list[tuple[int, Mapping[str, object]]]] = {}
        self.done = 0
        """Edits that were written."""

    def take(self, count: int) -> None:
        acts = {name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")}
        names = sorted(acts)
        weights = [WEIGHTS.get(name, 1) for name in names]
        for _ in range(count):
            (name,) = self.draw.choices(names, weights)
            holder = self.draw.choice(sorted(self.stores))
            self.steps.append(f"{name} {holder}")
            try:
                acts[name](holder, self.stores[holder])
            except (Refused, Invalid):
                self.steps[-1] += " (refused)"

    def begin(self) -> None:
        """Two tasks to begin with."""
        while len(self.ids()) < 2:
            with suppress(Refused):
                self.do_add("", self.s.store)

    def ids(self) -> list[str]:
        with self.s.store.read() as session:
            return [task.id for task in session.tasks.page()]

    def word(self) -> str:
        """A task by its id, now and then by a name that may mean none or several."""
        ids = self.ids()
        return self.draw.choice(ids) if ids and self.draw.random() < 0.9 else self.draw.choice(ONES)

    def note(self, task: Task) -> None:
        self.written.setdefault(task.id, []).append((task.definition_version, as_json(task)))

    # What people do

    def do_add(self, _holder: str, store: Store) -> None:
        triggers: list[tuple[Trigger, ...]] = [
            (minutely(self.s.clock.moment),),
            (hourly(),),
            (Cron(expression="*/7 * * * *"), On(source="deploy")),
        ]
        rules: list[dict[str, Any]] = [
            {},
            {"overlap": "queue", "queue": 2},
            {"on_interrupt": "retry"},
            {"on_missed": "offer"},
        ]
        name, project = self.draw.choice(ONES), self.draw.choice(["a", "b"])
        task = self.s.add(name, *self.draw.choice(triggers), project=project, **self.draw.choice(rules))
        self.note(self.s.task(task.id))

    def do_remove_and_add_again(self, holder: str, store: Store) -> None:
        self.do_add(holder, store)

    def do_remove(self, _holder: str, store: Store) -> None:
        task_operations.remove(store, self.word(), by="ann")

    def do_edit(self, _holder: str, store: Store) -> None:
        ids = self.ids()
        if not ids:
            return
        patch: dict[str, Any] = {}
        for part in self.draw.sample(["triggers", "zone", "bounds", "names", "crowd", "late", "rest", "enabled"], 2):
            patch |= {"rules": {**patch.get("rules", {}), **self.rules(part)}, **self.fields(part)}
        version = self.draw.choice([None, None, self.s.task(ids[0]).version])
        edited = edits.edit(
            store, self.draw.choice(ids), patch, by="ann", if_version=version, dry_run=self.draw.random() < 0.05
        )
        self.keep(edited)

    def do_rewrite(self, _holder: str, store: Store) -> None:
        ids = self.ids()
        if not ids:
            return
        task = self.s.task(self.draw.choice(ids))
        whole = dict(as_json(task))
        if self.draw.random() < 0.7:
            whole |= self.fields("triggers") | {"rules": self.rules("late")}
        self.keep(edits.rewrite(store, task.id, whole, by="bob"))

    def keep(self, edited: edits.Edited) -> None:
        task = self.s.task(edited.after.id)
        if edited.changes and task.version == edited.after.version > edited.before.version:
            self.note(task)
            self.done += 1

    def fields(self, part: str) -> dict[str, Any]:
        now = self.s.clock.moment
        match part:
            case "triggers":
                ahead = write_instant((now + self.draw.choice([MINUTE, 3 * HOUR])).replace(microsecond=0))
                texts = [
                    ["every 1m"],
                    ["every 13m"],
                    ["*/5 * * * *"],
                    ["daily 02:30,09:30,14:00", "every 2h"],
                    [f"once {ahead}"],
                    ["cron 30 2 * * *", "on deploy"],
                    ["on deploy"],
                    ["manual"],
                ]
                return {"triggers": self.draw.choice(texts)}
            case "zone":
                return {"zone": self.draw.choice(["UTC", "Europe/Berlin", "Asia/Kolkata"])}
            case "names":
                return {"name": self.draw.choice(ONES), "project": self.draw.choice(["a", "b", "c"])}
            case "enabled":
                return {"enabled": self.draw.random() < 0.6}
            case "rest":
                return {"description": self.draw.choice(["", "x", "y" * 100]), "action": {"argv": ["true", "2"]}}
            case _:
                return {}

    def rules(self, part: str) -> dict[str, Any]:
        now = self.s.clock.moment
        options: dict[str, list[dict[str, Any]]] = {
            "bounds": [
                {"start": write_instant(now + HOUR), "until": None},
                {"start": None, "until": write_instant(now + 2 * DAY)},
                {"start": None, "until": None, "times": None},
                {"times": self.draw.randint(1, 4)},
                {"gap": self.draw.choice(["skip", None]), "fold": self.draw.choice(["both", None])},
            ],
            "crowd": [
                {"overlap": "queue", "queue": 2, "priority": self.draw.randint(-3, 3)},
                {"overlap": "cancel_running", "queue": None},
                {"overlap": None, "queue": None, "seats": self.draw.choice([1, 2])},
                {"limits": {"db": 1}},
                {"limits": None},
            ],
            "late": [
                {"on_missed": "run_all", "at_most": 3, "offer_for": None},
                {"on_missed": "offer", "at_most": None},
                {"on_missed": "skip", "at_most": None, "offer_for": None, "grace": "2m"},
                {"on_missed": None, "at_most": None, "offer_for": None, "max_age": "1h", "spread": "30s"},
            ],
            "rest": [{"retries": 2, "retry_after": "1m"}, {"retries": None, "retry_after": None}],
        }
        return self.draw.choice(options.get(part, [{}]))

    def do_default(self, _holder: str, store: Store) -> None:
        project = self.draw.choice([None, "a"])
        if self.draw.random() < 0.6:
            rules: list[dict[str, Any]] = [{"overlap": "queue"}, {"priority": 5}, {"spread": "1m"}, {"max_age": "2h"}]
            defaults.set_defaults(store, self.draw.choice(rules), project=project, by="ann")
        else:
            names = [self.draw.choice(["overlap", "priority", "spread", "max_age"])]
            defaults.remove_defaults(store, names, project=project, by="ann")

    def do_pause(self, _holder: str, store: Store) -> None:
        scope = self.draw.choice(["task", "task", "project", "store"])
        target = {"task": self.word(), "project": self.draw.choice(["a", "b"]), "store": ""}[scope]
        until = self.draw.choice([None, self.s.clock.now() + 5 * MINUTE, self.s.clock.now() + 5 * HOUR])
        task_operations.pause(store, scope, target, until=until, note=None, by="ann")

    def do_unpause(self, _holder: str, store: Store) -> None:
        scope = self.draw.choice(["task", "project", "store"])
        target = {"task": self.word(), "project": self.draw.choice(["a", "b"]), "store": ""}[scope]
        task_operations.unpause(store, scope, target, by="ann")

    def do_emit(self, _holder: str, store: Store) -> None:
        events.emit(store, "deploy", by="ann", key=self.draw.choice([None, "1", "2"]))

    def do_run_by_hand(self, _holder: str, store: Store) -> None:
        run_operations.run_now(store, self.word(), by="ann", queue=self.draw.random() < 0.5, anyway=True)


def as_json(task: Task) -> Mapping[str, object]:
    """A task's definition as its author wrote it."""
    return definition_to_json(without_defaults(task.definition))


def faults_of_definitions(walk: EditWalk) -> list[str]:
    """What was written and is not there: each version as it was accepted, the last one in force."""
    found = []
    for id_, versions in walk.written.items():
        task = walk.s.task(id_)
        with walk.s.store.read() as session:
            stored = {held.version: session.versions.read(id_, held.version) for held in session.versions.all(id_)}
        if task.broken is not None or not _same(task.definition, versions[-1][1]):
            found.append(f"{id_} is not as it was written last")
        if sorted(stored) != list(range(1, task.definition_version + 1)):
            found.append(f"{id_} is at version {task.definition_version}, and has {sorted(stored)}")
        for version, wanted in versions:
            read = stored.get(version)
            if not isinstance(read, Definition) or not _same(read, wanted):
                found.append(f"version {version} of {id_} is not what was written")
    return found


def _same(read: Definition, wanted: Mapping[str, object]) -> bool:
    """The same but for the switch, which has no versions."""
    now = definition_to_json(without_defaults(read))
    return {**now, "enabled": None} == {**wanted, "enabled": None}


def faults_of_eras(walk: EditWalk) -> list[str]:
    """Occurrences of an era that are due before it, and runs that wait for an era that is over."""
    found = []
    for id_ in walk.written:
        with walk.s.store.read() as session:
            held = session.versions.all(id_)
            entries = [one.entry for one in session.ledger.of_task(id_)]
            waiting = session.runs.waiting_of(id_)
        if not held:
            found.append(f"{id_} has no version")
            continue
        since = from_us(held[0].era_from_us)
        for entry in entries:
            begun = entry.details.get("era_from") if entry.kind == "defined" else None
            if isinstance(begun, str):
                since = instant_of(f"at:{begun}")
            if entry.kind not in {"opened", "missed", "stretch"} or entry.reason in {"offer", "backfill"}:
                continue
            if entry.occurrence is None or not is_of_time(entry.occurrence):
                continue
            if instant_of(entry.occurrence) <= since:
                found.append(f"{id_}: {entry.kind} {entry.occurrence} is not after {since}, where its era began")
        found += [
            f"{run.id} still waits for {run.occurrence}, of before {since}"
            for run in waiting
            if run.opened_by in {"schedule", "catch_up"} and last_outcome(run) is None and run.due_at <= since
        ]
    return found
