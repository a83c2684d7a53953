"""`/signin` exchanges a code or a token for a cookie; `/signout` ends it."""

from __future__ import annotations

import msgspec
from starlette.types import Receive, Scope

from hitherto.errors import HithertoError
from hitherto.gateway.auth.cookies import dropped, held_pass, is_ours, kept
from hitherto.gateway.dispatch.errors import failure
from hitherto.gateway.page.responses import PageResponse
from hitherto.gateway.server.http import body_of
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.responses import JSON, Refusal, unauthenticated, unavailable

BODY_BYTES = 8 * 1024
DONE = b"{}"


class _Credentials(msgspec.Struct):
    """A one-time code or a token."""

    code: str = ""
    token: str = ""


async def sign_in(state: ServerState, scope: Scope, receive: Receive) -> PageResponse | None:
    """Set the cookie. Only for our own page: a script of another origin must not sign its visitor in."""
    state.limit_stranger(scope)
    body = await _own_body(state, scope, receive)
    if body is None:
        return None
    try:
        secret = await _exchange(state, msgspec.json.decode(body, type=_Credentials))
    except msgspec.MsgspecError:
        secret = None
    except HithertoError as error:
        raise unavailable(error) from error
    if secret is None:
        state.reject_token(scope)
        raise unauthenticated()
    return PageResponse(DONE, kind=JSON, headers=((b"set-cookie", kept(scope, secret)),))


async def sign_out(state: ServerState, scope: Scope, receive: Receive) -> PageResponse | None:
    """End the sign-in, whether it is still valid or not."""
    state.limit_stranger(scope)
    if await _own_body(state, scope, receive) is None:
        return None
    await state.sessions.signin.sign_out(held_pass(scope) or "")
    return PageResponse(DONE, kind=JSON, headers=((b"set-cookie", dropped(scope)),))


async def _own_body(state: ServerState, scope: Scope, receive: Receive) -> bytes | None:
    if not is_ours(scope):
        raise _not_ours()
    return await body_of(scope, receive, state.limits.body_seconds, BODY_BYTES)


async def _exchange(state: ServerState, given: _Credentials) -> str | None:
    if given.code:
        return await state.sessions.signin.sign_in(given.code)
    token = await state.sessions.tokens.verify(given.token)
    return None if token is None or token.reach is not None else await state.sessions.signin.admit(token)


def _not_ours() -> Refusal:
    return Refusal(403, failure("forbidden", "only the page itself can sign in and out"))
