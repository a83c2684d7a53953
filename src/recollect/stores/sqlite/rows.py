"""A session as a row, and a row as a session."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect import words
from recollect.filters import title_text
from recollect.model import Identity, Lease, Session, decode_json, encode
from recollect.ports import Record, Totals

Columns = tuple[Any, ...]
MICROS = 1_000_000

STORED = (
    "id", "revision", "created_at", "updated_at", "active_at", "cwd", "earlier_cwds", "directories", "project",
    "branch", "title", "title_by",
    "earlier_titles", "tags", "status", "archived", "pinned", "key", "agent_id", "channel", "identity",
    "message_count", "token_count", "error_count", "cost", "bytes", "last_compaction", "parent", "parent_entry",
    "source", "read_at", "meta", "head", "log_tokens", "log_errors", "log_cost", "log_bytes",
)  # fmt: skip
"""The columns that `columns_of` fills, in its order; `record_of` reads them behind num and before lease and change."""

READ = ("num", *STORED, "lease_holder", "lease_fence", "lease_acquired", "lease_expires", "change")


def columns_of(record: Record) -> Columns:
    """What is stored of a session, in the order of `STORED`."""
    s = record.session
    return (
        s.id, s.revision, s.created_at, s.updated_at, record.order_at, _bytes(s.cwd), _json(s.earlier_cwds),
        _json(s.additional_directories), s.project, s.branch, _bytes(s.title), s.title_by, _json(s.earlier_titles),
        _json(s.tags), s.status, s.archived, s.pinned, s.key, s.agent_id, s.channel, _json(s.identity), s.message_count,
        s.token_count, s.error_count, micros(s.cost), s.bytes, s.last_compaction, s.parent, s.parent_entry,
        s.source, s.read_at, _json(s.meta), record.head, *record.totals,
    )  # fmt: skip


def record_of(owner: str, row: Columns) -> Record:
    """The record of a row selected by `READ`."""
    (num, id_, revision, created, updated, order_at, cwd, cwds, directories, project, branch, title, title_by, earlier,
     tags, status, archived, pinned, key, agent_id, channel, identity, messages, tokens, errors, cost, size,
     compaction, parent, parent_entry, source, read_at, meta, head, log_tokens, log_errors, log_cost, log_bytes,
     holder, fence, acquired, expires, change) = row  # fmt: skip
    session = Session(
        id=id_, revision=revision, created_at=created, updated_at=updated, cwd=_text(cwd),
        earlier_cwds=texts_of(cwds), additional_directories=texts_of(directories), project=project, branch=branch, title=_text(title), title_by=title_by,
        earlier_titles=texts_of(earlier), tags=texts_of(tags), status=status, archived=bool(archived),
        pinned=bool(pinned), key=key, agent_id=agent_id, channel=channel,
        identity=msgspec.convert(decode_json(identity), Identity) if identity else None,
        message_count=messages, token_count=tokens, error_count=errors,
        cost=None if cost is None else cost / MICROS, bytes=size, last_compaction=compaction, parent=parent,
        parent_entry=parent_entry, source=source, read_at=read_at, meta=decode_json(meta) if meta else {},
    )  # fmt: skip
    lease = None
    if fence is not None:
        lease = Lease(holder=holder, fence=fence, acquired_at=acquired, expires_at=expires)
    return Record(
        num=num,
        owner=owner,
        session=session,
        order_at=order_at,
        head=head,
        totals=Totals(log_tokens, log_errors, log_cost, log_bytes),
        lease=lease,
        change=change,
    )


def micros(cost: float | None) -> int | None:
    """Dollars in millionths."""
    return None if cost is None else round(cost * MICROS)


def title_words(session: Session) -> str | None:
    """The words of the session's titles between spaces, or None without a title."""
    text = title_text(session)
    return f" {' '.join(words.tokens(words.searchable(text)))} " if text else None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")


def _json(value: Any) -> bytes | None:
    return encode(value) if value else None


def texts_of(data: bytes | None) -> tuple[str, ...]:
    """The texts of a column that holds a list of them."""
    return tuple(decode_json(data)) if data else ()
