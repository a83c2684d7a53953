"""Forking a session: its transcript as a new one, with ids of its own.

One reading copies the transcript, however large, holding no more of it than a block. A record keeps its bytes; only
the values that tie it to its session are replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Raw

from recollect.claude import chain, lines
from recollect.claude.places import TRANSCRIPT, is_session_id, open_transcript
from recollect.claude.tree import Branch, Tree
from recollect.claude.writing import checked_id, encoded, found_session, iso_now, sync_folder

Fields = dict[str, Raw]
Id = bytes
"""A uuid as it stands in the file, quotes included."""

KINDS = {json.dumps(kind).encode(): kind for kind in chain.KINDS}
SPOKEN = {json.dumps(kind).encode() for kind in chain.SPOKEN}
PROGRESS = b'"progress"'
NULL = Raw(b"null")
FALSE = Raw(b"false")
FALSY = frozenset({b"false", b"null", b"0", b'""', b"[]", b"{}"})
LEFT_OUT = ("teamName", "agentName", "slug", "sourceToolAssistantUUID")
"""What ties a record to the company its session was in."""
CARRIED = frozenset({"atis-latch", "relocated", "tools-used"})
"""Records without a uuid that hold for the fork too; the last of each kind."""
BLOCK = 1 << 20
UUIDS = 512

_fields = msgspec.json.Decoder(Fields)
_encoder = msgspec.json.Encoder()


@dataclass
class ForkSessionResult:
    """Result of a fork: the id of the new session."""

    session_id: str


def fork_session(
    session_id: str,
    directory: str | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
    *,
    dir: str | None = None,
    branch: Branch = "sdk",
) -> ForkSessionResult:
    """Copy a session into a new one beside it; with `up_to_message_id`, up to and including that message.

    What `get_session_messages(branch=…)` shows of the one it shows of the other, and `claude --resume` goes on from
    there. The fork is there as a whole and on disk when this returns, or not at all. Snapshots of files, the tag and
    the transcripts of subagents are not copied.

    ValueError for what is not an id, for a message that is not in the session and for a session without messages;
    FileNotFoundError if there is no such session.
    """
    checked_id(session_id)
    if up_to_message_id and not is_session_id(up_to_message_id):
        raise ValueError(f"Invalid up_to_message_id: {up_to_message_id}")
    path = found_session(session_id, directory or dir)
    fork_id = str(uuid4())
    source = open_transcript(path, os.O_RDONLY)
    try:
        cut = _cut(source, session_id, up_to_message_id) if up_to_message_id else EVERYTHING
        with _new_transcript(path.parent, fork_id) as target:
            _copy(source, target, session_id, fork_id, cut, title, branch)
    finally:
        os.close(source)
    return ForkSessionResult(session_id=fork_id)


# Where to cut


@dataclass(frozen=True, slots=True)
class Cut:
    """Which links to copy: all up to the first with the uuid `until`, or just those `among` some."""

    until: Id | None = None
    among: frozenset[Id] | None = None


EVERYTHING = Cut()


def _cut(source: int, session_id: str, message_id: str) -> Cut:
    """The cut behind a message.

    The file up to there holds all that was said before, as a rule. Not so for a message that a compaction kept: the
    summary it now follows was written after it, and then only the way to the message is taken.
    """
    links = list(_links(source))
    own = [place for place, link in enumerate(links) if _is_copied(link)]
    if not own:
        raise ValueError(f"Session {session_id} has no messages to fork")
    place = next((place for place in own if links[place].uuid == message_id), None)
    if place is None:
        raise ValueError(f"Message {message_id} not found in session {session_id}")
    until = json.dumps(message_id).encode()
    way = Tree(links, bridged=True).way_to(place)
    if max(way) <= place:
        return Cut(until)
    return Cut(until, frozenset(json.dumps(links[at].uuid).encode() for at in way))


def _is_copied(link: chain.Link) -> bool:
    return link.type in chain.KINDS and link.uuid is not None and not link.is_sidechain


def _links(source: int) -> Iterator[chain.Link]:
    for _, block in lines.read_blocks(source):
        try:
            found = chain.decode_links(block)
        except (ValueError, RecursionError):
            found = chain.links(lines.read_records(block)[0])
        for link in found:
            # They would hold on to all that was read.
            link.message = link.attachment = chain.NOTHING
            yield link


# Copying


class _Copy:
    """One reading of a transcript, record by record, into lines of its fork.

    A link may name one that comes later, or never. It is given a new uuid all the same; `wrong` tells in the end
    which of these were never written, and another reading that is told of them gets them right.
    """

    def __init__(self, session_id: str, fork_id: str, cut: Cut, before: _Copy | None = None) -> None:
        self.now = iso_now()
        self.lines = bytearray()
        self.title: str | None = None
        self.replacements: list[object] = []
        self.carried: dict[str, Fields] = {}
        self.prompt: Fields | None = None
        self.done = False
        self._session = session_id
        self._fork = Raw(_quoted(fork_id))
        self._now = Raw(_quoted(self.now))
        self._from = b'{"sessionId":' + _quoted(session_id) + b',"messageUuid":'
        self._cut = cut
        self._ids = _new_ids()
        self._new: dict[Id, Id] = {}
        self._written: set[Id] = set()
        self._guessed: set[Id] = set()
        # Links that are not copied, each with its parent: what follows them follows from there.
        self._passed: dict[Id, Id | None] = {} if before is None else before._passed
        self._missing = frozenset() if before is None else before.wrong
        # The link copied last, by agent: where a link's parent is lost, it goes on from there.
        self._last: dict[bytes | None, Id] = {}
        self._spoken: dict[bool, Id] = {}
        self._held: Fields | None = None
        self._ai_title: str | None = None
        self._custom_title: str | None = None
