"""Forks below what they were forked from. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hitherto.gateway.page.rows import Row


def families(rows: Sequence[Row]) -> list[Row]:
    """All of the rows, each fork below its origin if both are there. A family stands where its newest would."""
    known = {row.session.id: row for row in rows}
    below: dict[str, list[Row]] = {}
    for row in rows:
        if row.session.parent in known:
            below.setdefault(row.session.parent, []).append(row)
    shown: dict[str, Row] = {}
    for row in rows:
        if row.session.id not in shown:
            shown |= {member.session.id: member for member in _descent(_eldest(row, known), below)}
    return list(shown.values())


def _eldest(row: Row, known: Mapping[str, Row]) -> Row:
    """The first of a row's origins that is there; in a circle, which nobody should have made, one of it."""
    seen: set[str] = set()
    while (parent := row.session.parent) is not None and parent in known and parent not in seen:
        seen.add(parent)
        row = known[parent]
    return row


def _descent(eldest: Row, below: Mapping[str, list[Row]]) -> Iterator[Row]:
    """Somebody and all who come from them, each once."""
    waiting, seen = [eldest], {eldest.session.id}
    while waiting:
        row = waiting.pop()
        yield row
        children = [each for each in below.get(row.session.id, ()) if each.session.id not in seen]
        seen.update(each.session.id for each in children)
        waiting += [each._replace(depth=row.depth + 1) for each in reversed(children)]
