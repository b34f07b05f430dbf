"""What the tests of webhooks are given."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from webhook_scene import Receiver, Sender, receiving

from duly.runners.streams import Streams


@pytest.fixture(scope="module")
def streams() -> Iterator[Streams]:
    streams = Streams()
    yield streams
    streams.close()


@pytest.fixture(scope="module")
def one_receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def receiver(one_receiver: Receiver) -> Receiver:
    one_receiver.sent.clear()
    return one_receiver


@pytest.fixture
def sender(streams: Streams, tmp_path: Path) -> Sender:
    return Sender(streams=streams, folder=tmp_path, secrets={"TOKEN": "s3cret-token", "KEY": "signing-key"})
