"""Tokens and identity links as rows, in a transaction. `ports` says what each function promises."""

from __future__ import annotations

from hitherto.errors import StoreDamaged
from hitherto.model import Account, Token
from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.transactions import Statements
from hitherto.values.checksums import checksum
from hitherto.values.scopes import is_rule_whole, rule_columns, rule_of

TOKENS = "SELECT id, digest, owner, scopes, role, label, created_at, revoked_at, crc, rule, rule_crc, used_at FROM token"
BY_DIGEST = f"{TOKENS} WHERE digest = %b"
BY_OWNER = f"{TOKENS} WHERE owner = %s ORDER BY created_at, id"
ALL_TOKENS = f"{TOKENS} ORDER BY created_at, id"
CHANGED = """
SELECT (SELECT count(*) FROM token WHERE revoked_at IS NOT NULL)
    + (SELECT coalesce(sum(rotations), 0) FROM token WHERE rotations > 0)
"""
LINK = """
SELECT canonical_channel, canonical_id FROM identity_link WHERE owner = %s AND channel = %s AND id = %s
"""
LINKED_TO = """
SELECT channel, id FROM identity_link
WHERE owner = %s AND canonical_channel = %s AND canonical_id = %s ORDER BY channel, id
"""

PUT_TOKEN = """
INSERT INTO token (id, digest, owner, scopes, role, label, created_at, revoked_at, crc, rule, rule_crc)
VALUES (%s, %b, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET digest = excluded.digest, scopes = excluded.scopes, role = excluded.role, label = excluded.label,
    created_at = excluded.created_at, revoked_at = excluded.revoked_at, crc = excluded.crc, rule = excluded.rule,
    rule_crc = excluded.rule_crc, rotations = token.rotations + 1
WHERE token.owner = excluded.owner
"""
TO_REVOKE = f"{TOKENS} WHERE id = %s AND revoked_at IS NULL FOR UPDATE"
NOTE_USE = "UPDATE token SET used_at = %s WHERE id = %s"
REVOKE = "UPDATE token SET revoked_at = %s, crc = %s WHERE id = %s"
# What a link may be depends on other links, which may not be there yet: no row could be locked instead.
LOCK_LINKS = "SELECT pg_advisory_xact_lock(hashtextextended('identity links of ' || %s, 0))"
PUT_LINK = """
INSERT INTO identity_link (owner, channel, id, canonical_channel, canonical_id) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (owner, channel, id) DO UPDATE
SET canonical_channel = excluded.canonical_channel, canonical_id = excluded.canonical_id
"""
DROP_LINK = "DELETE FROM identity_link WHERE owner = %s AND channel = %s AND id = %s RETURNING id"


async def find_token(statements: Statements, digest: bytes) -> Token | None:
    """See `ports.Reader.token`."""
    row = await statements.row(BY_DIGEST, (digest,))
    return None if row is None else _token_of(row)


async def list_tokens(statements: Statements, owner: str | None) -> list[Token]:
    statement, params = (ALL_TOKENS, ()) if owner is None else (BY_OWNER, (owner,))
    # One that was altered is left out, so that the others can still be seen.
    return [_token_of(row) for row in await statements.rows(statement, params) if is_token_whole(row)]


async def count_changed(statements: Statements) -> int:
    return int((await statements.rows(CHANGED))[0][0])


async def find_link(statements: Statements, owner: str, account: Account) -> Account | None:
    row = await statements.row(LINK, (owner, *account))
    return None if row is None else Account(*row)


async def list_linked(statements: Statements, owner: str, account: Account) -> list[Account]:
    return [Account(*row) for row in await statements.rows(LINKED_TO, (owner, *account))]


async def lock_links(statements: Statements, owner: str) -> None:
    """Nobody else changes the owner's links until the end of the transaction."""
    await statements.queue(LOCK_LINKS, (owner,))


async def put_token(statements: Statements, token: Token, digest: bytes) -> None:
    rest = (" ".join(token.scopes), token.role, token.label, token.created_at, token.revoked_at)
    row = (token.id, digest, token.owner, *rest)
    await statements.queue(PUT_TOKEN, (*row, checksum(*row), *rule_columns(token)))


async def note_use(statements: Statements, token_id: str, at: int) -> None:
    await statements.queue(NOTE_USE, (at, token_id))


async def revoke_token(statements: Statements, token_id: str, at: int) -> bool:
    row = await statements.row(TO_REVOKE, (token_id,))
    if row is None:
        return False
    # One that was altered stays so: nobody is let in by it, before or after.
    *checked, _, crc = row[:9]
    await statements.queue(REVOKE, (at, checksum(*checked, at) if is_whole(row[:9]) else crc, token_id))
    return True


async def put_link(statements: Statements, owner: str, account: Account, canonical: Account) -> None:
    await statements.queue(PUT_LINK, (owner, *account, *canonical))


async def drop_link(statements: Statements, owner: str, account: Account) -> bool:
    return await statements.row(DROP_LINK, (owner, *account)) is not None


def is_whole(row: Row) -> bool:
    """Whether the first columns of a row of `TOKENS` are what was written. A program that knows of no checksums may have revoked it since."""
    *checked, revoked, crc = row
    return (
        crc is None
        or crc == checksum(*checked, revoked)
        or (revoked is not None and crc == checksum(*checked, None))
    )


def is_token_whole(row: Row) -> bool:
    """Whether a row of `TOKENS`, with what it is restricted to, is what was written."""
    return is_whole(row[:9]) and is_rule_whole(row[0], *row[9:11])


def _token_of(row: Row) -> Token:
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
