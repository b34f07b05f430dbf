"""`duly open`: a link that logs a browser in once, and a browser that is sent there without anybody reading along."""

import contextlib
import html
import os
from dataclasses import dataclass
from pathlib import Path

from duly.app.interface import FOLDER, urls
from duly.errors import Refused
from duly.operations import tokens
from duly.operations.shapes import instant
from duly.store import Store

PAGE = "open.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link that works once; `place` is where it leads, without its secret."""

    url: str
    place: str
    expires_at: str | None


def link(store: Store, *, by: str) -> Link:
    """Make a link to the interface of who serves this store on this host; its secret never reaches a server's log."""
    found = urls(store.run_folder)
    if not found:
        raise Refused(
            "unknown_id",
            "nobody on this host answers by HTTP for this store",
            details={"store": str(store.address)},
            hint="duly serve",
        )
    made = tokens.begin_login(store, by=by)
    # What stands behind the mark stays in the browser: it is in no request line, no log and no Referer.
    return Link(url=f"{found[0]}/login#{made.secret}", place=found[0], expires_at=instant(made.token.expires_at))


def show(run_folder: Path, link: Link) -> bool:
    """Send a browser to a link by a file that only this user reads; False where there is no browser to send.

    A link among a program's words could be read by everybody on this machine.
    """
    import webbrowser

    path = run_folder / FOLDER / PAGE
    target = html.escape(link.url, quote=True)
    text = (
        f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Duly</title>'
        f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">Duly</a>\n'
    )
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        return webbrowser.open(path.as_uri())
    except (OSError, webbrowser.Error):
        return False
