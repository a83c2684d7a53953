"""Who may call: tokens, of which only the digest is kept, and accounts that are known to be one person."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence

from hitherto.errors import AlreadyExists, Conflict, InvalidInput
from hitherto.model import Account, Principal, Token
from hitherto.ports import Reader, Writer
from hitherto.scopes import SCOPES, checked_scopes
from hitherto.service.records import Core
from hitherto.service.validation import checked_name, checked_owner, checked_required, is_clean

SECRET_BYTES = 32
# `rcl_`: tokens that were made under the first name are good in their stores.
_SECRET = re.compile(r"(?:hth|rcl)_[A-Za-z0-9_-]{43}", re.ASCII)


class Access(Core):
    """Tokens and identity links."""

    async def issue_token(
        self, owner: str, *, scopes: Sequence[str] = SCOPES, role: str = "owner", label: str = ""
    ) -> tuple[Token, str]:
        """A new token of the owner, and its secret. The secret is told here and never again: it is not kept."""
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

    async def token_of(self, secret: str) -> Token | None:
        """The token that this is the secret of; None for an unknown, a malformed and a revoked one alike.

        Asked anew each time, so that a token revoked by any process is good for nothing from then on.
        """
        if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
            return None
        token = await self._store.read(lambda tx: tx.token(_digest(secret)))
        return None if token is None or token.revoked_at is not None else token

    async def tokens(self, owner: str | None = None) -> list[Token]:
        """The tokens of an owner or of everyone, oldest first, revoked ones included; never their secrets."""
        if owner is not None:
            checked_owner(Principal(owner=owner))
        return await self._store.read(lambda tx: tx.tokens(owner))

    async def revoke_token(self, token_id: str) -> bool:
        """Make a token good for nothing, at once and for ever; False if no token of this id was good for something."""
        if not is_clean(token_id):
            return False
        now = self._now()
        return await self._store.write(lambda tx: tx.revoke_token(token_id, now))

    async def access_generation(self) -> int:
        """A number that rises with each token that is revoked, in any process: cheap to look at again and again.

        Who keeps something open for a token looks whether it has risen, and only then for the token itself.
        """
        return await self._store.read(lambda tx: tx.access())

    async def link_identity(
        self, who: Principal, channel: str, user_id: str, canonical: tuple[str, str]
    ) -> None:
        """Note that two accounts are one person's, who goes by the canonical one. Only for what was verified.

        An account is linked to one other at most (`AlreadyExists`), and a canonical account to none (`Conflict`), so
        that it is never in doubt who somebody is.
        """
        owner, account, person = checked_owner(who), _account(channel, user_id), _account(*canonical)
        if account == person:
            raise InvalidInput("an account cannot be linked to itself")

        async def work(tx: Writer) -> None:
            known = await tx.link(owner, account)
            if known == person:
                return
            if known is not None:
                raise AlreadyExists(
                    f"{_named(account)} is linked to {_named(known)} already; unlink it first"
                )
            if (further := await tx.link(owner, person)) is not None:
                raise Conflict(f"{_named(person)} is itself linked to {_named(further)}; link to that one")
            if await tx.linked_to(owner, account):
                raise Conflict(f"others are linked to {_named(account)}, so it cannot be linked further")
            await tx.put_link(owner, account, person)

        await self._store.write(work)

    async def unlink_identity(self, who: Principal, channel: str, user_id: str) -> bool:
        """Take a link away; False if there is none."""
        owner, account = checked_owner(who), _account(channel, user_id)
        return await self._store.write(lambda tx: tx.drop_link(owner, account))

    async def linked(self, who: Principal, channel: str, user_id: str) -> Account | None:
        """The account by which this person goes; None if the account is linked to no other."""
        owner, account = checked_owner(who), _account(channel, user_id)
        return await self._store.read(lambda tx: tx.link(owner, account))

    async def accounts(self, who: Principal, channel: str, user_id: str) -> list[Account]:
        """All accounts of the person who has this one: the canonical one first."""
        owner, account = checked_owner(who), _account(channel, user_id)

        async def work(tx: Reader) -> list[Account]:
            person = await tx.link(owner, account) or account
            return [person, *await tx.linked_to(owner, person)]

        return await self._store.read(work)


def _digest(secret: str) -> bytes:
    """Quick is good enough: nobody can go through 2^256 secrets."""
    return hashlib.sha256(secret.encode()).digest()


def _account(channel: str, user_id: str) -> Account:
    return Account(checked_required(channel, "a channel"), checked_required(user_id, "a user id"))


def _named(account: Account) -> str:
    return f"{account.id!r} on {account.channel!r}"
