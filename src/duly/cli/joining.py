"""How commands come to the store: reading without making one, changing, and the word that nobody serves."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from duly.cli import out
from duly.cli.frame import Settings, settings
from duly.cli.table import plain
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.config import Config
    from duly.core.task import Task
    from duly.store.address import Place
    from duly.store.store import Session, Store


def address() -> "Place":
    """Give the store's address as options, environment, config file and default have it."""
    return address_of(settings())


def address_of(kept: Settings) -> "Place":
    """Give the address that these settings mean."""
    from duly.store.address import resolve

    given = kept.store
    if given is None and not os.environ.get("DULY_STORE"):
        from duly.config import in_force

        value = in_force("store", config_of(kept), os.environ).value
        given = None if value is None else str(value)
    return resolve(given, os.environ)


def config() -> "Config":
    """Give what the config file says; what it does not know is told as a warning."""
    return config_of(settings())


def config_of(kept: Settings) -> "Config":
    """Give what the config file says, read once for these settings."""
    from duly.config import Config, load

    if not isinstance(kept.config, Config):
        kept.config = load(os.environ)
        if not kept.as_json:
            for text in kept.config.warnings:
                out.note(f"warning: {plain(text)}")
    assert isinstance(kept.config, Config)
    return kept.config


@contextmanager
def reading() -> Iterator["Session | None"]:
    """See the store at one moment; None, with a hint, where there is none yet."""
    store = find()
    if store is None:
        yield None
        return
    try:
        with store.read() as session:
            yield session
    finally:
        store.close()


def find() -> "Store | None":
    """Open the store for reading; None, with a hint, where there is none yet."""
    from duly.store.store import Store

    where = address()
    store = Store.find(where, os.environ)
    if store is None:
        hint(f"there is no store at {where} yet; `duly add` makes it with the first task")
    return store


def standing(where: "Place") -> bool:
    """Say whether there is something at a store's address."""
    from duly.store.engines import stands

    return stands(where, os.environ)


@contextmanager
def open_for_change(*, create: bool = False) -> Iterator["Store"]:
    """Open the store for writing; `create` makes it where there was none."""
    from duly.store.store import Store

    store = Store.open(address(), os.environ, create=create)
    try:
        yield store
    finally:
        store.close()


def absolute(given: str | None, field: str) -> str:
    """Give a folder's absolute path: the one that was named, from here where it is relative; else this folder."""
    from pathlib import Path

    wanted = Path(given or "").expanduser()
    if wanted.is_absolute():
        return str(wanted)
    try:
        return str(Path.cwd() / wanted)
    except FileNotFoundError:
        hint_ = "an absolute path" if given else "--cwd PATH"
        raise Invalid("this folder has been removed", field=field, hint=hint_) from None


def hint(text: str) -> None:
    """Tell a person something on standard error; a program that reads JSON is told nothing."""
    if not settings().as_json:
        out.note(f"hint: {text}")


def hint_person(task: "Task") -> None:
    """Say so where what a run has made or switched on waits for a person."""
    from duly.operations.lookup import told
    from duly.operations.rail import asking_run

    if asking_run() is not None and task.definition.enabled:
        hint(f"this was asked from within a run, so it waits for a person: duly unpause {plain(told(task))}")


def hint_nobody(where: "Place", consequence: str) -> bool:
    """Say so when nobody serves the store."""
    from duly.operations.serving import anybody_serves

    if anybody_serves(where):
        return False
    named = f" --store {where}" if settings().store is not None else ""
    hint(f"nobody serves this store: {consequence} (`duly serve{named}`)")
    return True
