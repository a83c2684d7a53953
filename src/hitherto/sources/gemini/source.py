"""Gemini CLI as a source: its transcripts as sessions of ours."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from hitherto.model import Json, Session
from hitherto.service import Imported
from hitherto.sources.gemini import parse as gemini
from hitherto.sources.gemini.parse import Parsed
from hitherto.sources.port import FoundSession, Known, Reading, Unreadable, found_unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.conversation import usage_totals, without_empty
from hitherto.sources.shared.files import path_meta, path_of, raw_copies

NAME = "gemini"
LOG, DOCUMENT = ".jsonl", ".json"
PREFIX = "session-"
MARK = ".project_root"
"""The file in a project's folder that names where the project is."""
_SLUG = re.compile(r"[\w-][\w.-]*", re.ASCII)


class Transcript(msgspec.Struct, frozen=True, gc=False):
    """A file, the folder of its project, and the session that it is a part of."""

    file: files.FoundFile
    project: Path
    parent: str | None = None


class GeminiSource(msgspec.Struct, frozen=True):
    """The transcripts in Gemini CLI's folder."""

    home: Path
    name: str = NAME
    version: int = 2

    def folders(self) -> Sequence[Path]:
        return (self.home / "tmp",)

    def beside(self) -> Sequence[Path]:
        return ()

    def find(self) -> Iterator[FoundSession]:
        unreadable = list[Unreadable]()
        for project in files.list_folder(self.home / "tmp", unreadable=unreadable).folders:
            for each in _transcripts(self.home / "tmp" / project, unreadable):
                stamp = each.file.stamp
                # Without the ending: a document that was resumed as a log is the same session.
                key = each.file.where.rpartition(".")[0]
                name = key.rpartition("/")[2]
                identity = name if each.parent is None else f"{each.parent}/{name}"
                yield FoundSession(self, key, stamp, stamp[3] // files.MS, each, stamp[2], identity)
        yield from found_unreadable(self, unreadable)

    def read(self, found: FoundSession, known: Known | None) -> Reading:  # noqa: ARG002 - any message may be written anew
        each = found.where_as(Transcript)
        data = files.read_whole(each.file.path)
        parse = gemini.parse if each.file.path.suffix == LOG else gemini.parse_document
        parsed = parse(data)
        conversation = parsed.conversation
        # Going on with a session may leave a second transcript of it beside the first, in which nobody says anything.
        entries = (
            conversation.entries if any("meta" not in entry.meta for entry in conversation.entries) else ()
        )
        return Reading(
            imported=imported_from(each, parsed, self._folder(each.project)),
            entries=entries,
            total=len(entries),
            compactions=conversation.compactions,
            branches=conversation.branches if entries else (),
            raw=list(raw_copies(data)),
            size=len(data),
            damaged=conversation.damaged,
            unknown=conversation.unknown,
            census=conversation.census,
        )

    def resume(self, session: Session) -> Sequence[str] | None:
        """A subagent's session cannot be resumed."""
        id = session.id.removeprefix(f"{NAME}:")
        return None if session.parent else (NAME, "--resume", id)

    def restorable_path(self, session: Session) -> Path | None:
        path = path_of(session)
        inside = path.is_relative_to(self.home / "tmp") and ".." not in path.parts
        return path if inside and path.suffix in (LOG, DOCUMENT) else None

    def _folder(self, project: Path) -> str | None:
        """The folder that a project is in: its mark says so, or the list of projects; older ones are named by a hash."""
        marked = _text(project / MARK).strip()
        if marked.startswith("/"):
            return marked
        folders = _projects(self.home / "projects.json")
        by_name = {name: folder for folder, name in folders.items() if isinstance(name, str)}
        by_hash = {hashlib.sha256(folder.encode()).hexdigest(): folder for folder in folders}
        return by_name.get(project.name) or by_hash.get(project.name)


def project_folder(home: Path, cwd: str) -> Path:
    """The folder that Gemini CLI has for a project, or else the one to make for it, which has to be marked."""
    tmp = home / "tmp"
    named = _projects(home / "projects.json").get(cwd)
    if isinstance(named, str) and _SLUG.fullmatch(named):
        return tmp / named
    there = {path.name for path in tmp.iterdir()} if tmp.is_dir() else set[str]()
    for name in sorted(there):
        if _text(tmp / name / MARK).strip() == cwd:
            return tmp / name
    slug = re.sub(r"[^a-z0-9]+", "-", Path(cwd).name.lower()).strip("-") or "project"
    names = (slug, *(f"{slug}-{number}" for number in range(1, len(there) + 2)))
    return tmp / next(name for name in names if name not in there)


def _projects(path: Path) -> Json:
    """The folders of projects and their names; empty if the file cannot be read."""
    try:
        decoded = msgspec.json.decode(_text(path))
    except msgspec.DecodeError:
        return {}
    projects = decoded.get("projects") if isinstance(decoded, dict) else None
    return projects if isinstance(projects, dict) else {}


def _transcripts(project: Path, unreadable: list[Unreadable]) -> Iterator[Transcript]:
    """The transcripts of a project. A resumed document has a log of the same name, with all of it."""
    chats = project / "chats"
    there = files.list_folder(chats, LOG, DOCUMENT, unreadable=unreadable)
    names = {file.name for file in there.files}
    for file in there.files:
        if file.name.startswith(PREFIX) and f"{file.name}l" not in names:
            yield Transcript(file, project)
    for folder in there.folders:
        for file in files.list_folder(chats / folder, LOG, unreadable=unreadable).files:
            yield Transcript(file, project, parent=folder)


def _text(path: Path) -> str:
    try:
        return files.read_whole(path).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def imported_from(each: Transcript, parsed: Parsed, folder: str | None) -> Imported:
    """The session in a transcript; the transcript does not name its folder."""
    info, conversation, at = parsed.info, parsed.conversation, each.file.at
    updated = max((entry.at for entry in conversation.entries if entry.at), default=info.updated_at or at)
    return Imported(
        id=f"{NAME}:{info.session_id or each.file.path.stem}",
        source=NAME,
        created_at=min(info.created_at or updated, updated),
        updated_at=updated,
        cwd=folder,
        title=info.summary or conversation.title,
        agent_id=NAME,
        parent=f"{NAME}:{each.parent}" if each.parent else None,
        meta=_meta(each, parsed),
    )


def _meta(each: Transcript, parsed: Parsed) -> Json:
    return without_empty(
        {
            **usage_totals(parsed.conversation.entries),
            **path_meta(each.file.path),
            "directories": list(parsed.info.directories),
            "unknown_records": parsed.conversation.unknown,
            "damaged_records": parsed.conversation.damaged,
        }
    )
