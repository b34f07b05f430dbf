"""What `verify` reads of limits: the counters count what is taken, and no claim saw more taken than was allowed."""

from collections import Counter
from collections.abc import Iterator, Mapping

from duly.core.ledger import ATTACHED, NEXT
from duly.operations.audit_fates import Finding
from duly.store import Session
from duly.store.auditing import Auditing
from duly.store.rows import mapping


def crowds(audit: Auditing) -> Iterator[Finding]:
    """P8: each claim that counts against limits saw all that was live, and room for itself."""
    live: dict[str, Mapping[str, int]] = {}
    for page in audit.claims():
        for _, kind, run, task, details in page:
            if run is None:
                continue
            if kind == "claimed" and details is not None:
                yield from _claimed(live, run, task, details)
            elif run in live and _is_over(kind, mapping(details)):
                del live[run]


def _is_over(kind: str, details: Mapping[str, object]) -> bool:
    if kind == "parked":
        return not details.get(ATTACHED)
    return kind != "swept" or details.get("next") in NEXT


def counters(session: Session) -> Iterator[Finding]:
    """P8: what each limit counts as taken is what live runs take of it, and not more than it allows."""
    taken: Counter[str] = Counter()
    for run in session.runs.live(most=1_000_000):
        taken.update(run.taken)
    limits = {limit.key: limit for limit in session.crowd.all()}
    for key in sorted(taken.keys() | limits.keys()):
        limit = limits.get(key)
        used = 0 if limit is None else limit.used
        if used != taken[key]:
            text = f"limit {key} counts {used} taken, and live runs take {taken[key]}"
            yield Finding(promise="P8", task=None, run=None, text=text)
        if limit is not None and taken[key] > limit.most:
            text = f"limit {key} allows {limit.most}, and live runs take {taken[key]}"
            yield Finding(promise="P8", task=None, run=None, text=text)


def budgets(audit: Auditing, most: int) -> Iterator[Finding]:
    """P8: each claim fitted into its budgets by what it saw of them, and only live attempts have set anything aside."""
    for run, task, details in audit.charged():
        told = mapping(details).get("budgets")
        for key, figures in (told if isinstance(told, Mapping) else {}).items():
            for kind, amounts in (figures if isinstance(figures, Mapping) else {}).items():
                if not isinstance(amounts, Mapping):
                    continue
                taken, most_ = _number(amounts, "spent") + _number(amounts, "reserved"), _number(amounts, "limit")
                if kind == "runs" and taken > most_:
                    text = f"claimed with {taken} runs charged to the budget {key}, and {most_} are allowed"
                    yield Finding(promise="P8", task=task, run=run, text=text)
    for run, task, attempt in audit.set_aside_for_nothing(most):
        text = f"its attempt {attempt} has set something aside in budgets, and is not live"
        yield Finding(promise="P8", task=task, run=run, text=text)


def _claimed(live: dict[str, Mapping[str, int]], run: str, task: str | None, details: str) -> Iterator[Finding]:
    told = mapping(details).get("limits")
    limits = told if isinstance(told, Mapping) else {}
    live.pop(run, None)
    if not limits:
        return
    live[run] = {key: _number(figures, "weight") for key, figures in limits.items()}
    for key, figures in limits.items():
        used, most = _number(figures, "used"), _number(figures, "most")
        if used > most:
            text = f"claimed with {used} of {key} taken, and {most} is allowed"
            yield Finding(promise="P8", task=task, run=run, text=text)
        taken = sum(weights.get(key, 0) for weights in live.values())
        if taken > used:
            text = f"claimed with {taken} of {key} taken by what was live, and its claim tells {used}"
            yield Finding(promise="P8", task=task, run=run, text=text)


def _number(figures: object, name: str) -> int:
    value = figures.get(name) if isinstance(figures, Mapping) else None
    return value if isinstance(value, int) else 0
