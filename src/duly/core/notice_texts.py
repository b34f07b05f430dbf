"""Notices in words: a title, a sentence, and one message for several that go together."""

from collections.abc import Mapping, Sequence

from duly.core.figures import UTC_WALL, Wall, fill
from duly.core.notices import ERROR_MOST, SEVERITIES, Notice, Severity
from duly.core.sentences import Templates, Use, sentence

TITLE_MOST = 160
LISTED_MOST = 20
"""Notices of one message that are told one by one; of more, how many there are."""

TITLES: Mapping[str, Templates] = {
    "failing": ("{name} failed {failures} times in a row", "{name} failed"),
    "abandoned": ("{name} was abandoned",),
    "recovered": ("{name} succeeds again",),
    "missed": ("{name} missed {count} of its times", "{name} missed its time"),
    "offer": ("{name} missed {count} of its times: run it?", "{name} missed its time: run it?"),
    "question": ("{name} asks",),
    "paused": ("{name} was paused after {failures_in_a_row} failures in a row", "{name} was paused by itself"),
    "store_away": ("the store could not be used",),
    "budget": ("the budget {key} is used up",),
    "test": ("a test of the channel {channel}",),
    "ping": ("the monitor of {name} is asked",),
}
TEXTS: Mapping[str, Templates] = {
    "failing": ("{outcome}: {because}", "{because}", "{outcome}"),
    "abandoned": ("{because}; whether its work was done is not known", "whether its work was done is not known"),
    "recovered": ("after {failures} failures since {failing_since_at}", "after {failures} failures", "it succeeded"),
    "missed": ("{because}",),
    "offer": ("{because}; duly accept {subject}, or duly decline {subject}",),
    "question": ("{text}; duly answer {subject}, until {until_at}", "{text}; duly answer {subject}"),
    "paused": ("duly unpause {name} lets it go on",),
    "store_away": ("for {for_s}, until {until_at}: {error}", "for {for_s}, until {until_at}", "{error}"),
    "budget": ("{taken} of {bound} {unit} a {per} are taken; it begins anew at {until_at}",),
    "test": ("it works: notices of this store come here",),
    "ping": ("{subject}", "as it starts, succeeds or fails"),
}
ORDER: tuple[Severity, ...] = ("failure", "warning", "success", "info")
"""What the severity of several together is: the first of these that one of them has."""
USES: Mapping[str, Use] = {"missed": "no_start", "offer": "no_start", "failing": "ended", "abandoned": "ended"}


def title(notice: Notice, wall: Wall = UTC_WALL) -> str:
    """Say in a few words what happened."""
    return _first(TITLES[notice.kind], _figures(notice, wall), wall)[:TITLE_MOST]


def text(notice: Notice, wall: Wall = UTC_WALL) -> str:
    """Say the rest: why, and what to do."""
    return _first(TEXTS[notice.kind], _figures(notice, wall), wall)


def headline(notices: Sequence[Notice]) -> str:
    """Give the title of one message with all of these."""
    if len(notices) == 1:
        return title(notices[0])
    return f"{len(notices)} notices: {title(notices[0])}, …"[:TITLE_MOST]


def body(notices: Sequence[Notice], links: Sequence[str | None]) -> str:
    """Give the text of one message with all of these, each with its link where there is one."""
    lines = []
    for notice, link in list(zip(notices, links, strict=True))[:LISTED_MOST]:
        told = text(notice) if len(notices) == 1 else f"{title(notice)}: {text(notice)}"
        lines.append(f"{told}\n{link}" if link else told)
    if len(notices) > LISTED_MOST:
        lines.append(f"and {len(notices) - LISTED_MOST} more")
    return "\n".join(lines)


def severity(notices: Sequence[Notice]) -> Severity:
    """Give the severity of one message with all of these."""
    found = {SEVERITIES[one.kind] for one in notices}
    return next(one for one in ORDER if one in found)


def _first(templates: Templates, figures: Mapping[str, object], wall: Wall) -> str:
    for template in templates:
        told = fill(template, figures, wall)
        if told is not None:
            return told
    return str(figures["name"])


def _figures(notice: Notice, wall: Wall) -> dict[str, object]:
    details = notice.details
    figures: dict[str, object] = {
        **details,
        "name": details.get("name") or notice.task or "Duly",
        "subject": notice.subject,
        "until_at": details.get("until"),
        "failing_since_at": details.get("failing_since"),
    }
    for count in ("count", "failures", "failures_in_a_row"):
        number = details.get(count)
        figures[count] = number if isinstance(number, int) and number > 1 else None
    if isinstance(details.get("outcome"), str):
        figures["outcome"] = str(details["outcome"]).replace("_", " ")
    if isinstance(details.get("error"), str):
        figures["error"] = str(details["error"])[:ERROR_MOST]
    reason = details.get("reason")
    if isinstance(reason, str) and notice.kind in USES:
        figures["because"] = sentence(USES[notice.kind], reason, figures, wall)
    return figures
