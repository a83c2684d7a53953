"""Who calls from the page: the holder of a pass, which the browser keeps in a cookie that no script can read.

A browser sends cookies along with requests that other pages make. So the cookie counts for two kinds of request alone:
those that our own scripts make, which say so in a header that no other origin can send us, and the opening of a page by
its user. What is opened is shown and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.transport.origin import header
from hitherto.service import Sessions
from hitherto.service.access.signin import PASS_MS

OWN_HEADER = b"x-hitherto"
ZONE = "hitherto-zone"


@dataclass(slots=True)
class Guest(Caller):
    """A caller who signed in to the page."""

    async def holds(self) -> bool:
        return await self.sessions.signin.visitor(self.secret) is not None


async def guest_of(sessions: Sessions, scope: Scope) -> Guest | None:
    """The caller with a valid cookie, if our page or its user makes the request; else None."""
    held = held_pass(scope) if is_ours(scope) or is_opened(scope) else None
    token = None if held is None else await sessions.signin.visitor(held)
    return None if token is None or held is None else Guest(sessions, token, held)


def is_ours(scope: Scope) -> bool:
    """Whether a script of our own page makes the request."""
    return header(scope, OWN_HEADER) == ["1"] and header(scope, b"sec-fetch-site") == ["same-origin"]


def is_opened(scope: Scope) -> bool:
    """Whether the user opens a page of ours, from one of ours or from no page at all."""
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and header(scope, b"sec-fetch-mode") == ["navigate"]
        and header(scope, b"sec-fetch-dest") == ["document"]
        and header(scope, b"sec-fetch-site") in (["same-origin"], ["none"])
    )


def held_pass(scope: Scope) -> str | None:
    """The pass in the cookie, good or not; None if there is none, or several."""
    return _held(scope, cookie_name(scope))


def zone_of(scope: Scope) -> str:
    """The time zone that the page's script says the browser is in, or what somebody put there; UTC if there is none."""
    return _held(scope, ZONE) or "UTC"


def _held(scope: Scope, name: str) -> str | None:
    pairs = [
        pair.strip().partition("=")
        for key, value in scope["headers"]
        if key == b"cookie"
        for pair in value.decode("latin-1").split(";")
    ]
    held = [value for key, _, value in pairs if key == name]
    return held[0] if len(held) == 1 else None


def kept(scope: Scope, secret: str) -> bytes:
    """The header that sets the cookie."""
    return _cookie(scope, secret, PASS_MS // 1_000)


def dropped(scope: Scope) -> bytes:
    """The header that deletes the cookie."""
    return _cookie(scope, "", 0)


def cookie_name(scope: Scope) -> str:
    """A name for each port, because browsers do not separate cookies by port."""
    port = "".join(header(scope, b"host")).rpartition(":")[2]
    return f"hitherto-{port}" if port.isdigit() else "hitherto"


def _cookie(scope: Scope, value: str, seconds: int) -> bytes:
    spoken = (scope.get("scheme"), *(origin.partition(":")[0] for origin in header(scope, b"origin")))
    secure = "; Secure" if "https" in spoken else ""  # TLS is ours, or that of a proxy
    cookie = f"{cookie_name(scope)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return cookie.encode("latin-1")
