"""Tokens and identity links on the shelves."""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.model import Account, Token
from hitherto.stores.memory.tables import Journal, OwnerTables, Tables


class AccessReader:
    """See `ports.Reader`."""

    _library: Tables

    async def token(self, digest: bytes) -> Token | None:
        return self._library.tokens.get(digest)

    async def tokens(self, owner: str | None) -> list[Token]:
        known = self._library.tokens.values()
        wanted = [token for token in known if owner is None or token.owner == owner]
        return sorted(wanted, key=lambda token: (token.created_at, token.id))

    async def access(self) -> int:
        return sum(token.revoked_at is not None for token in self._library.tokens.values())

    async def link(self, owner: str, account: Account) -> Account | None:
        return self._links(owner).get(account)

    async def linked_to(self, owner: str, account: Account) -> list[Account]:
        return sorted(linked for linked, to in self._links(owner).items() if to == account)

    def _links(self, owner: str) -> dict[Account, Account]:
        return (self._library.shelves.get(owner) or OwnerTables()).links


class AccessWriter:
    """See `ports.Writer`."""

    _library: Tables
    _journal: Journal

    async def put_token(self, token: Token, digest: bytes) -> None:
        self._journal.put(self._library.tokens, digest, token)

    async def revoke_token(self, token_id: str, at: int) -> bool:
        for digest, token in self._library.tokens.items():
            if token.id == token_id and token.revoked_at is None:
                self._journal.put(self._library.tokens, digest, replace(token, revoked_at=at))
                return True
        return False

    async def put_link(self, owner: str, account: Account, canonical: Account) -> None:
        self._journal.put(self._library.shelves.setdefault(owner, OwnerTables()).links, account, canonical)

    async def drop_link(self, owner: str, account: Account) -> bool:
        shelf = self._library.shelves.get(owner)
        if shelf is None or account not in shelf.links:
            return False
        self._journal.drop(shelf.links, account)
        return True
