"""What the tests of the HTTP interface share: a store, the interface over it in this process, and tokens."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import databases
from by_hand import dump_of
from duly.operations import tokens
from duly.operations.askers import RIGHTS
from duly.store import Store
from duly.store.pool import Pool
from duly.web.frame import House
from duly.web.making import make_app
from duly.web.pace import Pace
from duly.web.reach import Reach

URL = "http://127.0.0.1:7433"
API = "/api/v1"
UNHURRIED = (1e9, 1e9)


class Web:
    """The interface over a store of its own; `as_(...)` asks with a token of these rights."""

    def __init__(self, folder: Path, client: TestClient, store: Store, house: House) -> None:
        self.folder = folder
        self.client = client
        self.store = store
        self.house = house
        self.told: list[tuple[str, Mapping[str, object]]] = []
        self._secrets: dict[tuple[str, ...], str] = {}

    def secret(self, *rights: str, projects: tuple[str, ...] = ()) -> str:
        """The secret of a token with these rights; all of them where none is named."""
        key = (*rights, *projects)
        if key not in self._secrets:
            made = tokens.create(
                self.store, f"t{len(self._secrets)}", rights=rights or RIGHTS, projects=projects, by="ann"
            )
            self._secrets[key] = made.secret
        return self._secrets[key]

    def as_(self, *rights: str, projects: tuple[str, ...] = ()) -> dict[str, str]:
        """The header by which a token asks."""
        return {"Authorization": f"Bearer {self.secret(*rights, projects=projects)}"}

    def ask(self, method: str, path: str, **given: Any) -> Any:
        """Ask a path below the interface's own with every right, unless other headers are given."""
        given["headers"] = {**self.as_(), **given.get("headers", {})}
        return self.client.request(method, API + path, **given)

    def dump(self) -> object:
        """All that stands in the store."""
        return dump_of(self.store.address)


@contextmanager
def web_over(
    folder: Path, *, reach: Reach | None = None, pace: Pace | None = None, url: str = URL, **more: Any
) -> Iterator[Web]:
    """Put the interface over a new store in a folder, with its lives begun; all is closed at the end."""
    environ = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
    store = Store.open(databases.unmade(folder), environ, create=True)
    pool = Pool(store)
    told: list[tuple[str, Mapping[str, object]]] = []
    house = House(
        pool=pool,
        tell=lambda event, figures: told.append((event, figures)),
        reach=reach or Reach(),
        environ=environ,
        pace=pace or Pace(failed=UNHURRIED, asked=UNHURRIED),
        **more,
    )
    try:
        with TestClient(make_app(house), base_url=url, follow_redirects=False) as client:
            web = Web(folder, client, store, house)
            web.told = told
            web.secret()  # made before a test looks at what stands in the store
            yield web
    finally:
        pool.close()
        store.close()
