"""The address of a server, and the token for it."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from hitherto.errors import InvalidInput
from hitherto.settings import TOKEN, TOKEN_FILE, read_settings

SCHEMES = {"http": "ws", "https": "wss"}
"""Scheme of a server address → scheme of its WebSocket."""
SHAPE = "not a valid server address: write https://host:port, or http://127.0.0.1:8787 for this machine"


@dataclass(frozen=True, slots=True)
class Address:
    """A server: `shown` is safe to print, `socket` is the URL to connect to."""

    shown: str
    socket: str
    host: str
    tls: bool

    @property
    def on_this_machine(self) -> bool:
        """Whether data sent there stays on this machine."""
        return is_loopback(self.host)


def parse_address(text: str) -> Address:
    """Parse an address. Errors never repeat the text, because it may contain a secret."""
    parts, host, port = _split(text)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidInput(
            "a server address must not contain a user name, password, query or fragment: give the token in"
            f" {TOKEN}, or in the file that {TOKEN_FILE} names"
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
            f"{host} is another machine, and http:// would send the token unencrypted: use https://"
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
    """Whether this address is always this machine. Names are not resolved, because they may change."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_SECRET = re.compile(r"[!-~]{1,500}", re.ASCII)
OTHERS = 0o077


def token_for(address: Address, environ: Mapping[str, str] = os.environ) -> str:
    """The secret for this server. Errors never contain it."""
    if given := environ.get(TOKEN, "").strip():
        return _check_token(given, TOKEN)
    path = _token_file(address, environ)
    if path is None:
        raise InvalidInput(
            f"{address.shown} needs a token: set {TOKEN}, or set {TOKEN_FILE} to a file that contains it;"
            " create one with `hitherto token create` where the server runs"
        )
    return _check_token(_read_token(path), str(path))


def _token_file(address: Address, environ: Mapping[str, str]) -> Path | None:
    """The file that the setting names; else, for a server on this machine, the file in the data folder."""
    if named := environ.get(TOKEN_FILE):
        return Path(named)
    if not address.on_this_machine:
        return None
    folder = read_settings(environ).data_dir
    own, others = folder / "token", sorted(folder.glob("token-*"))
    if own.exists() or len(others) > 1:
        return own
    return others[0] if others else None


def _read_token(path: Path) -> str:
    try:
        if path.stat().st_mode & OTHERS:
            raise InvalidInput(
                f"other users can read the token in {path}: run chmod 600 on it, or create a new token"
            )
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise InvalidInput(f"cannot read the token in {path}: {error.strerror or 'not a file'}") from None


def _check_token(secret: str, where: str) -> str:
    if not _SECRET.fullmatch(secret):
        raise InvalidInput(f"{where} does not contain a valid token")
    return secret
