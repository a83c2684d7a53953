"""What Codex keeps beside its rollouts: the names that threads were given, and which rollout is a thread's present one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import cast

import apsw

from recollect.claude.lines import decode_object, read_records
from recollect.model import encode
from recollect.sources import files
from recollect.sources.codex_records import text
from recollect.sources.databases import read_database

SUFFIX = ".sqlite"
_DATABASE = re.compile(rf"state_(\d{{1,6}}){re.escape(SUFFIX)}")
INDEX = "session_index.jsonl"
COLUMNS = "SELECT name FROM pragma_table_info('threads')"
NAMED = "SELECT id, name FROM threads WHERE typeof(name) = 'text' AND name <> ''"
# Before names had a column of their own, a title that is not what the user said first was one.
TITLED = """
SELECT id, title FROM threads
WHERE typeof(title) = 'text' AND title <> '' AND trim(title) <> trim(first_user_message)
"""
PLACED = """
SELECT id, rollout_path FROM threads
WHERE typeof(rollout_path) = 'text' AND id IN (SELECT value FROM json_each(?))
"""


def names_of_threads(home: Path) -> dict[str, str]:
    """The names that threads were given, by their ids; a database that cannot be read says nothing."""
    return dict(_indexed(home)) | _told(home, _names)


def rollouts_of_threads(home: Path, threads: Collection[str]) -> dict[str, str]:
    """The paths of the rollouts that these threads go on with, as far as Codex says so."""
    asked = encode(list(threads)).decode()
    return _told(home, lambda database: _pairs(database.execute(PLACED, (asked,))))


def _told(home: Path, ask: Callable[[apsw.Connection], dict[str, str]]) -> dict[str, str]:
    database = _newest(home)
    try:
        return read_database(database, ask) if database is not None else {}
    except (OSError, ValueError):
        return {}


def _newest(home: Path) -> Path | None:
    found = (
        (int(match[1]), file.name)
        for file in files.inside(home, SUFFIX).files
        if (match := _DATABASE.fullmatch(file.name))
    )
    newest = max(found, default=None)
    return None if newest is None else home / newest[1]


def _names(database: apsw.Connection) -> dict[str, str]:
    columns = {name for (name,) in database.execute(COLUMNS)}
    asked = NAMED if "name" in columns else TITLED if "first_user_message" in columns else None
    return _pairs(database.execute(asked)) if asked else {}


def _pairs(rows: apsw.Cursor) -> dict[str, str]:
    return dict(cast("Iterable[tuple[str, str]]", rows))


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
