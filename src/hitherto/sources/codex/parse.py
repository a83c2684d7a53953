"""Codex's rollouts: bytes in, entries out. Pure.

`parse` reads a whole rollout, or only what was added since an earlier call. It returns a `State` for the next call.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from hitherto.claude.lines import RECORD_LIMIT, Damage, read_records
from hitherto.model import Entry, Value, decode_json
from hitherto.service.compaction.imported import Branch, Summarised
from hitherto.sources.codex.conversation import ConversationBuilder, RebuildNeeded
from hitherto.sources.codex.records import Record, fields, read, text
from hitherto.sources.codex.resume_state import Base, Memory, Meta, meta_of
from hitherto.sources.shared.growing_file import complete_length, continues_line, next_seal

VERSION = 2
"""Increased when the same bytes give other entries than before, so that files are read again."""
_NEWLINE = 0x0A
AGAIN = "record that was written again"

__all__ = ["Base", "Before", "Meta", "Parsed", "State", "first_line", "load_state", "parse", "turns_of"]


class Before(NamedTuple):
    """The history of a fork in another file: its bytes up to the fork point, and the number of the first record that is not
    part of the fork."""

    data: bytes
    ordinal: int


class State(Value, frozen=True):
    """What must be known of the bytes read so far to continue after them.

    `offset` is where to continue; `seal` has the bytes before it; `open`: there was no line end. `lost` is the missing
    rollout that the history begins in; empty if it will not appear.
    """

    version: int = VERSION
    offset: int = 0
    seal: bytes = b""
    open: bool = False
    lost: str | None = None
    memory: Memory = msgspec.field(default_factory=Memory)


class Parsed(Value, frozen=True):
    """The result of parsing: the entries of the conversation, then those of the branches beside it. With `extends`, they follow
    those known before, `amended` replaces the one with the same id, and the branches are as they were."""

    entries: tuple[Entry, ...]
    state: State
    extends: bool = False
    amended: Entry | None = None
    compactions: tuple[Summarised, ...] = ()
    branches: tuple[Branch, ...] = ()

    @property
    def memory(self) -> Memory:
        """The state of the rollout."""
        return self.state.memory


def parse(
    data: bytes,
    known: State | None = None,
    before: Sequence[Before] = (),
    inherited: frozenset[str] = frozenset(),
) -> Parsed | None:
    """The conversation in a rollout, or with `known` what the bytes from `known.offset` on add to it; None if they change
    what was read before: then the whole file must be read.

    `before` is the history that a fork begins with. `inherited` are the turns of the thread that started a subagent; copies
    of them are left out. Bytes after the last complete line are left for the next call. Damage costs only the damaged
    records. The same bytes always give the same entries, in one call or in many.
    """
    start = known or State()
    if known is not None and not _can_continue(data, known):
        return None
    try:
        return _parsed(data, start, before, inherited, extends=known is not None)
    except RebuildNeeded:
        return None


def load_state(data: bytes) -> State | None:
    """The state in these bytes (`hitherto.model.encode` made them); None if it cannot be used."""
    try:
        state = msgspec.convert(decode_json(data), State)
    except (ValueError, RecursionError):
        return None
    return state if state.version == VERSION else None


def first_line(data: bytes) -> Meta:
    """The metadata in the first line of a rollout."""
    lines, _ = read_records(data[: data.find(b"\n") + 1] or data)
    records = map(read, lines)
    return next((meta_of(record.payload()) for record in records if record.kind == "session_meta"), Meta())


def turns_of(data: bytes) -> frozenset[str]:
    """The turns of a thread."""
    lines, _ = read_records(data)
    records = (read(line) for line in lines if b'"turn_id"' in line)
    turns = (
        text(record.payload(), "turn_id")
        for record in records
        if record.kind in ("turn_context", "event_msg")
    )
    return frozenset(filter(None, turns))


def _can_continue(data: bytes, known: State) -> bool:
    memory = known.memory
    decided = memory.decided or not memory.records
    return decided and not memory.copying and not (known.open and continues_line(data))


def _parsed(
    data: bytes, start: State, before: Sequence[Before], inherited: frozenset[str], *, extends: bool
) -> Parsed:
    end = complete_length(data)
    memory = start.memory.copy()
    records, memory.damage = _records(data[:end], memory, extends=extends)
    _decide(memory, records)
    builder = ConversationBuilder(memory, inherited, grown=extends)
    for record in _earlier(before):
        builder.add(record, own=False)
    for record in records:
        builder.add(record)
    builder.close()
    state = State(
        offset=start.offset + end,
        seal=next_seal(start.seal, data, end),
        open=data[end - 1] != _NEWLINE if end else start.open,
        lost=start.lost,
        memory=memory,
    )
    # The newest first: what was rolled back earlier may follow something that was rolled back later.
    beside = builder.rolled_back[::-1]
    return Parsed(
        entries=(*builder.entries, *(entry for each in beside for entry in each.entries)),
        state=state,
        extends=extends,
        amended=builder.amended,
        compactions=tuple(builder.compactions),
        branches=tuple(Branch(each.after, len(each.entries), tuple(each.compactions)) for each in beside),
    )


def _records(data: bytes, memory: Memory, *, extends: bool) -> tuple[list[Record], Damage]:
    """The records of the file, each once, and all damage in it."""
    lines, damage = read_records(data)
    short = [line for line in lines if len(line) <= RECORD_LIMIT]
    damage = replace(damage, overlong=damage.overlong + len(lines) - len(short))
    records, seen = list[Record](), set[tuple[int, int]]()
    for line in short:
        record, checksum = read(line), zlib.crc32(line)
        if record.ordinal is not None:
            if extends and record.ordinal <= memory.ordinal:
                raise RebuildNeeded
            if (known := (record.ordinal, checksum)) in seen:
                _count_again(memory)
                continue
            seen.add(known)
        elif checksum == memory.last:
            _count_again(memory)
            continue
        memory.last = checksum
        records.append(record)
    return records, memory.damage + damage


def _count_again(memory: Memory) -> None:
    memory.left_out[AGAIN] = memory.left_out.get(AGAIN, 0) + 1


def _decide(memory: Memory, records: Iterable[Record]) -> None:
    """Decide which stream is the conversation: by the first line, or if that is lost by the other records."""
    if memory.decided:
        return
    for record in records:
        if record.kind == "session_meta":
            memory.decided, memory.paginated = True, meta_of(record.payload()).paginated
        elif record.kind == "event_msg" and (kind := record.type) in ("item_completed", "user_message"):
            shown = text(fields(record.payload(), "item"), "type")
            memory.decided = kind == "user_message" or shown == "UserMessage"
            memory.paginated = shown == "UserMessage"
        if memory.decided:
            return


def _earlier(before: Sequence[Before]) -> Iterator[Record]:
    for part in before:
        lines, _ = read_records(part.data)
        for record in map(read, lines):
            if record.ordinal is None or record.ordinal < part.ordinal:
                yield record
