"""Where a server is, as its users write it. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from hitherto.errors import InvalidInput

SCHEMES = {"http": "ws", "https": "wss"}
"""How a server is written, and how its socket is called."""
SHAPE = "a server is given as https://host:port, or http://127.0.0.1:8787 on this machine"


@dataclass(frozen=True, slots=True)
class Address:
    """A server: `shown` is what may be printed, `socket` what is connected to."""

    shown: str
    socket: str
    host: str
    tls: bool

    @property
    def on_this_machine(self) -> bool:
        """Whether nothing that is sent there leaves the machine."""
        return is_loopback(self.host)


def parse_address(text: str) -> Address:
    """The server that is meant. What is wrong is told without the text: people put secrets into addresses."""
    parts, host, port = _split(text)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidInput(
            "the address of a server holds no token, no name and no question: the token comes from the environment,"
            " or from a file"
        )
    named = f"[{host}]" if ":" in host else host
    place = f"{named}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"
    address = Address(
        shown=f"{parts.scheme}://{place}",
        socket=f"{SCHEMES[parts.scheme]}://{place}/ws",
        host=host,
        tls=parts.scheme == "https",
    )
    if not (address.tls or address.on_this_machine):
        raise InvalidInput(
            f"{host} is another machine, and http:// would send the token there in the clear: use https://"
        )
    return address


def _split(text: str) -> tuple[SplitResult, str, int | None]:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(SHAPE) from None
    if parts.scheme not in SCHEMES or not host:
        raise InvalidInput(SHAPE)
    return parts, host, port


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address. A name is not looked up: it may mean another one tomorrow."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
