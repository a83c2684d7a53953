"""Tokens and identity links as rows."""

from __future__ import annotations

from typing import Any

import apsw

from hitherto.model import Account, Token
from hitherto.stores.sqlite.connection import fetch

TOKENS = """
SELECT t.id, o.name, t.scopes, t.role, t.label, t.created_at, t.revoked_at
FROM token AS t JOIN owner AS o ON o.num = t.owner
"""
BY_DIGEST = f"{TOKENS} WHERE t.digest = ?"
BY_OWNER = f"{TOKENS} WHERE :owner IS NULL OR o.name = :owner ORDER BY t.created_at, t.id"
REVOKED = "SELECT count(*) FROM token WHERE revoked_at IS NOT NULL"
LINK = """
SELECT l.canonical_channel, l.canonical_id FROM identity_link AS l JOIN owner AS o ON o.num = l.owner
WHERE o.name = ? AND l.channel = ? AND l.id = ?
"""
LINKED_TO = """
SELECT l.channel, l.id FROM identity_link AS l JOIN owner AS o ON o.num = l.owner
WHERE o.name = ? AND l.canonical_channel = ? AND l.canonical_id = ? ORDER BY l.channel, l.id
"""

KNOWN_OWNER = "INSERT OR IGNORE INTO owner (name) VALUES (?)"
PUT_TOKEN = """
INSERT INTO token (owner, digest, id, scopes, role, label, created_at, revoked_at)
VALUES ((SELECT num FROM owner WHERE name = ?), ?, ?, ?, ?, ?, ?, ?)
"""
REVOKE = "UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
PUT_LINK = """
INSERT OR REPLACE INTO identity_link (owner, channel, id, canonical_channel, canonical_id)
VALUES ((SELECT num FROM owner WHERE name = ?), ?, ?, ?, ?)
"""
DROP_LINK = """
DELETE FROM identity_link WHERE owner = (SELECT num FROM owner WHERE name = ?) AND channel = ? AND id = ?
"""


class AccessReading:
    """See `ports.Reader`."""

    _db: apsw.Connection

    async def token(self, digest: bytes) -> Token | None:
        rows = fetch(self._db, BY_DIGEST, (digest,))
        return _token_of(rows[0]) if rows else None

    async def tokens(self, owner: str | None) -> list[Token]:
        return [_token_of(row) for row in fetch(self._db, BY_OWNER, {"owner": owner})]

    async def access(self) -> int:
        return int(fetch(self._db, REVOKED)[0][0])

    async def link(self, owner: str, account: Account) -> Account | None:
        rows = fetch(self._db, LINK, (owner, *account))
        return Account(*rows[0]) if rows else None

    async def linked_to(self, owner: str, account: Account) -> list[Account]:
        return [Account(*row) for row in fetch(self._db, LINKED_TO, (owner, *account))]


class AccessWriting:
    """See `ports.Writer`."""

    _db: apsw.Connection

    async def put_token(self, token: Token, digest: bytes) -> None:
        self._db.execute(KNOWN_OWNER, (token.owner,))
        told = (token.role, token.label, token.created_at, token.revoked_at)
        self._db.execute(PUT_TOKEN, (token.owner, digest, token.id, " ".join(token.scopes), *told))

    async def revoke_token(self, token_id: str, at: int) -> bool:
        self._db.execute(REVOKE, (at, token_id))
        return bool(self._db.changes())

    async def put_link(self, owner: str, account: Account, canonical: Account) -> None:
        self._db.execute(KNOWN_OWNER, (owner,))
        self._db.execute(PUT_LINK, (owner, *account, *canonical))

    async def drop_link(self, owner: str, account: Account) -> bool:
        self._db.execute(DROP_LINK, (owner, *account))
        return bool(self._db.changes())


def _token_of(row: tuple[Any, ...]) -> Token:
    token_id, owner, scopes, role, label, created, revoked = row
    return Token(
        id=token_id,
        owner=owner,
        scopes=tuple(scopes.split()),
        role=role,
        label=label,
        created_at=created,
        revoked_at=revoked,
    )
