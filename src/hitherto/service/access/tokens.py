"""Who may call: tokens. Only their digests are stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence

from hitherto.errors import InvalidInput, NotFound
from hitherto.limits import TOKENS_PAGE, checked_limit, checked_number
from hitherto.model import Principal, Reach, Token, TokenRule
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.validation import checked_name, checked_owner, checked_required, is_clean
from hitherto.values.scopes import SCOPES, UNRESTRICTED, checked_reach, checked_scopes

SECRET_BYTES = 32
# `rcl_`: tokens that were made under the first name are good in their stores.
_SECRET = re.compile(r"(?:hth|rcl)_[A-Za-z0-9_-]{43}", re.ASCII)


class Tokens(Room):
    """Tokens, by which a server knows who calls."""

    async def create(
        self,
        owner: str,
        *,
        scopes: Sequence[str] = SCOPES,
        role: str = "owner",
        label: str = "",
        expires_at: int | None = None,
        reach: Reach = Reach(),  # noqa: B008 - a frozen value
    ) -> tuple[Token, str]:
        """A new token of the owner, and its secret. The secret is returned only here: it is not stored.

        It is good until `expires_at`, and within its `reach`. One that is restricted cannot have the scopes `commands` and
        `admin`, by which everything can be reached.
        """
        token = Token(
            id=self._new_id(),
            owner=checked_owner(Principal(owner=owner)),
            scopes=checked_scopes(scopes),
            role=checked_required(role, "a role"),
            label=checked_name(label or None, "a label") or "",
            created_at=self._now(),
            rule=self._rule(expires_at, reach, scopes),
        )
        secret = _new_secret()
        await self._store.write(lambda tx: tx.put_token(token, _digest(secret, token)))
        return token, secret

    async def verify(self, secret: str) -> Token | None:
        """The token with this secret; None if it is unknown, malformed, revoked or expired.

        Looked up every time, so that a token revoked by any process is refused at once.
        """
        if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
            return None
        token = await self._store.read(lambda tx: _by_secret(tx, secret))
        return None if token is None or not self.is_good(token) else token

    async def note_use(self, used: Mapping[str, int]) -> None:
        """Note when these tokens, by id, were last used."""

        async def work(tx: Writer) -> None:
            for token_id, at in sorted(
                used.items()
            ):  # always in the same order, so that two callers cannot deadlock
                await tx.note_token_use(token_id, at)

        if used:
            await self._store.write(work)

    def is_good(self, token: Token) -> bool:
        """Whether a token is neither revoked nor expired."""
        expired = token.expires_at is not None and token.expires_at <= self._now()
        return token.revoked_at is None and not expired

    async def all(self, owner: str | None = None) -> list[Token]:
        """The tokens of an owner or of everyone, oldest first, revoked ones included; never their secrets."""
        if owner is not None:
            checked_owner(Principal(owner=owner))
        return await self._store.read(lambda tx: tx.tokens(owner))

    async def page(self, who: Principal, *, limit: int = 100, offset: int = 0) -> tuple[list[Token], int]:
        """Some of the caller's tokens, newest first, and how many there are."""
        checked_limit(limit, TOKENS_PAGE)
        if checked_number(offset, "an offset") < 0:
            raise InvalidInput("an offset cannot be negative")
        known = (await self.all(checked_owner(who)))[::-1]
        return known[offset : offset + limit], len(known)

    async def revoke(self, token_id: str, *, owner: str | None = None) -> bool:
        """Revoke a token, of this owner if one is given, at once and for good; False if there is no token of this id, or it was
        revoked before."""
        if not is_clean(token_id):
            return False
        now = self._now()

        async def work(tx: Writer) -> bool:
            if owner is not None and await _own(tx, owner, token_id) is None:
                return False
            return await tx.revoke_token(token_id, now)

        return await self._store.write(work)

    async def rotate(self, token_id: str, *, owner: str | None = None) -> tuple[Token, str]:
        """Give a token, of this owner if one is given, a new secret; the old one is good no longer. It keeps its id and its rights.

        `NotFound` if there is no such token, or it was revoked.
        """
        secret = _new_secret()

        async def work(tx: Writer) -> Token:
            token = await _own(tx, owner, token_id) if is_clean(token_id) else None
            if token is None or not self.is_good(token):
                raise NotFound(f"no active token {token_id!r:.60}")
            await tx.put_token(token, _digest(secret, token))
            return token

        return await self._store.write(work), secret

    async def generation(self) -> int:
        """A number that rises with each token that is revoked or rotated, in any process; cheap to poll.

        Keep a connection open while it stays the same; look up the token itself only when it has risen.
        """
        return await self._store.read(lambda tx: tx.access())

    def _rule(self, expires_at: int | None, reach: Reach, scopes: Sequence[str]) -> TokenRule | None:
        if expires_at is not None and checked_number(expires_at, "the end of a token") <= self._now():
            raise InvalidInput("a token must be good for a while: its end is in the past")
        within = checked_reach(reach)
        if within is not None and (too_much := [scope for scope in scopes if scope in UNRESTRICTED]):
            raise InvalidInput(f"a restricted token cannot have the scope {too_much[0]}")
        return (
            None if expires_at is None and within is None else TokenRule(expires_at=expires_at, reach=within)
        )


async def _by_secret(tx: Reader, secret: str) -> Token | None:
    """The token of a secret. One that is restricted goes by another digest, which no program finds that does not know restrictions."""
    token = await tx.token(_plain_digest(secret))
    if token is None:
        token = await tx.token(_restricted_digest(secret))
        return None if token is None or token.rule is None else token
    return token if token.rule is None else None


async def _own(tx: Reader, owner: str | None, token_id: str) -> Token | None:
    return next((token for token in await tx.tokens(owner) if token.id == token_id), None)


def _new_secret() -> str:
    return f"hth_{secrets.token_urlsafe(SECRET_BYTES)}"


def _digest(secret: str, token: Token) -> bytes:
    return _plain_digest(secret) if token.rule is None else _restricted_digest(secret)


def _plain_digest(secret: str) -> bytes:
    """A fast hash is enough: nobody can try 2^256 secrets."""
    return hashlib.sha256(secret.encode()).digest()


def _restricted_digest(secret: str) -> bytes:
    return hashlib.sha256(b"restricted " + secret.encode()).digest()
