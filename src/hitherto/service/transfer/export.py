"""Exports: as lossless lines, or as a file in any of the formats.

One read transaction decides what is exported; the entries, which never change, are then read in pages. So memory is
bounded by a page, writers do not wait, and messages added meanwhile are not included. Pages are made beside the event loop.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from hitherto.errors import SessionNotFound
from hitherto.exports import About, Writer, format_named
from hitherto.exports.lines import FORMAT, VERSION, Head, Line, Replaced, entry_line, order_of, ranges_of
from hitherto.model import Entry, Fact, Principal, Session, Value, decode_entry, encode
from hitherto.ports import CURRENT, RawCopy, Reader, Record, Store, Totals
from hitherto.service.core import Core
from hitherto.service.history.pages import fitting
from hitherto.service.records import load_lists, measure, require_session
from hitherto.values import spans as algebra
from hitherto.values.spans import Stretch

if TYPE_CHECKING:
    from hitherto.exports.redaction import Redactor

PAGE = 200
PAGE_BYTES = 4 * 1024 * 1024
T = TypeVar("T")
Beside = Callable[..., Awaitable[Any]]
"""The result of a function and what it is given, made beside the event loop, perhaps by another process."""


class _Outline(NamedTuple):
    """Everything of an export but the entries: `order` and `conversation` say which, in two orders."""

    record: Record
    head: Head
    checkpoints: list[Line]
    facts: list[Fact]
    copies: list[RawCopy]
    waiting: list[Entry]
    order: list[Stretch]
    conversation: list[Stretch]


class _Page(NamedTuple):
    """Some entries, and which of them are summaries."""

    payloads: list[bytes]
    marks: list[bool]


class ExportReview(Value, frozen=True):
    """What a redacted file replaces, the first messages in which it does, as they are in it, and its size in bytes."""

    replaced: tuple[Replaced, ...]
    entries: tuple[Entry, ...]
    size: int


async def export_lines(core: Core, who: Principal, session_id: str) -> AsyncIterator[bytes]:
    """The lossless lines of one session, each without its newline."""
    outline = await core.store.read(lambda tx: _load_outline(tx, who, session_id))
    async for line in _lines(core.store, outline, None, in_export_thread):
        yield line


async def export_file(
    core: Core, who: Principal, session_id: str, format: str, redactor: Redactor | None, beside: Beside
) -> AsyncIterator[bytes]:
    """One session as a file of this format, piece by piece; without secrets if there is one who replaces them."""
    outline, totals = await core.store.read(lambda tx: _load_measured_outline(tx, who, session_id))
    writer = format_named(format).writer(_about(outline, totals, redactor, core.now()))
    yield _utf8(writer.begin())
    if writer.shows:
        async for page in _pages(core.store, outline.record, outline.conversation):
            part = redactor.part() if redactor else None
            text, writer, part = await beside(_written, writer, page, part)
            if redactor and part:
                redactor.join(part)
            yield text
    if writer.keeps:
        async for line in _lines(core.store, outline, redactor, beside):
            yield writer.line(line)
    yield _utf8(writer.end(redactor.replaced if redactor else ()))


def new_redactor(keep: int = 0) -> Redactor:
    """What replaces secrets; it keeps so many of the entries in which it does."""
    from hitherto.exports.redaction import Redactor  # its patterns take a while to make

    return Redactor(keep)


def _about(outline: _Outline, totals: Totals, redactor: Redactor | None, now: int) -> About:
    session = outline.record.session
    return About(
        session=redactor.session(session) if redactor else session,
        message_count=algebra.size(outline.conversation),
        token_count=totals.tokens or None,
        exported_at=now,
        redacted=redactor is not None,
    )


async def _lines(
    store: Store, outline: _Outline, redactor: Redactor | None, beside: Beside
) -> AsyncIterator[bytes]:
    for line in _first_lines(outline, redactor):
        yield encode(line)
    async for page in _pages(store, outline.record, outline.order):
        payloads = page.payloads
        if redactor is not None:
            payloads, part = await beside(_redacted, payloads, redactor.part())
            redactor.join(part)
        for payload in payloads:
            yield entry_line(payload)
    if redactor is not None:
        yield encode(Line(redacted=redactor.replaced))


async def in_export_thread(work: Callable[..., T], *given: object) -> T:
    """The result of the work. All exports of a process share one thread, so that they do not slow down the rest."""
    return await asyncio.get_running_loop().run_in_executor(_export_thread(), work, *given)


@cache
def _export_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "exports")


async def _load_outline(tx: Reader, who: Principal, session_id: str) -> _Outline:
    record = await require_session(tx, who, session_id)
    checkpoints = await tx.checkpoints(record.owner, record.num)
    lists = {known.id: await tx.spans(record.owner, record.num, known.id) for known in checkpoints}
    present = await load_lists(tx, record)
    lists[CURRENT] = present.closed()
    order = order_of(lists.values())
    return _Outline(
        record=record,
        head=Head(
            format=FORMAT,
            version=VERSION,
            session=_spelled(record.session),
            entries=algebra.size(order),
            spans=ranges_of(lists[CURRENT], order),
        ),
        checkpoints=[Line(checkpoint=each, spans=ranges_of(lists[each.id], order)) for each in checkpoints],
        facts=await tx.facts(record.owner, record.session.id),
        copies=await tx.raw_copies(record.owner, record.num),
        waiting=[entry for row in await tx.inbox(record.owner, record.num) for entry in row.entries],
        order=order,
        conversation=present.conversation(),
    )


async def _load_measured_outline(tx: Reader, who: Principal, session_id: str) -> tuple[_Outline, Totals]:
    outline = await _load_outline(tx, who, session_id)
    return outline, await measure(tx, outline.record.owner, outline.conversation)


def _spelled(session: Session) -> Session:
    # A default is left out of the JSON only if it is the very same object, which an interned text is.
    return replace(session, read_at=None, status=intern(session.status))


def _first_lines(outline: _Outline, redactor: Redactor | None) -> Iterator[Head | Line]:
    """All lines but those of the entries; the bytes of source files are left out where secrets are."""
    head = outline.head
    yield replace(head, session=redactor.session(head.session), redacted=True) if redactor else head
    yield from outline.checkpoints
    for fact in reversed(outline.facts):
        kept = redactor.fact(fact) if redactor else fact
        yield Line(fact=replace(kept, session=None, kind=intern(kept.kind)))
    for entry in outline.waiting:
        yield Line(waiting=redactor.entry(entry) if redactor else entry)
    if redactor is not None:
        redactor.left_out(len(outline.copies))
        return
    for copy in outline.copies:
        yield Line(raw=copy.name, data=base64.b64encode(copy.data).decode())


async def _pages(store: Store, record: Record, stretches: Sequence[Stretch]) -> AsyncIterator[_Page]:
    start, total = 0, algebra.size(stretches)
    while start < total:
        page = await store.read(partial(_page, record, stretches, start))
        yield page
        start += len(page.payloads)


async def _page(record: Record, stretches: Sequence[Stretch], start: int, tx: Reader) -> _Page:
    """The entries from there on: not many, and of not many bytes unless it is one."""
    if await tx.by_num(record.owner, record.num) is None:
        raise SessionNotFound(record.session.id)  # deleted while it was exported
    stop = min(start + PAGE, algebra.size(stretches))
    _, stop = await fitting(tx, record.owner, stretches, start, stop, PAGE_BYTES, backwards=False)
    part = algebra.slice_of(stretches, start, stop)
    marks = [stretch.mark for stretch in part for _ in range(stretch.size)]
    return _Page(await tx.payloads(record.owner, part), marks)


def _written(writer: Writer, page: _Page, redactor: Redactor | None) -> tuple[bytes, Writer, Redactor | None]:
    """The entries in the writer's format; and the writer and the redactor, which may have come from elsewhere."""
    entries = map(decode_entry, page.payloads)
    shown = map(redactor.entry, entries) if redactor else entries
    text = "".join(writer.entry(entry, mark=mark) for entry, mark in zip(shown, page.marks, strict=True))
    return _utf8(text), writer, redactor


def _redacted(payloads: Sequence[bytes], redactor: Redactor) -> tuple[list[bytes], Redactor]:
    """The entries without secrets; those that have none keep their bytes."""
    out = []
    for payload in payloads:
        entry = decode_entry(payload)
        kept = redactor.entry(entry)
        out.append(payload if kept is entry else encode(kept))
    return out, redactor


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
