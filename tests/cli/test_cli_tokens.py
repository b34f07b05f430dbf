"""`duly token` and `duly open`: secrets that are told once, and links only where somebody answers."""

from typing import Any

from cli_scene import Scene


def told(scene: Scene, *words: str) -> Any:
    return scene.ok(*words, "--json").json


def refused(scene: Scene, *words: str) -> tuple[int, str]:
    called = scene.call(*words, "--json")
    return called.code, called.fault["reason"]


def test_a_token_is_told_once_listed_without_its_secret_and_revoked_by_name(scene: Scene) -> None:
    made = told(scene, "token", "create", "ci", "--rights", "read,run")
    assert made["secret"].startswith(f"duly_{made['id']}_")
    assert (made["rights"], made["projects"]) == (["read", "run"], None)
    [listed] = told(scene, "token", "list")["items"]
    assert (listed["name"], "secret" in listed) == ("ci", False)
    assert "read,run" in scene.ok("token", "list").out
    assert told(scene, "token", "revoke", "CI")["revoked_at"] is not None
    assert refused(scene, "token", "revoke", "ci") == (4, "unknown_id")


def test_a_token_with_an_unknown_right_or_project_is_not_made(scene: Scene) -> None:
    scene.ok("init")
    assert refused(scene, "token", "create", "a", "--rights", "reed") == (2, "invalid")
    assert refused(scene, "token", "create", "a", "--rights", "") == (2, "invalid")
    assert refused(scene, "token", "create", "a", "--rights", "read", "--project", "none") == (4, "unknown_id")
    assert told(scene, "token", "list")["items"] == []


def test_a_name_that_is_taken_is_refused_until_its_token_is_revoked(scene: Scene) -> None:
    scene.ok("token", "create", "ci", "--rights", "read")
    assert refused(scene, "token", "create", "CI", "--rights", "read") == (3, "already_exists")
    scene.ok("token", "revoke", "ci")
    scene.ok("token", "create", "ci", "--rights", "read")


def test_what_runs_makes_no_token_and_no_link(scene: Scene) -> None:
    scene.ok("init")
    scene.monkeypatch.setenv("DULY_RUN", "run_" + "0" * 26)
    for words in (("token", "create", "x", "--rights", "admin"), ("token", "revoke", "x"), ("open", "--print")):
        assert refused(scene, *words) == (3, "not_allowed")


def test_a_link_is_made_only_where_somebody_answers(scene: Scene) -> None:
    scene.ok("init")
    called = scene.call("open", "--print", "--json")
    assert (called.code, called.fault["reason"], called.fault["details"]["hint"]) == (4, "unknown_id", "duly serve")
