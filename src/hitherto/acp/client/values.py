"""What an agent answers, as values. Pure.

Reading them is lenient, as the protocol asks of clients: an optional field of the wrong type counts as absent, an item
of a list that makes no sense is left out, and what is not known here is kept as it came.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from hitherto.errors import EngineError
from hitherto.model import Json


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """A `session/update`: `kind` says what it is, one that this program has never heard of included; `fields` is all
    of it, as it came."""

    session_id: str
    kind: str
    fields: Json

    @property
    def text(self) -> str:
        """What a chunk of a message or of a thought says; empty for everything else."""
        content = table(self.fields.get("content"))
        return text(content.get("text")) or "" if self.kind.endswith("_chunk") else ""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt has been answered: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`."""

    stop_reason: str
    usage: Json = {}
    meta: Json = {}


class OpenedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that can be prompted, with the modes and options that it offers."""

    session_id: str
    mode: str | None = None
    modes: tuple[Json, ...] = ()
    options: tuple[Json, ...] = ()
    meta: Json = {}


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list. `updated_at` is as the agent wrote it, ISO 8601; `archived` is None if it does not say."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
    additional_directories: tuple[str, ...] = ()
    archived: bool | None = None
    meta: Json = {}
    extra: Json = {}


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some sessions; with a cursor there are more. Cursors are not to be read, changed, or kept for another day."""

    sessions: tuple[SessionRow, ...]
    next_cursor: str | None = None


def ended(answer: Json) -> Ended:
    return Ended(
        stop_reason=required_text(answer, "stopReason"),
        usage=table(answer.get("usage")),
        meta=table(answer.get("_meta")),
    )


def opened(session_id: str, answer: Json) -> OpenedSession:
    modes = table(answer.get("modes"))
    return OpenedSession(
        session_id=session_id,
        mode=text(modes.get("currentModeId")),
        modes=objects_with(modes.get("availableModes"), ("id", "name")),
        options=objects_with(answer.get("configOptions"), ("id", "name", "type")),
        meta=table(answer.get("_meta")),
    )


def page(answer: Json) -> SessionPage:
    rows = objects_with(answer.get("sessions"), ("sessionId", "cwd"))
    return SessionPage(sessions=tuple(map(_row, rows)), next_cursor=text(answer.get("nextCursor")))


_KNOWN = frozenset(
    ("sessionId", "cwd", "title", "updatedAt", "additionalDirectories", "archived", "_meta")
)  # fmt: skip


def _row(fields: Json) -> SessionRow:
    archived = fields.get("archived")
    return SessionRow(
        session_id=fields["sessionId"],
        cwd=fields["cwd"],
        title=text(fields.get("title")),
        updated_at=text(fields.get("updatedAt")),
        additional_directories=tuple(
            each for each in items(fields.get("additionalDirectories")) if text(each)
        ),
        archived=archived if isinstance(archived, bool) else None,
        meta=table(fields.get("_meta")),
        extra={name: value for name, value in fields.items() if name not in _KNOWN},
    )


# Values of any kind, taken for what they should be


def text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def table(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def objects_with(value: Any, names: Collection[str]) -> tuple[Json, ...]:
    """The objects of a list that have a text under each of these names."""
    return tuple(
        each for each in map(table, items(value)) if all(text(each.get(name)) is not None for name in names)
    )


def required_text(answer: Json, name: str) -> str:
    """A text without which an answer is none."""
    value = text(answer.get(name))
    if value is None:
        raise EngineError(f"the agent's answer lacks {name}")
    return value
