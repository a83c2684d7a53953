"""Accounts on several channels that are known to be one person."""

from __future__ import annotations

from hitherto.errors import AlreadyExists, Conflict, InvalidInput
from hitherto.model import Account, Principal
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.validation import checked_owner, checked_required


class Identities(Room):
    """Links between accounts."""

    async def link(self, who: Principal, channel: str, user_id: str, canonical: tuple[str, str]) -> None:
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
                    f"{_named(account)} is already linked to {_named(known)}; unlink it first"
                )
            if (further := await tx.link(owner, person)) is not None:
                raise Conflict(
                    f"{_named(person)} is itself linked to {_named(further)}; link to that account"
                )
            if await tx.linked_to(owner, account):
                raise Conflict(f"other accounts are linked to {_named(account)}; unlink them first")
            await tx.put_link(owner, account, person)

        await self._store.write(work)

    async def unlink(self, who: Principal, channel: str, user_id: str) -> bool:
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


def _account(channel: str, user_id: str) -> Account:
    return Account(checked_required(channel, "a channel"), checked_required(user_id, "a user id"))


def _named(account: Account) -> str:
    return f"{account.id!r} on {account.channel!r}"
