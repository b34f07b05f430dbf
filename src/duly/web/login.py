"""A browser's way in: the secret of a link, brought by a page of our own, becomes a session; and the way out."""

import base64
import hashlib
from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from duly.errors import Refused
from duly.operations import tokens
from duly.store.secrets_made import Made
from duly.web.bodies import check_media
from duly.web.describing import described
from duly.web.frame import COOKIE, House, Reads, nothing
from duly.web.problems import Unreadable

router = APIRouter(tags=["login"])
FORM = "application/x-www-form-urlencoded"
FIELDS_MOST = 10
FORM_SCHEMA = {"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}}}
FIRST_PAGE = "/docs"
SCRIPT = (
    "const c=location.hash.slice(1);history.replaceState(null,'','/login');"
    "if(c){document.getElementById('code').value=c;document.getElementById('login').submit()}"
)
STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto}"
    "input,button{font:inherit;padding:.4rem;width:100%;box-sizing:border-box;margin:.3rem 0}"
)
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Duly: log in</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>
<body><h1>Duly</h1>{said}<p><code>duly open</code> logs this browser in by a link that works once.</p>
<form id="login" method="post" action="/login"><label for="code">The code of such a link</label>
<input id="code" name="code" type="password" autocomplete="off" required><button>Log in</button></form>
<script>{script}</script></body></html>
"""


def allowed(text: str) -> str:
    """Name a script or a style by its digest, so that a page may use it and nothing else."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY = (
    f"default-src 'none'; script-src {allowed(SCRIPT)}; style-src {allowed(STYLE)}; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

DESCRIBED = described("Log a browser in", right=None, status=303, errors=(403, 415, 429, 503))
DESCRIBED["openapi_extra"] = {
    "security": [],
    "requestBody": {"required": True, "content": {FORM: {"schema": FORM_SCHEMA}}},
}
DESCRIBED["responses"][401] = {"description": "the code does not count", "content": {"text/html": {}}}


@router.get("/", include_in_schema=False)
def root() -> Response:
    """Lead to the first page there is."""
    return Response(status_code=303, headers={"Location": FIRST_PAGE})


@router.get("/login", include_in_schema=False)
def page() -> Response:
    """Show the form; what stands behind the mark of the link is filled in by the page itself, and never sent."""
    return _page(200)


@router.post("/login", **DESCRIBED)
async def login(request: Request) -> Response:
    """Take a link's code for a session, once; only a page of our own may ask (no other site logs a browser in)."""
    house: House = request.app.state.house
    if request.headers.get("origin") is None and request.headers.get("sec-fetch-site") != "same-origin":
        raise Refused("not_allowed", "only the page at /login may ask for a session")
    house.reach.check_own_page(request.method, request.headers)
    check_media(request, (FORM,))
    data = await request.body()
    try:
        given = parse_qs(data.decode(), max_num_fields=FIELDS_MOST)
    except ValueError as error:
        raise Unreadable(400, "the body is no form that has a code") from error
    code = (given.get("code") or [""])[0].strip()
    made = await run_in_threadpool(_log_in, house, code)
    if made is None:
        house.pace.failed(request.client.host if request.client is not None else "")
        return _page(401, "This code does not count: it was used, is older than five minutes, or is another's.")
    response = Response(status_code=303, headers={"Location": FIRST_PAGE})
    response.set_cookie(
        COOKIE,
        made.secret,
        max_age=int(tokens.SESSION_FOR.total_seconds()),
        path="/",
        secure=house.reach.secure,
        httponly=True,
        samesite="strict",
    )
    return response


@router.post("/logout", **described("End a browser's session", right="read", status=204))
def logout(ask: Reads) -> Response:
    """End the session that asks; a token is not ended by it."""
    if ask.asker.session is not None:
        tokens.log_out(ask.store, ask.asker.session)
    response = nothing()
    response.delete_cookie(COOKIE, path="/", secure=ask.house.reach.secure, httponly=True, samesite="strict")
    return response


def _log_in(house: House, code: str) -> Made | None:
    with house.pool.lent() as store:
        return tokens.log_in(store, code)


def _page(status: int, said: str = "") -> Response:
    shown = f'<p role="alert">{escape(said)}</p>' if said else ""
    text = PAGE.format(style=STYLE, script=SCRIPT, said=shown)
    return Response(text, status, media_type="text/html", headers={"Content-Security-Policy": POLICY})
