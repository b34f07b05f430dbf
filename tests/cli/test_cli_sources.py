"""`source set`, `source list`, `source remove`, and webhooks as `add` and `edit` have them."""

from cli_scene import Scene

SHAPE = """name proof secret preset header within queue set_at set_by tasks last_at last_key received"""


def test_a_source_is_set_listed_and_removed_and_no_secret_is_told(scene: Scene) -> None:
    scene.ok("init")
    done = scene.ok("source", "set", "repo", "--hmac", "REPO_SECRET", "--preset", "github")
    assert done.out == "source repo wants a signature by REPO_SECRET as GitHub makes it (0 tasks listening)\n"
    assert "POST /api/v1/events/repo" in done.err
    scene.ok("emit", "repo", "--key", "k1")
    assert "REPO_SECRET" in scene.ok("source", "list").out
    [shown] = scene.ok("source", "list", "--json").json["items"]
    assert set(shown) == set(SHAPE.split())
    assert (shown["proof"], shown["queue"], shown["received"], shown["last_key"]) == ("hmac", 1000, 1, "k1")
    scene.ok("source", "remove", "repo")
    assert scene.ok("source", "list", "--json").json["items"][0]["proof"] is None
    assert scene.call("source", "remove", "repo").code == 4


def test_a_source_that_means_nothing_is_refused_by_its_option(scene: Scene) -> None:
    scene.ok("init")
    for words, told in (
        (("--hmac", "A", "--token", "B"), "exclude each other"),
        (("--preset", "github"), "GitHub signs"),
        (("--token", "A", "--within", "5m"), "moment of its own"),
        (("--hmac", "A", "--queue", "many"), "whole number"),
    ):
        done = scene.call("source", "set", "repo", *words)
        assert done.code == 2
        assert told in done.err
    assert scene.call("source", "set", "duly.run", "--hmac", "A").code == 3


def test_a_webhook_is_added_shown_edited_and_cleared(scene: Scene) -> None:
    url = "https://example.com/hook"
    scene.ok("add", "tell", "--when", "manual", "--url", url, "--header", "X-A: b:c", "--body", "hi", "--sign", "KEY")
    task = scene.ok("show", "tell", "--json").json
    sent = {"kind": "http", "url": url, "method": "POST", "headers": {"X-A": "b:c"}, "body": "hi", "sign": "KEY"}
    assert task["action"] == sent
    scene.ok("edit", "tell", "--method", "put", "--header", "X-D: e", "--clear", "body", "--clear", "sign")
    action = scene.ok("show", "tell", "--json").json["action"]
    assert action == sent | {"method": "PUT", "headers": {"X-A": "b:c", "X-D": "e"}, "body": None, "sign": None}
    out = scene.ok("show", "tell").out
    assert f"PUT {url}" in out
    assert "X-D: e" in out
    assert scene.call("add", "other", "--when", "manual", "--method", "PUT", "--", "true").code == 2
    assert scene.call("edit", "tell", "--url", "http://me:hunter2@example.com/").code == 2
    assert "hunter2" not in scene.call("edit", "tell", "--url", "http://me:hunter2@example.com/").err
