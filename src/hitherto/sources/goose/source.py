"""goose as a source: the sessions in its database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import apsw
import msgspec

from hitherto.model import Json, Session
from hitherto.service import Imported
from hitherto.sources.goose import parse
from hitherto.sources.port import FoundSession, Known, Reading, Unreadable, found_unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.conversation import (
    Conversation,
    dollars,
    fit_conversation,
    moment,
    number,
    text,
    usage_totals,
    without_empty,
)
from hitherto.sources.shared.database import (
    ListedSession,
    Row,
    find_in_database,
    json_object,
    list_sessions,
    read_database,
    reading_of,
    row_by_id,
    select,
)
from hitherto.sources.shared.files import path_text

NAME = "goose"
DATABASE = "sessions.db"
HIDDEN = "hidden"
"""The type of goose's internal sessions."""
_DEFAULT_NAME = re.compile(
    r"(?:cli|acp|terminal|gateway|new|untitled)(?: (?:session|chat))?(?: \d+)?", re.IGNORECASE
)

SESSION = (
    "id",
    "name",
    "description",
    "user_set_name",
    "session_type",
    "working_dir",
    "created_at",
    "updated_at",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_cost",
    "provider_name",
    "model_config_json",
    "archived_at",
    "parent_session_id",
)
MESSAGE = ("id", "message_id", "role", "content_json", "created_timestamp", "metadata_json")
LEDGER = (
    "created_timestamp",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost",
)
# Adding to a message, or hiding it, makes it longer. SQLite knows the length without reading the content.
LENGTHS = {
    "content_json": "8191 * octet_length(content_json)",
    "metadata_json": "octet_length(metadata_json)",
}
COUNTED = {"messages": LENGTHS, "usage_ledger": {}}
OF_SESSION = "WHERE session_id = ? ORDER BY id"


def home_in(environ: Mapping[str, str]) -> Path:
    """Its data folder."""
    if root := environ.get("GOOSE_PATH_ROOT"):
        return Path(root) / "data"
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / NAME


class GooseSource(msgspec.Struct, frozen=True):
    """The database in goose's data folder."""

    home: Path
    name: str = NAME
    version: int = 2

    def folders(self) -> Sequence[Path]:
        return (self.home / "sessions",)

    def beside(self) -> Sequence[Path]:
        return ()

    def find(self) -> Iterator[FoundSession]:
        unreadable = list[Unreadable]()
        for folder in self.folders():
            for file in files.list_folder(folder, DATABASE, unreadable=unreadable).files:
                if file.name == DATABASE:
                    yield from find_in_database(self, file, _list_sessions)
        yield from found_unreadable(self, unreadable)

    def read(self, found: FoundSession, known: Known | None) -> Reading:  # noqa: ARG002 - rows may change anywhere
        where = found.where_as(Row)
        file, id = where.file, where.id
        session, messages, ledger = read_database(file.path, lambda database: _rows(database, id))
        records = [str(row["content_json"]) for row in messages]
        conversation = fit_conversation(
            parse.parse(messages, ledger, text(session, "provider_name")), records
        )
        return reading_of(imported_from(file, session, conversation), conversation, records)

    def resume(self, session: Session) -> Sequence[str] | None:
        return (NAME, "session", "--resume", "--session-id", session.id.removeprefix(f"{NAME}:"))

    def restorable_path(self, session: Session) -> Path | None:  # noqa: ARG002 - nothing is written into a database
        return None


def _list_sessions(database: apsw.Connection) -> Iterable[ListedSession]:
    visible = f"WHERE s.session_type IS NOT '{HIDDEN}'"
    return list_sessions(database, "sessions", SESSION, "updated_at", COUNTED, visible)


def _rows(database: apsw.Connection, id: str | None) -> tuple[Json, list[Json], list[Json]]:
    return (
        row_by_id(database, "sessions", SESSION, id),
        list(select(database, "messages", MESSAGE, OF_SESSION, [id])),
        list(select(database, "usage_ledger", LEDGER, OF_SESSION, [id])),
    )


def imported_from(file: files.FoundFile, session: Json, conversation: Conversation) -> Imported:
    """The session in a row. The row's time may be that of a rename, so the last message's time is preferred."""
    row = moment(session["updated_at"]) or 0
    updated = max((entry.at for entry in conversation.entries), default=row)
    parent, folder = text(session, "parent_session_id"), text(session, "working_dir")
    return Imported(
        id=f"{NAME}:{session['id']}",
        source=NAME,
        created_at=min(moment(session["created_at"]) or updated, updated),
        updated_at=updated,
        cwd=folder if folder and folder.startswith("/") else None,
        title=_name(session) or conversation.title,
        agent_id=NAME,
        parent=f"{NAME}:{parent}" if parent else None,
        archived=session["archived_at"] is not None,
        meta=_meta(file, session, conversation),
    )


def _name(session: Json) -> str | None:
    """The session's name, unless it is a default name."""
    name = text(session, "name", "description")
    return name if name and (session["user_set_name"] or not _DEFAULT_NAME.fullmatch(name)) else None


def _meta(file: files.FoundFile, session: Json, conversation: Conversation) -> Json:
    used = usage_totals(conversation.entries)
    provider, name = (
        text(session, "provider_name"),
        text(json_object(session, "model_config_json"), "model_name"),
    )
    model = f"{provider}:{name}" if provider and name else name
    whole = {
        "input": number(session, "accumulated_input_tokens"),
        "output": number(session, "accumulated_output_tokens"),
    }
    return without_empty(
        {
            "path": path_text(file.path),
            "models": used["models"] or ([model] if model else []),
            "usage": used["usage"] or without_empty(whole),
            "cost": used["cost"] or dollars(session["accumulated_cost"]),
            "session_type": text(session, "session_type"),
            "unknown_records": conversation.unknown,
            "damaged_records": conversation.damaged,
        }
    )
