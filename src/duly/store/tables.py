"""The tables: instants are integer microseconds (`_us`), mappings are JSON texts, the same in both databases.

Three facts of the schema carry the safety, the rest is policy. Two of them are unique indexes (`indexes.py`); the
third is `runs.version` with `runs.fence`: every write of a run names the version it read, every claim raises both.
"""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()

# On SQLite only INTEGER PRIMARY KEY numbers rows by itself.
Serial = BigInteger().with_variant(Integer(), "sqlite")

meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

projects = Table(
    "projects",
    metadata,
    Column("name_key", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("dir", Text),
    # Where the folder was named: that host reads its loop files.
    Column("dir_host", Text),
    # What the last look at its loop files found wrong, as JSON; nothing where all is well.
    Column("loops", Text),
    # Rises with every claim of one of its runs while others wait: who had its turn longest ago is next.
    Column("turn", BigInteger, nullable=False, server_default="0"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("project_key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    # What the author wrote, and whether it is switched on. Written by people's edits only.
    Column("enabled", Integer, nullable=False),
    Column("definition", Text, nullable=False),
    Column("definition_version", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Column("removed_us", BigInteger),
    # What admission asks without reading the definition.
    Column("overlap", Text, nullable=False),
    Column("queue", Integer, nullable=False),
    # What only the engine writes.
    Column("planned_until_us", BigInteger, nullable=False),
    Column("next_due_us", BigInteger),
    Column("next_start_us", BigInteger),
    Column("done", Integer, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("runs", Integer, nullable=False),
    Column("failures_in_a_row", Integer, nullable=False),
    Column("last_run", Text),
    Column("trouble", Text),
    # What admission asks, and what only the engine writes, since the second revision.
    Column("seats", Integer, nullable=False, server_default="1"),
    Column("rank", Integer, nullable=False, server_default="0"),
    Column("scheduled_runs", Integer, nullable=False, server_default="0"),
    Column("planned_wall", Text),
    Column("zone_data", Text),
    Column("pruned_until_us", BigInteger),
    # Whether it is removed when it is done.
    Column("leaves", Integer, nullable=False, server_default="0"),
)

definitions = Table(
    "definitions",
    metadata,
    Column("task", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("from_us", BigInteger, nullable=False),
    Column("era_from_us", BigInteger, nullable=False),
    Column("definition", Text, nullable=False),
    Column("zone_data", Text),
)

pauses = Table(
    "pauses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("scope", Text, nullable=False),  # task, project, store
    Column("target", Text, nullable=False),  # the task's id, the project's key, or nothing
    Column("since_us", BigInteger, nullable=False),
    Column("until_us", BigInteger),
    Column("note", Text),
    Column("by", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task", Text, nullable=False),
    Column("occurrence", Text, nullable=False),
    Column("due_us", BigInteger, nullable=False),
    Column("opened_us", BigInteger, nullable=False),
    Column("opened_by", Text, nullable=False),
    Column("opened_by_whom", Text),
    Column("state", Text, nullable=False),
    Column("outcome", Text),
    Column("reason", Text),
    Column("version", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("seat", Integer),
    Column("holder", Text),
    Column("lease_end_us", BigInteger),
    Column("lease_boot", Text),
    Column("claim_token", Text),
    Column("handed_to", Text),
    Column("not_before_us", BigInteger, nullable=False),
    Column("definition_version", Integer, nullable=False),
    Column("input", Text),
    Column("anyway", Integer, nullable=False),
    Column("queued", Integer, nullable=False),
    Column("retry_of", Text),
    Column("started_us", BigInteger),
    Column("stopping_us", BigInteger),
    Column("ended_us", BigInteger),
    Column("cancel_asked_us", BigInteger),
    Column("cancel_asked_by", Text),
    Column("worked_us", BigInteger, nullable=False),
    Column("interruptions", Integer, nullable=False),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("error", Text),
    Column("log_bytes", BigInteger, nullable=False),
    Column("log_cut", BigInteger, nullable=False),
    Column("project", Text, nullable=False, server_default=""),
    Column("rank", Integer, nullable=False, server_default="0"),
    Column("overlap", Text),
    Column("taken", Text),
    Column("retries", Integer, nullable=False, server_default="0"),
    Column("tried", Text),
    Column("tried_reason", Text),
    Column("cancel_why", Text),
    Column("cancel_how", Text),
    Column("event", Text),
    Column("args", Text),
    Column("spread_us", BigInteger, nullable=False, server_default="0"),
    Column("agent", Text),
    # The last question its work asked, and since when a parked run may go on with the answer.
    Column("question", Text),
    Column("answered_us", BigInteger),
)

# What the work of a run asked a person, with the answer; `until_us` and `otherwise`: its rules as it was asked.
questions = Table(
    "questions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("asked_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    Column("otherwise", Text, nullable=False),  # fail, deny
    Column("attached", Integer, nullable=False),  # whether the work lives while it waits
    Column("kind", Text, nullable=False),  # permission, question
    Column("text", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("state", Text, nullable=False),  # open, answered, expired
    Column("answer", Text),  # allow, deny, text
    Column("said", Text),
    Column("note", Text),
    Column("answered_by", Text),
    Column("answered_us", BigInteger),
)

missed = Table(
    "missed",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task", Text, nullable=False),
    Column("occurrence", Text, nullable=False),
    Column("due_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    Column("count", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("noticed_us", BigInteger, nullable=False),
    Column("holder", Text),
    Column("state", Text, nullable=False),
    Column("decided_by", Text),
    Column("decided_us", BigInteger),
    Column("note", Text),
    Column("run", Text),
    Column("expires_us", BigInteger),
)

ledger = Table(
    "ledger",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=True),
    Column("at_us", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("task", Text),
    Column("occurrence", Text),
    Column("run", Text),
    Column("attempt", Integer),
    Column("reason", Text),
    Column("holder", Text),
    Column("by", Text),
    Column("count", Integer),
    Column("until_us", BigInteger),
    Column("details", Text),
    sqlite_autoincrement=True,
)

holders = Table(
    "holders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Column("boot", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("ticks", BigInteger),
    Column("started_us", BigInteger, nullable=False),
    Column("last_beat_us", BigInteger, nullable=False),
    Column("beat_lease_us", BigInteger, nullable=False),  # the same moment on the lease clock
    Column("lease_for_us", BigInteger, nullable=False),
    Column("state", Text, nullable=False),  # alive, draining, gone
    Column("slots", Integer, nullable=False),
    Column("labels", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("zone_data", Text, nullable=False),
    Column("claims", Integer, nullable=False),
    Column("claims_lost", Integer, nullable=False),
)

# A limit that a task names has its row, set by a person or not; `used` is moved in the step that takes or frees.
limits = Table(
    "limits",
    metadata,
    Column("key", Text, primary_key=True),
    Column("most", Integer, nullable=False),
    Column("rate", Integer),
    Column("rate_us", BigInteger),
    Column("used", Integer, nullable=False),
    # While its rate is reached: when the next start fits.
    Column("free_us", BigInteger),
    Column("set_us", BigInteger),
    Column("set_by", Text),
)

task_limits = Table(
    "task_limits",
    metadata,
    Column("task", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("weight", Integer, nullable=False),
)

limit_starts = Table(
    "limit_starts",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("run", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
)

# Budgets that a person has set, of the store or of a project, and those that stand in the definitions of tasks.
budgets = Table(
    "budgets",
    metadata,
    Column("scope", Text, primary_key=True),  # task, project, store
    Column("target", Text, primary_key=True),  # the task's id, the project's key, or nothing
    Column("per", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("runs", BigInteger),
    Column("tokens", BigInteger),
    Column("usd_micro", BigInteger),
    # When its next period begins, once something was spent in this one; and whether no run at all fits until then.
    Column("renews_us", BigInteger),
    Column("used_up", Integer, nullable=False, server_default="0"),
    Column("set_us", BigInteger),
    Column("set_by", Text),
)

# What an attempt has set aside while it is live, and what it has spent afterwards: budgets are sums over these rows.
charges = Table(
    "charges",
    metadata,
    Column("run", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("task", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("live", Integer, nullable=False),
    Column("runs", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("usd_micro", BigInteger, nullable=False),
)

task_needs = Table(
    "task_needs",
    metadata,
    Column("task", Text, primary_key=True),
    Column("label", Text, primary_key=True),
)

holder_labels = Table(
    "holder_labels",
    metadata,
    Column("holder", Text, primary_key=True),
    Column("label", Text, primary_key=True),
)

# Occurrences that a person skipped beforehand: all of a task from the first to the last instant, both included.
skips = Table(
    "skips",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task", Text, nullable=False),
    Column("first_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("note", Text),
)

# Default rules of the store (scope empty) and of projects (their keys).
defaults = Table(
    "defaults",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("rules", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("key", Text),
    Column("body", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    # The tasks it came through: none of them is opened by it again.
    Column("through", Text, nullable=False),
    # The last entry of the ledger before it, as it was when its listeners were read.
    Column("after_seq", BigInteger, nullable=False),
)

# Output of attempts where hosts do not share a disk; a piece is never changed.
log_pieces = Table(
    "log_pieces",
    metadata,
    Column("run", Text, primary_key=True),
    Column("fence", Integer, primary_key=True),
    Column("at", BigInteger, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

# The last event of each source, matched or not.
event_sources = Table(
    "event_sources",
    metadata,
    Column("name", Text, primary_key=True),
    Column("last_us", BigInteger, nullable=False),
    Column("last_key", Text),
    Column("received", BigInteger, nullable=False),
)

task_sources = Table(
    "task_sources",
    metadata,
    Column("task", Text, primary_key=True),
    Column("source", Text, primary_key=True),
)

throttles = Table(
    "throttles",
    metadata,
    Column("task", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("until_us", BigInteger, nullable=False),
)
