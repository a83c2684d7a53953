"""Claude Code as a source: transcripts as sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from hitherto.claude.paths import TRANSCRIPT
from hitherto.model import FORKED_FROM, Json, Session, encode
from hitherto.service import Imported
from hitherto.service.compaction.imported import Branch, Summarised
from hitherto.sources.claude import files as claude_files
from hitherto.sources.claude import parse
from hitherto.sources.claude.beside import LongOutput, copies_beside, output_beside, with_long_outputs
from hitherto.sources.claude.entries import entry_id
from hitherto.sources.claude.files import AgentNotes, Notes
from hitherto.sources.claude.files import TranscriptFile as Transcript
from hitherto.sources.claude.parse import Compacted, Parsed, State
from hitherto.sources.port import Census, FoundSession, Known, Reading, Unreadable, found_unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.files import MS, path_meta, path_of, raw_copies
from hitherto.values.titles import title_from

NAME = "claude"
DETACHED = "HEAD"
"""The branch name in records if no branch is checked out."""


class _Read(NamedTuple):
    """What was read of a file: its bytes from `start` on, and the result."""

    found: Transcript
    data: bytes
    start: int
    parsed: Parsed

    @property
    def consumed(self) -> bytes:
        return self.data[: self.parsed.state.offset - self.start]


class ClaudeSource(msgspec.Struct, frozen=True):
    """The transcripts under Claude Code's folder `home`."""

    home: Path
    name: str = NAME
    version: int = parse.VERSION

    def folders(self) -> Sequence[Path]:
        return (self.home / "projects",)

    def beside(self) -> Sequence[Path]:
        return ()

    def find(self) -> Iterator[FoundSession]:
        unreadable = list[Unreadable]()
        for each in claude_files.find(self.home, unreadable):
            file = each.file
            stamp = file.stamp
            noted = (*stamp, each.noted_ns) if each.noted_ns else stamp
            yield FoundSession(self, file.where, noted, stamp[3] // MS, each, stamp[2], each.identity)
        yield from found_unreadable(self, unreadable)

    def read(self, found: FoundSession, known: Known | None) -> Reading:
        read = _read(found.where_as(Transcript), known)
        extends = read.parsed.change == "extends"
        since = known.stamp[3] if known is not None and extends else None
        return reading_of(read.parsed, origin_of(read.found), partial(output_beside, read.found))._replace(
            raw=[*raw_copies(read.consumed, read.start), *copies_beside(read.found, since)],
            size=len(read.data),
        )

    def resume(self, session: Session) -> Sequence[str] | None:
        source, _, uuid = session.id.partition(":")
        return None if source != NAME or ":" in uuid else ("claude", "--resume", uuid)

    def restorable_path(self, session: Session) -> Path | None:
        path = path_of(session)
        inside = path.is_relative_to(self.home / "projects") and ".." not in path.parts
        return path if inside and path.suffix == TRANSCRIPT else None


def _read(file: Transcript, known: Known | None) -> _Read:
    state = _state(file, known)
    if state is not None:
        data = files.read_from(file.path, state.offset, state.seal)
        parsed = None if data is None else parse.parse(data, state)
        if data is not None and parsed is not None and parsed.change != "rebuild":
            return _Read(file, data, state.offset, parsed)
    data = files.read_whole(file.path)
    return _Read(file, data, 0, parse.parse(data))


def _state(file: Transcript, known: Known | None) -> State | None:
    """The state to continue from, if the file is the one that was read and has only grown."""
    if known is None:
        return None
    if known.stamp[:2] != file.file.stamp[:2] or file.file.size < known.stamp[2]:
        return None
    return parse.load_state(known.state)


class TranscriptOrigin(NamedTuple):
    """What is known of a transcript beside its records: whose it is, when it was written, the notes beside it, its file."""

    session: str | None
    agent: str | None
    at: int
    notes: Notes = Notes()
    agent_notes: AgentNotes = AgentNotes()
    path: Path | None = None


def origin_of(found: Transcript) -> TranscriptOrigin:
    """What is known of a transcript in a file."""
    session, agent, at = found.session, found.agent, found.file.at
    if agent is not None:
        told = claude_files.agent_notes(found)
        return TranscriptOrigin(session, agent, at, agent_notes=told, path=found.path)
    return TranscriptOrigin(session, agent, at, claude_files.notes(found), path=found.path)


def reading_of(parsed: Parsed, origin: TranscriptOrigin, output: LongOutput) -> Reading:
    """What was read of a transcript; `output` gives what of long outputs stands beside it."""
    said = [*parsed.entries, *(entry for branch in parsed.branches for entry in branch.entries)]
    return Reading(
        imported=imported_from(origin, parsed),
        entries=with_long_outputs(said, output),
        total=parsed.total,
        state=encode(parsed.state),
        extends=parsed.change == "extends",
        amended=parsed.amended,
        compactions=list(_summarised(parsed.compactions)),
        branches=[
            Branch(each.after, len(each.entries), tuple(_summarised(each.compactions)))
            for each in parsed.branches
        ],
        damaged=parsed.info.damage.records,
        unknown=parsed.info.unknown,
        census=Census(parsed.info.shown, parsed.info.left_out),
    )


def imported_from(origin: TranscriptOrigin, parsed: Parsed) -> Imported:
    """The session in a transcript."""
    info, at, notes = parsed.info, origin.at, origin.notes
    updated = info.updated_at or at
    archived = bool(notes.archived) and (notes.archived_at is None or updated <= notes.archived_at)
    return Imported(
        id=_session_id(origin, parsed),
        source=NAME,
        created_at=min(info.created_at or at, updated),
        updated_at=updated,
        cwd=info.cwd if info.cwd and info.cwd.startswith("/") else None,
        cwds=tuple(cwd for cwd in info.cwds if cwd.startswith("/")),
        branch=info.git_branch if info.git_branch != DETACHED else None,
        title=notes.custom_title or info.title or title_from(info.first_prompt or ""),
        tags=info.tags,
        agent_id="claude-code",
        parent=_parent_id(origin, parsed),
        parent_entry=None if info.forked_at is None else entry_id(info.forked_at),
        archived=archived,
        meta=_meta(origin, parsed),
    )


def _summarised(compactions: Sequence[Compacted]) -> Iterator[Summarised]:
    for each in compactions:
        if each.summary is not None:
            yield Summarised(summary=each.summary, kept=each.kept, until=each.boundary, prefix=each.prefix)


def _session_id(origin: TranscriptOrigin, parsed: Parsed) -> str:
    own = origin.session or parsed.info.session_id or "unknown"
    return parse.session_id(own) if origin.agent is None else parse.child_id(own, origin.agent)


def _parent_id(origin: TranscriptOrigin, parsed: Parsed) -> str | None:
    """The session that started this one, or from which it was forked."""
    if origin.agent is not None:
        return parse.session_id(origin.session or parsed.info.session_id or "unknown")
    forked = parsed.info.forked_from
    return None if forked in (None, origin.session) else parse.session_id(forked or "")


def _meta(origin: TranscriptOrigin, parsed: Parsed) -> Json:
    """Further metadata; empty values are left out."""
    info = parsed.info
    meta: Json = {
        **({} if origin.path is None else path_meta(origin.path)),
        "git_branch": info.git_branch,
        "models": list(info.models),
        "usage": None if info.usage is None else msgspec.to_builtins(info.usage),
        "cost": info.cost,
        "cost_at": info.cost_at,
        "version": info.version,
        "entrypoint": info.entrypoint,
        "continued_in": info.continued_in,
        FORKED_FROM: _parent_id(origin, parsed) if origin.agent is None else None,
        "unknown_records": info.unknown,
        "damaged_records": parsed.info.damage.records,
    }
    if origin.agent is not None:
        said = origin.agent_notes
        meta |= {"agent": origin.agent, "agent_type": said.agent_type, "tool_use_id": said.tool_use_id}
        meta["description"] = said.description
    return {name: value for name, value in meta.items() if value}
