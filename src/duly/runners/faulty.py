"""The runner that stands for one which could not be made: its attempt fails before it begins, and says why."""

from collections.abc import Mapping

from duly.core.reasons import Refusal
from duly.ports import Assignment, How, Outcome


class Faulty:
    """Fails every attempt with the error that kept the runner of its kind from being made."""

    kept = False

    def __init__(self, error: Exception) -> None:
        self._told = f"its runner could not be made: {type(error).__name__}: {error}"

    def check(self, action: Mapping[str, object]) -> Refusal | None:  # noqa: ARG002 - what a runner is asked
        """Refuse whatever is asked."""
        return Refusal(reason="runner_unavailable", sentence=self._told)

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome:  # noqa: ARG002
        """Fail before anything begins."""
        return Outcome(word="failed", reason="preflight", error=self._told)

    def stop(self, how: How) -> None:
        """There is nothing to stop."""
