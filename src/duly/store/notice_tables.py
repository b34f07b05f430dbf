"""The tables of notices: channels, what each is told, and what of each task was told last."""

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from duly.store.tables import metadata

# Where people and programs are told of what they should know; what stands below `set_by` is written by who delivers.
channels = Table(
    "channels",
    metadata,
    Column("name_key", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),  # secrets are only named in it
    Column("secret", Text),  # the name of the secret by which messages are signed
    Column("every_us", BigInteger, nullable=False),
    Column("only_named", Integer, nullable=False),
    Column("set_us", BigInteger, nullable=False),
    Column("set_by", Text, nullable=False),
    # Rises with each write: whoever delivers names the version it claimed.
    Column("version", Integer, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until_us", BigInteger),
    # Nothing is sent before.
    Column("next_us", BigInteger, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("failing_us", BigInteger),
    Column("error", Text),
    Column("last_us", BigInteger),
)

# The outbox: one row a notice and channel.
notices = Table(
    "notices",
    metadata,
    Column("id", Text, primary_key=True),
    Column("cause", Text, nullable=False),
    Column("channel", Text, nullable=False),  # the key of its name
    Column("at_us", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("task", Text),
    Column("run", Text),
    Column("subject", Text),
    Column("details", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting, sent, failed, quiet
    Column("state_us", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("error", Text),
)

# What was told of a task last, by its id; of a budget by its key; and how far the ledger was read, under no name.
notice_states = Table(
    "notice_states",
    metadata,
    Column("subject", Text, primary_key=True),
    Column("told", Text, nullable=False),
)
