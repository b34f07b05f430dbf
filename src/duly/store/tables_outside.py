"""The tables of who and what reaches the store over the network; the same `metadata` as all others."""

from sqlalchemy import BigInteger, Column, Table, Text

from duly.store.tables import metadata

# Who may ask over the network: tokens, links and sessions of browsers, tokens of runs. Of the secret only its digest.
tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # token, login, session, run
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("rights", Text, nullable=False),
    Column("projects", Text),  # the keys it is held to, or nothing
    Column("run", Text),
    Column("created_us", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_us", BigInteger),
    Column("revoked_us", BigInteger),
    Column("revoked_by", Text),
)
