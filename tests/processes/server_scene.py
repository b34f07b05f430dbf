"""One PostgreSQL server and several hosts on it: each a home of its own, and with it a run folder of its own."""

from pathlib import Path

import psycopg
from process_scene import Place
from proxy import Proxy

from databases import Server
from duly.store.address import ServerAddress


class Hosts:
    """A server, and the hosts that a test puts on it; all of them end with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = Server()
        self.address = ServerAddress(url=self.server.url)
        self._places: list[Place] = []
        self._proxies: list[Proxy] = []

    def host(self, name: str, url: str | None = None) -> Place:
        """Set up a host that reaches the database by this URL."""
        place = Place(self.folder / name, address=ServerAddress(url=url or self.server.url))
        self._places.append(place)
        return place

    def behind_proxy(self, name: str) -> tuple[Place, Proxy]:
        """Set up a host whose road to the database can be cut."""
        proxy = Proxy(str(self.server.folder / ".s.PGSQL.5432"))
        self._proxies.append(proxy)
        return self.host(name, f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"), proxy

    def admin(self, text: str) -> list[tuple[object, ...]]:
        """Run one statement as the server's owner."""
        with psycopg.connect(self.server.url, autocommit=True) as raw:
            cursor = raw.execute(text.encode())
            return cursor.fetchall() if cursor.description is not None else []

    def close(self) -> None:
        for place in self._places:
            place.close()
        for proxy in self._proxies:
            proxy.close()
        self.server.remove()
