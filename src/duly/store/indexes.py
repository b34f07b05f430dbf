"""The indexes: declared once for both databases, on the tables beside them.

Kept apart because declaring them loads both dialects, which no command but a migration needs.

1. `runs_occurrence`: one occurrence of a task opens one run;
2. `runs_seat`: one seat of a task holds one live attempt (held or parked).
"""

from typing import Any

from sqlalchemy import Column, Index, text

from duly.store.notice_tables import notices
from duly.store.tables import (
    budgets,
    charges,
    events,
    holder_labels,
    holders,
    ledger,
    limit_starts,
    limits,
    missed,
    pauses,
    questions,
    runs,
    skips,
    task_limits,
    task_needs,
    task_sources,
    tasks,
    throttles,
)
from duly.store.tables_outside import tokens

SWITCHES = "kind IN ('defined', 'enabled', 'disabled', 'paused', 'unpaused', 'removed')"
"""The entries that tell how a task stood; queries say it in these very words, for SQLite to use the index."""
OUTAGES = "kind = 'outage'"
"""The same for spans in which nobody served."""


def _index(name: str, *columns: Column[Any], unique: bool = False, where: str | None = None) -> Index:
    condition = None if where is None else text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


ALL = (
    _index("runs_occurrence", runs.c.task, runs.c.occurrence, unique=True),
    _index("runs_seat", runs.c.task, runs.c.seat, unique=True, where="state IN ('held', 'parked')"),
    _index("runs_held", runs.c.holder, where="state = 'held'"),
    # Projects in turn; in each the rank first, then what was due first.
    _index("runs_waiting", runs.c.project, runs.c.rank, runs.c.due_us, runs.c.id, where="state = 'waiting'"),
    _index("runs_not_before", runs.c.not_before_us, where="state = 'waiting'"),
    _index("runs_waiting_task", runs.c.task, runs.c.due_us, where="state = 'waiting'"),
    _index("runs_task", runs.c.task, runs.c.id),
    _index("runs_event", runs.c.event, where="event IS NOT NULL"),
    _index("tasks_name", tasks.c.project_key, tasks.c.name_key, unique=True, where="removed_us IS NULL"),
    # A task that is paused, disabled, done, broken or removed has no next instant: it is not in this index.
    # What is due at one instant is opened in the order in which it was added, on both databases.
    _index("tasks_due", tasks.c.next_due_us, tasks.c.id, where="next_due_us IS NOT NULL"),
    # By the column that it names: on its id alone SQLite would look through another index, of all tasks.
    _index("tasks_leaving", tasks.c.leaves, where="leaves = 1 AND done = 1 AND removed_us IS NULL"),
    _index("tasks_zone_data", tasks.c.zone_data, where="removed_us IS NULL"),
    _index("holders_alive", holders.c.zone_data, where="state = 'alive'"),
    _index("tasks_trouble", tasks.c.id, where="trouble IS NOT NULL"),
    _index("pauses_target", pauses.c.scope, pauses.c.target, unique=True),
    _index("missed_task", missed.c.task, missed.c.due_us),
    _index("missed_open", missed.c.task, where="state = 'open'"),
    _index("missed_expires", missed.c.expires_us, where="state = 'open'"),
    _index("missed_run", missed.c.run, where="run IS NOT NULL"),
    _index("ledger_task", ledger.c.task, ledger.c.seq),
    _index("ledger_run", ledger.c.run, ledger.c.seq),
    # What `why` asks of any moment: the stretch of equal fates it lies in, and how switches and holds stood.
    _index("ledger_stretches", ledger.c.task, ledger.c.until_us, where="until_us IS NOT NULL"),
    _index("ledger_switches", ledger.c.task, ledger.c.at_us, where=SWITCHES),
    _index("ledger_passed_over", ledger.c.task, ledger.c.at_us, where="kind = 'skipped' AND run IS NULL"),
    _index("ledger_outages", ledger.c.seq, where=OUTAGES),
    _index("limits_free", limits.c.free_us, where="free_us IS NOT NULL"),
    _index("task_limits_key", task_limits.c.key),
    _index("limit_starts_key", limit_starts.c.key, limit_starts.c.at_us),
    _index("budgets_renews", budgets.c.renews_us, where="renews_us IS NOT NULL"),
    _index("charges_at", charges.c.at_us),
    _index("charges_task", charges.c.task, charges.c.at_us),
    _index("charges_project", charges.c.project, charges.c.at_us),
    _index("charges_live", charges.c.run, where="live = 1"),
    _index("task_needs_label", task_needs.c.label),
    _index("holder_labels_label", holder_labels.c.label),
    _index("skips_task", skips.c.task, skips.c.first_us),
    _index("events_key", events.c.source, events.c.key, unique=True, where="key IS NOT NULL"),
    _index("events_at", events.c.at_us),
    # Parked runs whose question is answered: they have their seat, and may go on.
    _index("runs_ready", runs.c.answered_us, where="state = 'parked' AND answered_us IS NOT NULL"),
    _index("questions_open", questions.c.until_us, where="state = 'open'"),
    _index("questions_run", questions.c.run),
    _index("questions_task", questions.c.task),
    _index("notices_cause", notices.c.cause, notices.c.channel, unique=True),
    _index("notices_waiting", notices.c.channel, notices.c.id, where="state = 'waiting'"),
    _index("notices_run", notices.c.run, where="run IS NOT NULL"),
    _index("notices_at", notices.c.at_us),
    _index("task_sources_source", task_sources.c.source),
    _index("throttles_until", throttles.c.until_us),
    _index("tokens_name", tokens.c.name_key, unique=True, where="kind = 'token' AND revoked_us IS NULL"),
    _index("tokens_expires", tokens.c.expires_us, where="expires_us IS NOT NULL"),
    _index("tokens_run", tokens.c.run, where="run IS NOT NULL"),
)
