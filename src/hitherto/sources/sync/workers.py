"""Reading many sessions: in this process, or if there is much to read in others, as many as there are cores.

The result is ready to be imported: entries as stored bytes, files compressed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process
from typing import NamedTuple

from hitherto.model import encode, search_text
from hitherto.ports import PackedCopy, packed
from hitherto.sources.port import FoundSession, Known, Reading, Unreadable
from hitherto.values.words import searchable

WORTH = 32 << 20
"""About how many bytes this process reads in the time that another takes to start."""
PIECE = 2 << 20
MANY = 64
"""The size of a batch: about so many bytes, and at most so many sessions."""
AHEAD = 2
"""How many batches are queued for each process, so that it never waits."""


class Wanted(NamedTuple):
    """A session to read, and what is known of it."""

    found: FoundSession
    known: Known | None


class Packed(NamedTuple):
    """A reading that can be sent to another process: its entries are `payloads`, with the `words` that each is found by, its raw
    copies are compressed."""

    reading: Reading
    payloads: Sequence[bytes]
    words: Sequence[str]
    raw: Sequence[PackedCopy]


class Failed(NamedTuple):
    """Why a session could not be read."""

    reason: str


Piece = list[tuple[int, Known | None]]
"""A batch: which of the wanted sessions are read together."""


def processes_for(wanted: Iterable[Wanted]) -> int:
    """How many other processes should read these; 0 if it is not worth starting any."""
    size = sum(each.found.size for each in wanted if each.known is None)
    return min(size // WORTH, _cores() - 1)


async def read_all(
    wanted: Sequence[Wanted], processes: int, *, raw: bool
) -> AsyncGenerator[list[tuple[FoundSession, Packed | Failed]], None]:
    """Read all of them in order, and yield them in batches."""
    found = [each.found for each in wanted]
    pieces = _pieces(wanted)
    if not processes:
        for piece in pieces:
            yield _with_found(found, piece, _read(found, piece, raw=raw))
        return
    # Spawned, not forked: this process has threads. If the caller stops early, queued batches are dropped and running ones end.
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_begin, initargs=(found, raw)
    )
    try:
        waiting = deque[tuple[Piece, Future[list[Packed | Failed]]]]()
        for piece in pieces:
            waiting.append((piece, pool.submit(_read_there, piece)))
            if len(waiting) > AHEAD * processes:
                yield await _next(waiting, found, raw=raw)
        while waiting:
            yield await _next(waiting, found, raw=raw)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


async def _next(
    waiting: deque[tuple[Piece, Future[list[Packed | Failed]]]], found: Sequence[FoundSession], *, raw: bool
) -> list[tuple[FoundSession, Packed | Failed]]:
    piece, future = waiting.popleft()
    try:
        read = await asyncio.wrap_future(future)
    except BrokenExecutor:
        # The process was killed: read its batch here.
        read = _read(found, piece, raw=raw)
    return _with_found(found, piece, read)


def _with_found(
    found: Sequence[FoundSession], piece: Piece, read: Iterable[Packed | Failed]
) -> list[tuple[FoundSession, Packed | Failed]]:
    return [(found[number], each) for (number, _), each in zip(piece, read, strict=True)]


def _pieces(wanted: Sequence[Wanted]) -> Iterator[Piece]:
    piece, size = list[tuple[int, Known | None]](), 0
    for number, each in enumerate(wanted):
        if piece and (len(piece) == MANY or size + each.found.size > PIECE):
            yield piece
            piece, size = [], 0
        piece.append((number, each.known))
        size += each.found.size
    if piece:
        yield piece


def _read(found: Sequence[FoundSession], piece: Piece, *, raw: bool) -> list[Packed | Failed]:
    return [_one(found[number], known, raw=raw) for number, known in piece]


def _one(found: FoundSession, known: Known | None, *, raw: bool) -> Packed | Failed:
    if isinstance(found.where, Unreadable):
        return Failed(found.where.reason)
    try:
        reading = found.source.read(found, known)
        payloads = [encode(entry) for entry in reading.entries]
        words = [searchable(search_text(entry)) for entry in reading.entries]
    except Exception as error:  # noqa: BLE001  one bad file must not stop the others
        return Failed(str(error) or type(error).__name__)
    copies = [packed(copy) for copy in reading.raw] if raw else ()
    return Packed(reading._replace(entries=(), raw=()), payloads, words, copies)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# In a reading process


_found: Sequence[FoundSession] = ()
_raw = True


def _begin(found: Sequence[FoundSession], raw: bool) -> None:
    global _found, _raw
    _found, _raw = found, raw
    # An interrupt is for the parent process, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent process is gone: otherwise this one would wait for work forever."""
    if (parent := parent_process()) is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _read_there(piece: Piece) -> list[Packed | Failed]:
    return _read(_found, piece, raw=_raw)
