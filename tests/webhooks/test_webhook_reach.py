"""Where webhooks are sent to, and where never."""

import asyncio
import ipaddress
import socket
from typing import Any

import pytest
from webhook_scene import Receiver, Sender

from duly.runners.webhook import reach
from duly.runners.webhook.reach import Forbidden, Reach, addresses, fault_of


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "100.100.100.200",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "192.0.0.192",
        "2002:a9fe:a9fe::1",
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_nothing_is_ever_sent_where_a_machine_finds_its_own_credentials(address: str, inside: bool) -> None:
    for host in (address, "name.example"):
        told = fault_of(host, ipaddress.ip_address(address), Reach(inside=inside))
        assert told is not None
        assert "nothing is sent to" in told


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "::1",
        "fd00::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "fec0::1",
    ],
)
def test_a_name_that_leads_inside_is_refused_and_an_address_that_says_so_is_not(address: str) -> None:
    found = ipaddress.ip_address(address)
    told = fault_of("name.example", found, Reach())
    assert told is not None
    assert told.startswith(f"name.example leads to {found}, which is an address of this machine or a private network")
    assert "http.inside" in told
    assert fault_of("2130706433", found, Reach()) is not None  # a number that only a resolver takes for an address
    assert fault_of(address, found, Reach()) is None
    assert fault_of("localhost", found, Reach()) is None
    assert fault_of("name.example", found, Reach(inside=True)) is None


def test_an_address_of_the_outside_may_be_sent_to() -> None:
    assert fault_of("name.example", ipaddress.ip_address("93.184.216.34"), Reach()) is None
    assert fault_of("name.example", ipaddress.ip_address("2606:2800:220:1::1"), Reach()) is None


def test_one_address_inside_among_several_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("127.0.0.1", 80))]

    async def ask() -> list[str]:
        async def told(*_: object, **__: object) -> object:
            return found

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", told)
        return await addresses("name.example", 80, Reach())

    with pytest.raises(Forbidden):
        asyncio.run(ask())


def test_a_name_is_asked_for_once_so_that_it_cannot_lead_elsewhere_afterwards(
    receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = socket.getaddrinfo

    def told(host: str, *more: Any, **named: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1" if host == "name.example" else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", told)
    sender.inside = True
    url = receiver.url("/named").replace("127.0.0.1", "name.example")
    assert sender.send(url).word == "succeeded"
    assert receiver.sent[-1].headers["host"] == f"name.example:{receiver.port}"
    assert asked.count("name.example") == 1


def test_a_name_that_leads_inside_sends_nothing_and_is_not_tried_again(
    receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *more, **named: real("127.0.0.1" if host == "name.example" else host, *more, **named),
    )
    outcome = sender.send(receiver.url("/named").replace("127.0.0.1", "name.example"))
    assert (outcome.word, outcome.reason, outcome.side_effect, outcome.unseen) == ("failed", "preflight", False, False)
    assert not receiver.sent


def test_the_environment_names_no_proxy_for_a_webhook(
    receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert sender.send(receiver.url()).word == "succeeded"


def test_addresses_of_the_carriers_are_inside() -> None:
    assert reach.fault_of("name.example", ipaddress.ip_address("100.64.9.9"), Reach()) is not None
