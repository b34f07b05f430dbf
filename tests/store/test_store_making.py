"""Making and migrating: by several at once, by one that raises, by one that is killed."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from store_scene import Scene, hourly, scene

from by_hand import file_line
from duly.errors import StoreAway
from duly.store import Store, making, migrations
from duly.store.address import Address

pytestmark = pytest.mark.file

MAKE = """
import sys
from pathlib import Path
from duly.store import Store
from duly.store.address import Address
import alembic.command
print("ready", flush=True)
sys.stdin.readline()
store = Store.open(Address(path=Path(sys.argv[1])), {"HOME": sys.argv[2]}, create=True)
with store.write() as session:
    session.projects.ensure(sys.argv[3], sys.argv[3], session.now)
store.close()
print("made", flush=True)
"""
MIGRATE = """
import sys
from pathlib import Path
from duly.store import Store, making
from duly.store.address import Address
making.__file__ = sys.argv[3]
making.REVISIONS = ("0001", "0002", "9999")
print("ready", flush=True)
sys.stdin.readline()
store = Store.open(Address(path=Path(sys.argv[1])), {"HOME": sys.argv[2]}, migrate=True)
print("migrated", flush=True)
"""
REVISION = '''"""A second revision."""

import os
import signal

import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change several things."""
    op.add_column("runs", sa.Column("hue", sa.Text()))
    op.execute("UPDATE tasks SET runs = runs + 1000")
    op.create_table("later", sa.Column("id", sa.Text(), primary_key=True))
    op.drop_index("runs_task", "runs")
    {end}
'''


def start(code: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def let_go(processes: list[subprocess.Popen[str]]) -> list[tuple[str, str]]:
    """When all are ready, let them go at once; what each printed."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=60) for process in processes]


def with_revision(folder: Path, end: str) -> Path:
    """A copy of the migrations with one revision more, and the path that making shall believe to be its own."""
    source = Path(migrations.__file__).parent
    shutil.copytree(source, folder / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "migrations" / "versions" / "rev_9999.py").write_text(REVISION.replace("{end}", end))
    return folder / "making.py"


@pytest.fixture
def old(tmp_path: Path) -> Scene:
    """A store of the first revision with a task in it, closed."""
    (tmp_path / "store").mkdir()
    with scene(tmp_path / "store") as s:
        s.add("one", hourly())
    return s


def later(patched: pytest.MonkeyPatch, folder: Path, end: str = "") -> None:
    """Make this process believe that it knows one revision more."""
    patched.setattr(making, "__file__", str(with_revision(folder, end)))
    patched.setattr(making, "REVISIONS", ("0001", "0002", "9999"))


def schema(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as raw:
        return [
            *raw.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall(),
            *raw.execute("SELECT version_num FROM alembic_version").fetchall(),
            *raw.execute("SELECT runs FROM tasks").fetchall(),
            *raw.execute("SELECT * FROM meta").fetchall(),
            *raw.execute("PRAGMA integrity_check").fetchall(),
        ]


def test_several_processes_that_make_the_same_store_at_once_share_one(tmp_path: Path) -> None:
    path = tmp_path / "duly.db"
    processes = [start(MAKE, path, tmp_path / "home", f"project{n}") for n in range(2)]
    for printed, errors in let_go(processes):
        assert printed == "made\n", errors
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT name FROM projects ORDER BY name").fetchall() == [
            ("project0",),
            ("project1",),
        ], "all of them wrote to the same one"
        assert raw.execute("SELECT count(*) FROM meta WHERE key = 'store_id'").fetchone() == (1,)
    left = {one.name for one in tmp_path.iterdir()}
    assert left <= {"duly.db", "duly.db-wal", "duly.db-shm", "home"}, "nothing half-made is left"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_maker_that_fails_leaves_nothing_at_the_place_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address(path=tmp_path / "store" / "duly.db")
    address.path.parent.mkdir()
    later(monkeypatch, tmp_path, "raise RuntimeError('midway')")
    with pytest.raises(RuntimeError, match="midway"):
        making.make(address, {"HOME": str(tmp_path / "home")})
    assert list(address.path.parent.iterdir()) == []
    with pytest.raises(StoreAway, match="no store"):
        Store.open(address, {"HOME": str(tmp_path / "home")})


def test_a_maker_that_is_killed_midway_leaves_nothing_at_the_place(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    believed = with_revision(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    code = MIGRATE.replace("migrate=True", "create=True")
    process = start(code, folder / "duly.db", tmp_path / "home", believed)
    let_go([process])
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "duly.db").exists()
    assert making.make(Address(path=folder / "duly.db"), {"HOME": str(tmp_path / "home")}), "and it can be made then"


def test_an_older_store_is_used_by_nobody_until_it_is_migrated(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = old.path.read_bytes()
    later(monkeypatch, tmp_path)
    for create in (False, True):
        with pytest.raises(StoreAway, match="older"):
            Store.open(old.address, old.environ, create=create)
    with pytest.raises(StoreAway, match="older"):
        Store.find(old.address, old.environ)
    assert old.path.read_bytes() == before


def test_an_older_store_is_migrated_whole_after_a_backup_that_is_whole(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = schema(old.path)
    later(monkeypatch, tmp_path)
    store = Store.open(old.address, old.environ, migrate=True, clock=old.clock)
    with store.read() as session:
        assert [task.runs for task in session.tasks.page()] == [1000]
    assert file_line(store).scalar("PRAGMA synchronous") == 2
    store.close()
    after = schema(old.path)
    assert ("9999",) in after
    assert any(row[1] == "later" for row in after if len(row) == 3)
    (backup,) = [one for one in old.folder.iterdir() if "before" in one.name]
    assert schema(backup) == before
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    Store.open(old.address, old.environ, migrate=True).close()
    assert len([one for one in old.folder.iterdir() if "before" in one.name]) == 1, "the second time is none"


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("raise RuntimeError('midway')", RuntimeError),
        ("op.execute('INSERT INTO nowhere VALUES (1)')", StoreAway),
        ("op.create_table('later', sa.Column('id', sa.Text()))", StoreAway),
    ],
)
def test_a_migration_that_fails_midway_leaves_the_old_store_whole(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch, end: str, error: type[Exception]
) -> None:
    before = schema(old.path)
    with monkeypatch.context() as patched:
        later(patched, tmp_path, end)
        with pytest.raises(error):
            Store.open(old.address, old.environ, migrate=True)
        assert schema(old.path) == before
    store = Store.open(old.address, old.environ)
    assert store.quick_check() == "ok"
    store.close()


def test_a_migration_that_is_killed_midway_leaves_the_old_store_whole_and_the_next_one_succeeds(
    tmp_path: Path, old: Scene
) -> None:
    before = schema(old.path)
    believed = with_revision(tmp_path, "os.kill(os.getpid(), signal.SIGKILL) if not os.environ.get('SPARE') else None")
    process = start(MIGRATE, old.path, tmp_path / "home", believed)
    let_go([process])
    assert process.returncode == -signal.SIGKILL
    assert schema(old.path) == before
    os.environ["SPARE"] = "1"
    try:
        both = [start(MIGRATE, old.path, tmp_path / "home", believed) for _ in range(2)]
        for printed, errors in let_go(both):
            assert printed == "migrated\n", errors
    finally:
        del os.environ["SPARE"]
    after = schema(old.path)
    assert ("9999",) in after
    assert (1000,) in after, "migrated once, by two at once"
    assert after[-1] == ("ok",)


def test_a_backup_holds_what_only_the_log_held_yet(tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder was killed: the last commits are in the log beside the file."""
    code = (
        "import os, sqlite3, sys; raw = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "raw.execute(\"INSERT INTO ledger (at_us, kind) VALUES (7, 'paused')\"); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(old.path)], check=False)
    assert (old.folder / "duly.db-wal").stat().st_size > 0
    later(monkeypatch, tmp_path)
    store = Store.open(old.address, old.environ, migrate=True)
    with store.read() as session:
        assert session.ledger.last() == 2
    store.close()
    (backup,) = [one for one in old.folder.iterdir() if "before" in one.name]
    with closing(sqlite3.connect(backup)) as raw:
        assert raw.execute("SELECT kind FROM ledger ORDER BY seq").fetchall() == [("defined",), ("paused",)]
