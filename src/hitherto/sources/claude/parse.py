"""Claude Code's transcripts: bytes in, entries out. Pure.

`parse` reads a whole transcript, or only what was added since an earlier call. It returns a `State` for the next call. The
result is the conversation that Claude Code itself would resume, including what was said before a compaction; compactions
are listed with it, and so are the branches beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from hitherto.claude.lines import (
    RECORD_LIMIT,
    Damage,
    count_bad_utf8,
    count_nul_runs,
    read_line,
    split,
)
from hitherto.model import Entry, Usage, Value, decode_json
from hitherto.sources.claude.branches import BranchRead, Line, read_branches
from hitherto.sources.claude.entries import LINKED, Answer, Compacted, ConversationBuilder
from hitherto.sources.claude.graph import Linked, RebuildNeeded, Window
from hitherto.sources.claude.metadata import ABOUT, REQUEST_LOG, SILENT, Child, Facts, Info, count
from hitherto.sources.claude.records import Record, read
from hitherto.sources.shared.growing_file import complete_length, continues_line, next_seal
from hitherto.sources.shared.usage import total

VERSION = 5
"""Increased when the same bytes give other entries than before, so that files are read again."""
_NEWLINE = 0x0A

__all__ = ["Child", "Compacted", "Info", "Parsed", "State", "child_id", "load_state", "parse", "session_id"]


class State(Value, frozen=True):
    """What must be known of the bytes read so far to continue after them.

    Its size: the end of the conversation (some kilobytes, including the newest answer) and four bytes for each record.
    `offset` is where to continue; `seal` has the bytes before it, to tell a file that was rewritten in place from one that
    has grown; `open`: there was no line end; `compaction` is one whose summary has not been written yet; `aside` is what
    the branches tell of the session.
    """

    version: int = VERSION
    offset: int = 0
    seal: bytes = b""
    open: bool = False
    sidechain: bool | None = None
    window: Window = Window()
    answer: Answer | None = None
    spent: Usage | None = None
    at: int = 0
    compaction: Compacted | None = None
    entries: int = 0
    facts: Facts = msgspec.field(default_factory=Facts)
    aside: Facts = msgspec.field(default_factory=Facts)
    aside_usage: Usage | None = None


class Parsed(Value, frozen=True):
    """The result of parsing.

    `whole`: `entries` is the conversation. `extends`: `entries` follow those known before, and `amended` replaces the one
    with the same id (the newest answer has grown). `rebuild`: the new bytes change what was read before; there are no
    entries, and the whole file must be parsed without a state. `compactions` are those whose summaries are among the
    `entries`. `branches` are those beside the conversation; if it extends something, they are as they were. `total` is how many
    entries the conversation has; `unread` is how many bytes at the end are not a complete line yet.
    """

    change: Literal["whole", "extends", "rebuild"]
    entries: tuple[Entry, ...]
    amended: Entry | None
    info: Info
    state: State
    total: int
    unread: int
    compactions: tuple[Compacted, ...] = ()
    branches: tuple[BranchRead, ...] = ()


def parse(data: bytes, known: State | None = None) -> Parsed:
    """The conversation in a transcript, or with `known` what the bytes from `known.offset` on add to it.

    Bytes after the last complete line are left for the next call. Damage costs only the damaged records. The same
    bytes always give the same entries, in one call or in many.
    """
    start = known or State()
    try:
        return _parsed(data, start, "extends" if known else "whole")
    except RebuildNeeded:
        info = start.facts.joined(start.aside).info(None, bool(start.sidechain), lambda _: False)
        return Parsed(
            change="rebuild",
            entries=(),
            amended=None,
            info=info,
            state=start,
            total=start.entries,
            unread=len(data),
        )


def load_state(data: bytes) -> State | None:
    """The state in these bytes (`hitherto.model.encode` made them); None if it cannot be used."""
    try:
        state = msgspec.convert(decode_json(data), State)
    except (ValueError, RecursionError):
        return None
    return state if state.version == VERSION else None


def session_id(uuid: str) -> str:
    """The id of a session in the store."""
    return f"claude:{uuid}"


def child_id(parent_uuid: str, agent_id: str) -> str:
    """The id of a subagent's session in the store."""
    return f"claude:{parent_uuid}:agent-{agent_id}"


def _parsed(data: bytes, start: State, change: Literal["whole", "extends"]) -> Parsed:
    if start.version != VERSION or (start.open and continues_line(data)):
        raise RebuildNeeded
    end = complete_length(data)
    facts = start.facts.copy()
    lines = list(_lines(data[:end] if end < len(data) else data, facts))
    sidechain = _is_sidechain(lines, start.sidechain)
    lines = _own(lines, bool(sidechain), facts)
    linked = Linked(start.window, [line.record for line in lines], facts.leaf)
    builder = ConversationBuilder(facts, start.answer, start.spent, start.at, start.compaction)
    entry_of: dict[int, str] = {}
    new = linked.new
    for number in new:
        builder.add(*lines[number])
        if builder.newest is not None:
            entry_of[number] = builder.newest
    aside = linked.aside
    repeated = len(lines) - len(new) - sum(len(each.records) for each in aside)
    count(facts.left_out, "record that was written again", repeated)
    beside = read_branches(aside, lines.__getitem__, entry_of, facts.created_at or 0)
    known = (start.aside, start.aside_usage)
    aside_facts, aside_usage = known if start.window.nodes else (beside.facts, beside.usage)
    total_entries = start.entries + len(builder.entries)
    state = State(
        offset=start.offset + end,
        seal=next_seal(start.seal, data, end),
        open=data[end - 1] != _NEWLINE if end else start.open,
        sidechain=sidechain,
        window=linked.window(),
        answer=builder.answer,
        spent=builder.spent,
        at=builder.at,
        compaction=builder.begun,
        entries=total_entries,
        facts=facts,
        aside=aside_facts,
        aside_usage=aside_usage,
    )
    usage = total([builder.usage, aside_usage])
    return Parsed(
        change=change,
        entries=tuple(builder.entries),
        amended=builder.amended,
        info=facts.joined(aside_facts).info(usage, bool(sidechain), linked.has),
        state=state,
        total=total_entries,
        unread=len(data) - end,
        compactions=tuple(builder.compactions),
        branches=beside.branches,
    )


def _lines(data: bytes, facts: Facts) -> Iterator[Line]:
    """The linked records; `facts` collects what the others say."""
    for record, line in _records(data, facts):
        if record.uuid and _is_linked(record):
            facts.observe(record)
            yield Line(record, line)
        else:
            facts.observe_session_record(record, line)


def _is_linked(record: Record) -> bool:
    if record.type in LINKED:
        return True
    if record.type in ABOUT or record.type in SILENT or record.type.startswith(REQUEST_LOG):
        return False
    return record.parent_uuid is not None or record.message is not None


def _records(data: bytes, facts: Facts) -> Iterator[tuple[Record, memoryview]]:
    """Every intact record with its bytes; damage is counted."""
    if b"\0" in data or count_bad_utf8(data):
        facts.damage += Damage(nul_runs=count_nul_runs(data))
        for _, harmed, _ in split(data):
            yield from _salvaged(harmed, facts)
        return
    for line in _split(data):
        if (record := read(line)) is not None:
            yield record, line
        else:
            yield from _salvaged(bytes(line), facts)


def _split(data: bytes) -> Iterator[memoryview]:
    """The lines without their ends, none of them copied: nine tenths of a transcript are read only in passing."""
    view, start = memoryview(data), 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if end > start:
            yield view[start:end]
        start = end + 1


def _salvaged(line: bytes, facts: Facts) -> Iterator[tuple[Record, memoryview]]:
    if line.isspace():
        return
    if len(line) > RECORD_LIMIT:
        facts.damage += Damage(overlong=1)
        return
    pieces, damage = read_line(line)
    facts.damage += damage
    for piece in pieces:
        if (record := read(piece)) is not None:
            yield record, memoryview(piece)


def _is_sidechain(lines: list[Line], known: bool | None) -> bool | None:
    """Whether this is a subagent's transcript: all of its records stand beside the conversation."""
    if not lines or known is False:
        return known
    aside = all(line.record.is_sidechain for line in lines)
    if known and not aside:
        raise RebuildNeeded
    return aside


def _own(lines: list[Line], sidechain: bool, facts: Facts) -> list[Line]:
    """Without what a subagent said in the transcript of a session, as old versions wrote it."""
    if sidechain:
        return lines
    own = [line for line in lines if not line.record.is_sidechain]
    if aside := len(lines) - len(own):
        count(facts.left_out, "sidechain", aside)
    return own
