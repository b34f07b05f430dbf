"""Where a store is: how its address is read, where its run folder lies, and which stores were seen before."""

import fcntl
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from duly.errors import StoreAway

STORES_REMEMBERED = 10_000
"""Lines of the file of seen stores that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A SQLite file by its absolute path; `default` when nobody named it."""

    path: Path
    default: bool = False

    @property
    def run_folder(self) -> Path:
        """The folder beside the file itself, however it is named: holders' locks and attempts."""
        real = self.path.resolve()
        return real.with_name(real.name + ".run")

    @property
    def whole(self) -> str:
        """The address as who opens it is told it."""
        return str(self.path)

    def __str__(self) -> str:
        """The address as people are shown it."""
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """A PostgreSQL database by its URL; shown without its password."""

    url: str

    @property
    def whole(self) -> str:
        """The address as who opens it is told it, with its password."""
        return self.url

    def masked(self, text: str) -> str:
        """The same text without the password, wherever it stands in it."""
        for secret in filter(None, (urlsplit(self.url).password, _option(self.url, "password"))):
            for form in {secret, unquote(secret)}:
                text = text.replace(form, "***")
        return text

    def __str__(self) -> str:
        """The address as people are shown it."""
        return self.masked(self.url)


Place = Address | ServerAddress


def resolve(text: str | None, environ: Mapping[str, str]) -> Place:
    """Read `--store`, else DULY_STORE, else the default place; StoreAway says why an address cannot be used."""
    given = text if text is not None else environ.get("DULY_STORE") or None
    if given is None:
        return Address(path=_home(environ, "XDG_DATA_HOME", ".local/share") / "duly" / "duly.db", default=True)
    if not given.strip():
        raise StoreAway("the store's address is empty", hint="give a path such as --store ./duly.db")
    if "\0" in given:
        raise StoreAway("the store's address holds a NUL character")
    if ":memory:" in given:
        raise StoreAway(f"{given} cannot be a store: it must outlive its process", hint="give the path of a file")
    if given.startswith("file:"):
        raise StoreAway(
            "a store's address is a path, or sqlite:///PATH", hint=given.removeprefix("file://").removeprefix("file:")
        )
    scheme, mark, rest = given.partition("://")
    if scheme.lower() in {"postgresql", "postgres"} and mark:
        return _server(given)
    if mark:
        given = _path_of_url(given, scheme.lower(), rest)
    try:
        return Address(path=Path(os.path.abspath(Path(given).expanduser())))  # noqa: PTH100 - links stay as they are
    except FileNotFoundError as error:
        raise StoreAway("the folder this was called in no longer exists", hint="give an absolute path") from error


def check_path(address: Address) -> None:
    """Refuse what stands at the path and cannot be a store: a directory, a pipe, a device, a name too long."""
    path = address.path
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreAway(f"there can be no store at this path: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        raise StoreAway(f"{path} is a directory, not a store", hint=f"--store {path / 'duly.db'}")
    if not stat.S_ISREG(mode):
        raise StoreAway(f"{path} is not a regular file, and cannot be a store")


def check_place(address: Address) -> None:
    """Refuse a path at which no store can be; the default's folder is made where it is missing."""
    check_path(address)
    folder = address.path.parent
    if not folder.is_dir():
        if not address.default:
            raise StoreAway(f"the folder {folder} does not exist", hint=f"mkdir -p {folder}")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where Duly keeps what is of this user on this host: seen stores, reports of faults."""
    return _home(environ, "XDG_STATE_HOME", ".local/state") / "duly"


def remember(address: Address, environ: Mapping[str, str]) -> None:
    """Note that a store stood here, so that its loss is told apart from never having been."""
    line = str(address.path)
    folder = state_folder(environ)
    try:
        if is_remembered(address, environ):
            return
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (folder / "stores").open("a", encoding="utf-8", errors="surrogateescape") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(line + "\n")
    except OSError:
        return  # a home that cannot be written must not stop a store that can


def is_remembered(address: Address, environ: Mapping[str, str]) -> bool:
    """A store was seen at this address before."""
    return str(address.path) in remembered(environ)


def remembered(environ: Mapping[str, str]) -> list[str]:
    """Give the paths of the stores that were seen before, each once, in the order in which they were first seen."""
    try:
        with (state_folder(environ) / "stores").open(encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for _, line in zip(range(STORES_REMEMBERED), file, strict=False)]
    except OSError:
        return []
    return list(dict.fromkeys(line for line in lines if line))


def _path_of_url(given: str, scheme: str, rest: str) -> str:
    if scheme != "sqlite":
        raise StoreAway(f"a store cannot be at {scheme}://", hint="give a path, or sqlite:///PATH")
    if "?" in rest or "#" in rest:
        raise StoreAway("a store's URL takes no options", hint="give the path alone")
    if not rest.startswith("/") or rest == "/":
        raise StoreAway(f"{given} names no file", hint="sqlite:///relative.db or sqlite:////absolute.db")
    return rest[1:]


def _server(given: str) -> ServerAddress:
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise StoreAway("a store on PostgreSQL needs the extra `postgres`", hint="pip install 'duly[postgres]'")
    address = ServerAddress(url="postgresql" + given[given.index("://") :])
    try:
        split = urlsplit(address.url)
        _ = split.port
    except ValueError as error:
        # Neither the URL nor what is said of it: where it does not read, nobody knows which part is the password.
        raise StoreAway(
            "the host or the port of the store's URL cannot be read",
            hint="letters such as / # [ in a password are written %2F %23 %5B",
        ) from error
    if split.fragment:
        raise StoreAway("a store's URL has no fragment", hint="write # in a password as %23")
    return address


def _option(url: str, name: str) -> str | None:
    return next((value for key, value in parse_qsl(urlsplit(url).query) if key == name), None)


def _home(environ: Mapping[str, str], name: str, under: str) -> Path:
    given = environ.get(name)
    if given and Path(given).is_absolute():
        return Path(given)
    return Path(environ.get("HOME") or Path.home()) / under
