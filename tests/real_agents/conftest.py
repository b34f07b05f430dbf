from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_model import FakeModel
from opencode_scene import OpenCodeScene
from real_scene import real_opencode, scrub


@pytest.fixture(scope="session")
def model() -> Iterator[FakeModel]:
    one = FakeModel()
    yield one
    one.close()


@pytest.fixture(scope="session")
def shared(model: FakeModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCodeScene]:
    """One holder with one server for all tests that do not end it."""
    real_opencode()
    with pytest.MonkeyPatch.context() as patch:
        scrub(patch)
        one = OpenCodeScene(tmp_path_factory.mktemp("opencode"), model)
        yield one
        one.close()


@pytest.fixture
def opencode(shared: OpenCodeScene) -> OpenCodeScene:
    shared.told.clear()
    return shared


@pytest.fixture
def alone(model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenCodeScene]:
    """A holder whose server is nobody else's."""
    real_opencode()
    scrub(monkeypatch)
    one = OpenCodeScene(tmp_path, model)
    yield one
    one.close()
