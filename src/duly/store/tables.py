"""The tables: instants are integer microseconds (`_us`), mappings are JSON texts, the same in both databases.

Three facts of the schema carry the safety, the rest is policy. Two of them are unique indexes (`indexes.py`); the
third is `runs.version` with `runs.fence`: every write of a run names the version it read, every claim raises both.
"""

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text

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
)

definitions = Table(
    "definitions",
    metadata,
    Column("task", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("from_us", BigInteger, nullable=False),
    Column("era_from_us", BigInteger, nullable=False),
    Column("definition", Text, nullable=False),
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
