"""What an agent tells of a session that we do not have yet, as the entries that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw

from hitherto.acp.proxy.agent import Life
from hitherto.acp.proxy.blocks import part_of
from hitherto.acp.proxy.frames import value_of
from hitherto.acp.proxy.seats import STATE, Seat
from hitherto.engine import Event, Message, ToolEnded
from hitherto.model import Entry, Part, Role

USER = "user_message_chunk"
Told = tuple[Role, tuple[Part, ...]]


class Replayed(Seat):
    """See the module. The editor is told only how the session is: what was said in it comes from what is kept. `title` is
    what the agent calls it."""

    def __init__(self, life: Life, behind: str, ours: str) -> None:
        super().__init__(life, behind, ours)
        self.title: str | None = None
        self._told: list[Told] = []
        self._user: list[Part] = []
        self._message: Any = None

    def hear(self, update: Raw) -> Raw | None:
        if self.closed:
            return None
        fields = value_of(update)
        kind = fields.get("sessionUpdate") if isinstance(fields, dict) else None
        if kind == USER:
            self._hear_user(fields)
        elif kind in STATE:
            title = fields.get("title") if kind == "session_info_update" else None
            self.title = title if isinstance(title, str) else self.title
            return update
        else:
            self._end_user()
            self.collector.hear(update)
        return None

    def entries(self, at: int) -> list[Entry]:
        """All that was told. No agent says when; so it was at this time."""
        self._end_user()
        self._told += _told(self.collector.end())
        return [
            Entry(id=f"told-{number}", at=at, role=role, parts=parts)
            for number, (role, parts) in enumerate(self._told, 1)
        ]

    def _hear_user(self, fields: dict[str, Any]) -> None:
        message = fields.get("messageId")
        if message != self._message:
            self._end_user()
        self._told += _told(self.collector.end())
        self._message = message
        self._user.append(part_of(fields.get("content")))

    def _end_user(self) -> None:
        if self._user:
            self._told.append(("user", tuple(self._user)))
        self._user, self._message = [], None


def _told(events: Iterable[Event]) -> Iterator[Told]:
    for event in events:
        match event:
            case Message():
                yield "assistant", event.parts
            case ToolEnded():
                yield "tool", (event.result,)
