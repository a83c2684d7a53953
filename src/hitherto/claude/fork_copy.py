"""The lines of a fork, made from the records of a transcript.

A record keeps its bytes; only the values that tie it to its session are replaced: uuids, the session's id, and what a
compaction says of the messages it kept.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from hitherto.claude import chain, lines
from hitherto.claude.metadata import opening_of_message

Id = bytes
"""A uuid as written in a file, including its quotes."""
AT_ONCE = 512


def quoted(text: str) -> Id:
    """A text as written in a file, quoted."""
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(text).encode()


def plain(uuid: Id | None) -> str | None:
    """The text without quotes."""
    return None if uuid is None else str(json.loads(uuid))


def new_ids() -> Iterator[Id]:
    """Random uuids of version 4."""
    while True:
        noise = os.urandom(16 * AT_ONCE).hex()
        for at in range(0, len(noise), 32):
            one = noise[at : at + 32]
            variant = "89ab"[int(one[16], 16) & 3]
            yield f'"{one[:8]}-{one[8:12]}-4{one[13:16]}-{variant}{one[17:20]}-{one[20:]}"'.encode()


Fields = dict[str, Raw]
"""A record, its values undecoded."""

NULL = Raw(b"null")
FALSE = Raw(b"false")
EMPTY = frozenset({b"false", b"null", b"0", b'""', b"[]", b"{}"})
KINDS = {quoted(kind) for kind in chain.KINDS}
SPOKEN = {quoted(kind) for kind in chain.SPOKEN}
USER, PROGRESS = b'"user"', b'"progress"'
LEFT_OUT = ("teamName", "agentName", "slug", "sourceToolAssistantUUID")
"""Fields that tie a record to a team or an agent. Without them, messages of a team are part of the fork's conversation."""

PIECE = 1 << 16

_utf8 = codecs.getincrementaldecoder("utf-8")
_decoder = msgspec.json.Decoder(Fields)
_encoder = msgspec.json.Encoder()


class Lineage:
    """New uuids for the links of a transcript, in file order.

    A link may name one that comes later, or never. It gets a new uuid anyway; in the end, `wrong` has those that were
    never copied, and a further reading that knows `before` gets them right.
    """

    def __init__(self, before: Lineage | None = None) -> None:
        self._ids = new_ids()
        self._copied: dict[Id, Id] = {}
        self._promised: dict[Id, Id] = {}
        # Links that are not copied, each with its parent: their children continue from that parent.
        self._passed: dict[Id, Id | None] = {} if before is None else before._passed
        self._missing: frozenset[Id] = frozenset() if before is None else before._missing | before.wrong
        self._last: dict[object, Id] = {}

    @property
    def wrong(self) -> frozenset[Id]:
        """Links that were expected to be copied and were not."""
        return frozenset(self._promised.keys() - self._copied.keys() - self._missing)

    def copy(self, uuid: Id, parent: Id | None, writer: object) -> tuple[Id, Id | None]:
        """Copy a link: its new uuid and its new parent's.

        If the parent is missing, the link continues from what the same writer wrote before it.
        """
        own = self._copied.get(uuid) or self._promised.get(uuid) or next(self._ids)
        self._copied[uuid] = own
        above = None if parent is None else self._copied.get(parent) or self._above(parent, writer)
        self._last[writer] = own
        return own, above

    def pass_over(self, uuid: Id, parent: Id | None) -> None:
        """Leave a link out."""
        self._passed.setdefault(uuid, parent)

    def copied(self, old: Id | None) -> Id | None:
        """The new uuid of a link that was copied."""
        return None if old is None else self._copied.get(old)

    def new(self, old: Id | None) -> Id | None:
        """The new uuid of a link that was copied, or is expected to be."""
        if old is None or old in self._copied:
            return self.copied(old)
        if old in self._passed or old in self._missing:
            return None
        if old not in self._promised:
            self._promised[old] = next(self._ids)
        return self._promised[old]

    def nearest(self, old: Id) -> Id | None:
        """The new uuid of a link, or of its nearest ancestor that is copied."""
        return self.copied(old) or self._above(old, None)

    def _above(self, old: Id | None, writer: object) -> Id | None:
        seen = set()
        while old is not None and old in self._passed and old not in self._copied:
            if old in seen:
                return None
            seen.add(old)
            old = self._passed[old]
        return self._last.get(writer) if old in self._missing else self.new(old)


@dataclass(frozen=True, slots=True)
class Cut:
    """Which links to copy: all, all up to the link `until`, or only those `among` a set."""

    until: Id | None = None
    among: frozenset[Id] | None = None


@dataclass(slots=True)
class SessionRecords:
    """What a transcript says about its session; the last record of each kind counts.

    `resumed` is the last record of where the command line stood: at a leaf, or at nothing.
    """

    session_id: str
    custom_title: str | None = None
    ai_title: str | None = None
    first_prompt: str | None = None
    first_command: str | None = None
    last_prompt: str | None = None
    resumed: Fields | None = None
    replacements: list[object] = field(default_factory=list)
    carried: dict[bytes, Fields] = field(default_factory=dict)

    @property
    def title(self) -> str | None:
        """The title of the session."""
        return self.custom_title or self.ai_title or self.first_prompt or self.first_command

    def note_prompt(self, fields: Fields) -> None:
        """Note a prompt that could be the title of the session."""
        if not is_true(fields, "isMeta") and not is_true(fields, "isCompactSummary"):
            opening = opening_of_message(bytes(fields.get("message", NULL)))
            self.first_prompt = opening.prompt
            self.first_command = self.first_command or opening.command


@dataclass(slots=True)
class Leaf:
    """The last copied link: of the conversation's messages, of notes beside it, of all."""

    message: Id | None = None
    note_beside: Id | None = None
    written: Id | None = None

    def note(self, fields: Fields, own: Id) -> None:
        """Note a message."""
        if is_true(fields, "isMeta"):
            self.note_beside = own
        else:
            self.message = own


class Copy:
    """One reading of a transcript into the lines of its fork, which gather in `lines`.

    It may be `wrong` about links that others name; then a further reading is needed, which knows what was `before`.
    """

    def __init__(self, session_id: str, fork_id: str, now: str, cut: Cut, before: Copy | None = None) -> None:
        self.lines = bytearray()
        self.about = SessionRecords(session_id)
        self.lineage: Lineage = Lineage(None if before is None else before.lineage)
        self._cut = cut
        self._ended = False
        self._id, self._now = Raw(quoted(fork_id)), Raw(quoted(now))
        self._from = b'{"sessionId":' + quoted(session_id) + b',"messageUuid":'
        self._leaf = Leaf()
        self._held: Fields | None = None

    @property
    def wrong(self) -> bool:
        """Whether a link was named that is not in the fork."""
        return bool(self.lineage.wrong)

    @property
    def leaf(self) -> Id | None:
        """Where the fork's conversation ends: at the cut, else at its last message."""
        if self._cut.until is not None:
            return self.lineage.nearest(self._cut.until)
        return self._leaf.message or self._leaf.note_beside or self._leaf.written

    def add(self, fields: Fields) -> None:
        """Copy a record if it belongs in the fork."""
        kind = bytes(fields.get("type", NULL))
        uuid = as_id(fields.get("uuid"))
        if kind not in KINDS or uuid is None:
            if (note := NOTES.get(kind)) is not None:
                note(self.about, fields)
        elif not self._ended:
            self._add_link(fields, kind, uuid)
            self._ended = uuid == self._cut.until and self._cut.among is None

    def end(self) -> bool:
        """Write the last link, with a new time, and the records that hold for the fork too. False if there was no link."""
        if self._held is None:
            return False
        self._held["timestamp"] = self._now
        self._release()
        for fields in self.about.carried.values():
            self._write({**fields, "sessionId": self._id})
        return True

    def _add_link(self, fields: Fields, kind: bytes, uuid: Id) -> None:
        parent = as_id(fields.get("parentUuid"))
        if kind == USER and self.about.first_prompt is None:
            self.about.note_prompt(fields)
        if kind == PROGRESS or is_true(fields, "isSidechain") or not self._is_among(uuid):
            self.lineage.pass_over(uuid, parent)
            return
        agent = fields.get("agentId")
        own, above = self.lineage.copy(uuid, parent, None if agent is None else bytes(agent))
        self._leaf.written = own
        if kind in SPOKEN:
            self._leaf.note(fields, own)
        self._tie(fields, uuid, own, above)
        self._release()
        self._held = fields

    def _is_among(self, uuid: Id) -> bool:
        return self._cut.among is None or uuid in self._cut.among

    def _tie(self, fields: Fields, uuid: Id, own: Id, above: Id | None) -> None:
        """Tie a link to the fork."""
        logical = self.lineage.new(as_id(fields.get("logicalParentUuid")))
        fields["uuid"] = Raw(own)
        fields["parentUuid"] = NULL if above is None else Raw(above)
        fields["logicalParentUuid"] = NULL if logical is None else Raw(logical)
        fields["sessionId"] = self._id
        if as_id(fields.get("timestamp")) is None:
            fields["timestamp"] = self._now
        fields["isSidechain"] = FALSE
        fields["forkedFrom"] = Raw(self._from + uuid + b"}")
        for name in LEFT_OUT:
            fields.pop(name, None)
        if "compactMetadata" in fields:
            fields["compactMetadata"] = self._compaction(fields["compactMetadata"])

    def _release(self) -> None:
        """Write the link that was held back because it might have been the last."""
        if self._held is not None:
            self._write(self._held)
            self._held = None

    def _write(self, fields: Fields) -> None:
        _encoder.encode_into(fields, self.lines, -1)
        self.lines += b"\n"

    def _compaction(self, raw: Raw) -> Raw:
        """A compaction's list of kept messages, with new uuids, for those that are copied."""
        metadata = lines.decode(bytes(raw))
        if not isinstance(metadata, dict):
            return raw
        for name, renamed in (
            ("preservedMessages", self._kept_messages),
            ("preservedSegment", self._kept_segment),
        ):
            if isinstance(metadata.get(name), dict):
                metadata[name] = renamed(metadata[name])
        return Raw(lines.encode({name: value for name, value in metadata.items() if value is not None}))

    def _kept_messages(self, metadata: dict[str, object]) -> dict[str, object] | None:
        anchor = self._renamed(metadata.get("anchorUuid"))
        if anchor is None:
            return None
        lists = {name: uuids for name, uuids in metadata.items() if isinstance(uuids, list)}
        renamed = {name: list(filter(None, map(self._renamed, uuids))) for name, uuids in lists.items()}
        return {**metadata, **renamed, "anchorUuid": anchor}

    def _kept_segment(self, metadata: dict[str, object]) -> dict[str, object] | None:
        ends = {name: self._renamed(metadata.get(name)) for name in ("headUuid", "anchorUuid", "tailUuid")}
        if ends["tailUuid"] is None and self._cut.among is not None:
            # The cut goes through the segment, which then ends there.
            ends["tailUuid"] = self._renamed(plain(self._cut.until))
        return {**metadata, **ends} if None not in ends.values() else None

    def _renamed(self, uuid: object) -> str | None:
        return plain(self.lineage.new(quoted(uuid))) if isinstance(uuid, str) else None


# Records about the session


def _note_custom_title(about: SessionRecords, fields: Fields) -> None:
    about.custom_title = _text(fields, "customTitle") or about.custom_title


def _note_ai_title(about: SessionRecords, fields: Fields) -> None:
    about.ai_title = _text(fields, "aiTitle") or about.ai_title


def _note_last_prompt(about: SessionRecords, fields: Fields) -> None:
    about.last_prompt = _text(fields, "lastPrompt") or about.last_prompt
    if as_id(fields.get("leafUuid")) is not None or is_true(fields, "explicit"):
        about.resumed = fields


def _note_replacements(about: SessionRecords, fields: Fields) -> None:
    found = lines.decode(bytes(fields.get("replacements", NULL)))
    if isinstance(found, list) and _text(fields, "sessionId") == about.session_id:
        about.replacements.extend(found)


def _note_carried(about: SessionRecords, fields: Fields) -> None:
    about.carried[bytes(fields["type"])] = fields


NOTES: dict[bytes, Callable[[SessionRecords, Fields], None]] = {
    b'"custom-title"': _note_custom_title,
    b'"ai-title"': _note_ai_title,
    b'"last-prompt"': _note_last_prompt,
    b'"content-replacement"': _note_replacements,
    # They hold for the fork too.
    b'"atis-latch"': _note_carried,
    b'"relocated"': _note_carried,
    b'"tools-used"': _note_carried,
}


# Records and their values


def read_fields(source: int) -> Iterator[Fields]:
    """The intact records of a transcript."""
    for _, block, end in lines.read_blocks(source):
        whole = memoryview(block)[:end]
        if not block.isascii():
            whole = _mended(whole)
        try:
            yield from _decoder.decode_lines(whole)
        except (ValueError, RecursionError):  # among them every error of msgspec's
            yield from map(_loose_fields, lines.read_records(bytes(whole))[0])


def _mended(block: memoryview) -> memoryview:
    """The block in UTF-8, so that no reader of the fork stumbles over it."""
    reader = _utf8()
    try:
        # In small pieces: memory that is used again costs nothing.
        for start in range(0, len(block), PIECE):
            reader.decode(block[start : start + PIECE])
        reader.decode(b"", final=True)
    except UnicodeDecodeError:
        return memoryview(str(block, "utf-8", "replace").encode())
    return block


def _loose_fields(record: bytes) -> Fields:
    try:
        return _decoder.decode(record)
    except (ValueError, RecursionError):
        values = lines.decode(record)
        if not isinstance(values, dict):
            return {}
        return {name: Raw(lines.encode(value)) for name, value in values.items()}


def is_true(fields: Fields, name: str) -> bool:
    """Whether a record says so."""
    raw = fields.get(name)
    return raw is not None and bytes(raw) not in EMPTY


def as_id(raw: Raw | None) -> Id | None:
    """A value as a uuid, if it is a text and not empty."""
    if raw is None:
        return None
    found = bytes(raw)
    if found[:1] != b'"' or found == b'""':
        return None
    return quoted(json.loads(found)) if b"\\" in found else found


def _text(fields: Fields, name: str) -> str | None:
    found = lines.decode(bytes(fields.get(name, NULL)))
    return found if isinstance(found, str) else None
