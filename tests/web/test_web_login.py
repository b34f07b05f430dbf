"""A browser's way in: a link that works once, a session in a cookie, and pages of others that get nowhere."""

from datetime import timedelta
from pathlib import Path

import pytest
from web_scene import API, URL, Web, web_over

from duly.app import opening
from duly.operations import tokens
from duly.web.frame import COOKIE
from duly.web.reach import Reach

OWN = {"Origin": URL}


def logged_in(web: Web) -> None:
    """Log the browser in, as the page at /login does."""
    code = tokens.begin_login(web.store, by="ann").secret
    answered = web.client.post("/login", data={"code": code}, headers=OWN)
    assert (answered.status_code, answered.headers["location"]) == (303, "/docs")


def test_a_link_works_once_and_gives_a_session_that_the_page_cannot_read(web: Web) -> None:
    code = tokens.begin_login(web.store, by="ann").secret
    first = web.client.post("/login", data={"code": code}, headers=OWN)
    cookie = first.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"))
    assert code not in cookie
    assert web.client.get(f"{API}/status").status_code == 200
    again = web.client.post("/login", data={"code": code}, headers=OWN)
    assert (again.status_code, "set-cookie" in again.headers) == (401, False)


def test_a_link_that_is_older_than_five_minutes_works_no_longer(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "LOGIN_FOR", timedelta(0))
    code = tokens.begin_login(web.store, by="ann").secret
    assert web.client.post("/login", data={"code": code}, headers=OWN).status_code == 401


def test_a_session_ends_with_its_logout_its_revocation_and_its_twelve_hours(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged_in(web)
    assert web.client.post("/logout", headers=OWN).status_code == 204
    assert web.client.get(f"{API}/status").status_code == 401
    logged_in(web)
    [session] = [one for one in web.ask("GET", "/tokens").json()["items"] if one["kind"] == "session"]
    web.ask("DELETE", f"/tokens/{session['id']}")
    assert web.client.get(f"{API}/status").status_code == 401
    monkeypatch.setattr(tokens, "SESSION_FOR", timedelta(0))
    code = tokens.begin_login(web.store, by="ann").secret
    web.client.cookies.clear()
    web.client.post("/login", data={"code": code}, headers=OWN)
    assert web.client.get(f"{API}/status").status_code == 401


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example"}, {"Origin": "null"}])
def test_no_page_of_another_site_logs_a_browser_in_and_the_link_still_counts(web: Web, headers: dict[str, str]) -> None:
    code = tokens.begin_login(web.store, by="ann").secret
    refused = web.client.post("/login", data={"code": code}, headers=headers)
    assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    assert web.client.post("/login", data={"code": code}, headers=OWN).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Origin": URL, "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_what_a_foreign_page_asks_with_a_browsers_session_changes_nothing(web: Web, headers: dict[str, str]) -> None:
    logged_in(web)
    before = web.dump()
    refused = web.client.post(f"{API}/tokens", json={"name": "x", "rights": ["admin"]}, headers=headers)
    assert refused.status_code == 403
    assert web.dump() == before
    made = web.client.post(f"{API}/tokens", json={"name": "x", "rights": ["read"]}, headers=OWN)
    assert (made.status_code, made.json()["created_by"]) == (201, "ann")


def test_a_token_is_no_cookie_a_session_no_token_and_a_link_neither(web: Web) -> None:
    link, token = tokens.begin_login(web.store, by="ann").secret, web.secret("admin")
    session = tokens.log_in(web.store, tokens.begin_login(web.store, by="ann").secret)
    assert session is not None
    for secret in (link, session.secret):
        asked = web.client.get(f"{API}/status", headers={"Authorization": f"Bearer {secret}"})
        assert asked.status_code == 401
    for secret in (link, token):
        web.client.cookies.set(COOKIE, secret)
        assert web.client.get(f"{API}/status").status_code == 401
        web.client.cookies.clear()


def test_behind_tls_the_session_is_sent_by_tls_alone(tmp_path: Path) -> None:
    reach = Reach(public_url="https://duly.example")
    with web_over(tmp_path, reach=reach, url="https://duly.example") as web:
        code = tokens.begin_login(web.store, by="ann").secret
        answered = web.client.post("/login", data={"code": code}, headers={"Origin": "https://duly.example"})
        assert "Secure" in answered.headers["set-cookie"]
        assert "strict-transport-security" in answered.headers


def test_the_page_that_a_browser_is_sent_by_is_read_by_its_user_alone(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def opened(url: str) -> bool:
        sent.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", opened)
    folder = web.folder / "run"
    (folder / "web").mkdir(parents=True)
    link = opening.Link(url=f"{URL}/login#secret", place=URL, expires_at=None)
    assert opening.show(folder, link)
    page = folder / "web" / "open.html"
    assert sent == [page.as_uri()]
    assert (page.stat().st_mode & 0o777, f"{URL}/login#secret" in page.read_text()) == (0o600, True)
    assert "secret" not in sent[0]


def test_the_pages_need_no_network_and_no_script_of_others(web: Web) -> None:
    for path in ("/login", "/docs"):
        shown = web.client.get(path)
        assert shown.status_code == 200
        assert "default-src 'none'" in shown.headers["content-security-policy"]
        assert not any(word in shown.text for word in ('src="', "//cdn", "@import", "<link"))
    assert web.client.get("/").headers["location"] == "/docs"
