"""Host and Origin of every request, WebSockets included, are checked before anything else.

A page of another site in the user's browser can reach a server on the loopback interface, even under a name of its own
that points there. It cannot choose these two headers. Programs send no Origin, so its absence proves nothing: who calls
is decided by the token alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from hitherto.errors import InvalidInput
from hitherto.gateway.transport.responses import reply, safely
from hitherto.model import Value

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORTS = {"http": 80, "https": 443}
MISDIRECTED, FORBIDDEN = 421, 403
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class Places(Value, frozen=True):
    """The allowed hosts and origins of the server, its own and those of its proxies."""

    scheme: str
    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()


def places(
    port: int, *, tls: bool = False, declared: Iterable[str] = (), names: Iterable[str] = ()
) -> Places:
    """The names under which a server on this port may be called. `declared` are origins of proxies, as
    `https://name:port`, and `names` those of the machine itself."""
    scheme = "https" if tls else "http"
    origins = frozenset(map(checked_origin, declared))
    own = {name for host in (*LOOPBACK, *map(checked_host, names)) for name in _names(host, port, scheme)}
    return Places(
        scheme=scheme, hosts=frozenset(own | {each.partition("://")[2] for each in origins}), origins=origins
    )


def checked_origin(text: str) -> str:
    """An origin as browsers write it: scheme, host, and the port unless it is the usual one."""
    try:
        parts = urlsplit(text.strip().lower())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or parts.username is not None:
        raise InvalidInput(f"invalid origin {text!r:.100}: expected one like https://hitherto.example.org")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InvalidInput(f"invalid origin {text!r:.100}: it must not have a path")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = port is None or port == DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{host}" if usual else f"{parts.scheme}://{host}:{port}"


def checked_host(text: str) -> str:
    """The name of a machine, in small letters, without scheme and port."""
    name = text.strip().lower()
    if not _HOST.fullmatch(name):
        raise InvalidInput(f"invalid host name {text!r:.100}: expected one like hitherto.example.org")
    return name


def verdict(known: Places, scope: Scope) -> int:
    """The status to refuse a request with; 0 if it may pass."""
    hosts, origins = header(scope, b"host"), header(scope, b"origin")
    if len(hosts) != 1 or not _is_ours(known, hosts[0], scope):
        return MISDIRECTED
    same = f"{known.scheme}://{hosts[0]}"
    if len(origins) > 1 or any(origin != same and origin not in known.origins for origin in origins):
        return FORBIDDEN
    sites, modes = header(scope, b"sec-fetch-site"), header(scope, b"sec-fetch-mode")
    if "cross-site" in sites and not (modes == ["navigate"] and scope.get("method") == "GET"):
        return FORBIDDEN
    return 0


def header(scope: Scope, name: bytes) -> list[str]:
    """All values of a header, in lower case."""
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


class Guard:
    """Refuses requests with a foreign Host or Origin before any handler runs."""

    def __init__(self, app: ASGIApp, known: Places) -> None:
        self._app, self._known = app, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = verdict(self._known, scope)
        if status:
            await reply(scope, safely(send), status, headers=((b"connection", b"close"),))
        else:
            await self._app(scope, receive, safely(send))


def _is_ours(known: Places, host: str, scope: Scope) -> bool:
    """Whether the host is a name of ours, or the address that was connected to, which no foreign name can imitate."""
    return host in known.hosts or host in _reached(scope, known.scheme)


def _reached(scope: Scope, scheme: str) -> set[str]:
    address, port = scope.get("server") or ("", None)
    if not address or port is None:
        return set()
    plain = address.removeprefix("::ffff:")
    return _names(f"[{plain}]" if ":" in plain else plain, port, scheme)


def _names(host: str, port: int, scheme: str) -> set[str]:
    usual = {host} if port == DEFAULT_PORTS[scheme] else set()
    return {f"{host}:{port}"} | usual
