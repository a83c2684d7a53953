"""Facts as rows: what all have is in columns of its own, the rest in one of JSON; beside it what they are found by."""

from __future__ import annotations

from hitherto.model import Fact, decode_json, encode
from hitherto.stores.postgres.rows import Row
from hitherto.values.facts import text_digest

MORE = ("agent_id", "identity_id", "cwd", "confidence", "subject", "invalidated_by")


def fact_values(fact: Fact) -> tuple[object, ...]:
    """The values of a row, behind its owner."""
    more = {name: value for name in MORE if (value := getattr(fact, name)) is not None}
    entries = encode(fact.entries).decode()
    kept = (fact.id, fact.at, fact.text, fact.kind, fact.session, entries, encode(more).decode())
    found_by = (
        fact.agent_id,
        fact.identity_id,
        fact.subject,
        fact.invalidated_by,
        text_digest(fact.text),
    )
    return (*kept, *found_by)


def fact_of(row: Row) -> Fact:
    """The fact in a row."""
    fact_id, at, text, kind, session, entries, more = row
    known = tuple(decode_json(entries.encode()))
    return Fact(
        id=fact_id, at=at, text=text, kind=kind, session=session, entries=known, **decode_json(more.encode())
    )
