"""How Alembic runs a revision here: over the connection it is given, inside the transaction it is given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
