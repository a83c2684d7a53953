"""A session as a row, and a row as a session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

import msgspec

from hitherto.errors import StoreDamaged
from hitherto.model import Identity, Lease, Session, decode_entry, decode_json, encode
from hitherto.ports import Record, Totals
from hitherto.values import words
from hitherto.values.checksums import entry_checksums, is_lease_whole, read_checksum, session_place
from hitherto.values.filters import title_text

Columns = tuple[Any, ...]
MICROS = 1_000_000
_pack = msgspec.msgpack.Encoder().encode

STORED = (
    "id", "revision", "created_at", "updated_at", "active_at", "cwd", "earlier_cwds", "directories", "project",
    "branch", "title", "title_by",
    "earlier_titles", "tags", "status", "archived", "pinned", "key", "agent_id", "channel", "identity",
    "message_count", "token_count", "error_count", "cost", "bytes", "last_compaction", "parent", "parent_entry",
    "source", "meta", "head", "log_tokens", "log_errors", "log_cost", "log_bytes", "crc", "read_at", "read_crc",
)  # fmt: skip
"""The columns that `columns_of` fills, in its order; `record_of` reads them behind num and before lease and change. Those
before the last three are checked: `crc` is of them, and `read_at` is written alone, with its own checksum."""
CHECKED = STORED[:-3]
CRC = len(CHECKED)
READ_AT = 1 + STORED.index("read_at")
READ_CRC = READ_AT + 1

READ = ("num", *STORED, "lease_holder", "lease_fence", "lease_acquired", "lease_expires", "change",
        "heard_at", "heard_revision", "place_crc", "lease_crc")  # fmt: skip


def columns_of(record: Record) -> Columns:
    """What is stored of a session, in the order of `STORED`."""
    checked, read_at = checked_columns(record), record.session.read_at
    read_crc = read_checksum(record.owner, record.num, read_at)
    return (*checked, crc_of(record.owner, checked), read_at, read_crc)


def checked_columns(record: Record) -> Columns:
    """What `crc` is of, in the order of `CHECKED`."""
    s = record.session
    return (
        s.id, s.revision, s.created_at, s.updated_at, record.order_at, _bytes(s.cwd), _json(s.earlier_cwds),
        _json(s.additional_directories), s.project, s.branch, _bytes(s.title), s.title_by, _json(s.earlier_titles),
        _json(s.tags), s.status, int(s.archived), int(s.pinned), s.key, s.agent_id, s.channel, _json(s.identity), s.message_count,
        s.token_count, s.error_count, micros(s.cost), s.bytes, s.last_compaction, s.parent, s.parent_entry,
        s.source, _json(s.meta), record.head, *record.totals,
    )  # fmt: skip


def crc_of(owner: Any, checked: Columns) -> int:
    """The checksum of a session's columns, and of whose it is."""
    return crc32(_pack((owner, checked)))


def is_whole(seed: int, payload: Any, place_crc: Any, crc: Any, erased: Any) -> bool:
    """Whether an entry is what was written in its place, as far as that is known: one without a checksum is an entry at least.

    `seed`: see `entry_seeds`. A program that knows `crc` only may have erased it since.
    """
    if not isinstance(payload, bytes):
        return False
    if place_crc is not None and not erased:
        return bool(place_crc == crc32(payload) + seed)
    known = crc in (None, crc32(payload))
    return known and (crc is not None or _is_entry(payload))


def _is_entry(payload: bytes) -> bool:
    try:
        decode_entry(payload)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return False
    return True


def whole_payloads(seeds: range, rows: Sequence[Columns]) -> list[bytes] | None:
    """The entries of rows of payload and `place_crc`, if every one is known to be what was written in its place."""
    payloads = [row[0] for row in rows]
    # As a rule all are, and then this is several times quicker than to ask one by one.
    with suppress(TypeError):
        if entry_checksums(seeds, payloads) == [row[1] for row in rows]:
            return payloads
    return None


def doubtful_payloads(seeds: range, rows: Sequence[Columns]) -> list[bytes]:
    """The entries of rows of payload, `place_crc`, `crc` and `erased`. `StoreDamaged` if one is not what was written."""
    payloads = [row[0] for row in rows]
    with suppress(TypeError):  # all were written before there was `place_crc`
        if all(row[1] is None for row in rows) and list(map(crc32, payloads)) == [row[2] for row in rows]:
            return payloads
    if altered := sum(not is_whole(seed, *row) for seed, row in zip(seeds, rows, strict=True)):
        raise StoreDamaged(f"{altered} entries were altered; run `hitherto doctor`")
    return payloads


def is_span(session: int, log: Any, first: Any, last: Any) -> bool:
    """Whether these are places in a log; only the session's own is open. The disk may have made anything of them."""
    ends = isinstance(last, int) if last is not None else log == session
    return ends and isinstance(log, int) and isinstance(first, int)


def record_of(owner: str, row: Columns) -> Record:
    """The record of a row selected by `READ`. `StoreDamaged` if it is not what was written, or in another's place."""
    try:
        if _is_right(owner, row):
            record = _record_of(owner, row)
            if row[-1] is None or is_lease_whole(owner, record.num, record.lease, row[-1]):
                return record
    except (ValueError, TypeError, msgspec.MsgspecError) as error:
        raise StoreDamaged(f"the session {row[1]!r:.60} cannot be read; run `hitherto doctor`") from error
    raise StoreDamaged(f"the session {row[1]!r:.60} was altered; run `hitherto doctor`")


def _is_right(owner: str, row: Columns) -> bool:
    crc, place_crc, read_crc = row[1 + CRC], row[-2], row[READ_CRC]
    return (
        (crc is None or crc == crc_of(owner, row[1 : 1 + CRC]))
        and (place_crc is None or place_crc == session_place(owner, row[1], row[0]))
        and (read_crc is None or read_crc == read_checksum(owner, row[0], row[READ_AT]))
    )


def _record_of(owner: str, row: Columns) -> Record:
    (num, id_, revision, created, updated, order_at, cwd, cwds, directories, project, branch, title, title_by, earlier,
     tags, status, archived, pinned, key, agent_id, channel, identity, messages, tokens, errors, cost, size,
     compaction, parent, parent_entry, source, meta, head, log_tokens, log_errors, log_cost, log_bytes, _, read_at,
     _, holder, fence, acquired, expires, change, heard_at, heard_revision, _, _) = row  # fmt: skip
    session = Session(
        id=id_, revision=revision, created_at=created, updated_at=updated,
        cwd=None if cwd is None else cwd.decode("utf-8", "surrogatepass"),
        earlier_cwds=texts_of(cwds) if cwds else (), additional_directories=texts_of(directories) if directories else (),
        project=project, branch=branch, title=None if title is None else title.decode("utf-8", "surrogatepass"), title_by=title_by,
        earlier_titles=texts_of(earlier) if earlier else (), tags=texts_of(tags) if tags else (), status=status,
        archived=bool(archived), pinned=bool(pinned), key=key, agent_id=agent_id, channel=channel,
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
        heard_at=heard_at if heard_revision == revision else None,
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


def _json(value: Any) -> bytes | None:
    return encode(value) if value else None


def texts_of(data: bytes | None) -> tuple[str, ...]:
    """The texts of a column that holds a list of them."""
    return tuple(decode_json(data)) if data else ()
