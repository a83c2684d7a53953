"""Which addresses a caller from outside may have us connect to: the public internet, and nothing else."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a host name."""

GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that is routed; what lies outside of it (loopback, mapped IPv4, NAT64, multicast …) is not public."""

CLOSED = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # protocol assignments; a few of them count as global
            "192.88.99.0/24",  # relays into 6to4
            "168.63.129.16/32",  # a cloud's inner service at an address that looks public
            "2001::/23",  # protocol assignments, among them Teredo, which wraps IPv4
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which wraps IPv4
            "3fff::/20",  # documentation
        ),
    )
)
"""Networks that are not public, whatever this Python's `is_global` says of them."""


class NotPublic(Exception):
    """A host with an address that is not on the public internet."""


def is_public(address: str) -> bool:
    """Whether this address, in any spelling `ipaddress` reads, is on the public internet."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and (found.scope_id or found not in GLOBAL_UNICAST):
        return False
    if found.is_multicast or found.is_reserved or any(found in network for network in CLOSED):
        return False
    return found.is_global


async def resolve_addresses(host: str, port: int) -> Sequence[str]:
    """What the system's resolver says, each address once."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def url_fault(url: str) -> str | None:
    """What is wrong with the URL of a server, apart from where it leads; None if nothing is."""
    if any(char <= " " or char == "\x7f" for char in url):
        return "its URL has spaces or control characters"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError:
        return "its URL cannot be read"
    if parts.scheme not in ("http", "https"):
        return "its URL must begin with http:// or https://"
    if "@" in parts.netloc:
        return "its URL has credentials in it; give them as headers"
    return None if parts.hostname else "its URL names no host"
