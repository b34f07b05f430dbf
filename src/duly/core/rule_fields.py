"""The rules of a task, as a table: how it is judged when things are not normal."""

from duly.core import spans
from duly.core.action_fields import URL_MOST
from duly.core.field import Field
from duly.core.task import (
    DEFAULT_ANSWER_WITHIN,
    DEFAULT_AT_MOST,
    DEFAULT_GATE_TIMEOUT,
    DEFAULT_MAX_AGE,
    DEFAULT_OFFER_FOR,
    DEFAULT_QUEUE,
    DEFAULT_RETRY_AFTER,
    DEFAULT_RETRY_UP_TO,
)

AT_MOST_MOST = 1_000
QUEUE_MOST = 1_000
SEATS_MOST = 1_000
RETRIES_MOST = 100
PRIORITY_MOST = 1_000
TIMES_MOST = 1_000_000_000
PAUSE_AFTER_MOST = 1_000
LIMITS_MOST = 20
WEIGHT_MOST = 1_000_000
NEEDS_MOST = 20
PERMISSIONS_MOST = 100
NOTIFY_MOST = 20
NOTIFY_AFTER_MOST = 1_000
PATTERN_MOST = 500
WORD_MOST = 80
"""Characters of a limit's key or a label."""


def _rule(name: str, kind: str, text: str, **more: object) -> Field:
    return Field(name=name, place=("rules", name), kind=kind, help=text, **more)  # type: ignore[arg-type]


LATE: tuple[Field, ...] = (
    _rule(
        "on_missed",
        "choice",
        "what becomes of an occurrence found later than its grace",
        default="run",
        allowed=("run", "run_all", "skip", "offer"),
    ),
    _rule(
        "at_most",
        "count",
        "how many --on-missed run_all catches up, oldest first",
        default=DEFAULT_AT_MOST,
        least=1,
        most=AT_MOST_MOST,
    ),
    _rule(
        "max_age",
        "span",
        "how late an occurrence may still start",
        default=spans.write_span(DEFAULT_MAX_AGE),
        zero=True,
    ),
    _rule(
        "grace",
        "span",
        "how late still counts as punctual",
        default_text="60s, or half the distance to the next if that is less",
        zero=True,
    ),
    _rule(
        "offer_for",
        "span",
        "how long an offer waits for a person's decision",
        default=spans.write_span(DEFAULT_OFFER_FOR),
    ),
)

CROWD: tuple[Field, ...] = (
    _rule(
        "overlap",
        "choice",
        "what becomes of an occurrence while all seats are taken",
        default="skip",
        allowed=("skip", "queue", "cancel_running", "kill_running"),
    ),
    _rule("seats", "count", "how many runs may be live at once", default=1, least=1, most=SEATS_MOST),
    _rule(
        "queue",
        "count",
        "how many runs may wait under --overlap queue",
        default=DEFAULT_QUEUE,
        least=1,
        most=QUEUE_MOST,
    ),
    _rule(
        "limits",
        "weights",
        "a limit its runs count against, with their weight (may be repeated)",
        default={},
        most=LIMITS_MOST,
        metavar="KEY[=N]",
    ),
    _rule(
        "budget",
        "budget",
        "what its runs may spend in each day or month",
        default_text="none",
        metavar="runs=N,tokens=N,usd=X,per=day|month",
    ),
    _rule(
        "priority",
        "count",
        "which waiting runs start first: the higher",
        default=0,
        least=-PRIORITY_MOST,
        most=PRIORITY_MOST,
    ),
    _rule(
        "needs",
        "words",
        "a label that the serving process must have (may be repeated)",
        default=[],
        most=NEEDS_MOST,
        metavar="LABEL",
    ),
)

ATTEMPTS: tuple[Field, ...] = (
    _rule(
        "timeout",
        "span",
        "how long one attempt may take",
        default_text="24h for a command, 30m for an agent, 5m for a webhook",
    ),
    _rule("idle_timeout", "span", "how long an attempt may be silent", default_text="none; 10m for an agent"),
    _rule(
        "leftovers",
        "choice",
        "what becomes of processes that a command which succeeded leaves behind",
        default="end",
        allowed=("end", "leave"),
    ),
    _rule("retries", "count", "how often a failed run is tried again", default=0, most=RETRIES_MOST),
    _rule(
        "retry_after",
        "span",
        "how long before the first retry; doubles with each",
        default=spans.write_span(DEFAULT_RETRY_AFTER),
    ),
    _rule(
        "retry_up_to",
        "span",
        "the longest wait before a retry",
        default=spans.write_span(DEFAULT_RETRY_UP_TO),
    ),
    _rule(
        "on_interrupt",
        "choice",
        "what becomes of a run whose holder died and whose work did too",
        default_text="resume for agents, else fail",
        allowed=("fail", "retry", "resume"),
    ),
    _rule(
        "gate",
        "gate",
        "a line for sh -c, asked before each start: 0 go, 1 or 75 not now",
        default_text=f"none; within {spans.write_span(DEFAULT_GATE_TIMEOUT)}",
        metavar="LINE",
    ),
    _rule(
        "success_when",
        "success",
        "what a success is, beside the end of the work (may be repeated; all of it must hold)",
        default_text="none",
        metavar="exit=N,…|matches=REGEX|file=PATH",
    ),
    _rule(
        "pause_after",
        "count",
        "failures in a row after which the task is paused",
        default_text="none",
        least=1,
        most=PAUSE_AFTER_MOST,
    ),
    _rule(
        "store_access",
        "choice",
        "what its runs may do at the store, by DULY_STORE and DULY_TOKEN: nothing, look, or run tasks too",
        default="none",
        allowed=("none", "read", "run"),
    ),
)

SCHEDULE: tuple[Field, ...] = (
    _rule("spread", "span", "over how long starts are spread, each task at its own share", default="0s", zero=True),
    _rule(
        "gap",
        "choice",
        "what becomes of a local time that summer time leaves out",
        default="run",
        allowed=("run", "skip"),
    ),
    _rule(
        "fold",
        "choice",
        "which pass of a repeated local time counts",
        default="first",
        allowed=("first", "second", "both"),
    ),
    _rule("start", "instant", "nothing is due before this instant", default_text="none", metavar="INSTANT"),
    _rule("until", "instant", "nothing is due after this instant", default_text="none", metavar="INSTANT"),
    _rule("times", "count", "how many runs time may open in all", default_text="no end", least=1, most=TIMES_MOST),
    _rule("remove_when_done", "switch", "remove the task when it is done", default=False),
)

AGENTS: tuple[Field, ...] = (
    _rule(
        "estimate",
        "estimate",
        "what one run is thought to cost, set aside in budgets while it runs",
        default_text="none",
        metavar="tokens=N,usd=X",
    ),
    _rule(
        "unattended",
        "choice",
        "what an agent is answered that asks, as nobody is there; park: a person is asked",
        default="deny",
        allowed=("deny", "allow", "fail", "park"),
    ),
    _rule(
        "permissions",
        "permissions",
        "an answer for some of its tools, before --unattended (may be repeated; the last that fits decides)",
        default=[],
        most=PERMISSIONS_MOST,
        metavar="TOOL[:PATTERN]=allow|deny",
    ),
    _rule(
        "answer_within",
        "span",
        "how long a person has to answer what an agent asks, under --unattended park",
        default=spans.write_span(DEFAULT_ANSWER_WITHIN),
    ),
    _rule(
        "then",
        "choice",
        "what becomes of a run whose question nobody answers in that time",
        default="fail",
        allowed=("fail", "deny"),
    ),
)

NOTICES: tuple[Field, ...] = (
    _rule(
        "notify",
        "channels",
        "a channel that is told when it fails, recovers, misses its times or asks (may be repeated); none: nobody",
        default_text="the channels of the store",
        most=NOTIFY_MOST,
        metavar="CHANNEL",
    ),
    _rule(
        "notify_after",
        "count",
        "after how many failures in a row it is told",
        default=1,
        least=1,
        most=NOTIFY_AFTER_MOST,
    ),
    _rule(
        "ping",
        "url",
        "the address of a monitor, asked when a run succeeds; with /start when one starts, and /fail when one fails",
        default_text="none",
        most=URL_MOST,
        metavar="URL",
    ),
)

RULES: tuple[Field, ...] = (*LATE, *CROWD, *ATTEMPTS, *SCHEDULE, *AGENTS, *NOTICES)

OF_ONE_TASK = frozenset(
    {
        "gap",
        "fold",
        "start",
        "until",
        "times",
        "remove_when_done",
        "gate",
        "limits",
        "needs",
        "permissions",
        "budget",
        "success_when",
        "ping",
    }
)
"""Rules that mean one task's own schedule or work, and have no default for many."""
OF_AGENTS = frozenset({"unattended", "permissions", "answer_within", "then", "estimate"})
"""Rules that mean nothing but an agent."""
NEW_ERA = frozenset({"gap", "fold", "start", "until"})
"""Rules that change which instants a task's triggers mean: with them a new era begins."""
