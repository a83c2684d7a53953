"""How many records an agent has of a session, counted without the reader: each must be shown, or left out by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hitherto.claude.lines import decode_object, read_records
from hitherto.sources.port import FoundSession, Reading
from hitherto.sources.shared.database import Row, read_database, select
from hitherto.sources.shared.growing_file import complete_length, decompress

TABLES = {
    "opencode": ("message", "part", "session_message"),
    "goose": ("messages", "usage_ledger"),
    "openclaw": ("transcript_events",),
}
"""Where the records of a session are, in databases."""


def assert_counted(found: FoundSession, reading: Reading) -> None:
    """Every intact record of a session that was read as a whole is shown, or of a kind that is left out."""
    there = COUNTS.get(found.source.name, _lines)(found) - _torn_rows(found, reading)
    told = reading.census.shown + sum(reading.census.left_out.values())
    assert told == there, (found.key, there, reading.census)
    assert all(reading.census.left_out.values())
    assert not any("None" in kind or "?" in kind for kind in reading.census.left_out)


def _torn_rows(found: FoundSession, reading: Reading) -> int:
    return reading.damaged if isinstance(found.where, Row) else 0


def _path(found: FoundSession) -> Path:
    """The file of a session, whatever it is called."""
    paths = (Path(f"{found.key}{suffix}") for suffix in ("", ".jsonl", ".json", ".zst"))
    return next(path for path in paths if path.is_file())


def _data(found: FoundSession) -> bytes:
    path = _path(found)
    data = path.read_bytes()
    return decompress(data) if path.suffix == ".zst" else data


def _lines(found: FoundSession) -> int:
    if isinstance(found.where, Row):
        return _rows(found)
    data = _data(found)
    torn = found.source.name in ("claude", "codex")
    return len(read_records(data[: complete_length(data)] if torn else data)[0])


def _rows(found: FoundSession) -> int:
    where = found.where_as(Row)
    tables = TABLES[found.source.name]
    return read_database(
        where.file.path,
        lambda database: sum(
            len(list(select(database, table, ("session_id",), "WHERE session_id = ?", [where.id])))
            for table in tables
        ),
    )


def _messages(found: FoundSession) -> int:
    """Gemini CLI's operations; one that sets messages has each of them beside itself."""
    data = _data(found)
    if _path(found).suffix == ".json":
        return 1 + len(json.loads(data)["messages"])
    records = [decode_object(line) for line in read_records(data)[0]]
    sets = (record.get("$set") for record in records)
    messages = (change.get("messages") for change in sets if isinstance(change, dict))
    return len(records) + sum(len(each) for each in messages if isinstance(each, list))


COUNTS: dict[str, Callable[[FoundSession], int]] = {"gemini": _messages}
