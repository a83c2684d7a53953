"""Tokens and identity links as rows, over a connection. `ports` says what each function promises."""

from __future__ import annotations

from typing import Any

import apsw

from hitherto.errors import StoreDamaged
from hitherto.model import Account, Token
from hitherto.stores.sqlite.connection import fetch
from hitherto.values.checksums import checksum
from hitherto.values.scopes import is_rule_whole, rule_columns, rule_of

TOKENS = """
SELECT t.id, t.digest, o.name, t.scopes, t.role, t.label, t.created_at, t.revoked_at, t.crc, t.rule, t.rule_crc, t.used_at
FROM token AS t JOIN owner AS o ON o.num = t.owner
"""
BY_DIGEST = f"{TOKENS} WHERE t.digest = ?"
BY_OWNER = f"{TOKENS} WHERE :owner IS NULL OR o.name = :owner ORDER BY t.created_at, t.id"
CHANGED = """
SELECT (SELECT count(*) FROM token WHERE revoked_at IS NOT NULL)
    + (SELECT coalesce(sum(rotations), 0) FROM token WHERE rotations > 0)
"""
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
INSERT INTO token (owner, id, digest, scopes, role, label, created_at, revoked_at, crc, rule, rule_crc)
VALUES ((SELECT num FROM owner WHERE name = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET digest = excluded.digest, scopes = excluded.scopes, role = excluded.role, label = excluded.label,
    created_at = excluded.created_at, revoked_at = excluded.revoked_at, crc = excluded.crc, rule = excluded.rule,
    rule_crc = excluded.rule_crc, rotations = rotations + 1
WHERE owner = excluded.owner
"""
REVOKED_TOKEN = f"{TOKENS} WHERE t.id = ? AND t.revoked_at IS NULL"
NOTE_USE = "UPDATE token SET used_at = ? WHERE id = ?"
REVOKE = "UPDATE token SET revoked_at = ?, crc = ? WHERE id = ?"
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
    # One that was altered is left out, so that the others can still be seen.
    return [_token_of(row) for row in fetch(db, BY_OWNER, {"owner": owner}) if is_token_whole(row)]


def count_changed(db: apsw.Connection) -> int:
    return int(fetch(db, CHANGED)[0][0])


def find_link(db: apsw.Connection, owner: str, account: Account) -> Account | None:
    rows = fetch(db, LINK, (owner, *account))
    return Account(*rows[0]) if rows else None


def list_linked(db: apsw.Connection, owner: str, account: Account) -> list[Account]:
    return [Account(*row) for row in fetch(db, LINKED_TO, (owner, *account))]


def put_token(db: apsw.Connection, token: Token, digest: bytes) -> None:
    db.execute(KNOWN_OWNER, (token.owner,))
    rest = (" ".join(token.scopes), token.role, token.label, token.created_at, token.revoked_at)
    crc = checksum(token.id, digest, token.owner, *rest)
    db.execute(PUT_TOKEN, (token.owner, token.id, digest, *rest, crc, *rule_columns(token)))


def note_use(db: apsw.Connection, token_id: str, at: int) -> None:
    db.execute(NOTE_USE, (at, token_id))


def revoke_token(db: apsw.Connection, token_id: str, at: int) -> bool:
    for row in fetch(db, REVOKED_TOKEN, (token_id,)):
        # One that was altered stays so: nobody is let in by it, before or after.
        *checked, _, crc = row[:9]
        db.execute(REVOKE, (at, checksum(*checked, at) if is_whole(*row[:9]) else crc, token_id))
        return True
    return False


def put_link(db: apsw.Connection, owner: str, account: Account, canonical: Account) -> None:
    db.execute(KNOWN_OWNER, (owner,))
    db.execute(PUT_LINK, (owner, *account, *canonical))


def drop_link(db: apsw.Connection, owner: str, account: Account) -> bool:
    db.execute(DROP_LINK, (owner, *account))
    return bool(db.changes())


def is_whole(*row: Any) -> bool:
    """Whether the first columns of a row of `TOKENS` are what was written. A program that knows of no checksums may have revoked it since."""
    *checked, revoked, crc = row
    return (
        crc is None
        or crc == checksum(*checked, revoked)
        or (revoked is not None and crc == checksum(*checked, None))
    )


def is_token_whole(row: tuple[Any, ...]) -> bool:
    """Whether a row of `TOKENS`, with what it is restricted to, is what was written."""
    return is_whole(*row[:9]) and is_rule_whole(row[0], *row[9:11])


def _token_of(row: tuple[Any, ...]) -> Token:
    if not is_token_whole(row):
        raise StoreDamaged(f"the token {row[0]!r:.60} was altered; revoke it and make a new one")
    token_id, _, owner, scopes, role, label, created, revoked, _, rule, _, used = row
    return Token(
        id=token_id,
        owner=owner,
        scopes=tuple(scopes.split()),
        role=role,
        label=label,
        created_at=created,
        revoked_at=revoked,
        rule=rule_of(rule),
        used_at=used,
    )
