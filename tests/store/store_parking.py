"""What the tests of parked runs and of answers share."""

from store_scene import Scene

from duly.core.run import Run
from duly.operations.telling import waiting_for


def end(run: Run) -> tuple[str, str | None, str | None]:
    return run.state, run.outcome, run.reason


def waits(s: Scene, run: Run) -> tuple[object, object]:
    now = s.run(run.id)
    with s.store.read() as session:
        found = waiting_for(session, now)
    assert found is not None
    return found["what"], found["key"]
