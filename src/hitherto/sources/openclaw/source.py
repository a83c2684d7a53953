"""OpenClaw as a source: the transcripts of its agents, in a database for each of them or, as it was before, in files.

A logical session, which has a key, continues in a new transcript when it is reset or grows too long. Here each transcript
is a session that names the one it continues. Only the tables named here are read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw
import msgspec

from hitherto.model import Json, Session, encode
from hitherto.service import Imported
from hitherto.sources.pi import parse
from hitherto.sources.pi.parse import Parsed
from hitherto.sources.pi.source import meta_of
from hitherto.sources.port import FoundSession, Known, Reading, Unreadable, found_unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.conversation import text, without_empty
from hitherto.sources.shared.database import (
    ListedSession,
    Row,
    change_bytes_sql,
    columns_sql,
    find_in_database,
    read_database,
    row_counts_sql,
    select,
    sessions_of_query,
)
from hitherto.sources.shared.files import path_meta, path_of, raw_copies
from hitherto.sources.shared.growing_file import decompress
from hitherto.values.titles import title_from

NAME = "openclaw"
DATABASE = "openclaw-agent.sqlite"
SUFFIX = ".jsonl"

NODE = (
    "session_key",
    "current_session_id",
    "updated_at",
    "created_via",
    "parent_session_key",
    "spawned_by",
    "fork_source_session_id",
    "label",
    "display_name",
    "archived_at",
)
WINDOW = (
    "session_id",
    "session_key",
    "previous_session_id",
    "reason",
    "updated_at",
    "transcript_updated_at",
    "chat_type",
    "channel",
    "display_name",
)
EVENT = ("session_id", "seq", "event_json", "event_zstd")
REWRITTEN = ("session_id", "generation", "updated_at")
"""The generation of a transcript: it changes whenever earlier content is rewritten."""
INDEX = "sessions.json"
INDEXED = ("displayName", "label", "subject", "channel", "lastChannel", "chatType")
NOTHING: Json = {}
LONGEST_PACKED = 64 << 20
"""Of an event that is packed, in bytes: sixteen times what OpenClaw packs."""
TORN = b"{"
"""Stands for an event that cannot be had, and counts as damaged."""


class File(msgspec.Struct, frozen=True, gc=False):
    """A transcript in a file, and its entry in the index; None if the index cannot be read at the moment."""

    file: files.FoundFile
    index_entry: Json | None


def read_index(path: Path, unreadable: list[Unreadable]) -> dict[str, Json] | None:
    """What is known of the sessions in a folder, by their ids. None if nobody can tell just now: an index that cannot be
    read is added to `unreadable`."""
    try:
        index = msgspec.json.decode(files.read_whole(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        unreadable.append(Unreadable(str(path), f"{error}; what was read from it before is kept"))
        return None
    entries = index.items() if isinstance(index, dict) else ()
    return {
        str(entry.get("sessionId")): {name: text(entry, name) for name in INDEXED} | {"session_key": key}
        for key, entry in entries
        if isinstance(entry, dict)
    }


class OpenclawSource(msgspec.Struct, frozen=True):
    """The transcripts of the agents in OpenClaw's folder."""

    home: Path
    name: str = NAME
    version: int = 2

    def folders(self) -> Sequence[Path]:
        return (self.home / "agents",)

    def beside(self) -> Sequence[Path]:
        return ()

    def find(self) -> Iterator[FoundSession]:
        unreadable = list[Unreadable]()
        for name in files.list_folder(self.home / "agents", unreadable=unreadable).folders:
            agent = self.home / "agents" / name
            ids, whole = set[str](), True
            for found in self._in_database(agent / "agent", unreadable):
                ids.add(found.identity)
                whole = whole and bool(found.stamp)
                yield found
            # A session in both is newer in the database; while that cannot be read, it is not known which these are.
            yield from self._in_files(agent / "sessions", ids, unreadable) if whole else ()
        yield from found_unreadable(self, unreadable)

    def _in_database(self, folder: Path, unreadable: list[Unreadable]) -> Iterator[FoundSession]:
        for file in files.list_folder(folder, DATABASE, unreadable=unreadable).files:
            if file.name == DATABASE:
                yield from find_in_database(self, file, _listed)

    def _in_files(
        self, folder: Path, known: set[str], unreadable: list[Unreadable]
    ) -> Iterator[FoundSession]:
        index = read_index(folder / INDEX, unreadable)
        index_entry, nothing = (None, None) if index is None else (NOTHING, 0)
        for file in files.list_folder(folder, SUFFIX, unreadable=unreadable).files:
            if (id := file.name[: -len(SUFFIX)]) not in known:
                stamp, where, mark = file.stamp, File(file, index_entry), nothing
                if index and id in index:
                    where, mark = File(file, index[id]), zlib.crc32(encode(index[id]))
                yield FoundSession(
                    self, file.where, (*stamp, mark), stamp[3] // files.MS, where, stamp[2], id
                )

    def read(self, found: FoundSession, known: Known | None) -> Reading:
        if isinstance(found.where, Row):
            return _from_row(found.where)
        return _from_file(found.where_as(File), is_known=known is not None)

    def resume(self, session: Session) -> Sequence[str] | None:
        """Only the current transcript of a session can be resumed."""
        key = session.meta.get("session_key")
        return (NAME, "tui", "--session", key) if isinstance(key, str) else None

    def restorable_path(self, session: Session) -> Path | None:
        path = path_of(session)
        inside = path.is_relative_to(self.home / "agents") and ".." not in path.parts
        return path if inside and path.suffix == SUFFIX else None


# In files


def _from_file(where: File, *, is_known: bool) -> Reading:
    file, index_entry = where.file, where.index_entry or NOTHING
    data = files.read_whole(file.path)
    parsed = parse.parse(data)
    title = text(index_entry, "displayName", "label", "subject")
    meta = {
        "session_key": text(index_entry, "session_key"),
        "channel": text(index_entry, "channel", "lastChannel"),
        "chat_type": text(index_entry, "chatType"),
        "agent": file.path.parent.parent.name,
    }
    imported = _imported(file, file.path.stem, parsed, title, meta)
    if where.index_entry is None and is_known:
        # What it has stays.
        kept = {name: value for name, value in imported.meta.items() if name != "session_key"}
        imported = msgspec.structs.replace(imported, title=None, meta=kept)
    return _reading(imported, parsed, len(data), raw=list(raw_copies(data)))


# In a database


class _Rows(NamedTuple):
    """All that a database says of a transcript."""

    window: Json
    node: Json
    parent: str | None
    events: list[bytes]


def _listed(database: apsw.Connection) -> Iterable[ListedSession]:
    windows, nodes = (
        columns_sql(database, "session_windows", WINDOW),
        columns_sql(database, "session_nodes", NODE),
    )
    rewritten = columns_sql(database, "transcript_rewrite_watermarks", REWRITTEN)
    return sessions_of_query(
        database,
        "SELECT CAST(e.session_id AS BLOB), max(ifnull(w.updated_at, 0), ifnull(w.transcript_updated_at, 0)),"  # noqa: S608
        f" {change_bytes_sql(w=WINDOW, n=NODE, r=REWRITTEN)}, e.rows, e.newest"
        f" FROM {row_counts_sql(database, 'transcript_events')} AS e"
        f" LEFT JOIN {windows} AS w ON w.session_id = e.session_id"
        f" LEFT JOIN {nodes} AS n ON n.session_key = w.session_key"
        f" LEFT JOIN {rewritten} AS r ON r.session_id = e.session_id",
    )


def _rows(database: apsw.Connection, id: str | None) -> _Rows:
    events = list(_events(database, id))
    if not events:
        raise OSError(
            "the database could not be read" if id is None else f"session {id} is no longer in the database"
        )
    window = _first(database, "session_windows", WINDOW, "WHERE session_id = ?", id)
    node = _node(database, text(window, "session_key"))
    parent = _node(database, text(node, "parent_session_key", "spawned_by"))
    return _Rows(window, node, text(parent, "current_session_id"), events)


def _events(database: apsw.Connection, id: str | None) -> Iterator[bytes]:
    """What is said in a transcript, a line for each, as in a file. A longer event is packed, in newer versions.

    `ValueError` if it is more than a file may hold: little that is packed may become much.
    """
    size = 0
    rows = database.execute(
        "SELECT CAST(event_json AS BLOB), event_zstd"  # noqa: S608 - the names are ours
        f" FROM {columns_sql(database, 'transcript_events', EVENT)} WHERE session_id = ? ORDER BY seq",
        (id,),
    )
    for plain, packed in cast(Any, rows):
        event = _event(packed) if plain is None else plain or TORN
        if (size := size + len(event)) > files.LARGEST:
            raise ValueError(f"larger than {files.LARGEST} bytes, the most that is read")
        # Outside of strings a line end means nothing, and inside there is none.
        yield event.decode("utf-8", "replace").replace("\n", " ").encode() + b"\n"


def _event(packed: Any) -> bytes:
    try:
        return (decompress(packed, LONGEST_PACKED) if isinstance(packed, bytes) else b"") or TORN
    except ValueError:
        return TORN


def _node(database: apsw.Connection, key: str | None) -> Json:
    return _first(database, "session_nodes", NODE, "WHERE session_key = ?", key) if key else {}


def _first(database: apsw.Connection, table: str, columns: Sequence[str], rest: str, given: Any) -> Json:
    return next(select(database, table, columns, rest, [given]), {})


def _from_row(where: Row) -> Reading:
    window, node, parent, events = read_database(where.file.path, lambda database: _rows(database, where.id))
    data = b"".join(events)
    parsed = parse.parse(data)
    is_current = text(node, "current_session_id") == where.id
    meta = {
        "session_key": text(node, "session_key") if is_current else None,
        "channel": text(window, "channel"),
        "chat_type": text(window, "chat_type"),
        "created_via": text(node, "created_via"),
        "agent": where.file.path.parent.parent.name,
        "continues": _id(text(window, "previous_session_id")),
        "forked_from": _id(text(node, "fork_source_session_id")),
    }
    title = text(node, "display_name", "label") or text(window, "display_name")
    imported = _imported(where.file, where.id or "", parsed, title, meta)
    imported = msgspec.structs.replace(
        imported,
        parent=_id(parent) if parent != where.id else None,
        archived=node.get("archived_at") is not None,
    )
    return _reading(imported, parsed, len(data))


def _id(session: str | None) -> str | None:
    return f"{NAME}:{session}" if session else None


def _imported(file: files.FoundFile, id: str, parsed: Parsed, title: str | None, meta: Json) -> Imported:
    info, at = parsed.info, file.at
    updated = info.updated_at or at
    return Imported(
        id=f"{NAME}:{id}",
        source=NAME,
        created_at=min(info.created_at or at, updated),
        updated_at=updated,
        cwd=info.cwd if info.cwd and info.cwd.startswith("/") else None,
        title=title or info.name or title_from(info.first_prompt or ""),
        agent_id=NAME,
        # Set even if there is none, to remove an earlier key.
        meta=meta_of(parsed)
        | without_empty({**path_meta(file.path), **meta})
        | {"session_key": meta["session_key"]},
    )


def _reading(imported: Imported, parsed: Parsed, size: int, raw: Sequence[Any] = ()) -> Reading:
    return Reading(
        imported=imported,
        entries=parsed.entries,
        total=len(parsed.entries),
        compactions=parsed.compactions,
        branches=parsed.branches,
        raw=raw,
        size=size,
        damaged=parsed.damage.records,
        unknown=parsed.unknown,
        census=parsed.census,
    )
