"""Claude Code's transcript files: finding them for one `stat` each, and what stands beside them.

Links are never followed, and nothing but regular files is opened. Nothing is ever written.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from hitherto.claude.paths import ARCHIVED, TITLE, TRANSCRIPT, is_session_id, read_sidecar, session_folder
from hitherto.model import Json, Value
from hitherto.sources.port import Unreadable
from hitherto.sources.shared.files import FoundFile, list_folder

AGENT = "agent-"
SUBAGENTS = "subagents"
_SIDECARS = (ARCHIVED, TITLE)
# Folders of workflows inside of folders of subagents; deeper ones are not of the program's making.
_DEPTH = 8


class TranscriptFile(msgspec.Struct, frozen=True, gc=False):
    """A transcript file and what its folder says of it.

    `session` is the uuid of the session; of a subagent (`agent` is its id) that of its parent, None if only the
    transcript itself knows it. `project` is the name of the project's folder. `noted_ns` is when the small files
    beside a session's transcript were changed last, 0 if there are none: see `notes`.
    """

    file: FoundFile
    project: str
    session: str | None
    agent: str | None = None
    noted_ns: int = 0

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.file.path

    @property
    def identity(self) -> str:
        """What a copy of it in another project's folder has in common with it; empty if only the transcript knows."""
        if self.agent is None or self.session is None:
            return self.session or ""
        return f"{self.session}:{self.agent}"


class Notes(Value, frozen=True):
    """What the small files beside a session's transcript say. `archived_at` is in ms."""

    archived: bool | None = None
    archived_at: int | None = None
    custom_title: str | None = None


class AgentNotes(Value, frozen=True, rename="camel"):
    """What the small file beside a subagent's transcript says."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    parent_agent_id: str | None = None


def find(config_home: Path, unreadable: list[Unreadable]) -> Iterator[TranscriptFile]:
    """Every transcript under Claude Code's folder, those of subagents included; none if there is no such folder. Folders
    that cannot be read are added to `unreadable`."""
    projects = config_home / "projects"
    for name in list_folder(projects, unreadable=unreadable).folders:
        yield from _in_project(f"{projects}/{name}", name, unreadable)


def notes(found: TranscriptFile) -> Notes:
    """What the files beside a session's transcript say; those that were found, so that none is looked for in vain."""
    if not found.noted_ns:
        return Notes()
    folder = session_folder(found.path)
    archived = read_sidecar(folder / ARCHIVED)
    title = read_sidecar(folder / TITLE).get("customTitle")
    flag, at = archived.get("archived"), archived.get("at")
    return Notes(
        archived=flag if isinstance(flag, bool) else None,
        archived_at=_moment(at),
        custom_title=title if isinstance(title, str) and title.strip() else None,
    )


def agent_notes(found: TranscriptFile) -> AgentNotes:
    """What the file beside a subagent's transcript says."""
    return agent_notes_in(read_sidecar(found.path.with_suffix(".meta.json")))


def agent_notes_in(said: Json) -> AgentNotes:
    """What such a file says, from its content."""
    names = AgentNotes.__struct_encode_fields__
    texts = {name: said[name] for name in names if isinstance(said.get(name), str)}
    return msgspec.convert(texts, AgentNotes)


def _in_project(folder: str, project: str, unreadable: list[Unreadable]) -> Iterator[TranscriptFile]:
    there = list_folder(folder, TRANSCRIPT, unreadable=unreadable)
    noted: dict[str, int] = {}
    for name in there.folders:
        if is_session_id(name):
            noted[name] = yield from _in_session(f"{folder}/{name}", project, name, unreadable)
    for file in there.files:
        stem = file.name[: -len(TRANSCRIPT)]
        if is_session_id(stem):
            yield TranscriptFile(file, project, stem, None, noted.get(stem, 0))
        elif stem.startswith(AGENT):
            # Where versions of 2025 put subagents.
            yield TranscriptFile(file, project, None, stem.removeprefix(AGENT))


def _in_session(
    folder: str, project: str, session: str, unreadable: list[Unreadable]
) -> Generator[TranscriptFile, None, int]:
    """The subagents of a session; returns when the small files beside them were changed last."""
    there = list_folder(folder, *_SIDECARS, unreadable=unreadable)
    if SUBAGENTS in there.folders:
        yield from _agents(f"{folder}/{SUBAGENTS}", project, session, _DEPTH, unreadable)
    return max((max(1, file.stamp[3]) for file in there.files if file.name in _SIDECARS), default=0)


def _agents(
    folder: str, project: str, session: str, depth: int, unreadable: list[Unreadable]
) -> Iterator[TranscriptFile]:
    there = list_folder(folder, TRANSCRIPT, unreadable=unreadable)
    for file in there.files:
        if file.name.startswith(AGENT):
            yield TranscriptFile(
                file, project, session, file.name.removeprefix(AGENT).removesuffix(TRANSCRIPT)
            )
    for name in there.folders if depth else ():
        yield from _agents(f"{folder}/{name}", project, session, depth - 1, unreadable)


def _moment(at: object) -> int | None:
    """A moment that is written as a number of ms, or as a date."""
    if isinstance(at, int | float) and not isinstance(at, bool):
        return int(at)
    try:
        return None if at is None else round(msgspec.convert(at, datetime).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
