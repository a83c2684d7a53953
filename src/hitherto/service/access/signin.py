"""Signing in to the page: a short-lived code that works once is exchanged for a pass.

Both are secrets of 256 bits. Only their digests are kept, in notes. Both belong to a token and are void without it. They
name their owner, so that they are looked up among that owner's notes only.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import NamedTuple
from urllib.parse import quote, unquote

from hitherto.errors import InvalidInput, OutOfReach
from hitherto.model import Principal, Token
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.notes import KEPT_MS, PASSES, SIGN_IN_CODES, USED_CODES, Note, TextNotes
from hitherto.service.validation import checked_owner, is_clean

CODE_MS = 10 * 60_000
PASS_MS = KEPT_MS
"""Not longer than notes are kept."""
SECRET_BYTES = 32
_FORM = re.compile(r"([A-Za-z0-9%._~-]{1,3000})\.hth_([A-Za-z0-9_-]{43})", re.ASCII)
"""The owner, and a secret that is marked as ours: wherever it is written, it is known for what it is and left out."""


class _StoredSecret(NamedTuple):
    """A secret as it is kept."""

    owner: str
    digest: bytes

    @property
    def key(self) -> str:
        return self.digest.hex()


class SignIn(Room):
    """Codes and passes of the page."""

    async def invite(self, token: Token) -> str:
        """A code to sign in once, within minutes, with the rights of the token."""
        return await self._store.write(lambda tx: _put(tx, SIGN_IN_CODES, token.owner, token.id, self._now()))

    async def sign_in(self, code: str) -> str | None:
        """A pass in exchange for a code; None for one that is unknown, too old, used before, or of a revoked token."""
        slip, now = _parse_secret(code), self._now()
        if slip is None:
            return None

        async def work(tx: Writer) -> str | None:
            token = await _token(tx, SIGN_IN_CODES, slip, now, now - CODE_MS)
            # A key of its own: of two who come at the same time, the second finds that it was written meanwhile.
            if token is None or await USED_CODES.get(tx, slip.owner, slip.key) is not None:
                return None
            await USED_CODES.put(tx, slip.owner, slip.key, Note("", now, slip.digest))
            return await _put(tx, PASSES, token.owner, token.id, now)

        return await self._store.write(work)

    async def admit(self, token: Token) -> str:
        """A pass for a caller who has sent the token itself. Raises `OutOfReach` if it is restricted."""
        if token.reach is not None:
            raise OutOfReach("a restricted token does not open the page")
        return await self._store.write(lambda tx: _put(tx, PASSES, token.owner, token.id, self._now()))

    async def visitor(self, given: str) -> Token | None:
        """The token of a pass; None for one that is unknown, too old, given back, or of a revoked token."""
        slip, now = _parse_secret(given), self._now()
        if slip is None:
            return None
        return await self._store.read(lambda tx: _token(tx, PASSES, slip, now, now - PASS_MS))

    async def sign_out(self, given: str) -> None:
        """Revoke a pass."""
        slip, now = _parse_secret(given), self._now()
        if slip is not None and await self.visitor(given) is not None:
            await self._store.write(
                lambda tx: PASSES.put(tx, slip.owner, slip.key, Note("", now, slip.digest))
            )


async def _put(tx: Writer, notes: TextNotes, owner: str, token_id: str, now: int) -> str:
    text = f"{quote(owner, safe='')}.hth_{secrets.token_urlsafe(SECRET_BYTES)}"
    slip = _parse_secret(text)
    if slip is None:
        raise InvalidInput(f"the owner {owner!r:.60} cannot sign in to the page: the name is too long")
    await notes.put(tx, slip.owner, slip.key, Note(token_id, now, slip.digest))
    return text


async def _token(tx: Reader, notes: TextNotes, slip: _StoredSecret, now: int, since: int) -> Token | None:
    note = await notes.get(tx, slip.owner, slip.key)
    if note is None or note.at <= since:
        return None
    token = next((token for token in await tx.tokens(slip.owner) if token.id == note.value), None)
    return token if token is not None and may_sign_in(token, now) else None


def may_sign_in(token: Token, now: int) -> bool:
    """Whether a token opens the page: one that is revoked, expired or restricted does not."""
    expired = token.expires_at is not None and token.expires_at <= now
    return token.revoked_at is None and token.reach is None and not expired


def _parse_secret(text: str) -> _StoredSecret | None:
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    owner = unquote(found[1], errors="replace")
    if not is_clean(owner) or quote(owner, safe="") != found[1]:
        return None
    return _StoredSecret(checked_owner(Principal(owner=owner)), hashlib.sha256(found[2].encode()).digest())
