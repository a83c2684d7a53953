"""A transcript as links; their content stays undecoded, and for a very large file it is read again when needed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hitherto.claude import lines
from hitherto.claude.chain import KINDS, NOTHING, SPOKEN, Link, decode_links, is_queued_prompt, link
from hitherto.claude.lines import UNHARMED, Damage
from hitherto.claude.parallel_calls import tools_of
from hitherto.claude.paths import open_transcript

WHOLE = 64 << 20
"""A larger file is not kept in memory: its messages are read again when they are needed."""
_encoder = msgspec.json.Encoder()
_WANTED = KINDS | {"last-prompt"}
# The start and end of a snapshot of the prompt. One in another form is decoded like any other record.
_LONG = 8_192
_REACH = 2_048
_SNAPSHOT = re.compile(
    rb'\{"parentUuid":(?:null|"([0-9a-f-]{36})"),"isSidechain":false,"attachment":\{"type":"prompt_snapshot"'
)
_SNAPSHOT_TYPE = b'},"type":"attachment","uuid":"'
_SNAPSHOT_END = re.compile(rb'\},"type":"attachment","uuid":"([0-9a-f-]{36})"[^{}\[\]]*\}\s*\Z')
# The start of records that are no links and that are frequent or large.
_UNLINKED = tuple(
    b'{"type":"' + kind
    for kind in (b"api-request", b"file-history-", b"queue-operation", b"cost-state", b"content-replacement")
)


class Transcript:
    """The links of a transcript in memory. `damage` is what was noticed while reading."""

    def __init__(self, links: list[Link], damage: Damage) -> None:
        self.links = links
        self.damage = damage

    def full(self, places: list[int]) -> Iterator[Link]:
        """The links at these places, with their content."""
        return (self.links[place] for place in places)


class LargeTranscript(Transcript):
    """A transcript that is not kept in memory: the place of each link in the file."""

    def __init__(self, path: Path, links: list[Link], damage: Damage, spans: list[tuple[int, int]]) -> None:
        super().__init__(links, damage)
        self._path = path
        self._spans = spans

    def full(self, places: list[int]) -> Iterator[Link]:
        """The links at these places, read again."""
        descriptor = open_transcript(self._path, os.O_RDONLY)
        try:
            for place in places:
                offset, size = self._spans[place]
                yield link(os.pread(descriptor, size, offset))
        finally:
            os.close(descriptor)


def damage_of(path: Path) -> Damage:
    """All damage in a transcript; OSError if it cannot be read."""
    descriptor = open_transcript(path, os.O_RDONLY)
    try:
        found = Damage(nul_runs=lines.count_nul_runs_of(descriptor))
        for _, _, harm in records_of(descriptor):
            found = found + harm if harm else found
        return found
    finally:
        os.close(descriptor)


def read_transcript(path: Path) -> Transcript:
    """The links in the file; OSError if it cannot be read."""
    descriptor = open_transcript(path, os.O_RDONLY)
    try:
        large = os.fstat(descriptor).st_size > WHOLE
        return _read_large(path, descriptor) if large else read_open(descriptor)
    finally:
        os.close(descriptor)


def read_open(descriptor: int) -> Transcript:
    """The links in an open file, all of them in memory."""
    links: list[Link] = []
    damage = UNHARMED
    for _, block, size in lines.read_blocks(descriptor):
        damage = damage if size else damage + Damage(overlong=1)
        for run in _runs(block, size):
            if isinstance(run, Link):
                links.append(run)
                continue
            try:
                found = decode_links(run)
            except (ValueError, RecursionError):  # among them every error of msgspec's
                records, harm = lines.read_records(bytes(run))
                found = [link(record) for record in records]
                damage = damage + harm
            links += [_own(entry) for entry in found if entry.type in _WANTED]
    return Transcript(links, damage)


def _runs(block: bytes, size: int) -> Iterator[memoryview | Link]:
    """The block without the lines that need no decoding (most of its bytes), in as few pieces as possible.

    A snapshot of the prompt comes as a link: only its place in the chain matters.
    """
    view = memoryview(block)
    find, starts = block.find, block.startswith
    begun = place = 0
    while place < size:
        end = find(b"\n", place, size) + 1 or size
        passed: bool | Link | None = False
        if starts(_UNLINKED, place):
            passed = not _ends_with_link(block, place, end)
        elif end - place > _LONG:
            passed = _snapshot(block, place, end)
        if passed:
            if begun < place:
                yield view[begun:place]
            if isinstance(passed, Link):
                yield passed
            begun = end
        place = end
    if begun < size:
        yield view[begun:size]


def _ends_with_link(block: bytes, place: int, end: int) -> bool:
    """Whether a line that is no link ends with one, as when a record was torn and the next one written."""
    start = max(place, end - _REACH)
    return block.rfind(b'"uuid":', start, end) >= 0 or block.rfind(b'"gitBranch":', start, end) >= 0


def _snapshot(block: bytes, place: int, end: int) -> Link | None:
    """The link in a line that is a snapshot of the prompt, from the line's two ends.

    If the two are of different records, the first one is torn, and its parent is the nearest there is.
    """
    head = _SNAPSHOT.match(block, place, end)
    if head is None:
        return None
    tail = _SNAPSHOT_END.match(block, block.rfind(_SNAPSHOT_TYPE, max(place, end - _REACH), end), end)
    if tail is None:
        return None
    parent, uuid = head[1], tail[1]
    return Link(type="attachment", uuid=uuid.decode(), parent_uuid=parent.decode() if parent else None)


def _own(entry: Link) -> Link:
    """A copy of the link that does not keep its block of the file in memory."""
    if entry.type in SPOKEN:
        entry.message = entry.message.copy()
    elif entry.type == "system":
        entry.content = entry.content.copy()
        if entry.compact_metadata is not NOTHING:
            entry.compact_metadata = entry.compact_metadata.copy()
    entry.attachment = entry.attachment.copy() if is_queued_prompt(entry) else NOTHING
    return entry


def _read_large(path: Path, descriptor: int) -> Transcript:
    links, spans, damage = [], [], UNHARMED
    for offset, record, harm in records_of(descriptor):
        damage = damage + harm if harm else damage
        if record:
            found = link(record)
            if found.type in _WANTED:
                links.append(_slim(found))
                spans.append((offset, len(record)))
    return LargeTranscript(path, links, damage, spans)


def records_of(descriptor: int) -> Iterator[tuple[int, bytes, Damage]]:
    """The intact records of a file with their offsets, in bounded memory; and damage, with an empty record."""
    for offset, block, size in lines.read_blocks(descriptor):
        if not size:
            yield offset, b"", Damage(overlong=1)
        for start, line, tail in lines.split(block[:size]):
            records, damage = lines.read_line(line, tail)
            yield offset, b"", damage
            for record in records:
                yield offset + start + line.index(record), record, UNHARMED


def _slim(entry: Link) -> Link:
    """The link without its content, except for what decides its place."""
    entry = _own(entry)
    entry.message = msgspec.Raw(_encoder.encode(tools_of(entry))) if entry.type in SPOKEN else NOTHING
    entry.content = NOTHING
    return entry
