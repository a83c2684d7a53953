"""Forking a session: a copy of its transcript with new ids."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from hitherto.claude import chain, lines
from hitherto.claude.edit import Directory, require_session, require_session_id
from hitherto.claude.foreign_files import encoded, iso_now, new_file
from hitherto.claude.fork_copy import Copy, Cut, as_id, plain, quoted, read_fields
from hitherto.claude.paths import TRANSCRIPT, is_session_id, one_of, open_transcript
from hitherto.claude.tree import Branch, Tree

BLOCK = 1 << 18
"""How many bytes are collected for one write."""


@dataclass
class ForkSessionResult:
    """The result of a fork: the id of the new session."""

    session_id: str


def fork_session(
    session_id: str,
    directory: Directory = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
    *,
    dir: Directory = None,
    branch: Branch = "sdk",
) -> ForkSessionResult:
    """Copy a session into a new one beside it; with `up_to_message_id`, up to and including that message.

    `get_session_messages` shows the same messages for both, and `claude --resume` continues the fork from the end of the
    chosen branch. When this returns, the fork is complete and on disk; if it fails, there is no fork. The tag, file
    snapshots and the transcripts of subagents are not copied.

    ValueError for an invalid id, for a message that is not in the session, and for a session without messages;
    FileNotFoundError if there is no such session.
    """
    require_session_id(session_id)
    require_message_id(up_to_message_id)
    path = require_session(session_id, one_of(directory, dir))
    fork = str(uuid4())
    source = open_transcript(path, os.O_RDONLY)
    try:
        with new_file(path.with_name(f"{fork}{TRANSCRIPT}")) as target:
            copy_transcript(source, target, session_id, fork, Wanted(up_to_message_id, title, branch))
    finally:
        os.close(source)
    return ForkSessionResult(session_id=fork)


def require_message_id(message_id: str | None) -> None:
    """ValueError if a message to fork at is given by an id that is not well-formed."""
    if message_id and not is_session_id(message_id):
        raise ValueError(f"Invalid up_to_message_id: {message_id}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a fork is to have: everything, or what was said up to a message; its title; the branch to resume."""

    up_to_message_id: str | None = None
    title: str | None = None
    branch: Branch = "sdk"


def copy_transcript(source: int, target: int, session_id: str, fork: str, wanted: Wanted) -> None:
    """Write the transcript of the new session `fork` into an open file; `source` is that of the session itself."""
    until = wanted.up_to_message_id
    cut = _cut(source, session_id, until) if until else Cut()
    _Fork(session_id, fork, iso_now(), wanted.branch, (wanted.title or "").strip()).write(source, target, cut)


# Where to cut


def _cut(source: int, session_id: str, message_id: str) -> Cut:
    """The cut after a message.

    Usually the file up to there holds everything that was said before. But messages that a compaction kept were written
    before the summary that they now follow: then only the path to the message is copied.
    """
    links = list(_links(source))
    own = [place for place, link in enumerate(links) if link.type in chain.KINDS and not link.is_sidechain]
    own = [place for place in own if links[place].uuid is not None]
    if not own:
        raise ValueError(f"Session {session_id} has no messages to fork")
    place = next((place for place in own if links[place].uuid == message_id), None)
    if place is None:
        raise ValueError(f"Message {message_id} not found in session {session_id}")
    path = Tree(links, bridged=True).path_to(place)
    if max(path) <= place and not _is_followed_by_kept(links[place]):
        return Cut(quoted(message_id))
    return Cut(quoted(message_id), frozenset(quoted(links[at].uuid or "") for at in path))


def _is_followed_by_kept(link: chain.Link) -> bool:
    return bool(link.is_compact_summary) or link.compact_metadata is not chain.NOTHING


def _links(source: int) -> Iterator[chain.Link]:
    for _, block, end in lines.read_blocks(source):
        try:
            found = chain.decode_links(block[:end])
        except (ValueError, RecursionError):
            found = chain.links(lines.read_records(block[:end])[0])
        for link in found:
            # Otherwise they would keep the whole block in memory.
            link.message = link.attachment = chain.NOTHING
            yield link


# Writing


@dataclass(frozen=True, slots=True)
class _Fork:
    session_id: str
    id: str
    now: str
    branch: Branch
    title: str

    def write(self, source: int, target: int, cut: Cut) -> None:
        """Copy the transcript; repeat while a reading assumed links that were not copied."""
        copy: Copy | None = None
        while copy is None or copy.wrong:
            os.ftruncate(target, os.lseek(target, 0, os.SEEK_SET))
            copy = Copy(self.session_id, self.id, self.now, cut, copy)
            for fields in read_fields(source):
                copy.add(fields)
                if len(copy.lines) >= BLOCK:
                    _flush(target, copy.lines)
            if not copy.end():
                raise ValueError(f"Session {self.session_id} has no messages to fork")
            copy.lines += b"".join(map(encoded, self._closing(copy, cut)))
            _flush(target, copy.lines)

    def _closing(self, copy: Copy, cut: Cut) -> Iterator[dict[str, object]]:
        """The records after the links: where to resume, replaced contents, the title."""
        about = copy.about
        yield {"type": "last-prompt", **self._resumed(copy, cut), "sessionId": self.id}
        if about.replacements:
            replaced = {
                "type": "content-replacement",
                "sessionId": self.id,
                "replacements": about.replacements,
            }
            yield {**replaced, **self._stamp()}
        title = self.title or f"{about.title or 'Forked session'} (fork)"
        yield {"type": "custom-title", "sessionId": self.id, "customTitle": title, **self._stamp()}

    def _stamp(self) -> dict[str, object]:
        return {"uuid": str(uuid4()), "timestamp": self.now}

    def _resumed(self, copy: Copy, cut: Cut) -> dict[str, object]:
        """Where the command line resumes: at the cut, at the last message, or where it would in the session itself."""
        leaf, about = copy.leaf, copy.about
        if cut.until is not None:
            return {"leafUuid": plain(leaf)}
        if self.branch == "cli" and about.resumed is not None:
            marked = as_id(about.resumed.get("leafUuid"))
            if marked is None:
                return {"leafUuid": None, "explicit": True}
            leaf = copy.lineage.copied(marked) or leaf
        prompt = {} if about.last_prompt is None else {"lastPrompt": about.last_prompt}
        return {**prompt, "leafUuid": plain(leaf)}


def _flush(target: int, gathered: bytearray) -> None:
    while gathered:
        del gathered[: os.write(target, gathered)]
