"""Duly as a version to come: one revision of the schema more, and its own word for the lowest that may use it.

Called with a folder to keep its migrations in, that lowest version, how its migration ends, and a command's words.
"""

import shutil
import sys
from pathlib import Path

import duly
from duly.operations import backups
from duly.store import making, migrations

VERSION = "9.9.0"
REVISION = '''"""A revision to come."""

import os
import signal

import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = {last!r}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the version to come will need."""
    op.add_column("runs", sa.Column("hue", sa.Text(), server_default="grey"))
    op.add_column("ledger", sa.Column("tone", sa.Integer()))
    op.create_table("tunes", sa.Column("id", sa.Text(), primary_key=True))
    {end}
'''
ENDS = {"whole": "", "killed": "os.kill(os.getpid(), signal.SIGKILL)"}


def main(folder: str, lowest: str, end: str, *words: str) -> None:
    """Be that version, and do what the words say."""
    home, revisions = Path(folder), (*migrations.REVISIONS, "9999")
    if not home.exists():
        source = Path(migrations.__file__).parent
        shutil.copytree(source, home / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    written = REVISION.format(last=migrations.REVISIONS[-1], end=ENDS[end])
    (home / "migrations" / "versions" / "rev_9999.py").write_text(written)
    duly.__version__ = VERSION
    making.__file__ = str(home / "making.py")
    for module in (making, backups):
        vars(module)["REVISIONS"] = revisions
    vars(making)["LOWEST_VERSION"] = lowest
    from duly.cli.frame import run

    sys.exit(run(list(words)))


if __name__ == "__main__":
    main(*sys.argv[1:])
