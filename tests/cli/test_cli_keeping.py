"""`backup`, `restore` and `migrate` as they are typed: shapes, screens, questions, bad input."""

from pathlib import Path

import pytest
from cli_scene import Scene, ended
from test_cli_shapes import fields
from test_cli_terminal import typed

import databases
from duly import clock

TAKEN = "taken_at revision tasks runs last_entry bytes"
BACKUP = f"store file {TAKEN}"
RESTORE = f"{BACKUP} restored_at kept due ended pause"
DUE = "task task_name project count first last"
ENDED = "run task occurrence outcome reason"
MIGRATE = "store migrated from to backup"
PRUNE = "store dry_run keep until raised_by runs entries missed tasks events holders skips notices logs log_bytes"


@pytest.mark.file("copies")
def test_a_backup_and_a_restore_are_told_in_json_and_in_words(scene: Scene) -> None:
    scene.add("hello", when="every 1s")
    scene.ok("run", "hello")
    copy = scene.home / "copy.db"
    made = scene.ok("backup", str(copy), "--json").json
    assert set(made) == fields(BACKUP)
    assert (made["file"], made["tasks"], made["runs"]) == (str(copy), 1, 1)
    assert scene.ok("backup", "~/other.db").out.startswith(f"backed up to {scene.home}/other.db: 1 task, 1 run, ")
    done = scene.ok("restore", str(copy), "--yes", "--json").json
    assert set(done) == fields(RESTORE)
    assert set(done["ended"][0]) == fields(ENDED)
    assert done["pause"]["scope"] == "store"
    for one in done["due"]:
        assert set(one) == fields(DUE)
    called = scene.ok("restore", str(copy), "--yes")
    assert f"what stood there is kept as {scene.address}.before-restore.2" in called.out
    assert "ended: 1 run that waited at the backup" in called.out
    assert "everything is paused: duly unpause --all" in called.out
    assert scene.ok("list", "--json").json["items"][0]["paused"][0]["note"].startswith("restored from a backup of ")


@pytest.mark.file("copies")
def test_a_store_that_was_lost_is_brought_back_and_usable(scene: Scene) -> None:
    scene.add("hello")
    scene.ok("backup", str(scene.home / "copy.db"))
    scene.file.unlink()
    assert scene.call("list").code == 5
    assert "duly restore" in scene.call("list").err
    assert scene.ok("restore", str(scene.home / "copy.db"), "--yes", "--json").json["kept"] is None
    assert len(scene.ok("list", "--json").json["items"]) == 1


@pytest.mark.file("copies")
def test_the_default_store_is_restored_where_not_even_its_folder_is_left(scene: Scene) -> None:
    scene.monkeypatch.delenv("DULY_STORE")
    scene.add("hello")
    scene.ok("backup", str(scene.home / "copy.db"))
    import shutil

    shutil.rmtree(scene.home / ".local/share")
    scene.ok("restore", str(scene.home / "copy.db"), "--yes")
    assert len(scene.ok("list", "--json").json["items"]) == 1


@pytest.mark.file("copies")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 3), ("\n", 3)])
def test_restoring_asks_on_a_terminal_and_says_what_it_would_do(scene: Scene, answer: str, code: int) -> None:
    scene.add("old")
    scene.ok("backup", str(scene.home / "copy.db"))
    scene.add("new")
    got, seen = typed(scene, ["restore", str(scene.home / "copy.db")], answer, columns=200)
    assert got == code, seen
    assert f"Restore {scene.address} from a backup of " in seen
    assert "(1 task, 0 runs); what it holds now is kept beside it? [y/N]" in " ".join(seen.split())
    assert len(scene.ok("list", "--json").json["items"]) == (1 if code == 0 else 2)


def test_migrating_what_is_up_to_date_says_so(scene: Scene) -> None:
    scene.add("hello")
    told = scene.ok("migrate", "--json").json
    assert set(told) == fields(MIGRATE)
    assert (told["migrated"], told["backup"]) == (False, None)
    assert scene.ok("migrate").out == f"{scene.address} is up to date (revision {told['to']})\n"


def aged(scene: Scene, *, days: int = 100) -> None:
    """A store whose one task ran twice, long ago."""
    task = scene.add("hello")["id"]
    for _ in range(2):
        ended(scene, task)
        scene.sql("UPDATE runs SET occurrence = occurrence || id")
    then = clock.to_us(clock.now()) - days * 86_400_000_000
    columns = {"runs": ("opened_us", "due_us", "ended_us"), "ledger": ("at_us",), "tasks": ("planned_until_us",)}
    for table, names in columns.items():
        for name in names:
            scene.sql(f"UPDATE {table} SET {name} = {then}")
    # Ids tell when a run was opened.
    scene.sql("UPDATE ledger SET run = 'run_00' || substr(run, 7) WHERE run IS NOT NULL")
    scene.sql("UPDATE runs SET id = 'run_00' || substr(id, 7)")
    scene.sql("UPDATE tasks SET last_run = 'run_00' || substr(last_run, 7)")


def test_pruning_says_what_would_go_and_what_went(scene: Scene) -> None:
    aged(scene)
    before = scene.dump()
    told = scene.ok("prune", "--dry-run", "--json").json
    assert set(told) == fields(PRUNE)
    assert (told["dry_run"], told["keep"], told["runs"], told["raised_by"]) == (True, "90d", 1, None)
    assert scene.ok("prune", "--dry-run").out.startswith("would take away 1 run, 4 ledger entries, all older than ")
    assert scene.dump() == before
    done = scene.ok("prune", "--yes", "--json").json
    assert done | {"dry_run": True, "until": told["until"]} == told
    assert scene.ok("prune").out.startswith("nothing is older than "), "and there is nothing to ask about"
    assert scene.ok("runs", "--json").json["items"][0]["state"] == "ended"


def test_what_is_kept_is_raised_by_the_longest_max_age_and_a_person_is_told(scene: Scene) -> None:
    aged(scene, days=20)
    scene.add("patient", "--max-age", "30d")
    called = scene.ok("prune", "--keep", "1d", "--yes")
    assert "hint: 30d stays: so late may patient still run (max_age)" in called.err
    assert called.out.startswith("nothing is older than ")
    told = scene.ok("prune", "--keep", "1d", "--yes", "--json")
    assert (told.json["keep"], told.json["raised_by"], told.err) == ("30d", "patient", "")


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 1), ("n\n", 3, 2), ("\n", 3, 2)])
def test_pruning_asks_on_a_terminal(scene: Scene, answer: str, code: int, left: int) -> None:
    aged(scene)
    got, seen = typed(scene, ["prune"], answer, columns=200)
    assert got == code, seen
    assert "Take away 1 run, 4 ledger entries, all older than " in seen
    assert len(scene.ok("runs", "--json").json["items"]) == left


BAD: dict[str, tuple[tuple[str, ...], int, str]] = {
    "backup without a file": (("backup",), 2, "duly: FILE is missing"),
    "backup to nothing": (("backup", ""), 2, "duly: FILE: it names no file"),
    "backup over a file": (("backup", "there.db"), 3, 'duly: there is a file "'),
    "backup over the store": (("backup", "duly.db"), 3, 'duly: there is a file "'),
    "backup to a folder": (("backup", "."), 2, "duly: FILE: "),
    "backup into no folder": (("backup", "nowhere/x.db"), 2, "duly: FILE: the folder "),
    "backup with two files": (("backup", "x.db", "y.db"), 2, "duly: got unexpected extra argument"),
    "backup of no store": (("backup", "x.db", "--store", "none.db"), 5, "duly: there is no store at "),
    "backup of what is none": (("backup", "x.db", "--store", "there.db"), 5, "duly: "),
    "restore without a file": (("restore",), 2, "duly: FILE is missing"),
    "restore of nothing": (("restore", "none.db", "--yes"), 2, "duly: FILE: there is no file "),
    "restore of a folder": (("restore", ".", "--yes"), 2, "duly: FILE: "),
    "restore of what is none": (("restore", "there.db", "--yes"), 5, "duly: "),
    "restore of itself": (("restore", "duly.db", "--yes"), 2, "duly: FILE: it is the store itself"),
    "restore unconfirmed": (("restore", "copy.db"), 3, "duly: restoring "),
    "restore into no folder": (
        ("restore", "copy.db", "--yes", "--store", "nowhere/x.db"),
        5,
        "duly: the folder ",
    ),
    "restore over a folder": (("restore", "copy.db", "--yes", "--store", "."), 5, "duly: "),
    "migrate of no store": (("migrate", "--store", "none.db"), 5, "duly: there is no store at "),
    "migrate of what is none": (("migrate", "--store", "there.db"), 5, "duly: "),
    "prune of nothing": (("prune", "--keep", "0s"), 2, "duly: --keep: "),
    "prune without unit": (("prune", "--keep", "90"), 2, "duly: --keep: a span needs a unit"),
    "prune of a task": (("prune", "hello"), 2, "duly: got unexpected extra argument"),
    "prune of no store": (("prune", "--store", "none.db"), 5, "duly: there is no store at "),
    "fence of half": (("fence", "hello"), 2, "duly: FENCE: it is missing"),
    "fence of nothing": (("fence",), 2, "duly: no TASK and FENCE were given"),
    "fence in words": (("fence", "hello", "seven"), 2, 'duly: FENCE: "seven" is not a whole number'),
    "fence of nobody": (("fence", "nobody", "7"), 4, 'duly: there is no task "nobody"'),
    "fence of too much": (("fence", "hello", "9" * 30), 2, "duly: FENCE: "),
    "holders in a state": (("holders", "--state", "dead"), 2, 'duly: --state: "dead" is not one of'),
    "holders of none": (("holders", "-n", "0"), 2, "duly: -n: 0 is not between"),
    "holders from nowhere": (("holders", "--cursor", "x"), 2, 'duly: --cursor: "x" is not what a list gave'),
}


def test_pruning_where_nobody_can_be_asked_needs_a_yes(scene: Scene) -> None:
    aged(scene)
    before = scene.dump()
    called = scene.call("prune")
    assert (called.code, called.out) == (3, "")
    assert called.first == "duly: pruning needs a yes, and nobody can be asked here"
    assert "try: duly prune --keep 90d --yes" in called.err
    assert scene.call("prune", "--json").fault["details"]["runs"] == 1
    assert scene.dump() == before


OF_FILES = ("backup", "restore")
"""What copies files; a server's own tools do that for a store on one."""


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.file("copies")] * (BAD[one][0][0] in OF_FILES)) for one in BAD]
)
def test_bad_input_to_the_keeping_commands_is_told_in_one_line_and_changes_nothing(scene: Scene, name: str) -> None:
    scene.add("hello")
    if not databases.ON_SERVER:
        scene.ok("backup", str(scene.home / "copy.db"))
    (scene.home / "there.db").write_text("a diary")
    scene.monkeypatch.chdir(scene.home)
    before = scene.dump(), sorted(path.name for path in scene.home.iterdir() if "-" not in path.name)
    args, code, first = BAD[name]
    called = scene.call(*args)
    assert (called.code, called.out) == (code, ""), called
    assert called.first.startswith(first), called
    assert scene.call("--json", *args).fault["reason"] in {
        *("invalid", "already_exists", "needs_confirmation", "store_away", "unknown_task"),
    }
    assert (
        scene.dump(),
        sorted(path.name for path in scene.home.iterdir() if "-" not in path.name),
    ) == before
    assert (scene.home / "there.db").read_text() == "a diary"


@pytest.mark.file("copies")
def test_a_backup_that_cannot_be_written_is_told(scene: Scene) -> None:
    scene.add("hello")
    called = scene.call("backup", "/proc/x.db")
    assert called.code == 2
    assert called.first.startswith("duly: FILE: /proc/x.db cannot be written: ")
    assert not Path("/proc/x.db").exists()
