"""The records of a transcript as links of a chain: each names its parent. What they say is left undecoded."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from hitherto.claude import lines

KINDS = frozenset({"user", "assistant", "progress", "system", "attachment"})
SPOKEN = frozenset({"user", "assistant"})
NOTHING = msgspec.Raw(b"null")


class Link(msgspec.Struct, rename="camel", gc=False):
    """One record, as far as its place in the conversation and its visibility are concerned."""

    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    team_name: str | None = None
    agent_id: str | None = None
    session_id: str | None = ""
    timestamp: str | None = None
    source_uuid: str | None = msgspec.field(name="sourceToolAssistantUUID", default=None)
    subtype: str | None = None
    message: msgspec.Raw = NOTHING
    # What a record of the type system says, which has no message.
    content: msgspec.Raw = NOTHING
    attachment: msgspec.Raw = NOTHING
    compact_metadata: msgspec.Raw = NOTHING
    # Of records of the type last-prompt: the leaf that the command line stood at, or that it stood at none.
    leaf_uuid: str | None = None
    explicit: bool | None = None


# The type comes first in what the program writes; the rest of an attachment may be long and is not searched.
_QUEUED = re.compile(rb'\s*\{\s*"type"\s*:\s*"queued_command"')
_link = msgspec.json.Decoder(Link)
_TRUTHS = ("is_sidechain", "is_meta", "is_compact_summary", "explicit")
_RAWS = ("message", "content", "attachment", "compact_metadata")
_NAMES = dict(zip(Link.__struct_fields__, Link.__struct_encode_fields__, strict=True))


def link(record: bytes) -> Link:
    """The link in an intact record, whatever the types of its values."""
    try:
        return _link.decode(record)
    except (ValueError, RecursionError):  # among them every error of msgspec's
        return _loose_link(lines.decode_object(record))


def _loose_link(values: dict[str, object]) -> Link:
    found = Link()
    for field, name in _NAMES.items():
        if name not in values:
            continue
        value = values[name]
        if field in _TRUTHS:
            setattr(found, field, bool(value))
        elif field in _RAWS:
            setattr(found, field, msgspec.Raw(lines.encode(value)))
        elif value is None or isinstance(value, str):
            setattr(found, field, value)
    return found


def links(records: Iterable[bytes]) -> list[Link]:
    """The links of intact records, in the order of the file; records of every type."""
    return [link(record) for record in records]


def decode_links(data: bytes | memoryview) -> list[Link]:
    """The links of undamaged lines, at once; ValueError or RecursionError if anything about them is unusual."""
    return _link.decode_lines(data)


def is_spoken(entry: Link) -> bool:
    """Whether somebody said this: the user, a tool in the user's place, or the model."""
    return entry.type in SPOKEN


def is_aside(entry: Link) -> bool:
    """Whether this stands beside the conversation: of a subagent, of a team, or put in by the program."""
    return bool(entry.is_sidechain or entry.team_name or entry.is_meta)


def same_writer(one: Link, other: Link) -> bool:
    """Whether two links were written by the same agent."""
    return bool(one.is_sidechain) == bool(other.is_sidechain) and one.agent_id == other.agent_id


def is_queued_prompt(entry: Link) -> bool:
    """Whether this is a prompt that the user gave while the model was at work."""
    return entry.type == "attachment" and _QUEUED.match(entry.attachment) is not None
