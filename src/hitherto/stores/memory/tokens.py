"""Tokens and identity links, over the tables. `ports` says what each function promises."""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.model import Account, Token
from hitherto.stores.memory.tables import Journal, OwnerTables, Tables


def list_tokens(tables: Tables, owner: str | None) -> list[Token]:
    """See `ports.Reader.tokens`."""
    wanted = [token for token in tables.tokens.values() if owner is None or token.owner == owner]
    return sorted(wanted, key=lambda token: (token.created_at, token.id))


def count_changed(tables: Tables) -> int:
    """See `ports.Reader.access`."""
    revoked = sum(token.revoked_at is not None for token in tables.tokens.values())
    return revoked + sum(tables.rotations.values())


def put_token(tables: Tables, journal: Journal, token: Token, digest: bytes) -> None:
    """See `ports.Writer.put_token`."""
    for known, other in [*tables.tokens.items()]:
        if (other.id, other.owner) == (token.id, token.owner):
            journal.drop(tables.tokens, known)
            journal.put(tables.rotations, token.id, tables.rotations.get(token.id, 0) + 1)
    journal.put(tables.tokens, digest, token)


def note_use(tables: Tables, journal: Journal, token_id: str, at: int) -> None:
    """See `ports.Writer.note_token_use`."""
    for digest, token in tables.tokens.items():
        if token.id == token_id:
            journal.put(tables.tokens, digest, replace(token, used_at=at))
            return


def list_linked(own: OwnerTables, account: Account) -> list[Account]:
    """See `ports.Reader.linked_to`."""
    return sorted(linked for linked, to in own.links.items() if to == account)


def revoke_token(tables: Tables, journal: Journal, token_id: str, at: int) -> bool:
    """See `ports.Writer.revoke_token`."""
    for digest, token in tables.tokens.items():
        if token.id == token_id and token.revoked_at is None:
            journal.put(tables.tokens, digest, replace(token, revoked_at=at))
            return True
    return False


def drop_link(own: OwnerTables, journal: Journal, account: Account) -> bool:
    """See `ports.Writer.drop_link`."""
    known = account in own.links
    journal.drop(own.links, account)
    return known
