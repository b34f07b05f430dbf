"""The closed set of reasons, each with its sentence, and the value of a *no*."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_START: Mapping[str, str] = {
    "already_running": "another run of the task had its seat",
    "queue_full": "the task's queue was full, so its oldest waiting run made room",
    "coalesced": "found late, and one run for the newest of the missed occurrences stands for all of them",
    "too_many": "found late, beyond the number that catching up may open",
    "missed_skip": "found later than its grace, and the task skips what it missed",
    "missed_offer": "found later than its grace, and kept as an offer for a person to decide",
    "stale": "found or waited later than max_age allows",
    "excluded": "the task's calendar excludes it",
    "paused": "the task, its project or the store was paused",
    "disabled": "the task was disabled",
    "suppressed": "the event was throttled, or came through this task already",
    "gate_closed": "the task's gate said not now",
    "gate_failed": "the task's gate could not be asked",
    "project_missing": "the directory of the project whose file defines the task was missing",
    "schedule_changed": "the task's schedule was changed before it started",
    "task_removed": "the task was removed before it started",
    "skipped_by_hand": "a person skipped it",
    "superseded": "a newer run took its place",
}

NOT_DUE: Mapping[str, str] = {
    "no_match": "none of its triggers names that instant",
    "gap": "the local time that its trigger names does not come on that day, and a missing time is not run",
    "fold": "its local time comes twice on that day, and the other pass counts",
    "fraction": "its instants are whole seconds",
    "before_anchor": "its interval begins later",
    "between": "it lies between two steps of its interval",
    "elsewhere": "it is due once, at another instant",
    "event": "it takes events, which have no instants",
    "before_start": "it lies before the task's start",
    "after_until": "it lies after the task's until",
    "by_hand": "the task has no times: it runs by hand",
    "start_of": "it is when an instant before it starts, by its spread",
    "before_task": "the task was not there yet",
    "after_removal": "the task was removed",
    "used_up": "all runs that `times` allows had been opened",
    "before_opening": "the run was not opened yet",
}
"""Why an instant is none of a task's; told by `why` alone."""

NOT_TOLD: Mapping[str, str] = {
    "unreadable": "the definition in force then does not read",
    "pruned": "it was pruned",
    "no_record": "it was due, and the store has no record of it (`duly verify` says more)",
}
"""Why nobody can tell the fate of an instant."""

REFUSED: Mapping[str, str] = {
    "unknown_task": "there is no such task",
    "unknown_run": "there is no such run",
    "unknown_id": "there is nothing by that id",
    "invalid": "the input cannot be read",
    "already_exists": "the name is taken",
    "version_conflict": "somebody changed it since it was read",
    "already_running": "the task is running",
    "already_waiting": "a run of the task is waiting already",
    "already_ended": "the run has ended",
    "already_answered": "somebody has answered",
    "paused": "the task is paused",
    "done": "the task is done",
    "owned_by_file": "a file defines the task",
    "project_missing": "the project's directory is missing",
    "limit_reached": "a limit is reached",
    "budget_exceeded": "the budget does not allow it",
    "runner_unavailable": "nothing here can run this kind of action",
    "not_allowed": "the asker has no right to it",
    "needs_confirmation": "it needs a person's yes",
    "key_reused": "the key was used with another input",
    "rate_limited": "the rate is reached",
    "draining": "the holder is stopping",
    "store_away": "the store cannot be reached or used",
    "store_newer": "the store is for newer versions only",
}

ENDED: Mapping[str, str] = {
    "returned": "given back before it began, free of charge",
    "stale": "too late to go on",
    "missed_skip": "too late to go on, and the task skips what it missed",
    "missed_offer": "too late to go on, and kept as an offer",
    "exit_status": "the command ended with a status that is not 0",
    "signal": "a signal from elsewhere ended the command",
    "timeout": "it ran longer than its timeout",
    "idle": "it was silent for longer than its idle timeout",
    "cancelled_by_hand": "a person cancelled it",
    "overlap": "a newer occurrence took the seat",
    "shutdown": "the holder was stopped",
    "not_found": "the program was not found",
    "not_executable": "the program cannot be executed",
    "no_directory": "the working directory is missing",
    "output_limit": "it wrote more than its output may hold",
    "agent_error": "the agent ended with an error",
    "agent_refused": "the agent refused",
    "agent_empty": "the agent ended without having done anything",
    "cut_off": "the agent's answer was cut off",
    "max_steps": "the agent took more steps than allowed",
    "question_denied": "a question was denied",
    "question_unanswered": "a question was not answered in time",
    "success_rule": "the task's success rule was not met",
    "preflight": "the runner said beforehand that it cannot run",
    "budget_exceeded": "the budget ran out",
    "holder_died": "the process that held it, or the keeper of its work, died",
    "lease_lost": "its holder lost the lease",
    "fence_lost": "its holder came back after the run had been taken away",
    "end_not_confirmed": "nobody could confirm that its work has ended",
    "too_many_resumes": "it was interrupted more often than it may be resumed",
}


OUTAGES: Mapping[str, str] = {
    "stopped": "nobody served: whoever served last had been stopped",
    "died": "nobody served: whoever served last had died",
    "boot": "nobody served: the machine was restarted",
    "suspend": "the machine slept",
    "clock_step": "the clock was set",
    "frozen": "the process that served stood still",
    "store_away": "the store could not be used",
    "restored": "the store was restored from a backup",
}
"""Why nobody served, or time did not go on as it does; told by `outages`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A *no*: a reason of the closed set, a sentence for people, the figures behind it."""

    reason: str
    sentence: str
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A reason outside the closed set is a fault of ours."""
        assert self.reason in REFUSED, self.reason
