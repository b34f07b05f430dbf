"""One message for all notices that go to a channel together: for people in words, for programs as JSON."""

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime

from duly.core import notice_texts
from duly.core.notices import SEVERITIES, Notice, Severity
from duly.core.spans import write_instant
from duly.core.values import value

ID_DIGITS = 26


@value
class Item:
    """A notice with the id by which whoever receives it knows it again."""

    id: str
    notice: Notice


@value
class Message:
    """What a channel is told at once; the same notices make a message of the same id."""

    id: str
    title: str
    text: str
    severity: Severity
    body: bytes
    """The whole as JSON, for programs."""


def message(
    items: Sequence[Item],
    *,
    store: str | None,
    public_url: str | None,
    mask: Callable[[str], str],
    now: datetime,
) -> Message:
    """Make the message of these notices; `mask` hides the secrets that are known here."""
    assert items
    found = [one.notice for one in items]
    links = [_link(one, public_url) for one in found]
    title, text = mask(notice_texts.headline(found)), mask(notice_texts.body(found, links))
    severity = notice_texts.severity(found)
    id_ = "msg_" + hashlib.sha256("\n".join(one.id for one in items).encode()).hexdigest()[:ID_DIGITS]
    body = {
        "type": "duly.notices",
        "id": id_,
        "sent_at": write_instant(now),
        "store": store,
        "severity": severity,
        "title": title,
        # The field that chat services show of any webhook.
        "text": f"{title}\n{text}",
        "notices": [_shown(one, link) for one, link in zip(items, links, strict=True)],
    }
    return Message(
        id=id_,
        title=title,
        text=text,
        severity=severity,
        body=mask(json.dumps(body, ensure_ascii=False)).encode("utf-8", "replace"),
    )


def _shown(one: Item, link: str | None) -> dict[str, object]:
    notice = one.notice
    details = dict(notice.details)
    task = None
    if notice.task is not None:
        task = {"id": notice.task, "name": details.pop("task_name", None), "project": details.pop("project", None)}
    return {
        "id": one.id,
        "kind": notice.kind,
        "severity": SEVERITIES[notice.kind],
        "at": write_instant(notice.at),
        "title": notice_texts.title(notice),
        "text": notice_texts.text(notice),
        "task": task,
        "run": notice.run,
        "subject": notice.subject,
        "url": link,
        "details": details,
    }


def _link(notice: Notice, public_url: str | None) -> str | None:
    """Say where there is more about it."""
    if public_url is None:
        return None
    base = f"{public_url.rstrip('/')}/api/v1"
    if notice.run is not None:
        return f"{base}/runs/{notice.run}"
    return None if notice.task is None else f"{base}/tasks/{notice.task}"
