"""The rules: limits, labels, skips, defaults, events; ranks and turns; retries; watermarks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BY_HAND_RANK = -1_000_000
SWITCHES = "kind IN ('defined', 'enabled', 'disabled', 'paused', 'unpaused', 'removed')"


def upgrade() -> None:
    """Add columns and tables, fill them from what is there, and make the indexes anew."""
    _columns()
    _crowd_tables()
    _event_tables()
    _question_table()
    _notice_tables()
    _other_tables()
    _fill()
    _indexes()
    _room()


def _columns() -> None:
    op.add_column("projects", sa.Column("dir", sa.Text()))
    op.add_column("projects", sa.Column("dir_host", sa.Text()))
    op.add_column("projects", sa.Column("loops", sa.Text()))
    op.add_column("projects", sa.Column("turn", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("seats", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("tasks", sa.Column("rank", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("scheduled_runs", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("planned_wall", sa.Text()))
    op.add_column("tasks", sa.Column("zone_data", sa.Text()))
    op.add_column("tasks", sa.Column("pruned_until_us", sa.BigInteger()))
    op.add_column("tasks", sa.Column("leaves", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("definitions", sa.Column("zone_data", sa.Text()))
    op.add_column("runs", sa.Column("project", sa.Text(), nullable=False, server_default=""))
    op.add_column("runs", sa.Column("rank", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("overlap", sa.Text()))
    op.add_column("runs", sa.Column("taken", sa.Text()))
    op.add_column("runs", sa.Column("retries", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("tried", sa.Text()))
    op.add_column("runs", sa.Column("tried_reason", sa.Text()))
    op.add_column("runs", sa.Column("cancel_why", sa.Text()))
    op.add_column("runs", sa.Column("cancel_how", sa.Text()))
    op.add_column("runs", sa.Column("event", sa.Text()))
    op.add_column("runs", sa.Column("args", sa.Text()))
    op.add_column("runs", sa.Column("spread_us", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("agent", sa.Text()))
    op.add_column("runs", sa.Column("question", sa.Text()))
    op.add_column("runs", sa.Column("answered_us", sa.BigInteger()))
    op.add_column("missed", sa.Column("expires_us", sa.BigInteger()))


def _crowd_tables() -> None:
    op.create_table(
        "limits",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("most", sa.Integer(), nullable=False),
        sa.Column("rate", sa.Integer()),
        sa.Column("rate_us", sa.BigInteger()),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("free_us", sa.BigInteger()),
        sa.Column("set_us", sa.BigInteger()),
        sa.Column("set_by", sa.Text()),
    )
    op.create_table(
        "task_limits",
        sa.Column("task", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("weight", sa.Integer(), nullable=False),
    )
    op.create_table(
        "limit_starts",
        sa.Column("seq", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
    )
    op.create_table(
        "budgets",
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("target", sa.Text(), primary_key=True),
        sa.Column("per", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("runs", sa.BigInteger()),
        sa.Column("tokens", sa.BigInteger()),
        sa.Column("usd_micro", sa.BigInteger()),
        sa.Column("renews_us", sa.BigInteger()),
        sa.Column("used_up", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("set_us", sa.BigInteger()),
        sa.Column("set_by", sa.Text()),
    )
    op.create_table(
        "charges",
        sa.Column("run", sa.Text(), primary_key=True),
        sa.Column("attempt", sa.Integer(), primary_key=True),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("live", sa.Integer(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("usd_micro", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "task_needs",
        sa.Column("task", sa.Text(), primary_key=True),
        sa.Column("label", sa.Text(), primary_key=True),
    )
    op.create_table(
        "holder_labels",
        sa.Column("holder", sa.Text(), primary_key=True),
        sa.Column("label", sa.Text(), primary_key=True),
    )


def _event_tables() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("through", sa.Text(), nullable=False),
        sa.Column("after_seq", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "event_sources",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("last_key", sa.Text()),
        sa.Column("received", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "senders",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("by", sa.Text()),
        sa.Column("secret", sa.Text()),
        sa.Column("preset", sa.Text(), nullable=False),
        sa.Column("header", sa.Text(), nullable=False),
        sa.Column("within_us", sa.BigInteger(), nullable=False),
        sa.Column("queue", sa.Integer(), nullable=False),
        sa.Column("set_us", sa.BigInteger(), nullable=False),
        sa.Column("set_by", sa.Text(), nullable=False),
    )
    op.create_table(
        "task_sources",
        sa.Column("task", sa.Text(), primary_key=True),
        sa.Column("source", sa.Text(), primary_key=True),
    )
    op.create_table(
        "throttles",
        sa.Column("task", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
    )


def _question_table() -> None:
    op.create_table(
        "questions",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("asked_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("otherwise", sa.Text(), nullable=False),
        sa.Column("attached", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text()),
        sa.Column("said", sa.Text()),
        sa.Column("note", sa.Text()),
        sa.Column("answered_by", sa.Text()),
        sa.Column("answered_us", sa.BigInteger()),
    )


def _notice_tables() -> None:
    op.create_table(
        "channels",
        sa.Column("name_key", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text()),
        sa.Column("every_us", sa.BigInteger(), nullable=False),
        sa.Column("only_named", sa.Integer(), nullable=False),
        sa.Column("set_us", sa.BigInteger(), nullable=False),
        sa.Column("set_by", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("claimed_by", sa.Text()),
        sa.Column("claimed_until_us", sa.BigInteger()),
        sa.Column("next_us", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_us", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.Column("last_us", sa.BigInteger()),
    )
    op.create_table(
        "notices",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("task", sa.Text()),
        sa.Column("run", sa.Text()),
        sa.Column("subject", sa.Text()),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("state_us", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text()),
    )
    op.create_table(
        "notice_states",
        sa.Column("subject", sa.Text(), primary_key=True),
        sa.Column("told", sa.Text(), nullable=False),
    )


def _other_tables() -> None:
    op.create_table(
        "log_pieces",
        sa.Column("run", sa.Text(), primary_key=True),
        sa.Column("fence", sa.Integer(), primary_key=True),
        sa.Column("at", sa.BigInteger(), primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "skips",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("note", sa.Text()),
    )
    op.create_table(
        "defaults",
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("rules", sa.Text(), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("rights", sa.Text(), nullable=False),
        sa.Column("projects", sa.Text()),
        sa.Column("run", sa.Text()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_us", sa.BigInteger()),
        sa.Column("revoked_us", sa.BigInteger()),
        sa.Column("revoked_by", sa.Text()),
    )


def _fill() -> None:
    op.execute(
        "UPDATE runs SET project = (SELECT tasks.project_key FROM tasks WHERE tasks.id = runs.task)"
        " WHERE EXISTS (SELECT 1 FROM tasks WHERE tasks.id = runs.task)"
    )
    op.execute(f"UPDATE runs SET rank = {BY_HAND_RANK} WHERE opened_by = 'manual'")
    op.execute(
        "UPDATE tasks SET scheduled_runs = (SELECT count(*) FROM runs WHERE runs.task = tasks.id"
        " AND runs.opened_by IN ('schedule', 'catch_up'))"
    )


def _indexes() -> None:
    op.drop_index("runs_waiting", "runs")
    op.drop_index("runs_waiting_hand", "runs")
    _index("runs_waiting", "runs", ["project", "rank", "due_us", "id"], where="state = 'waiting'")
    # What is due is found by its due instant: its spread is a wait of its run, never of the cursor.
    op.drop_index("tasks_due", "tasks")
    _index("tasks_due", "tasks", ["next_due_us", "id"], where="next_due_us IS NOT NULL")
    _index("tasks_leaving", "tasks", ["leaves"], where="leaves = 1 AND done = 1 AND removed_us IS NULL")
    _index("tasks_zone_data", "tasks", ["zone_data"], where="removed_us IS NULL")
    _index("holders_alive", "holders", ["zone_data"], where="state = 'alive'")
    _index("missed_expires", "missed", ["expires_us"], where="state = 'open'")
    _index("missed_run", "missed", ["run"], where="run IS NOT NULL")
    _index("ledger_stretches", "ledger", ["task", "until_us"], where="until_us IS NOT NULL")
    _index("ledger_switches", "ledger", ["task", "at_us"], where=SWITCHES)
    _index("ledger_passed_over", "ledger", ["task", "at_us"], where="kind = 'skipped' AND run IS NULL")
    _index("ledger_outages", "ledger", ["seq"], where="kind = 'outage'")
    _index("limits_free", "limits", ["free_us"], where="free_us IS NOT NULL")
    _index("task_limits_key", "task_limits", ["key"])
    _index("limit_starts_key", "limit_starts", ["key", "at_us"])
    _index("budgets_renews", "budgets", ["renews_us"], where="renews_us IS NOT NULL")
    _index("charges_at", "charges", ["at_us"])
    _index("charges_task", "charges", ["task", "at_us"])
    _index("charges_project", "charges", ["project", "at_us"])
    _index("charges_live", "charges", ["run"], where="live = 1")
    _index("task_needs_label", "task_needs", ["label"])
    _index("holder_labels_label", "holder_labels", ["label"])
    _index("skips_task", "skips", ["task", "first_us"])
    _index("events_key", "events", ["source", "key"], unique=True, where="key IS NOT NULL")
    _index("events_at", "events", ["at_us"])
    _index("runs_event", "runs", ["event"], where="event IS NOT NULL")
    _index("runs_ready", "runs", ["answered_us"], where="state = 'parked' AND answered_us IS NOT NULL")
    _index("questions_open", "questions", ["until_us"], where="state = 'open'")
    _index("questions_run", "questions", ["run"])
    _index("questions_task", "questions", ["task"])
    _index("notices_cause", "notices", ["cause", "channel"], unique=True)
    _index("notices_waiting", "notices", ["channel", "id"], where="state = 'waiting'")
    _index("notices_run", "notices", ["run"], where="run IS NOT NULL")
    _index("notices_at", "notices", ["at_us"])
    _index("task_sources_source", "task_sources", ["source"])
    _index("throttles_until", "throttles", ["until_us"])
    _index("tokens_name", "tokens", ["name_key"], unique=True, where="kind = 'token' AND revoked_us IS NULL")
    _index("tokens_expires", "tokens", ["expires_us"], where="expires_us IS NOT NULL")
    _index("tokens_run", "tokens", ["run"], where="run IS NOT NULL")


def _index(name: str, table: str, columns: list[str], *, unique: bool = False, where: str | None = None) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def _room() -> None:
    """Leave room on the pages of tasks: what each run writes there three times stays out of most indexes so."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE tasks SET (fillfactor = 50)")
