"""URLs of a database: what cannot be read is refused in words, and no password is ever shown."""

import pytest

from duly.errors import StoreAway
from duly.store.address import ServerAddress, resolve

BAD = {
    "an open bracket": "postgresql://u:geheim@[::1/x",
    "a bracket for a host": "postgresql://[geheim",
    "a port of letters": "postgresql://u@host:geheim/x",
    "a slash in the password": "postgresql://u:geh/geheim@host/x",
    "a fragment": "postgresql://u:a@host/x#geheim",
}


@pytest.mark.parametrize("url", BAD.values(), ids=BAD)
def test_a_url_that_cannot_be_read_is_refused_and_nothing_of_it_is_shown(url: str) -> None:
    with pytest.raises(StoreAway) as refused:
        resolve(url, {})
    assert "geheim" not in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://u:geheim@h/x", "postgresql://u:***@h/x"),
        ("postgresql://u:g%2Fh@h:5433/x?sslmode=require", "postgresql://u:***@h:5433/x?sslmode=require"),
        ("postgresql:///x?host=/run&password=geheim", "postgresql:///x?host=/run&password=***"),
        ("postgresql://u@h/x", "postgresql://u@h/x"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    address = resolve(url, {})
    assert isinstance(address, ServerAddress)
    assert str(address) == shown
