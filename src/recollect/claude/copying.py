"""The lines of a fork, from the records of a transcript, one after the other.

A record keeps its bytes; only the values that tie it to its session are replaced: uuids, the session's id, and what a
compaction says of the messages it kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from recollect.claude import chain, lines, prompts

Fields = dict[str, Raw]
"""A record, its values undecoded."""
Id = bytes
"""A uuid as it stands in a file, quotes included."""

NULL = Raw(b"null")
FALSE = Raw(b"false")
EMPTY = frozenset({b"false", b"null", b"0", b'""', b"[]", b"{}"})
KINDS = {f'"{kind}"'.encode() for kind in chain.KINDS}
SPOKEN = {f'"{kind}"'.encode() for kind in chain.SPOKEN}
USER, PROGRESS = b'"user"', b'"progress"'
LEFT_OUT = ("teamName", "agentName", "slug", "sourceToolAssistantUUID")
"""What ties a record to the company its session was in."""
UUIDS = 512

_decoder = msgspec.json.Decoder(Fields)
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Cut:
    """Which links to copy: all, all up to the first that is called `until`, or just those `among` some."""

    until: Id | None = None
    among: frozenset[Id] | None = None


@dataclass(slots=True)
class Aside:
    """What a transcript says beside its links; of each the last that was said.

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
        """What the session is called."""
        return self.custom_title or self.ai_title or self.first_prompt or self.first_command

    def note_prompt(self, fields: Fields) -> None:
        """Note what the user says, if it could be what the session is called."""
        if not is_true(fields, "isMeta") and not is_true(fields, "isCompactSummary"):
            opening = prompts.opening(bytes(fields.get("message", NULL)))
            self.first_prompt = opening.prompt
            self.first_command = self.first_command or opening.command


@dataclass(slots=True)
class Leaf:
    """What was copied last: of what was said in the conversation, of what was said beside it, of all."""

    said: Id | None = None
    said_beside: Id | None = None
    written: Id | None = None

    def note(self, fields: Fields, own: Id) -> None:
        """Note something that was said."""
        if is_true(fields, "isMeta") or is_true(fields, "teamName"):
            self.said_beside = own
        else:
            self.said = own


class Copy:
    """One reading of a transcript into the lines of its fork, which gather in `lines`.

    A link may name one that comes later, or never. It is given a new uuid all the same; `wrong` tells in the end
    which of these were never written, and a further reading that knows `before` gets them right.
    """

    def __init__(self, session_id: str, fork_id: str, now: str, cut: Cut, before: Copy | None = None) -> None:
        self.lines = bytearray()
        self.aside = Aside(session_id)
        self._cut = cut
        self._ended = False
        self._own_id, self._now = Raw(quoted(fork_id)), Raw(quoted(now))
        self._from = b'{"sessionId":' + quoted(session_id) + b',"messageUuid":'
        self._ids = new_ids()
        self._new: dict[Id, Id] = {}
        self._written: set[Id] = set()
        self._guessed: set[Id] = set()
        # Links that are not copied, each with its parent: what follows them follows from there.
        self._passed: dict[Id, Id | None] = {} if before is None else before._passed
        self._missing: frozenset[Id] = frozenset() if before is None else before._missing | before.wrong
        # Where a link's parent is lost, it goes on from what the same agent wrote before.
        self._last: dict[bytes | None, Id] = {}
        self._leaf = Leaf()
        self._held: Fields | None = None

    @property
    def wrong(self) -> frozenset[Id]:
        """What was taken for a link that is copied, and is none."""
        return frozenset(self._guessed - self._written - self._missing)

    @property
    def leaf(self) -> Id | None:
        """Where the fork's conversation ends: at the cut, else at the last thing that was said in it."""
        if self._cut.until is not None:
            return self._parent(self._cut.until, None)
        return self._leaf.said or self._leaf.said_beside or self._leaf.written

    def copied(self, old: Id | None) -> Id | None:
        """The uuid in the fork of a link that was copied."""
        return self._new[old] if old in self._written else None

    def new(self, old: Id | None) -> Id | None:
        """The uuid in the fork of a link that was, or presumably will be, copied."""
        if old is None or old in self._written:
            return self.copied(old)
        if old in self._passed or old in self._missing:
            return None
        self._guessed.add(old)
        return self._new.setdefault(old, next(self._ids))

    def add(self, fields: Fields) -> None:
        """Copy a record, if it is one that belongs into the fork."""
        kind = bytes(fields.get("type", NULL))
        uuid = as_id(fields.get("uuid"))
        if kind not in KINDS or uuid is None:
            if (note := NOTES.get(kind)) is not None:
                note(self.aside, fields)
        elif not self._ended:
            self._link(fields, kind, uuid)
            self._ended = uuid == self._cut.until and self._cut.among is None

    def _link(self, fields: Fields, kind: bytes, uuid: Id) -> None:
        parent = as_id(fields.get("parentUuid"))
        if kind == USER and self.aside.first_prompt is None:
            self.aside.note_prompt(fields)
        if (
            is_true(fields, "isSidechain")
            or kind == PROGRESS
            or (self._cut.among is not None and uuid not in self._cut.among)
        ):
            self._passed.setdefault(uuid, parent)
            return
        agent = fields.get("agentId")
        writer = None if agent is None else bytes(agent)
        own = self._new.get(uuid) or next(self._ids)
        self._new[uuid] = own
        above = self._parent(parent, writer)
        self._written.add(uuid)
        self._last[writer] = self._leaf.written = own
        if kind in SPOKEN:
            self._leaf.note(fields, own)
        self._tie(fields, uuid, own, above)
        self._release()
        self._held = fields

    def _parent(self, old: Id | None, writer: bytes | None) -> Id | None:
        """The uuid in the fork of the nearest link from `old` upwards that is copied."""
        seen = set()
        while old is not None and old in self._passed and old not in self._written:
            if old in seen:
                return None
            seen.add(old)
            old = self._passed[old]
        return self._last.get(writer) if old in self._missing else self.new(old)

    def _tie(self, fields: Fields, uuid: Id, own: Id, above: Id | None) -> None:
        """Make a link one of the fork's."""
        logical = self.new(as_id(fields.get("logicalParentUuid")))
        fields["uuid"] = Raw(own)
        fields["parentUuid"] = NULL if above is None else Raw(above)
        fields["logicalParentUuid"] = NULL if logical is None else Raw(logical)
        fields["sessionId"] = self._own_id
        if as_id(fields.get("timestamp")) is None:
            fields["timestamp"] = self._now
        fields["isSidechain"] = FALSE
        fields["forkedFrom"] = Raw(self._from + uuid + b"}")
        for name in LEFT_OUT:
            fields.pop(name, None)
        if "compactMetadata" in fields:
            fields["compactMetadata"] = self._compaction(fields["compactMetadata"])

    def end(self) -> bool:
        """Write the last link, with a new time, and what the transcript says beside; whether there was a link."""
        if self._held is None:
            return False
        self._held["timestamp"] = self._now
        self._release()
        for fields in self.aside.carried.values():
            self._write({**fields, "sessionId": self._own_id})
        return True

    def _release(self) -> None:
        """Write the link that was held back because it might have been the last."""
        if self._held is not None:
            self._write(self._held)
            self._held = None

    def _write(self, fields: Fields) -> None:
        _encoder.encode_into(fields, self.lines, -1)
        self.lines += b"\n"

    def _compaction(self, raw: Raw) -> Raw:
        """What a compaction says of the messages it kept, of those that are copied."""
        told = lines.decode(bytes(raw))
        if not isinstance(told, dict):
            return raw
        kept = {"preservedMessages": self._kept_messages, "preservedSegment": self._kept_segment}
        for name, renamed in kept.items():
            if isinstance(told.get(name), dict):
                told[name] = renamed(told[name])
                if told[name] is None:
                    del told[name]
        return Raw(json.dumps(told, separators=(",", ":")).encode())

    def _kept_messages(self, told: dict[str, object]) -> dict[str, object] | None:
        anchor = self._renamed(told.get("anchorUuid"))
        if anchor is None:
            return None
        lists = {name: uuids for name, uuids in told.items() if isinstance(uuids, list)}
        renamed = {name: list(filter(None, map(self._renamed, uuids))) for name, uuids in lists.items()}
        return {**told, **renamed, "anchorUuid": anchor}

    def _kept_segment(self, told: dict[str, object]) -> dict[str, object] | None:
        ends = {name: self._renamed(told.get(name)) for name in ("headUuid", "anchorUuid", "tailUuid")}
        if ends["tailUuid"] is None and self._cut.among is not None:
            # The cut goes through the segment, which then ends there.
            ends["tailUuid"] = self._renamed(json.loads(self._cut.until or b"null"))
        return {**told, **ends} if None not in ends.values() else None

    def _renamed(self, uuid: object) -> str | None:
        found = self.new(quoted(uuid)) if isinstance(uuid, str) else None
        return None if found is None else json.loads(found)


# Records that are no links


def _note_custom_title(aside: Aside, fields: Fields) -> None:
    aside.custom_title = _text(fields, "customTitle") or aside.custom_title


def _note_ai_title(aside: Aside, fields: Fields) -> None:
    aside.ai_title = _text(fields, "aiTitle") or aside.ai_title


def _note_last_prompt(aside: Aside, fields: Fields) -> None:
    aside.last_prompt = _text(fields, "lastPrompt") or aside.last_prompt
    if as_id(fields.get("leafUuid")) is not None or is_true(fields, "explicit"):
        aside.resumed = fields


def _note_replacements(aside: Aside, fields: Fields) -> None:
    found = lines.decode(bytes(fields.get("replacements", NULL)))
    if isinstance(found, list) and _text(fields, "sessionId") == aside.session_id:
        aside.replacements.extend(found)


def _note_carried(aside: Aside, fields: Fields) -> None:
    aside.carried[bytes(fields["type"])] = fields


NOTES: dict[bytes, Callable[[Aside, Fields], None]] = {
    b'"custom-title"': _note_custom_title,
    b'"ai-title"': _note_ai_title,
    b'"last-prompt"': _note_last_prompt,
    b'"content-replacement"': _note_replacements,
    # They hold for the fork too.
    b'"atis-latch"': _note_carried,
    b'"relocated"': _note_carried,
    b'"tools-used"': _note_carried,
}


# Records and ids


def read_fields(source: int) -> Iterator[Fields]:
    """The intact records of a transcript."""
    for _, block in lines.read_blocks(source):
        for line in _mended(block).split(b"\n"):
            if not line:
                continue
            try:
                yield _decoder.decode(line)
            except (ValueError, RecursionError):  # among them every error of msgspec's
                yield from map(_loose_fields, lines.read_line(line)[0])


def _mended(block: bytes) -> bytes:
    """The block in UTF-8, which no reader of the fork shall stumble over."""
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return block.decode("utf-8", "replace").encode()
    return block


def _loose_fields(record: bytes) -> Fields:
    try:
        return _decoder.decode(record)
    except (ValueError, RecursionError):
        values = dict(lines.decode(record))  # type: ignore[call-overload]  a record is an object
        return {
            name: Raw(json.dumps(value, separators=(",", ":")).encode()) for name, value in values.items()
        }


def is_true(fields: Fields, name: str) -> bool:
    """Whether a record says so."""
    raw = fields.get(name)
    return raw is not None and bytes(raw) not in EMPTY


def as_id(raw: Raw | None) -> Id | None:
    """A value as a uuid, if it is a text and not empty."""
    found = b"" if raw is None else bytes(raw)
    if len(found) < 3 or found[:1] != b'"':
        return None
    return quoted(json.loads(found)) if b"\\" in found else found


def quoted(text: str) -> Id:
    """A text as it stands in a file."""
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(text).encode()


def _text(fields: Fields, name: str) -> str | None:
    found = lines.decode(bytes(fields.get(name, NULL)))
    return found if isinstance(found, str) else None


def new_ids() -> Iterator[Id]:
    """Random uuids of version 4, many drawn at a time."""
    while True:
        noise = os.urandom(16 * UUIDS).hex()
        for at in range(0, len(noise), 32):
            one = noise[at : at + 32]
            variant = "89ab"[int(one[16], 16) & 3]
            yield f'"{one[:8]}-{one[8:12]}-4{one[13:16]}-{variant}{one[17:20]}-{one[20:]}"'.encode()
