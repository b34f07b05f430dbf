"""Loop files and stored tasks brought together, as a decision: the path is the identity, and nothing unread is lost."""

from duly.core.loops import Fault, Known, Looked, Loop, Spoilt
from duly.core.reconciling import Add, Remove, Spoil, Write, decide

NEAR, FAR = "/app/web/.agents/loops", "/app/.agents/loops"
BAD = Fault(field="schedule", message="it is missing")


def loop(name: str, path: str = "", digest: str = "d1", folder: str = NEAR) -> Loop:
    return Loop(path=f"{folder}/{path or name}.md", line=2, name=name, given={}, lines={}, digest=digest)


def known(name: str, path: str | None = None, *, kind: str = "file", folder: str = NEAR, **more: object) -> Known:
    given = {"digest": "d1", **more}
    where = None if kind != "file" else f"{folder}/{path or name}.md"
    return Known(task=f"tsk_{name}", name=name, kind=kind, path=where, **given)  # type: ignore[arg-type]


def looked(*found: Loop | Spoilt, **more: object) -> Looked:
    return Looked(found=found, **more)  # type: ignore[arg-type]


def test_what_is_so_already_is_left_as_it_is() -> None:
    assert decide(looked(loop("a"), loop("b")), [known("a"), known("b"), known("c", kind="cli")]).changes == ()
    assert decide(looked(), []).changes == ()


def test_a_new_file_makes_a_task_and_a_changed_one_a_new_definition() -> None:
    assert decide(looked(loop("a")), []).changes == (Add(loop=loop("a")),)
    changed = loop("a", digest="d2")
    assert decide(looked(changed), [known("a")]).changes == (Write(task="tsk_a", loop=changed),)


def test_another_name_in_the_file_renames_the_task_in_its_place() -> None:
    renamed = loop("b", path="a", digest="d2")
    assert decide(looked(renamed), [known("a")]).changes == (Write(task="tsk_a", loop=renamed),)


def test_a_file_under_another_path_takes_over_the_task_of_its_name() -> None:
    moved = loop("a", path="moved")
    assert decide(looked(moved), [known("a")]).changes == (Write(task="tsk_a", loop=moved, adopted=True),)
    by_hand = known("a", kind="cli", digest=None)
    assert decide(looked(loop("a")), [by_hand]).changes == (Write(task="tsk_a", loop=loop("a"), adopted=True),)


def test_names_are_compared_as_everywhere_ignoring_case() -> None:
    by_hand = known("Digest", kind="cli", digest=None)
    (change,) = decide(looked(loop("digest")), [by_hand]).changes
    assert isinstance(change, Write)
    assert change.task == "tsk_Digest"


def test_a_task_that_a_program_defines_keeps_its_name() -> None:
    done = decide(looked(loop("a")), [known("a", kind="library", digest=None)])
    assert done.changes == ()
    assert [path for path, _ in done.faults] == [f"{NEAR}/a.md"]


def test_a_file_that_is_gone_takes_its_task_with_it_and_no_other() -> None:
    tasks = [known("a"), known("b"), known("c", kind="cli")]
    assert decide(looked(loop("b")), tasks).changes == (Remove(task="tsk_a", path=f"{NEAR}/a.md"),)


def test_a_file_that_no_longer_reads_keeps_its_task_and_shows_why() -> None:
    spoilt = Spoilt(path=f"{NEAR}/a.md", faults=(BAD,))
    assert decide(looked(spoilt), [known("a")]).changes == (Spoil(task="tsk_a", path=f"{NEAR}/a.md", fault=BAD),)
    assert decide(looked(spoilt), [known("a", fault=BAD)]).changes == ()
    healed = decide(looked(loop("a")), [known("a", fault=BAD)]).changes
    assert healed == (Write(task="tsk_a", loop=loop("a")),)


def test_a_file_that_never_read_is_told_and_makes_nothing() -> None:
    done = decide(looked(Spoilt(path=f"{NEAR}/a.md", faults=(BAD, BAD))), [])
    assert done.changes == ()
    assert done.faults == ((f"{NEAR}/a.md", BAD), (f"{NEAR}/a.md", BAD))


def test_a_broken_file_keeps_its_name_from_another_that_wants_it() -> None:
    spoilt = Spoilt(path=f"{NEAR}/a.md", faults=(BAD,))
    done = decide(looked(loop("a", path="other"), spoilt), [known("a", fault=BAD)])
    assert done.changes == ()
    assert [path for path, _ in done.faults] == [f"{NEAR}/other.md"]


def test_nothing_is_removed_while_the_folder_is_away_or_unread() -> None:
    assert decide(Looked(missing="it is not there"), [known("a")]).changes == ()
    done = decide(looked(loop("b"), unread={FAR: "no right"}), [known("a", folder=FAR), known("b")])
    assert done.changes == ()
    assert done.faults == ((FAR, Fault(field="file", message="no right")),)


def test_of_two_files_of_one_name_the_nearest_counts_and_the_other_is_told() -> None:
    near, far = loop("a"), loop("a", folder=FAR)
    done = decide(looked(near, far), [])
    assert done.changes == (Add(loop=near),)
    ((path, fault),) = done.faults
    assert path == far.path
    assert near.path in fault.message
    # What ran by the farther one until now goes on by the nearer, with its history.
    taken = decide(looked(near, far), [known("a", folder=FAR)]).changes
    assert taken == (Write(task="tsk_a", loop=near, adopted=True),)


def test_of_two_in_one_folder_the_one_counts_that_has_the_task_already() -> None:
    first, second = loop("a", path="1"), loop("a", path="2")
    assert decide(looked(first, second), []).changes == (Add(loop=first),)
    assert decide(looked(first, second), [known("a", path="2")]).changes == ()


def test_a_name_is_free_once_its_task_has_gone_or_taken_another() -> None:
    a, b = loop("b", path="a", digest="d2"), loop("c", path="b", digest="d2")
    done = decide(looked(a, b), [known("a"), known("b")]).changes
    assert done == (Write(task="tsk_b", loop=b), Write(task="tsk_a", loop=a))
    gone = decide(looked(a), [known("a"), known("b")]).changes
    assert gone == (Remove(task="tsk_b", path=f"{NEAR}/b.md"), Write(task="tsk_a", loop=a))


def test_a_decision_done_leaves_nothing_to_decide() -> None:
    found = looked(loop("a"), loop("b", folder=FAR), loop("a", path="twice"))
    tasks = [
        Known(task=change.loop.name, name=change.loop.name, kind="file", path=change.loop.path, digest="d1")
        for change in decide(found, []).changes
        if isinstance(change, Add)
    ]
    assert len(tasks) == 2
    assert decide(found, tasks).changes == ()
