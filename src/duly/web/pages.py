"""Pages of lists: how many, from where on, and the address of the next page in the header Link."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Depends, Query, Request, Response

from duly.web.fields import SLASH
from duly.web.frame import answer

MOST, USUAL = 200, 50
CURSOR_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which page of a list is asked for, and the address that asked for it."""

    cursor: str | None
    most: int
    path: str
    asked: Sequence[tuple[str, str]]


def _page(
    request: Request,
    cursor: Annotated[str | None, Query(max_length=CURSOR_MOST, description="what a page gave as `next`")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="how many at most")] = USUAL,
) -> Page:
    asked = tuple(request.query_params.multi_items())
    return Page(cursor=cursor, most=limit, path=request.scope["path"], asked=asked)


Paged = Annotated[Page, Depends(_page)]


def listed(
    page: Page, items: Sequence[Mapping[str, object]], following: str | None, more: Mapping[str, object] | None = None
) -> Response:
    """Answer with a page of a list; the header Link says where the next one is."""
    headers = {}
    if following is not None:
        asked = [(name, value) for name, value in page.asked if name != "cursor"]
        query = urlencode([*asked, ("cursor", following)])
        path = "%2F".join(quote(part) for part in page.path.split(SLASH))
        headers["Link"] = f'<{path}?{query}>; rel="next"'
    return answer({"items": list(items), "next": following, **(more or {})}, headers=headers)
