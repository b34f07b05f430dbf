"""What `verify` reads of missed records: each stands as its entries tell, answered once, or not at all (P6)."""

from collections.abc import Iterator

from duly.clock import to_us
from duly.core.task import Task
from duly.operations.audit_fates import Finding
from duly.store.auditing import Auditing
from duly.store.rows import mapping

PAGE = 20_000
ANSWERS = {"accepted": "accepted", "declined": "declined", "expired": "expired"}
"""States of a missed record, each with the entry that tells of it."""


def answered(audit: Auditing, task: Task) -> Iterator[Finding]:
    """Look at all missed records of a task; its answers are read once for every page of them."""
    pruned_us = None if task.pruned_until is None else to_us(task.pruned_until)
    after = ""
    while page := audit.missed(task.id, after, PAGE):
        after = page[-1][0]
        told: dict[str, list[str]] = {one[0]: [] for one in page}
        for kind, details in audit.answers(task.id):
            said = told.get(str(mapping(details).get("missed")))
            if said is not None:
                said.append(kind)
        for id_, state, noticed_us, run in page:
            if pruned_us is not None and noticed_us < pruned_us:
                continue
            if _stands(state, told[id_]):
                continue
            text = f"{id_} is {state}, and the ledger tells {' and '.join(told[id_]) or 'of no answer'}"
            yield Finding(promise="P6", task=task.id, run=run, text=text)


def _stands(state: str, said: list[str]) -> bool:
    # One that was expired, or closed with its task, may be accepted or be said to be over as well.
    wanted = ANSWERS.get(state)
    answers = [kind for kind in said if kind != "expired"]
    return (wanted is None or wanted in said) and len(answers) <= 1 and not (state == "open" and said)
