"""Making and migrating: by several at once, by one that raises, by one that is killed."""

import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from store_disk import snapshot
from store_scene import Scene, hourly, scene

import databases
from by_hand import dump_of, file_line, rows_at
from databases import given
from duly.errors import StoreAway
from duly.operations import backups
from duly.store import Store, making, migrations
from duly.store.address import Address, Place

Migrate = Callable[[Place, dict[str, str]], None]

MAKE = """
import sys
from duly.store import Store
from duly.store.address import resolve
import alembic.command
print("ready", flush=True)
sys.stdin.readline()
store = Store.open(resolve(sys.argv[1], {}), {"HOME": sys.argv[2]}, create=True)
with store.write() as session:
    session.projects.ensure(sys.argv[3], sys.argv[3], session.now)
store.close()
print("made", flush=True)
"""
MIGRATE = """
import sys
from duly.operations import backups
from duly.store import Store, making
from duly.store.address import resolve
making.__file__ = sys.argv[3]
making.REVISIONS = ("0001", "0002", "9999")
print("ready", flush=True)
sys.stdin.readline()
place, environ = resolve(sys.argv[1], {}), {"HOME": sys.argv[2]}
match sys.argv[4]:
    case "by_command": backups.migrate(place, environ)
    case "by_opening": Store.open(place, environ, migrate=True)
    case "by_making": Store.open(place, environ, create=True)
print("migrated", flush=True)
"""


def by_command(place: Place, environ: dict[str, str]) -> None:
    backups.migrate(place, environ)


def by_opening(place: Place, environ: dict[str, str]) -> None:
    Store.open(place, environ, migrate=True).close()


ROADS = pytest.mark.parametrize("migrate", [by_command, pytest.param(by_opening, marks=pytest.mark.file("migrate"))])
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


def schema(place: Place) -> list[tuple[object, ...]]:
    """What a migration changes: tables, columns and indexes, the revision, rows; and that all of it is whole."""
    columns, indexes, whole = (
        "SELECT 'column', table_name, column_name, data_type FROM information_schema.columns ORDER BY 2, 3",
        "SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 2",
        "SELECT 'ok'",
    )
    if isinstance(place, Address):
        columns, whole = "SELECT type, name, sql FROM sqlite_master ORDER BY name", "PRAGMA integrity_check"
        indexes = "SELECT count(*) FROM pragma_index_list('runs')"
    rows = ("SELECT version_num FROM alembic_version", "SELECT runs FROM tasks", "SELECT * FROM meta")
    return [row for text in (columns, indexes, *rows, whole) for row in rows_at(place, text)]


def test_several_processes_that_make_the_same_store_at_once_share_one(tmp_path: Path) -> None:
    place = databases.unmade(tmp_path)
    processes = [start(MAKE, given(place), tmp_path / "home", f"project{n}") for n in range(2)]
    for printed, errors in let_go(processes):
        assert printed == "made\n", errors
    names = rows_at(place, "SELECT name FROM projects ORDER BY name")
    assert names == [("project0",), ("project1",)], "all of them wrote to the same one"
    assert rows_at(place, "SELECT count(*) FROM meta WHERE key = 'store_id'") == [(1,)]
    left = {one.name for one in tmp_path.iterdir()}
    assert left <= {"duly.db", "duly.db-wal", "duly.db-shm", "home"}, "nothing half-made is left"
    if isinstance(place, Address):
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o600


def test_a_maker_that_fails_leaves_nothing_at_the_place_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    place = databases.unmade(folder)
    later(monkeypatch, tmp_path, "raise RuntimeError('midway')")
    with pytest.raises(RuntimeError, match="midway"):
        Store.open(place, {"HOME": str(tmp_path / "home")}, create=True)
    assert list(folder.iterdir()) == []
    assert dump_of(place) is None
    with pytest.raises(StoreAway, match="no store"):
        Store.open(place, {"HOME": str(tmp_path / "home")})


def test_a_maker_that_is_killed_midway_leaves_nothing_at_the_place(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    place = databases.unmade(folder)
    believed = with_revision(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    process = start(MIGRATE, given(place), tmp_path / "home", believed, "by_making")
    let_go([process])
    assert process.returncode == -signal.SIGKILL
    assert dump_of(place) is None
    Store.open(place, {"HOME": str(tmp_path / "home")}, create=True).close()
    assert dump_of(place) is not None, "and it can be made then"


def test_an_older_store_is_used_by_nobody_until_it_is_migrated(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(old)
    later(monkeypatch, tmp_path)
    for create in (False, True):
        with pytest.raises(StoreAway, match="older"):
            Store.open(old.address, old.environ, create=create)
    with pytest.raises(StoreAway, match="older"):
        Store.find(old.address, old.environ)
    assert snapshot(old) == before


@ROADS
def test_an_older_store_is_migrated_whole_and_only_once(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch, migrate: Migrate
) -> None:
    later(monkeypatch, tmp_path)
    migrate(old.address, old.environ)
    store = Store.open(old.address, old.environ, clock=old.clock)
    with store.read() as session:
        assert [task.runs for task in session.tasks.page()] == [1000]
    store.close()
    after = schema(old.address)
    assert ("9999",) in after
    assert any("later" in row for row in after)
    migrate(old.address, old.environ)
    assert schema(old.address) == after


@pytest.mark.file("copies")
def test_an_older_store_is_migrated_after_a_backup_that_is_whole(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = schema(old.address)
    later(monkeypatch, tmp_path)
    store = Store.open(old.address, old.environ, migrate=True, clock=old.clock)
    assert file_line(store).scalar("PRAGMA synchronous") == 2
    store.close()
    (backup,) = [one for one in old.folder.iterdir() if "before" in one.name]
    assert schema(Address(path=backup)) == before
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    Store.open(old.address, old.environ, migrate=True).close()
    assert len([one for one in old.folder.iterdir() if "before" in one.name]) == 1, "the second time is none"


@ROADS
@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("raise RuntimeError('midway')", RuntimeError),
        ("op.execute('INSERT INTO nowhere VALUES (1)')", StoreAway),
        ("op.create_table('later', sa.Column('id', sa.Text()))", StoreAway),
    ],
)
def test_a_migration_that_fails_midway_leaves_the_old_store_whole(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch, migrate: Migrate, end: str, error: type[Exception]
) -> None:
    before = schema(old.address)
    with monkeypatch.context() as patched:
        later(patched, tmp_path, end)
        with pytest.raises(error):
            migrate(old.address, old.environ)
        assert schema(old.address) == before
    store = Store.open(old.address, old.environ)
    assert store.quick_check() == "ok"
    store.close()


@ROADS
def test_a_migration_that_is_killed_midway_leaves_the_old_store_whole_and_the_next_one_succeeds(
    tmp_path: Path, old: Scene, monkeypatch: pytest.MonkeyPatch, migrate: Migrate
) -> None:
    before = schema(old.address)
    believed = with_revision(tmp_path, "os.kill(os.getpid(), signal.SIGKILL) if not os.environ.get('SPARE') else None")
    words = [given(old.address), tmp_path / "home", believed, migrate.__name__]
    process = start(MIGRATE, *words)
    let_go([process])
    assert process.returncode == -signal.SIGKILL
    assert schema(old.address) == before
    monkeypatch.setenv("SPARE", "1")
    for printed, errors in let_go([start(MIGRATE, *words) for _ in range(2)]):
        assert printed == "migrated\n", errors
    after = schema(old.address)
    assert ("9999",) in after
    assert (1000,) in after, "migrated once, by two at once"
    assert after[-1] == ("ok",)


@pytest.mark.file("copies")
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
