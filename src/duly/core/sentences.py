"""One table from reasons to sentences with their figures.

Of each reason's templates the first is told whose figures are all there; one without any is the sentence of
`reasons`. Figures are plain values by name, told as `figures` says.
"""

from collections.abc import Mapping
from typing import Literal

from duly.core import reasons
from duly.core.figures import UTC_WALL, Wall, fill

Use = Literal["not_due", "not_told", "no_start", "ended", "waiting", "ahead", "outage"]
Templates = tuple[str, ...]

NOT_DUE: Mapping[str, Templates] = {
    "no_match": ("{unmet}", "none of its {triggers} triggers names it; the nearest is {nearest_s} {side}"),
    "gap": (
        "{missing} does not come on that wall (clocks go from {from} to {to}), and the line follows {follows}",
        "{missing} does not come on that wall (clocks go from {from} to {to}), and gap is {gap}",
        "{missing} does not come on that wall, and gap is {gap}",
    ),
    "fold": ("{repeated} comes twice, this is its {pass} pass, and fold is {fold}: the one at {other_at} counts",),
    "fraction": ("its instants are whole seconds, and this lies {fraction_s} after one",),
    "before_anchor": ("it runs every {every}, and its first instant is {anchor_at}",),
    "between": ("it runs every {every}; this lies {after_step_s} after one and {before_step_s} before the next",),
    "event": ("it takes events of {source}, which come when they come",),
    "elsewhere": ("it runs once, at {once_at}",),
    "before_start": ("its start is {start_at}, {before_by_s} later",),
    "after_until": ("its until is {until_at}, {after_by_s} earlier",),
    "start_of": ("it is when the instant {due_at} starts, which its spread moves by {moved_s}",),
    "before_task": (
        "{by} added it {after_s} later, at {added_at}",
        "{by} added it at that very instant, and it owes only what comes after",
    ),
    "after_removal": ("{by} removed it at {removed_at}", "it was removed at {removed_at}"),
    "used_up": ("its times is {times}, and so many runs had been opened",),
    "before_opening": ("it was opened later, at {opened_at}",),
}

NOT_TOLD: Mapping[str, Templates] = {
    "unreadable": ("its definition, version {version}, does not read: {field}: {message}",),
}

NO_START: Mapping[str, Templates] = {
    "already_running": (
        "its agent's session, {session}, was at work on something else",
        "run {run} had its seat since {since} ({had_for_s}), and waited for the answer to {question}",
        "run {run} had its seat since {since} ({had_for_s}), and overlap is {overlap}",
        "run {run} had its seat, and overlap is {overlap}",
    ),
    "queue_full": (
        "{queue} runs waited already (queue), and the oldest made room for run {made_room_for}",
        "its queue of {queue} was full, and the oldest made room",
    ),
    "coalesced": (
        "found {late_by_s} late (grace {grace_s}); run {instead}, due {instead_at}, stands for all {count} of them",
        "found {late_by_s} late (grace {grace_s}); run {instead}, due {instead_at}, stands for it",
        "found {late_by_s} late (grace {grace_s}), and one run for the newest stands for all",
    ),
    "too_many": ("found {late_by_s} late (grace {grace_s}), and catching up opens at most {at_most} (at_most)",),
    "missed_skip": ("found {late_by_s} late, more than its grace of {grace_s}, and on_missed is {on_missed}",),
    "missed_offer": (
        "found {late_by_s} late, more than its grace of {grace_s}; kept as an offer until {expires_at}",
        "found {late_by_s} late, more than its grace of {grace_s}, and on_missed is {on_missed}",
    ),
    "stale": (
        "found {late_by_s} late, more than its max_age of {max_age_s} (grace {grace_s})",
        "it waited until it was {late_by_s} late, more than its max_age of {max_age_s}",
    ),
    "excluded": ("the calendar {calendar} excludes it",),
    "paused": (
        "{scope} was paused by {by} from {since} until {until}: {note}",
        "{scope} was paused by {by} from {since} until {until}",
        "{scope} was paused by {by} since {since}: {note}",
        "{scope} was paused by {by} since {since}",
    ),
    "disabled": ("{by} disabled it at {since}, until {until}", "{by} disabled it at {since}"),
    "schedule_changed": (
        "{by} changed its schedule (version {version}) before it started",
        "{by} changed its schedule before it started",
    ),
    "task_removed": ("{by} removed the task before it started",),
    "skipped_by_hand": ("{by} skipped it: {note}", "{by} skipped it"),
    "suppressed": ("throttled until {until}: one event of its kind in {within}", "{why}"),
    "superseded": ("run {by_run} took its place, and overlap is {overlap}", "run {by_run} took its place"),
    "gate_closed": ("{error}",),
    "gate_failed": ("{error}",),
    "project_missing": ("{error}",),
}

ENDED: Mapping[str, Templates] = {
    "exit_status": ("exit {exit_code}: {error}", "exit status {exit_code}"),
    "signal": ("signal {signal}, from elsewhere, ended it",),
    "timeout": ("it ran longer than its timeout of {timeout}",),
    "idle": ("it was silent for longer than its idle_timeout of {idle_timeout}",),
    "cancelled_by_hand": ("{by} cancelled it at {asked_at}",),
    "overlap": ("run {newer} took its seat, and overlap is {overlap}",),
    "stale": (
        "a try at {not_before} would be {idle_s} late, its work not counted, more than its max_age of {max_age_s}",
        "{error}",
        "it was {late_by_s} late, more than its max_age of {max_age_s}",
    ),
    "late": ("{late_by_s} late, to catch up",),
    "holder_died": ("{error} (on_interrupt is {on_interrupt})",),
    "lease_lost": ("{error} (on_interrupt is {on_interrupt})",),
}
"""Beyond these an end is told by its error, and without one by the sentence of its reason."""

WAITING: Mapping[str, Templates] = {
    "slot": ("a free slot, since {since}",),
    "seat": ("its task's seat, which run {key} has, since {since}",),
    "limit": (
        "room in the limit {key} since {since}: {used} of {most} taken, by run {run} of {taker}",
        "room in the limit {key} since {since}: {used} of {most} taken",
        "room in the limit {key}",
    ),
    "rate": ("room in the rate of the limit {key}, which comes at {until}", "room in the rate of the limit {key}"),
    "budget": (
        "room in the budget {key}: {taken} of {bound} {unit} a {per} are taken; it begins anew at {until}",
        "room in the budget {key}",
    ),
    "delay": ("its time, {until}",),
    "backoff": ("its next try at {until}: attempt {attempt} {tried} ({tried_reason})", "its next try at {until}"),
    "label": ("a holder with the label {key}, since {since}",),
    "runner": ("a holder that can perform a {key}, since {since}",),
    "question": ("the answer to {key}, since {since} and until {until} (`duly answer`)",),
    "pause": ("the end of a pause, since {since}",),
    "definition": ("a definition that reads, since {since}",),
}
WAITING_BASE: Mapping[str, str] = {
    "slot": "a free slot",
    "seat": "its task's seat",
    "limit": "room in a limit",
    "rate": "room in a rate",
    "budget": "room in its budget",
    "calendar": "the end of what a calendar excludes",
    "backoff": "its next try",
    "delay": "its time",
    "gate": "its gate",
    "label": "a holder with the labels it needs",
    "runner": "a holder that can perform its kind of work",
    "question": "the answer to a question",
    "pause": "the end of a pause",
    "definition": "a definition that reads",
}

AHEAD: Mapping[str, Templates] = {
    "removed": ("{by} removed it at {removed_at}",),
    "broken": ("its {field} does not read: {message}",),
    "disabled": ("{by} disabled it at {since}",),
    "done": ("it is done: its last instant is over",),
    "used_up": ("times is {times}: {opened} runs are opened so far, and {between} instants come before this one",),
    "paused": (
        "{scope} is paused by {by} until {until}: {note}",
        "{scope} is paused by {by} until {until}",
        "{scope} is paused by {by} since {since}, without an end: {note}",
        "{scope} is paused by {by} since {since}, without an end",
    ),
    "skipped_by_hand": ("{by} skipped it beforehand: {note}", "{by} skipped it beforehand"),
    "nobody": (
        "nobody serves this store but {but}, which starts nothing more",
        "nobody serves this store (`duly serve`)",
    ),
    "label": ("no holder that lives has the label {label}, which it needs",),
    "limit": (
        "the limit {key} is full: {used} of {most} taken, by run {run} of {taker}; it takes {weight}",
        "the limit {key} has room for {most} in all, {used} taken, and it takes {weight}",
    ),
    "rate": ("the rate of the limit {key} has no room before {free_at}",),
    "budget": ("{taken} of {bound} {unit} a {per} of the budget {key} are taken; it begins anew at {until}",),
    "seat": (
        "run {run} has its seat and may have it until {timeout_at} (timeout), and overlap is {overlap}",
        "run {run} has its seat, and overlap is {overlap}",
    ),
}
AHEAD_BASE: Mapping[str, str] = {
    "removed": "the task is removed",
    "broken": "its definition does not read",
    "disabled": "it is disabled",
    "done": "it is done",
    "used_up": "its times will be used up",
    "paused": "it is paused",
    "skipped_by_hand": "a person skipped it beforehand",
    "nobody": "nobody serves this store",
    "label": "no holder has a label that it needs",
    "limit": "a limit is full",
    "rate": "a rate is reached",
    "budget": "a budget has no room",
    "seat": "its seat is taken",
}

OUTAGES: Mapping[str, Templates] = {
    "boot": ("nobody served for {for_s}: the machine was restarted",),
    "stopped": ("nobody served for {for_s} after {last} had been stopped",),
    "died": ("nobody served for {for_s} after {last} had died",),
    "suspend": ("the machine slept for {for_s}",),
    "clock_step": ("the clock was set {way} by {for_s}",),
    "frozen": ("the process that served stood still for {for_s}",),
    "store_away": (
        "the store could not be used for {for_s}, and {claims_undone} claims were undone: {error}",
        "the store could not be used for {for_s}: {error}",
        "the store could not be used for {for_s}",
    ),
    "restored": ("the store was restored from a backup of {since}",),
}

FATES: Mapping[str, Templates] = {
    "not_due": ("{name} {is} not due then: {because}",),
    "never_due": ("{name} has not been due yet",),
    "succeeded": (
        "{name} ran {late_by_s} late and succeeded, in {took_s}",
        "{name} ran and succeeded, in {took_s}",
        "{name} ran and succeeded",
    ),
    "failed": ("{name} ran and failed: {because}",),
    "timed_out": ("{name} ran too long and was ended: {because}",),
    "cancelled": ("{name} was cancelled: {because}",),
    "abandoned": ("{name} was interrupted, and given up: {because}",),
    "skipped": ("{name} was due, and did not start: {because}",),
    "running": (
        "{name} is stopping, asked {stopping_for_s} ago, after running for {running_for_s}",
        "{name} has not begun: its gate is being asked, for {asking_for_s} now",
        "{name} waits for the answer to {question}, until {answer_until}, after running for {running_for_s}",
        "{name} is running, for {running_for_s} now, on {host} (pid {pid})",
        "{name} is running, for {running_for_s} now",
        "{name} was running",
    ),
    "waiting": ("{name} waits for {because}", "{name} was waiting"),
    "parked": ("{name} waits for {because}", "{name} waits for an answer"),
    "missed": ("{name} was missed: {because}",),
    "offered": ("{name} was missed, and a person is to decide: {because}",),
    "not_opened": (
        "{name} heard an event of {source}, and was not opened: {because}",
        "{name} was due, and was not opened: {because}",
    ),
    "overdue": (
        "{name} was due {late_by_s} ago and is not opened yet: {because}",
        "{name} was due {late_by_s} ago; whoever serves opens it next",
    ),
    "unknown": ("what became of {name} then is not known: {because}",),
    "would_start": ("{name} will be due, and would start, as things stand now",),
    "would_wait": ("{name} will be due, and would wait, as things stand now: {because}",),
    "may_be_skipped": ("{name} will be due, and may be skipped, as things stand now: {because}",),
    "would_not_open": ("{name} will be due, and would not be opened, as things stand now: {because}",),
    "stands_still": ("{name} does not start now: {because}",),
}
"""The first line of an answer by the fate it tells; `stands_still` is a task's when something is in its way."""

TABLES: Mapping[Use, tuple[Mapping[str, Templates], Mapping[str, str]]] = {
    "not_due": (NOT_DUE, reasons.NOT_DUE),
    "not_told": (NOT_TOLD, reasons.NOT_TOLD),
    "no_start": (NO_START, reasons.NO_START),
    "ended": (ENDED, reasons.ENDED),
    "waiting": (WAITING, WAITING_BASE),
    "ahead": (AHEAD, AHEAD_BASE),
    "outage": (OUTAGES, reasons.OUTAGES),
}


def first_line(fate: str, figures: Mapping[str, object], wall: Wall = UTC_WALL) -> str:
    """Say a fate as a whole sentence about the task by its `name`."""
    for template in FATES[fate]:
        told = fill(template, figures, wall)
        if told is not None:
            return told
    return f"{figures.get('name')}: {fate.replace('_', ' ')}"


def sentence(use: Use, reason: str, figures: Mapping[str, object], wall: Wall = UTC_WALL) -> str:
    """Say a reason with as many of its figures as are there; a reason of no table says itself."""
    templates, base = TABLES[use]
    for template in templates.get(reason, ()):
        told = fill(template, figures, wall)
        if told is not None:
            return told
    if use == "ended" and figures.get("error"):
        return str(figures["error"])
    return base.get(reason, reason.replace("_", " "))
