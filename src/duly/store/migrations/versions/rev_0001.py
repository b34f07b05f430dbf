"""The first schema: tasks and their definitions, runs, missed occurrences, the ledger, holders, pauses."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make every table and index."""
    _meta()
    _projects()
    _tasks()
    _definitions()
    _pauses()
    _runs()
    _missed()
    _ledger()
    _holders()


def _meta() -> None:
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )


def _projects() -> None:
    op.create_table(
        "projects",
        sa.Column("name_key", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
    )


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("project_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Integer(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("definition_version", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.Column("removed_us", sa.BigInteger()),
        sa.Column("overlap", sa.Text(), nullable=False),
        sa.Column("queue", sa.Integer(), nullable=False),
        sa.Column("planned_until_us", sa.BigInteger(), nullable=False),
        sa.Column("next_due_us", sa.BigInteger()),
        sa.Column("next_start_us", sa.BigInteger()),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("failures_in_a_row", sa.Integer(), nullable=False),
        sa.Column("last_run", sa.Text()),
        sa.Column("trouble", sa.Text()),
    )
    op.create_index(
        "tasks_due",
        "tasks",
        ["next_start_us"],
        unique=False,
        sqlite_where=sa.text("next_start_us IS NOT NULL"),
        postgresql_where=sa.text("next_start_us IS NOT NULL"),
    )
    op.create_index(
        "tasks_name",
        "tasks",
        ["project_key", "name_key"],
        unique=True,
        sqlite_where=sa.text("removed_us IS NULL"),
        postgresql_where=sa.text("removed_us IS NULL"),
    )
    op.create_index(
        "tasks_trouble",
        "tasks",
        ["id"],
        unique=False,
        sqlite_where=sa.text("trouble IS NOT NULL"),
        postgresql_where=sa.text("trouble IS NOT NULL"),
    )


def _definitions() -> None:
    op.create_table(
        "definitions",
        sa.Column("task", sa.Text(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True),
        sa.Column("from_us", sa.BigInteger(), nullable=False),
        sa.Column("era_from_us", sa.BigInteger(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
    )


def _pauses() -> None:
    op.create_table(
        "pauses",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger()),
        sa.Column("note", sa.Text()),
        sa.Column("by", sa.Text(), nullable=False),
    )
    op.create_index("pauses_target", "pauses", ["scope", "target"], unique=True)


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("occurrence", sa.Text(), nullable=False),
        sa.Column("due_us", sa.BigInteger(), nullable=False),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.Column("opened_by", sa.Text(), nullable=False),
        sa.Column("opened_by_whom", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("seat", sa.Integer()),
        sa.Column("holder", sa.Text()),
        sa.Column("lease_end_us", sa.BigInteger()),
        sa.Column("lease_boot", sa.Text()),
        sa.Column("claim_token", sa.Text()),
        sa.Column("handed_to", sa.Text()),
        sa.Column("not_before_us", sa.BigInteger(), nullable=False),
        sa.Column("definition_version", sa.Integer(), nullable=False),
        sa.Column("input", sa.Text()),
        sa.Column("anyway", sa.Integer(), nullable=False),
        sa.Column("queued", sa.Integer(), nullable=False),
        sa.Column("retry_of", sa.Text()),
        sa.Column("started_us", sa.BigInteger()),
        sa.Column("stopping_us", sa.BigInteger()),
        sa.Column("ended_us", sa.BigInteger()),
        sa.Column("cancel_asked_us", sa.BigInteger()),
        sa.Column("cancel_asked_by", sa.Text()),
        sa.Column("worked_us", sa.BigInteger(), nullable=False),
        sa.Column("interruptions", sa.Integer(), nullable=False),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("signal", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("log_bytes", sa.BigInteger(), nullable=False),
        sa.Column("log_cut", sa.BigInteger(), nullable=False),
    )
    op.create_index(
        "runs_held",
        "runs",
        ["holder"],
        unique=False,
        sqlite_where=sa.text("state = 'held'"),
        postgresql_where=sa.text("state = 'held'"),
    )
    op.create_index("runs_occurrence", "runs", ["task", "occurrence"], unique=True)
    op.create_index(
        "runs_seat",
        "runs",
        ["task", "seat"],
        unique=True,
        sqlite_where=sa.text("state IN ('held', 'parked')"),
        postgresql_where=sa.text("state IN ('held', 'parked')"),
    )
    op.create_index(
        "runs_not_before",
        "runs",
        ["not_before_us"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index("runs_task", "runs", ["task", "id"], unique=False)
    op.create_index(
        "runs_waiting",
        "runs",
        ["due_us", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index(
        "runs_waiting_hand",
        "runs",
        ["due_us", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting' AND opened_by = 'manual'"),
        postgresql_where=sa.text("state = 'waiting' AND opened_by = 'manual'"),
    )
    op.create_index(
        "runs_waiting_task",
        "runs",
        ["task", "due_us"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )


def _missed() -> None:
    op.create_table(
        "missed",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("occurrence", sa.Text(), nullable=False),
        sa.Column("due_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("noticed_us", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text()),
        sa.Column("decided_us", sa.BigInteger()),
        sa.Column("note", sa.Text()),
        sa.Column("run", sa.Text()),
    )
    op.create_index(
        "missed_open",
        "missed",
        ["task"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index("missed_task", "missed", ["task", "due_us"], unique=False)


def _ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("seq", SERIAL, primary_key=True),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("task", sa.Text()),
        sa.Column("occurrence", sa.Text()),
        sa.Column("run", sa.Text()),
        sa.Column("attempt", sa.Integer()),
        sa.Column("reason", sa.Text()),
        sa.Column("holder", sa.Text()),
        sa.Column("by", sa.Text()),
        sa.Column("count", sa.Integer()),
        sa.Column("until_us", sa.BigInteger()),
        sa.Column("details", sa.Text()),
        sqlite_autoincrement=True,
    )
    op.create_index("ledger_run", "ledger", ["run", "seq"], unique=False)
    op.create_index("ledger_task", "ledger", ["task", "seq"], unique=False)


def _holders() -> None:
    op.create_table(
        "holders",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("ticks", sa.BigInteger()),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("last_beat_us", sa.BigInteger(), nullable=False),
        sa.Column("beat_lease_us", sa.BigInteger(), nullable=False),
        sa.Column("lease_for_us", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("zone_data", sa.Text(), nullable=False),
        sa.Column("claims", sa.Integer(), nullable=False),
        sa.Column("claims_lost", sa.Integer(), nullable=False),
    )
