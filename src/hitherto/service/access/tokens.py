"""Who may call: tokens. Only their digests are stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence

from hitherto.model import Principal, Token
from hitherto.service.core import Room
from hitherto.service.validation import checked_name, checked_owner, checked_required, is_clean
from hitherto.values.scopes import SCOPES, checked_scopes

SECRET_BYTES = 32
# `rcl_`: tokens that were made under the first name are good in their stores.
_SECRET = re.compile(r"(?:hth|rcl)_[A-Za-z0-9_-]{43}", re.ASCII)


class Tokens(Room):
    """Tokens, by which a server knows who calls."""

    async def create(
        self, owner: str, *, scopes: Sequence[str] = SCOPES, role: str = "owner", label: str = ""
    ) -> tuple[Token, str]:
        """A new token of the owner, and its secret. The secret is returned only here: it is not stored."""
        token = Token(
            id=self._new_id(),
            owner=checked_owner(Principal(owner=owner)),
            scopes=checked_scopes(scopes),
            role=checked_required(role, "a role"),
            label=checked_name(label or None, "a label") or "",
            created_at=self._now(),
        )
        secret = f"hth_{secrets.token_urlsafe(SECRET_BYTES)}"
        await self._store.write(lambda tx: tx.put_token(token, _digest(secret)))
        return token, secret

    async def verify(self, secret: str) -> Token | None:
        """The token with this secret; None if it is unknown, malformed or revoked.

        Looked up every time, so that a token revoked by any process is refused at once.
        """
        if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
            return None
        token = await self._store.read(lambda tx: tx.token(_digest(secret)))
        return None if token is None or token.revoked_at is not None else token

    async def all(self, owner: str | None = None) -> list[Token]:
        """The tokens of an owner or of everyone, oldest first, revoked ones included; never their secrets."""
        if owner is not None:
            checked_owner(Principal(owner=owner))
        return await self._store.read(lambda tx: tx.tokens(owner))

    async def revoke(self, token_id: str) -> bool:
        """Revoke a token at once and for good; False if there is no token of this id, or it was revoked before."""
        if not is_clean(token_id):
            return False
        now = self._now()
        return await self._store.write(lambda tx: tx.revoke_token(token_id, now))

    async def generation(self) -> int:
        """A number that rises with each revoked token, in any process; cheap to poll.

        Keep a connection open while it stays the same; look up the token itself only when it has risen.
        """
        return await self._store.read(lambda tx: tx.access())


def _digest(secret: str) -> bytes:
    """A fast hash is enough: nobody can try 2^256 secrets."""
    return hashlib.sha256(secret.encode()).digest()
