"""A store that is locked, gone, newer or full under processes that serve it."""

import sqlite3

from process_scene import Place, wait_for

from duly.clock import pause


def test_a_write_lock_held_for_six_seconds_by_another_program_loses_nothing(place: Place) -> None:
    place.serve()
    place.duly("add", "a", "--when", "* * * * * *", "--", "true")
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE outcome = 'succeeded'"))
    other = sqlite3.connect(place.store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pause(6)
    before = place.rows("SELECT count(*) FROM runs")[0][0]
    other.execute("ROLLBACK")
    other.close()
    wait_for(lambda: place.rows("SELECT count(*) FROM runs WHERE outcome = 'succeeded'")[0][0] > before + 2)
    assert not place.rows("SELECT 1 FROM runs WHERE outcome NOT IN ('succeeded', 'skipped')")
    place.duly("pause", "--all")
    assert place.duly("verify").returncode == 0


def test_a_store_that_vanishes_is_an_error_and_never_comes_back_empty(place: Place) -> None:
    process = place.serve(lease="5s")
    for name in ("duly.db", "duly.db-wal", "duly.db-shm"):
        (place.home / name).unlink(missing_ok=True)
    assert process.wait(60) == 5
    assert not place.store.exists()
    listed = place.duly("list", check=False)
    assert listed.returncode == 5
    assert "gone" in listed.stderr
    assert place.duly("add", "a", "--when", "every 1h", "--", "true", check=False).returncode == 5
    assert not place.store.exists()
    place.duly("init")
    place.duly("add", "a", "--when", "every 1h", "--", "true")


def test_a_store_taken_over_by_a_newer_version_stops_a_running_holder_and_every_command(place: Place) -> None:
    process = place.serve()
    other = sqlite3.connect(place.store, timeout=30)
    with other:
        other.execute("UPDATE meta SET value = '99.0' WHERE key = 'lowest_version'")
    other.close()
    assert process.wait(60) == 5
    for words in (["list"], ["status"], ["add", "a", "--when", "every 1h", "--", "true"]):
        done = place.duly(*words, check=False)
        assert done.returncode == 5
        assert "99.0" in done.stderr
