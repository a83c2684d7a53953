"""opencode as a source: the sessions in its databases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import apsw
import msgspec

from hitherto.model import Json, Session
from hitherto.service import Imported
from hitherto.sources.opencode import parse
from hitherto.sources.port import FoundSession, Known, Reading, Unreadable, found_unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.conversation import (
    Conversation,
    fit_conversation,
    moment,
    text,
    usage_totals,
    without_empty,
)
from hitherto.sources.shared.database import (
    ListedSession,
    Row,
    find_in_database,
    list_sessions,
    read_database,
    reading_of,
    row_by_id,
    select,
)
from hitherto.sources.shared.files import path_text

NAME = "opencode"
SUFFIX = ".db"
_DEFAULT_NAME = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT.*")

# The table `event` holds every step of everything and is never read.
SESSION = (
    "id",
    "parent_id",
    "fork_session_id",
    "directory",
    "title",
    "version",
    "cost",
    "tokens_input",
    "tokens_output",
    "revert",
    "time_created",
    "time_updated",
    "time_archived",
)
MESSAGE = ("id", "time_created", "data")
PART = ("id", "message_id", "data")
ROW = ("id", "type", "time_created", "data")
CHANGED = {"time_updated": "time_updated"}
COUNTED = {"message": CHANGED, "part": CHANGED, "session_message": CHANGED}
"""Rows are updated in place when an answer or a command ends, without changing the session's own time."""
BY_TIME = "WHERE session_id = ? ORDER BY time_created, id"
BY_ID = "WHERE session_id = ? ORDER BY message_id, id"
BY_SEQ = "WHERE session_id = ? ORDER BY seq"


def home_in(environ: Mapping[str, str]) -> Path:
    """Its data folder, or the database that a variable names."""
    data = Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / NAME
    named = environ.get("OPENCODE_DB", "")
    return data / named if named.endswith(SUFFIX) else data


class OpencodeSource(msgspec.Struct, frozen=True):
    """The databases in opencode's folder, one for each channel; or the one that `home` is."""

    home: Path
    name: str = NAME
    version: int = 2

    def folders(self) -> Sequence[Path]:
        return (self.home.parent if self.home.suffix == SUFFIX else self.home,)

    def beside(self) -> Sequence[Path]:
        return ()

    def find(self) -> Iterator[FoundSession]:
        unreadable = list[Unreadable]()
        for folder in self.folders():
            for file in files.list_folder(folder, SUFFIX, unreadable=unreadable).files:
                if self._is_database(file.name):
                    yield from find_in_database(self, file, _list_sessions)
        yield from found_unreadable(self, unreadable)

    def _is_database(self, name: str) -> bool:
        return name == self.home.name if self.home.suffix == SUFFIX else name.startswith(NAME)

    def read(self, found: FoundSession, known: Known | None) -> Reading:  # noqa: ARG002 - rows may change anywhere
        where = found.where_as(Row)
        file, id = where.file, where.id
        session, messages, parts, rows = read_database(file.path, lambda database: _rows(database, id))
        records = [str(row["data"]) for row in (*messages, *parts, *rows)]
        conversation = fit_conversation(parse.parse(session, messages, parts, rows), records)
        return reading_of(imported_from(file, session, conversation), conversation, records)

    def resume(self, session: Session) -> Sequence[str] | None:
        return (NAME, "--session", session.id.removeprefix(f"{NAME}:"))

    def restorable_path(self, session: Session) -> Path | None:  # noqa: ARG002 - nothing is written into a database
        return None


def _list_sessions(database: apsw.Connection) -> Iterable[ListedSession]:
    return list_sessions(database, "session", SESSION, "time_updated", COUNTED)


def _rows(database: apsw.Connection, id: str | None) -> tuple[Json, list[Json], list[Json], list[Json]]:
    return (
        row_by_id(database, "session", SESSION, id),
        list(select(database, "message", MESSAGE, BY_TIME, [id])),
        list(select(database, "part", PART, BY_ID, [id])),
        list(select(database, "session_message", ROW, BY_SEQ, [id])),
    )


def imported_from(file: files.FoundFile, session: Json, conversation: Conversation) -> Imported:
    """The session in a row."""
    updated = moment(session["time_updated"]) or max((entry.at for entry in conversation.entries), default=0)
    parent, folder, title = text(session, "parent_id"), text(session, "directory"), text(session, "title")
    named = title if title and not _DEFAULT_NAME.fullmatch(title) else None
    return Imported(
        id=f"{NAME}:{session['id']}",
        source=NAME,
        created_at=min(moment(session["time_created"]) or updated, updated),
        updated_at=updated,
        cwd=folder if folder and folder.startswith("/") else None,
        title=named or conversation.title,
        agent_id=NAME,
        parent=f"{NAME}:{parent}" if parent else None,
        archived=session["time_archived"] is not None,
        meta=_meta(file, session, conversation),
    )


def _meta(file: files.FoundFile, session: Json, conversation: Conversation) -> Json:
    fork = text(session, "fork_session_id")
    return without_empty(
        {
            **usage_totals(conversation.entries),
            "path": path_text(file.path),
            "version": text(session, "version"),
            "forked_from": f"{NAME}:{fork}" if fork else None,
            "unknown_records": conversation.unknown,
            "damaged_records": conversation.damaged,
        }
    )
