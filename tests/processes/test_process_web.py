"""The interface of a real `duly serve`: programs and browsers come in, no secret reaches its log, its stop is clean."""

import socket
import ssl
from pathlib import Path

import httpx2
from process_scene import Place

DATA = Path(__file__).parents[1] / "data"


def test_a_program_asks_with_its_token_and_a_browser_comes_in_by_a_link(place: Place) -> None:
    place.env["DULY_SERVE_WEB"] = "yes"
    made = place.json("token", "create", "ci", "--rights", "read")
    serving = place.serve("--port", "0")
    [told] = list((place.run_folder / "web").iterdir())
    link = place.json("open", "--print")["url"]
    url, _, code = link.partition("/login#")
    assert told.name == place.id_of(serving)
    with httpx2.Client(base_url=url, timeout=60) as client:
        headers = {"Authorization": f"Bearer {made['secret']}"}
        assert client.get("/api/v1/status", headers=headers).json()["holders_alive"] == 1
        logged = client.post("/login", data={"code": code}, headers={"Origin": url})
        assert logged.status_code == 303
        session = client.cookies["duly_session"]
        assert client.get("/api/v1/tasks").json()["items"] == []
        assert client.get("/api/v1/tasks", headers={"Host": "evil.example"}).status_code == 421
        port = int(url.rpartition(":")[2])
        refused = place.duly("serve", "--port", str(port), check=False)
        assert (refused.returncode, "--port" in refused.stderr) == (2, True)
        serving.terminate()
        assert serving.wait(60) == 0
    out = serving.stdout.read() if serving.stdout is not None else ""
    log = place.errors() + out
    assert not any(secret in log for secret in (made["secret"], code, session))
    assert not told.exists()
    assert place.duly("open", "--print", check=False).returncode == 4


def test_with_a_certificate_it_is_asked_by_tls_alone(place: Place) -> None:
    place.env["DULY_SERVE_WEB"] = "yes"
    tls = ("--tls-cert", str(DATA / "tls-cert.pem"), "--tls-key", str(DATA / "tls-key.pem"))
    place.serve("--port", "0", *tls)
    url = place.json("open", "--print")["url"].partition("/login#")[0]
    assert url.startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cafile=str(DATA / "tls-cert.pem"))
    with httpx2.Client(verify=trusted, timeout=60) as client:
        assert client.get(f"{url}/api/v1/status").status_code == 401
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP/1.1 2")
