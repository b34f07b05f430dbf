"""Where the interface is reached: its addresses, which names may be asked for, and which pages may ask."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from duly.errors import Invalid, Refused

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::", ""})
HOST_MOST = 300


class Misdirected(Invalid):
    """A request for a host that is none of ours: a name that was bent to our address, or a proxy that does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The address that is listened on, whether by TLS, and the URL that others know it by where there is one."""

    host: str = "127.0.0.1"
    port: int = 7433
    tls: bool = False
    public_url: str | None = None
    names: frozenset[str] = field(default=frozenset())
    """Further names that may be asked for."""

    @property
    def url(self) -> str:
        """The URL by which a browser on this machine reaches it."""
        host = "127.0.0.1" if self.host in EVERYWHERE else self.host
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def _scheme(self) -> str:
        return "https" if self.tls else "http"

    @property
    def secure(self) -> bool:
        """Browsers reach it by TLS, here or at a proxy before it."""
        return self.tls or (self.public_url or "").startswith("https://")

    def check_host(self, given: list[str]) -> str:
        """Give the host that was asked for; Misdirected where it is none of ours (DNS rebinding)."""
        if len(given) != 1 or len(given[0]) > HOST_MOST:
            raise Misdirected("one header Host is wanted", field="Host")
        name = _name(given[0])
        if name is None or not self._is_ours(name):
            raise Misdirected(
                "this is not the host that was asked for",
                field="Host",
                hint="public_url in the config names the one that a proxy is reached by",
            )
        return given[0].lower()

    def check_origin(self, given: list[str], host: str) -> None:
        """Refuse what a page of another origin asks, whatever it brings along."""
        for origin in given:
            if len(given) > 1 or not self._is_own(origin, host):
                raise Refused("not_allowed", "a page of another origin may not ask here")

    def check_own_page(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse what a browser's session brings along unless our own page asked (CSRF)."""
        site = headers.get("sec-fetch-site")
        if site is not None and site not in {"same-origin", "none"}:
            raise Refused("not_allowed", "a page of another site may not ask with this browser's session")
        if method not in SAFE and headers.get("origin") is None and site != "same-origin":
            raise Refused("not_allowed", "a browser's session changes things from a page of our own only")

    def keeps_to_tls(self, given: str) -> bool:
        """Whether browsers shall ask this host by TLS alone from now on.

        Not where it is this machine: that would shut whatever else answers there, at any other port.
        """
        name = _name(given)
        return self.secure and name is not None and name not in LOCAL

    def _is_ours(self, name: str) -> bool:
        if name in LOCAL or name == self.host.lower() or name in self.names:
            return True
        if self.public_url is not None and name == (urlsplit(self.public_url).hostname or "").lower():
            return True
        # An address cannot be bent as a name can; from outside it is how one asks for it.
        return self.host not in LOCAL and _is_address(name)

    def _is_own(self, origin: str, host: str) -> bool:
        origin = origin.lower()
        if self.public_url is not None and origin == _origin(self.public_url):
            return True
        return origin == f"{self._scheme}://{host}"


def _name(given: str) -> str | None:
    """The name or address in a Host header, without its port; None where it is none."""
    if any(char in given for char in " \t,/\\@?#%") or not given:
        return None
    try:
        parts = urlsplit(f"//{given}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _origin(url: str) -> str:
    """The origin of a URL as browsers write it: without a port that goes without saying."""
    parts = urlsplit(url)
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(usual)}".lower()
