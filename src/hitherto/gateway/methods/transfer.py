"""Taking sessions along, and bringing them in."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from hitherto.errors import InvalidInput, TooLarge
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Named, Writing, key_of
from hitherto.gateway.methods.create import addressed
from hitherto.service.transfer.import_ import Migrated

EXPORT_BYTES = 64 * 1024 * 1024
"""The largest export that is sent as one answer."""

Format = Literal["json", "markdown", "html", "jsonl"]


class Export(Named, frozen=True, kw_only=True):
    """Secrets are replaced, each with a note, unless it is to be `raw`."""

    format: Format = "json"
    raw: bool = False


class Import(Writing, frozen=True, kw_only=True):
    """The data of an export as `json` (an object) or as `jsonl` (a text), or the messages of another program."""

    data: Raw
    new_session_key: str | None = None
    include_deleted: bool = False


class Exported(Answer, frozen=True, kw_only=True):
    """As `json` the data is an object, else a text."""

    session_key: str
    format: str
    data: Raw | str


class Imported(Answer, frozen=True, kw_only=True):
    """The session that was brought in, or the same one if it was there already; `left_out` names what the file had and may
    not set."""

    session_key: str
    session_id: str
    message_count: int
    left_out: tuple[str, ...]


async def export(call: Call[Export]) -> Exported:
    """Export the whole conversation, for people or for programs."""
    given = call.params
    size, pieces = 0, []
    async for piece in call.sessions.transfer.export_file(
        call.who, call.session.id, given.format, raw=given.raw, beside=call.context.files
    ):
        size += len(piece)
        pieces.append(piece)
        if size > EXPORT_BYTES:
            raise TooLarge(f"the export exceeds {EXPORT_BYTES} bytes: use `hitherto export`")
    data = b"".join(pieces)
    return Exported(
        session_key=key_of(call.session),
        format=given.format,
        data=Raw(data.strip()) if given.format == "json" else data.decode("utf-8", "replace"),
    )


async def import_session(call: Call[Import]) -> Imported:
    """Import a session: an export becomes an equal one. Everything is checked first. A place in the gateway, folders and
    permissions are never imported."""
    given, lines = call.params, _lines(call.params.data)
    address = addressed(call, given.new_session_key)

    def answer(made: Migrated) -> Imported:
        session, left_out = made
        return Imported(
            session_key=key_of(session),
            session_id=session.id,
            message_count=session.message_count,
            left_out=left_out,
        )

    return await call.once(
        lambda sessions: sessions.transfer.migrate(
            call.who, lines, address, include_deleted=given.include_deleted
        ),
        answer,
    )


def _lines(data: Raw) -> list[bytes]:
    """What was sent, in lines: an object as it came, a text as what it says."""
    given = bytes(data).strip()
    if given.startswith(b'"'):
        return msgspec.json.decode(given, type=str).encode().split(b"\n")
    if not given.startswith(b"{"):
        raise InvalidInput("data must be an object or a string")
    return given.split(b"\n")
