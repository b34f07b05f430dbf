"""Where the interface listens: this machine, unless TLS or a wish says otherwise, and where nobody else does."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import databases
from duly.app.interface import Listening, check, served
from duly.errors import Invalid
from duly.store import Store

CERT, KEY = (Path(__file__).parents[1] / "data" / name for name in ("tls-cert.pem", "tls-key.pem"))


@contextmanager
def taken() -> Iterator[int]:
    """A port that somebody else listens on meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "192.168.1.5", "", "no-such-host.invalid"])
def test_an_outside_address_is_refused_without_tls_unless_that_is_wished(host: str) -> None:
    with pytest.raises(Invalid, match="without TLS"):
        check(Listening(host=host, port=0, chosen=True))
    check(Listening(host=host, port=0, chosen=True, without_tls=True))
    check(Listening(host=host, port=0, chosen=True, tls_cert=CERT, tls_key=KEY))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_an_address_of_this_machine_needs_no_tls(host: str) -> None:
    check(Listening(host=host, port=0, chosen=True))


def test_a_certificate_without_its_key_or_its_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="go together"):
        check(Listening(host="127.0.0.1", port=0, chosen=True, tls_cert=CERT))
    with pytest.raises(Invalid, match="no file"):
        check(Listening(host="127.0.0.1", port=0, chosen=True, tls_cert=CERT, tls_key=tmp_path / "none"))


def test_a_usual_port_that_is_taken_is_told_and_a_chosen_one_refused(tmp_path: Path) -> None:
    holder: Any = SimpleNamespace(id="hld_x")
    told: list[str] = []
    store = Store.open(databases.unmade(tmp_path), {"HOME": str(tmp_path)}, create=True)

    def tell(event: str, figures: object) -> None:
        told.append(event)

    try:
        with taken() as port:
            usual = Listening(host="127.0.0.1", port=port, chosen=False)
            with served(store, usual, tell, holder=holder, environ={}) as url:
                assert (url, told) == (None, ["no web"])
            chosen = Listening(host="127.0.0.1", port=port, chosen=True)
            with (
                pytest.raises(Invalid, match="cannot be listened on"),
                served(store, chosen, tell, holder=holder, environ={}),
            ):
                raise AssertionError("somebody else has the port")
    finally:
        store.close()
