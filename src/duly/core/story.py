"""The ledger as sentences: one table from kinds of entries to what they tell, with their figures."""

from collections.abc import Mapping

from duly.core.figures import UTC_WALL, Wall, fill
from duly.core.run import Entry
from duly.core.sentences import Templates, Use, sentence

PUNCTUAL_S = 1.0
"""What was opened or begun so little after its instant was on time."""

NEXT: Mapping[str, str] = {"retry": "to be tried again", "resume": "to go on in its session"}
"""What a run that was interrupted waits for."""

OPENED: Mapping[str, Templates] = {
    "schedule": ("opened {late}", "opened"),
    "catch_up": ("opened {late}, to catch up", "opened to catch up"),
    "event": ("opened by an event",),
    "manual": ("opened by hand by {by}", "opened by hand"),
    "offer": ("opened because {by} accepted it", "opened because it was accepted"),
    "backfill": ("opened by {by} to fill the past", "opened to fill the past"),
}

KINDS: Mapping[str, Templates] = {
    "missed": ("{count} missed up to {until_at}: {because}", "missed: {because}"),
    "skipped": ("did not start: {because}",),
    "stretch": ("{count} not opened up to {until_at}: {because}", "not opened: {because}"),
    "claimed": ("attempt {attempt} taken by {holder}, fence {fence}, seat {seat}", "attempt {attempt} taken"),
    "returned": (
        "attempt {attempt} {outcome}: {because}; to be tried again",
        "attempt {attempt} given back before it began: {why}",
        "attempt {attempt} given back before it began",
    ),
    "began": ("attempt {attempt} began",),
    "taken_over": ("taken over by {holder} from {from}: {why}", "taken over by {holder}"),
    "adopted": ("its living work adopted by {holder}",),
    "handed_over": ("handed over by {holder}, which was stopping",),
    "swept": (
        "attempt {attempt} interrupted: {because}; {next}",
        "attempt {attempt} interrupted: {because}",
        "interrupted: {because}",
    ),
    "fence_lost": ("{holder} came back with fence {fence}, and changed nothing",),
    "outcome_late": ("the outcome of attempt {attempt} came too late: {outcome}",),
    "parked": ("attempt {attempt} asks, and waits until {until_at}: {text}", "waits for the answer to a question"),
    "answered": (
        "{answer}: {because}",
        "answered by {by}: {said}",
        "answered by {by}, {answer}: {note}",
        "answered by {by}: {answer}",
        "answered by {by}",
        "answered",
    ),
    "cancel_asked": (
        "run {newer} asked for its seat (overlap)",
        "{by} asked for its end",
        "its end was asked for",
    ),
    "ended": ("{outcome}: {because}", "{outcome}"),
    "defined": ("defined by {by} as version {version}", "defined by {by}"),
    "paused": ("{scope} paused by {by} until {until_at}: {note}", "{scope} paused by {by}: {note}", "paused by {by}"),
    "unpaused": ("{scope} unpaused by {by}", "unpaused by {by}"),
    "enabled": ("enabled by {by}",),
    "disabled": ("disabled by {by}",),
    "removed": ("removed by {by}",),
    "accepted": ("accepted by {by}",),
    "declined": ("declined by {by}: {note}", "declined by {by}"),
    "outage": ("{because}, from {since} to {until}", "{because}", "nobody served"),
    "holder_ended": ("the holder {holder} ended: {reason}", "the holder {holder} ended"),
}
"""Kinds that tell the same with every reason; `opened` tells by whom."""
USES: Mapping[str, Use] = {"missed": "no_start", "skipped": "no_start", "stretch": "no_start", "outage": "outage"}
"""Whose sentence the reason of an entry is; of all other kinds it is that of an end."""


def tell(entry: Entry, wall: Wall = UTC_WALL) -> str:
    """Say what one entry tells; a kind of no table says itself and its reason."""
    figures = _figures(entry, wall)
    templates = KINDS.get(entry.kind, ())
    if entry.kind == "opened":
        templates = OPENED.get(entry.reason or "", ("opened",))
    for template in templates:
        told = fill(template, figures, wall)
        if told is not None:
            return told
    return " ".join(part for part in (entry.kind.replace("_", " "), (entry.reason or "").replace("_", " ")) if part)


def _figures(entry: Entry, wall: Wall) -> dict[str, object]:
    figures: dict[str, object] = {
        **entry.details,
        "by": entry.by,
        "holder": entry.holder,
        "attempt": entry.attempt,
        "reason": entry.reason,
        "until_at": entry.until_at,
        "count": entry.count if entry.count is not None and entry.count > 1 else None,
    }
    if entry.reason is not None and entry.kind != "opened":
        figures["because"] = sentence(USES.get(entry.kind, "ended"), entry.reason, figures, wall)
    late = entry.details.get("late_by_s")
    if isinstance(late, int | float):
        figures["late"] = "on time" if late < PUNCTUAL_S else fill("{late_by_s} late", figures, wall)
    if entry.kind == "swept" and entry.details.get("next") in NEXT:
        figures["next"] = NEXT[str(entry.details["next"])]
    if entry.kind == "cancel_asked" and entry.reason == "overlap":
        figures["newer"] = entry.by
    if isinstance(figures.get("outcome"), str):
        figures["outcome"] = str(figures["outcome"]).replace("_", " ")
    if figures.get("outcome") == "succeeded":
        figures["because"] = None
    return figures
