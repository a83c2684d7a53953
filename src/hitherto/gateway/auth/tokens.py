"""Who calls: the holder of a token, on the loopback interface too. A token is looked for in one header, never in a URL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from starlette.types import Scope

from hitherto.model import Principal, Token
from hitherto.service import Sessions

_BEARER = re.compile(rb"bearer +([^\s]+)", re.IGNORECASE)


@dataclass(slots=True)
class Caller:
    """The holder of a token. Rights come from the server's record only."""

    sessions: Sessions
    token: Token
    secret: str = field(repr=False)
    _looked_at: int = -1

    @property
    def who(self) -> Principal:
        """The owner of the token."""
        return Principal(owner=self.token.owner, local=self.may("commands"))

    @property
    def is_restricted(self) -> bool:
        """Whether the token is for some sessions or methods only: then it is good for the methods of the gateway alone."""
        return self.token.reach is not None

    async def holds(self) -> bool:
        """Whether the token is still valid; checked with each request.

        It is looked up if any token was revoked, by whichever process, since it was last found good.
        """
        if not self.sessions.tokens.is_good(self.token):
            return False
        revoked = await self.sessions.tokens.generation()
        if revoked != self._looked_at:
            if await self.sessions.tokens.verify(self.secret) is None:
                return False
            self._looked_at = revoked
        return True

    def may(self, *scopes: str) -> bool:
        """Whether the token has all of these."""
        return all(scope in self.token.scopes for scope in scopes)


def bearer(scope: Scope) -> str | None:
    """The secret that the request carries, good or not; None if it carries none, or several."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    found = _BEARER.fullmatch(given[0].strip()) if len(given) == 1 else None
    return None if found is None else found[1].decode("latin-1")


async def caller_of(sessions: Sessions, secret: str | None) -> Caller | None:
    """Who holds this secret; None if nobody does."""
    token = None if secret is None else await sessions.tokens.verify(secret)
    if token is None or secret is None:
        return None
    return Caller(sessions if token.reach is None else sessions.limited_to(token.reach), token, secret)
