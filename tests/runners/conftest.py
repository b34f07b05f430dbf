from collections.abc import Iterator

import pytest
from runner_scene import lives, until

from duly.runners.nurseries import Nursery


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    one = Nursery()
    yield one
    pid = one.pid
    one.close()
    if pid is not None:
        until(lambda: not lives(pid))
