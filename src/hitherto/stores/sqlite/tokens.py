"""Tokens and identity links as rows, over a connection. `ports` says what each function promises."""

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


def find_token(db: apsw.Connection, digest: bytes) -> Token | None:
    """See `ports.Reader.token`."""
    rows = fetch(db, BY_DIGEST, (digest,))
    return _token_of(rows[0]) if rows else None


def list_tokens(db: apsw.Connection, owner: str | None) -> list[Token]:
    return [_token_of(row) for row in fetch(db, BY_OWNER, {"owner": owner})]


def count_revoked(db: apsw.Connection) -> int:
    return int(fetch(db, REVOKED)[0][0])


def find_link(db: apsw.Connection, owner: str, account: Account) -> Account | None:
    rows = fetch(db, LINK, (owner, *account))
    return Account(*rows[0]) if rows else None


def list_linked(db: apsw.Connection, owner: str, account: Account) -> list[Account]:
    return [Account(*row) for row in fetch(db, LINKED_TO, (owner, *account))]


def put_token(db: apsw.Connection, token: Token, digest: bytes) -> None:
    db.execute(KNOWN_OWNER, (token.owner,))
    rest = (token.role, token.label, token.created_at, token.revoked_at)
    db.execute(PUT_TOKEN, (token.owner, digest, token.id, " ".join(token.scopes), *rest))


def revoke_token(db: apsw.Connection, token_id: str, at: int) -> bool:
    db.execute(REVOKE, (at, token_id))
    return bool(db.changes())


def put_link(db: apsw.Connection, owner: str, account: Account, canonical: Account) -> None:
    db.execute(KNOWN_OWNER, (owner,))
    db.execute(PUT_LINK, (owner, *account, *canonical))


def drop_link(db: apsw.Connection, owner: str, account: Account) -> bool:
    db.execute(DROP_LINK, (owner, *account))
    return bool(db.changes())


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
