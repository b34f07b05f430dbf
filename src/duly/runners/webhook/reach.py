"""Which addresses a webhook may be sent to: what a name leads to is looked at before anything is sent there.

An address of this machine or of a private network is reached where the author wrote it as such (`127.0.0.1`,
`localhost`, `10.0.0.5`), or where this host's config allows names that lead inside (`http.inside`). Addresses that only
mean something to the machine itself, under which clouds tell a machine its credentials, are never sent to.
"""

import asyncio
import ipaddress
import socket
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
METADATA = frozenset(ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192"))
"""Where clouds tell machines about themselves, beside the link-local 169.254.169.254."""
PACKED_LAST = tuple(
    ipaddress.ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96")
)
"""Addresses whose last 32 bits are one of the old protocol: what gateways translate, and the oldest packing of all."""


class Unreachable(Exception):
    """The name leads nowhere now; nothing was sent."""


class Forbidden(Exception):
    """The name leads where nothing is sent to; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far this host lets webhooks go: `inside` allows names that lead to private addresses."""

    inside: bool = False


async def addresses(host: str, port: int, reach: Reach) -> list[str]:
    """Give the addresses that a host's name leads to, each of which may be sent to; Unreachable or Forbidden."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no name of a host"
        raise Unreachable(f"the name {host} leads nowhere: {why}") from error
    texts = list(dict.fromkeys(str(one[4][0]) for one in found))
    for text in texts:
        fault = fault_of(host, ipaddress.ip_address(text.partition("%")[0]), reach)
        if fault is not None:
            raise Forbidden(fault)
    if not texts:
        raise Unreachable(f"the name {host} leads nowhere")
    return texts


def fault_of(host: str, address: Address, reach: Reach) -> str | None:
    """Say why nothing is sent to an address that this name led to; None where it may be."""
    shown = host if host.strip("[]") == str(address) else f"{host} leads to {address}, which"
    for meant in _meant(address):
        if meant.is_link_local or meant.is_multicast or meant.is_unspecified or meant in METADATA:
            return f"{shown} is an address that nothing is sent to"
    inward = any(not meant.is_global or _is_site_local(meant) for meant in _meant(address))
    if inward and not reach.inside and not _is_said(host):
        return (
            f"{shown} is an address of this machine or a private network: name it in the address itself, or set"
            " http.inside = true in the config of who serves"
        )
    return None


def _meant(address: Address) -> list[Address]:
    """Give an address, and the one of the old protocol that is packed into it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    packed = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    if any(address in one for one in PACKED_LAST):
        packed = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    return [address] if packed is None else [address, packed]


def _is_site_local(address: Address) -> bool:
    """Whether it is of the private networks that came before those of today, which count as global since."""
    return isinstance(address, ipaddress.IPv6Address) and address.is_site_local


def _is_said(host: str) -> bool:
    """Whether a host is written so that everybody sees it to be inside: an address, or this machine's own name."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
