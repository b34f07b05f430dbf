"""Ranges that a person skipped beforehand, as the store keeps them."""

from pathlib import Path

from store_scene import DAY, HOUR, NINE, Scene, hourly, scene

from duly.core.skips import Range


def kept(s: Scene, id_: str, task: str, first: int, last: int) -> Range:
    made = Range(first=NINE + first * HOUR, last=NINE + last * HOUR, by="ann", note="away")
    with s.store.write() as session:
        session.skips.insert(id_, task, made, session.now)
    return made


def test_ranges_of_a_task_are_read_in_order_and_those_behind_an_instant_are_not(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one, two = s.add("one", hourly()), s.add("two", hourly())
        late, early = kept(s, "skp_1", one.id, 20, 30), kept(s, "skp_2", one.id, 1, 2)
        kept(s, "skp_3", two.id, 5, 5)
        with s.connect().read() as session:
            assert session.skips.of(one.id, after=NINE) == [early, late]
            assert session.skips.of(one.id, after=NINE + 2 * HOUR) == [late], "its last instant is behind"
            assert session.skips.of(one.id, after=NINE + 2 * DAY) == []


def test_ranges_of_many_tasks_are_read_at_once_and_only_beyond_each_ones_cursor(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        tasks = [s.add(f"task {number}", hourly()) for number in range(70)]
        ranges = {task.id: [kept(s, f"skp_{number}", task.id, 2, 3)] for number, task in enumerate(tasks)}
        with s.store.read() as session:
            assert session.skips.ahead([task.id for task in tasks]) == ranges
        s.at(NINE + 3 * HOUR)
        s.plan()
        other = s.add("another", hourly())
        left = {other.id: [kept(s, "skp_x", other.id, 5, 6)]}
        with s.store.read() as session:
            assert session.skips.ahead([task.id for task in [*tasks, other]]) == left
