"""Tokens and identity links as rows, in a transaction. `ports` says what each function promises."""

from __future__ import annotations

from hitherto.model import Account, Token
from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.transactions import Statements

TOKENS = "SELECT id, owner, scopes, role, label, created_at, revoked_at FROM token"
BY_DIGEST = f"{TOKENS} WHERE digest = %b"
BY_OWNER = f"{TOKENS} WHERE owner = %s ORDER BY created_at, id"
ALL_TOKENS = f"{TOKENS} ORDER BY created_at, id"
REVOKED = "SELECT count(*) FROM token WHERE revoked_at IS NOT NULL"
LINK = """
SELECT canonical_channel, canonical_id FROM identity_link WHERE owner = %s AND channel = %s AND id = %s
"""
LINKED_TO = """
SELECT channel, id FROM identity_link
WHERE owner = %s AND canonical_channel = %s AND canonical_id = %s ORDER BY channel, id
"""

PUT_TOKEN = """
INSERT INTO token (digest, id, owner, scopes, role, label, created_at, revoked_at)
VALUES (%b, %s, %s, %s, %s, %s, %s, %s)
"""
REVOKE = "UPDATE token SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL RETURNING id"
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
    return [_token_of(row) for row in await statements.rows(statement, params)]


async def count_revoked(statements: Statements) -> int:
    return int((await statements.rows(REVOKED))[0][0])


async def find_link(statements: Statements, owner: str, account: Account) -> Account | None:
    row = await statements.row(LINK, (owner, *account))
    return None if row is None else Account(*row)


async def list_linked(statements: Statements, owner: str, account: Account) -> list[Account]:
    return [Account(*row) for row in await statements.rows(LINKED_TO, (owner, *account))]


async def lock_links(statements: Statements, owner: str) -> None:
    """Nobody else changes the owner's links until the end of the transaction."""
    await statements.queue(LOCK_LINKS, (owner,))


async def put_token(statements: Statements, token: Token, digest: bytes) -> None:
    rest = (token.role, token.label, token.created_at, token.revoked_at)
    await statements.queue(PUT_TOKEN, (digest, token.id, token.owner, " ".join(token.scopes), *rest))


async def revoke_token(statements: Statements, token_id: str, at: int) -> bool:
    return await statements.row(REVOKE, (at, token_id)) is not None


async def put_link(statements: Statements, owner: str, account: Account, canonical: Account) -> None:
    await statements.queue(PUT_LINK, (owner, *account, *canonical))


async def drop_link(statements: Statements, owner: str, account: Account) -> bool:
    return await statements.row(DROP_LINK, (owner, *account)) is not None


def _token_of(row: Row) -> Token:
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
