"""The config file: which it is, who wins over whom, what is warned of, what is refused."""

from pathlib import Path
from typing import Any

import pytest
from cli_scene import Scene

from duly.core.settings import SETTINGS


def write(scene: Scene, text: str, place: str = ".config/duly/config.toml") -> Path:
    path = scene.home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def shown(scene: Scene, *args: str) -> dict[str, Any]:
    return {item["key"]: item for item in scene.ok("config", "show", *args, "--json").json["items"]}


def test_every_setting_is_shown_with_its_value_and_the_origin_of_it(scene: Scene) -> None:
    path = write(scene, 'store = "kept/duly.db"\n[serve]\nslots = 7\nbeat = "5s"\n')
    scene.monkeypatch.delenv("DULY_STORE")
    scene.monkeypatch.setenv("DULY_SERVE_SLOTS", "9")
    found = shown(scene)
    assert set(found) == {setting.key for setting in SETTINGS}
    told = {key: (item["value"], item["origin"], item["place"]) for key, item in found.items()}
    assert told["store"] == (str(path.parent / "kept/duly.db"), "file", str(path))
    assert told["serve.slots"] == (9, "environment", "DULY_SERVE_SLOTS")
    assert told["serve.beat"] == ("5s", "file", str(path))
    assert told["serve.lease"] == ("100s", "default", None)
    assert told["serve.allow_network_fs"] == (False, "default", None)


def test_a_flag_wins_over_the_environment_that_over_the_file_and_that_over_the_default(scene: Scene) -> None:
    scene.monkeypatch.delenv("DULY_STORE")
    assert shown(scene)["store"]["origin"] == "default"
    write(scene, 'store = "in-file.db"\n')
    assert shown(scene)["store"]["origin"] == "file"
    scene.monkeypatch.setenv("DULY_STORE", str(scene.home / "in-environment.db"))
    assert shown(scene)["store"]["origin"] == "environment"
    flag = ("--store", str(scene.home / "in-flag.db"))
    assert shown(scene, *flag)["store"]["origin"] == "flag"
    for args, name in (((), "in-environment.db"), (flag, "in-flag.db")):
        scene.ok("init", *args)
        assert (scene.home / name).exists()
    scene.monkeypatch.delenv("DULY_STORE")
    scene.ok("init")
    assert (scene.home / ".config/duly/in-file.db").exists()


def test_serve_is_given_what_the_file_says_where_no_flag_says_otherwise(scene: Scene) -> None:
    given: dict[str, object] = {}

    def serve(address: object, **more: object) -> int:
        given.update(more)
        return 0

    scene.monkeypatch.setattr("duly.app.service.serve", serve)
    write(scene, '[serve]\nslots = 7\nbeat = "5s"\ndrain = "0s"\nallow_network_fs = true\n')
    scene.monkeypatch.setenv("DULY_SERVE_CATCH_UP_SPACING", "3s")
    scene.ok("serve", "--beat", "7s", "--on-stop", "cancel")
    wanted = {
        "slots": "7",
        "beat": "0:00:07",
        "lease": "0:01:40",
        "drain": "0:00:00",
        "on_stop": "cancel",
        "catch_up_delay": "0:00:10",
        "catch_up_spacing": "0:00:03",
        "passive": "False",
        "allow_network_fs": "True",
    }
    assert {name: str(given[name]) for name in wanted} == wanted


def test_duly_config_names_another_file_and_that_must_be_there(scene: Scene) -> None:
    write(scene, "[serve]\nslots = 1\n")
    other = write(scene, "[serve]\nslots = 2\n", "other.toml")
    scene.monkeypatch.setenv("DULY_CONFIG", str(other))
    assert shown(scene)["serve.slots"]["value"] == 2
    scene.monkeypatch.setenv("DULY_CONFIG", str(scene.home / "none.toml"))
    called = scene.call("config", "show")
    assert (called.code, called.out) == (2, "")
    assert called.first == f"duly: DULY_CONFIG: there is no file {scene.home}/none.toml"


def test_the_config_folder_moves_with_its_variable_unless_that_is_relative(scene: Scene) -> None:
    write(scene, "[serve]\nslots = 3\n", "elsewhere/duly/config.toml")
    scene.monkeypatch.setenv("XDG_CONFIG_HOME", str(scene.home / "elsewhere"))
    assert shown(scene)["serve.slots"]["value"] == 3
    scene.monkeypatch.setenv("XDG_CONFIG_HOME", "elsewhere")
    assert shown(scene)["serve.slots"]["origin"] == "default"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[serve]\nslotz = 3\n", '"serve.slotz" is not known; perhaps serve.slots is meant'),
        ("slots = 3\n", '"slots" is not known; perhaps serve.slots is meant'),
        ("[srve]\nx = 3\n", '"srve" is not known'),
        ("serve = 3\n", '"serve" is not known'),
        ("agents = 3\n", '"agents" is not known'),
    ],
)
def test_what_the_file_has_and_nobody_knows_is_warned_of_and_stops_nothing(
    scene: Scene, text: str, warning: str
) -> None:
    scene.monkeypatch.delenv("DULY_STORE")
    path = write(scene, text)
    called = scene.ok("list")
    assert f"warning: {path}: {warning}" in called.err
    assert scene.ok("list", "--json").err == ""
    assert scene.ok("config", "show", "--json").json["warnings"][0].startswith(f"{path}: {warning}")


def test_agents_and_secrets_are_known_sections_and_no_secret_is_shown(scene: Scene) -> None:
    scene.monkeypatch.delenv("DULY_STORE")
    write(scene, '[agents.one]\nkind = "acp"\ncommand = ["x"]\n[secrets]\nKEY = "a-hidden-word"\n')
    assert "warning" not in scene.ok("list").err
    called = scene.ok("config", "show")
    found = scene.ok("config", "show", "--json")
    assert [one["name"] for one in found.json["agents"]] == ["one"]
    assert found.json["secrets"] == ["KEY"]
    assert "a-hidden-word" not in called.out + called.err + found.out


def test_config_without_a_verb_or_with_an_unknown_one_says_which_there_are(scene: Scene) -> None:
    called = scene.call("config")
    assert (called.code, called.out) == (2, "")
    called = scene.call("config", "shw")
    assert called.first == 'duly: there is no verb of duly config "shw"'
    assert "try: duly config show" in called.err
