"""Claude Code as a source: transcripts as sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hitherto.claude.paths import TRANSCRIPT
from hitherto.limits import RAW_BYTES
from hitherto.model import FORKED_FROM, Json, Session, encode
from hitherto.ports import RawCopy
from hitherto.service import Imported
from hitherto.service.compaction.imported import Branch, Summarised
from hitherto.sources.claude import files as claude_files
from hitherto.sources.claude import parse
from hitherto.sources.claude.beside import copies_beside, with_long_outputs
from hitherto.sources.claude.entries import entry_id
from hitherto.sources.claude.files import TranscriptFile as Transcript
from hitherto.sources.claude.parse import Compacted, Parsed, State
from hitherto.sources.port import FoundSession, Known, Reading, Unreadable, found_unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.files import MS, path_meta, path_of
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
        parsed = read.parsed
        extends = parsed.change == "extends"
        said = [*parsed.entries, *(entry for branch in parsed.branches for entry in branch.entries)]
        since = known.stamp[3] if known is not None and extends else None
        return Reading(
            imported=imported_from(read.found, parsed),
            entries=with_long_outputs(said, read.found),
            total=parsed.total,
            state=encode(parsed.state),
            extends=extends,
            amended=parsed.amended,
            compactions=list(_summarised(parsed.compactions)),
            branches=[
                Branch(each.after, len(each.entries), tuple(_summarised(each.compactions)))
                for each in parsed.branches
            ],
            raw=[*_raw(read), *copies_beside(read.found, since)],
            size=len(read.data),
            damaged=parsed.info.damage.records,
            unknown=parsed.info.unknown,
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


def imported_from(found: Transcript, parsed: Parsed) -> Imported:
    """The session in a transcript."""
    info = parsed.info
    at = found.file.at
    notes = claude_files.notes(found) if found.agent is None else claude_files.Notes()
    updated = info.updated_at or at
    archived = bool(notes.archived) and (notes.archived_at is None or updated <= notes.archived_at)
    return Imported(
        id=_session_id(found, parsed),
        source=NAME,
        created_at=min(info.created_at or at, updated),
        updated_at=updated,
        cwd=info.cwd if info.cwd and info.cwd.startswith("/") else None,
        cwds=tuple(cwd for cwd in info.cwds if cwd.startswith("/")),
        branch=info.git_branch if info.git_branch != DETACHED else None,
        title=notes.custom_title or info.title or title_from(info.first_prompt or ""),
        tags=info.tags,
        agent_id="claude-code",
        parent=_origin(found, parsed),
        parent_entry=None if info.forked_at is None else entry_id(info.forked_at),
        archived=archived,
        meta=_meta(found, parsed),
    )


def _summarised(compactions: Sequence[Compacted]) -> Iterator[Summarised]:
    for each in compactions:
        if each.summary is not None:
            yield Summarised(summary=each.summary, kept=each.kept, until=each.boundary, prefix=each.prefix)


def _session_id(found: Transcript, parsed: Parsed) -> str:
    if found.agent is not None:
        return parse.child_id(_parent(found, parsed), found.agent)
    return parse.session_id(found.session or parsed.info.session_id or found.path.stem)


def _origin(found: Transcript, parsed: Parsed) -> str | None:
    """The session that started this one, or from which it was forked."""
    if found.agent is not None:
        return parse.session_id(_parent(found, parsed))
    origin = parsed.info.forked_from
    return None if origin in (None, found.session) else parse.session_id(origin or "")


def _parent(found: Transcript, parsed: Parsed) -> str:
    return found.session or parsed.info.session_id or "unknown"


def _meta(found: Transcript, parsed: Parsed) -> Json:
    """Further metadata; empty values are left out."""
    info = parsed.info
    meta: Json = {
        **path_meta(found.path),
        "git_branch": info.git_branch,
        "models": list(info.models),
        "usage": None if info.usage is None else msgspec.to_builtins(info.usage),
        "cost": info.cost,
        "cost_at": info.cost_at,
        "version": info.version,
        "entrypoint": info.entrypoint,
        "continued_in": info.continued_in,
        FORKED_FROM: _origin(found, parsed) if found.agent is None else None,
        "unknown_records": info.unknown,
        "damaged_records": parsed.info.damage.records,
    }
    if found.agent is not None:
        said = claude_files.agent_notes(found)
        meta |= {"agent": found.agent, "agent_type": said.agent_type, "tool_use_id": said.tool_use_id}
        meta["description"] = said.description
    return {name: value for name, value in meta.items() if value}


def _raw(read: _Read) -> Iterator[RawCopy]:
    """The exact bytes that were read, in pieces named by their offset."""
    data = read.consumed
    for start in range(0, len(data), RAW_BYTES):
        yield RawCopy(f"{read.start + start:015d}", data[start : start + RAW_BYTES])
