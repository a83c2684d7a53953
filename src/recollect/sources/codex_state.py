"""What Codex keeps beside its rollouts: the names that threads were given, and which rollout is a thread's present one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.claude.lines import decode_object, read_records
from recollect.sources import files
from recollect.sources.codex_records import text
from recollect.sources.databases import read_database

_DATABASE = re.compile(r"state_(\d{1,6})\.sqlite")
INDEX = "session_index.jsonl"
COLUMNS = "SELECT name FROM pragma_table_info('threads')"
NAMED = "SELECT id, name, rollout_path FROM threads"
# Before names had a column of their own, a title that is not what the user said first was one.
TITLED = (
    "SELECT id, CASE WHEN trim(title) <> trim(first_user_message) THEN title END, rollout_path FROM threads"
)
PLACED = "SELECT id, NULL, rollout_path FROM threads"


class Thread(NamedTuple):
    """A thread as Codex's own database knows it."""

    name: str | None = None
    rollout: str | None = None


UNNAMED = Thread()


def threads(home: Path) -> dict[str, Thread]:
    """What is known of threads by their ids; a database that cannot be read says nothing."""
    known = {id: Thread(name) for id, name in _indexed(home)}
    database = _newest(home)
    try:
        rows = read_database(database, _rows) if database is not None else []
    except (OSError, ValueError):
        rows = []
    for id, name, rollout in rows:
        known[id] = Thread(name or known.get(id, UNNAMED).name, rollout)
    return known


def _newest(home: Path) -> Path | None:
    found = (
        (int(match[1]), entry.name)
        for entry in files.entries(home)
        if (match := _DATABASE.fullmatch(entry.name))
    )
    newest = max(found, default=None)
    return None if newest is None else home / newest[1]


def _rows(database: apsw.Connection) -> list[tuple[str, str | None, str | None]]:
    columns = {name for (name,) in database.execute(COLUMNS)}
    asked = NAMED if "name" in columns else TITLED if "first_user_message" in columns else PLACED
    rows = database.execute(asked) if columns else ()
    return [
        (str(id), name if isinstance(name, str) else None, path if isinstance(path, str) else None)
        for id, name, path in rows
    ]


def _indexed(home: Path) -> Iterator[tuple[str, str]]:
    """Names as older versions kept them: the last one that a thread was given."""
    try:
        lines, _ = read_records(files.read_whole(home / INDEX))
    except (OSError, ValueError):
        return
    for line in lines:
        said = decode_object(line)
        if (id := text(said, "id")) and (name := text(said, "thread_name")):
            yield id, name
