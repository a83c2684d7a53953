"""What can happen to a database of sessions: fourteen kinds of damage, for every source that reads databases.

A source takes part by saying how its databases are written; see `DATABASES`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.sources.damage import HUGE
from tests.sources.database_rows import Database
from tests.sources.goose import goose_files
from tests.sources.goose.goose_files import GooseWriter
from tests.sources.openclaw.openclaw_files import OpenclawWriter
from tests.sources.opencode import opencode_files
from tests.sources.opencode.opencode_files import OpencodeWriter
from tests.sources.pi.pi_files import PiWriter

Talks = dict[str, Sequence[str]]
"""By the id that the agent gives a session, what the user and the model say in it, in turn."""


class Kept(NamedTuple):
    """How an agent keeps sessions: writes them under its folder, and in which column of which table a message is."""

    write: Callable[[Path, Talks], Database]
    table: str
    column: str


def _goose(home: Path, talks: Talks) -> Database:
    made = GooseWriter(home)
    for session, texts in talks.items():
        made.session(session)
        for place, said in enumerate(texts):
            made.message("assistant" if place % 2 else "user", goose_files.text(said), session=session)
    return made


def _opencode(home: Path, talks: Talks) -> Database:
    made = OpencodeWriter(home)
    for session, texts in talks.items():
        made.session(session)
        for place, said in enumerate(texts):
            part = opencode_files.text(said)
            made.answer(part, session=session) if place % 2 else made.message("user", part, session=session)
    return made


def _openclaw(home: Path, talks: Talks) -> Database:
    made = OpenclawWriter(home)
    for session, texts in talks.items():
        made.node(session, key=f"agent:main:{session}")
        made.window(session, key=f"agent:main:{session}")
        talk = PiWriter(session)
        for place, said in enumerate(texts):
            talk.say(said) if place % 2 else talk.user(said)
        made.write(talk)
    return made


DATABASES: dict[str, Kept] = {
    "goose": Kept(_goose, "messages", "content_json"),
    "openclaw": Kept(_openclaw, "transcript_events", "event_json"),
    "opencode": Kept(_opencode, "part", "data"),
}
"""Every source that reads databases."""


# Kinds of damage

Change = Callable[[str, str], Any]
"""What stands in the place of a row's JSON, given the text in it."""
Ruin = Callable[[bytes], bytes]
"""What becomes of the file."""


def torn(data: str, hit: str) -> Any:
    return data[: data.index(hit)]


def nuls(data: str, _: str) -> Any:
    return "\0" * len(data)


def bad_utf8(data: str, hit: str) -> Any:
    return data.encode().replace(hit.encode(), hit.encode() + b"\xff\xfe")


def empty(_: str, __: str) -> Any:
    return ""


def words(_: str, __: str) -> Any:
    return '"words"'


def number(_: str, __: str) -> Any:
    return 7


def nonsense(_: str, __: str) -> Any:
    return b"\xff\x00\xfe"


def deep(_: str, __: str) -> Any:
    return "[" * 100_000


def huge(data: str, hit: str) -> Any:
    return data.replace(hit, f"{hit} {'x' * HUGE}")


def wrong_types(data: str, hit: str) -> Any:
    return data.replace(json.dumps(hit), "[[]]")


def unknown_kind(_: str, __: str) -> Any:
    return json.dumps({"type": "hologram", "beam": [1]})


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def overwritten(data: bytes) -> bytes:
    return b"no database" + data[11:]


def emptied(_: bytes) -> bytes:
    return b""


ROWS: tuple[Change, ...] = (
    torn,
    nuls,
    bad_utf8,
    empty,
    words,
    number,
    nonsense,
    deep,
    huge,
    wrong_types,
    unknown_kind,
)
"""What happens to one message."""
FILES: tuple[Ruin, ...] = (truncated, overwritten, emptied)
"""What happens to all of them."""


def damage_row(made: Database, kept: Kept, hit: str, change: Change) -> None:
    """Damage the message that says this."""
    found = made.asked(f"SELECT rowid FROM {kept.table} WHERE instr({kept.column}, ?)", json.dumps(hit))
    for (row,) in found:
        ((data,),) = made.asked(f"SELECT {kept.column} FROM {kept.table} WHERE rowid = ?", row)
        changed = change(data, hit)
        # Some tables take nothing but text; what bytes it is made of, SQLite does not ask.
        cast = "CAST(? AS TEXT)" if isinstance(changed, bytes) else "?"
        made.run(f"UPDATE {kept.table} SET {kept.column} = {cast} WHERE rowid = ?", changed, row)
