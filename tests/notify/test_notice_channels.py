"""Channels as people set them: on the command line's and the interface's road, and what doctor says of them."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from notify_scene import FAILED, Post, Told
from store_scene import Scene
from web_scene import Web, web_over

from duly.core import channel_reading
from duly.core.fields import BY_PATH
from duly.core.reading import read_field
from duly.errors import Invalid
from duly.operations import channels, diagnosis_channels, pruning


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("channels")) as made:
        yield made


def test_a_channel_is_set_shown_set_anew_and_removed_over_http(site: Web) -> None:
    made = site.ask("PUT", "/channels/Ops", json={"url": "https://u:pw@example.org/hook?k=1", "secret": "HOOK_KEY"})
    assert made.status_code == 200, made.text
    assert made.json()["url"] == "https://…@example.org/hook?…"
    assert (made.json()["kind"], made.json()["every"], made.json()["secret"]) == ("webhook", "10s", "HOOK_KEY")
    assert "pw" not in site.client.get("/api/v1/ledger", headers=site.as_()).text
    again = site.ask("PUT", "/channels/ops", json={"url": "https://example.org/b", "every": "0s", "only_named": True})
    assert (again.json()["name"], again.json()["secret"], again.json()["only_named"]) == ("Ops", None, True)
    assert [one["name"] for one in site.ask("GET", "/channels").json()["items"]] == ["Ops"]
    assert site.ask("GET", "/channels/OPS").json() == again.json()
    assert site.ask("DELETE", "/channels/ops").status_code == 204
    assert site.ask("GET", "/channels/ops").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": ""},
        {"url": 7},
        {"url": "example.org/hook"},
        {"url": "https://"},
        {"url": "https:///path"},
        {"url": "https://a b"},
        {"url": "https://x\u0000"},
        {"url": "https://example.org/" + "x" * 3000},
        {"url": "https://example.org", "every": "2d"},
        {"url": "https://example.org", "every": 5},
        {"url": "https://example.org", "secret": "whsec_the/secret+itself=="},
        {"url": "ntfy://topic", "secret": "HOOK_KEY"},
        {"url": "https://example.org", "only_named": "yes"},
        {"url": "https://example.org", "colour": "red"},
    ],
)
def test_what_is_no_channel_is_refused_and_nothing_is_written(site: Web, body: dict[str, object]) -> None:
    before = site.dump()
    answer = site.ask("PUT", "/channels/bad", json=body)
    assert answer.status_code == 422, answer.text
    assert site.ask("PUT", "/channels/none", json={"url": "https://example.org"}).status_code == 422
    assert site.dump() == before


def test_who_may_only_read_or_is_held_to_projects_sets_no_channel(site: Web) -> None:
    site.ask("PUT", "/projects/shop", json={})
    body = {"url": "https://example.org"}
    for headers in (site.as_("read", "write"), site.as_("admin", projects=("shop",))):
        before = site.dump()
        assert site.ask("PUT", "/channels/ops", json=body, headers=headers).status_code == 403
        assert site.ask("DELETE", "/channels/ops", headers=headers).status_code == 403
        assert site.dump() == before


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["ops"], ("ops",)),
        ("ops, mail", ("mail", "ops")),
        (["ops", "OPS"], ("ops",)),
        ([], ()),
        ("none", ()),
        (["none"], ()),
    ],
)
def test_a_task_names_its_channels_as_a_list_or_in_words(given: object, meant: tuple[str, ...]) -> None:
    assert read_field(BY_PATH["rules.notify"], given) == meant


@pytest.mark.parametrize("given", [7, {"ops": 1}, ["none", "ops"], [""], ["a b"], "a,,b", [f"c{n}" for n in range(21)]])
def test_what_names_no_channels_is_refused(given: object) -> None:
    with pytest.raises(Invalid) as refused:
        read_field(BY_PATH["rules.notify"], given)
    assert str(refused.value.field).startswith("rules.notify")


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("http://127.0.0.1:9/hook", "http://127.0.0.1:9/hook"),
        ("https://hooks.example.org/services/T0/ABCDEFGHIJKLMNOPQ", "https://hooks.example.org/services/T0/…"),
        (
            "https://${USER}@example.org/${TOKEN_OF_THE_HOOK}?${KEY}",
            "https://${USER}@example.org/${TOKEN_OF_THE_HOOK}?${KEY}",
        ),
        ("ntfys://token@ntfy.sh/topic", "ntfys://…/…"),
        ("discord://${ID}/${TOKEN}", "discord://${ID}/${TOKEN}"),
        ("${WHOLE}", "${WHOLE}"),
    ],
)
def test_what_may_be_a_secret_in_an_address_is_shown_to_nobody(url: str, seen: str) -> None:
    assert channel_reading.masked(channel_reading.read_url(url, "url")) == seen


def test_doctor_finds_channels_that_fail_that_nobody_serves_and_that_are_not_there(
    told: Told, post: Post, s: Scene
) -> None:
    def found() -> set[str]:
        with s.store.read() as session:
            return {one.check for one in diagnosis_channels.channels(s.store, session)}

    told.channel()
    assert found() == set()
    told.run("backup", FAILED, notify=("ops", "gone"))
    assert found() == {"channel_unknown"}
    told.gather()
    s.at(s.clock.moment + timedelta(hours=1))
    assert found() == {"channel_unknown", "notices_wait"}
    post.status = 500
    told.deliver()
    assert found() == {"channel_unknown", "channel_fails"}
    told.deliver(timedelta(hours=25))
    assert found() == {"channel_unknown", "channel_fails", "notices_given_up"}


def test_a_channel_that_is_removed_is_told_nothing_of_what_waited_for_it(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    told.run("backup")
    told.gather()
    channels.remove_channel(s.store, "OPS", by="ann")
    told.deliver()
    assert (post.got, told.states()) == ([], [("failing", "quiet")])


def test_notices_are_kept_as_long_as_the_rest_and_those_that_wait_longer(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    told.run("one")
    told.deliver()
    told.run("two")
    told.gather()
    s.at(s.clock.moment + timedelta(days=200))
    with s.store.read() as session:
        wanted = pruning.wish(session, timedelta(days=90))
    assert pruning.prune(s.store, wanted, take=False)["notices"] == 1
    assert pruning.prune(s.store, wanted, take=True)["notices"] == 1
    assert [state for _, state in told.states()] == ["waiting"]
