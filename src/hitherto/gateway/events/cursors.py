"""The pending events of one session, or of all, after a cursor.

A subscription keeps only its position: events are read from the store when the client has taken the previous ones. So a
client that reads slowly gets fewer, merged events, and one that does not read at all costs nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol

import msgspec

from hitherto.errors import EntryNotFound, SessionNotFound
from hitherto.gateway.dispatch import schema
from hitherto.gateway.events.feeds import Feed
from hitherto.model import Change, Json, Live, Session, decode_json
from hitherto.presentation.live_text import unseen

PAGE = 100
REMEMBERED = 256
CREATED = ("create", "fork", "import")


class PendingEvents(Protocol):
    """A position among events. `over`: there will be no more events."""

    over: bool

    def concerns(self, change: Change) -> bool:
        """Whether this change may cause an event."""

    def pending(self) -> AsyncIterator[Json]:
        """The events after the position, which moves on with each event taken."""

    def cursor(self) -> str:
        """The position as a cursor, for a client that reconnects."""


class _Seen(NamedTuple):
    revision: int
    compaction: int | None
    key: str


class OwnerEvents:
    """Events of all sessions of an owner: one for each changed session, however often it changed."""

    over = False

    def __init__(self, feed: Feed, position: str) -> None:
        self._feed, self._position = feed, position
        self._seen: dict[str, _Seen] = {}

    @classmethod
    async def begin(cls, feed: Feed, cursor: str | None) -> OwnerEvents:
        """Start at the cursor, or now."""
        if cursor is not None:
            return cls(feed, feed.sessions.changes.position(feed.who, None, cursor, str))
        return cls(feed, await feed.sessions.changes.newest(feed.who))

    def concerns(self, change: Change) -> bool:
        seen = self._seen.get(change.session)
        return seen is None or seen.revision != change.revision

    async def pending(self) -> AsyncIterator[Json]:
        while changes := await self._feed.changes(self._position, PAGE):
            for change in changes:
                event = await self._event(change) if self.concerns(change) else None
                self._position = change.position
                if event is not None:
                    yield event

    def cursor(self) -> str:
        return self._feed.sessions.changes.cursor(self._feed.who, None, self._position)

    async def _event(self, change: Change) -> Json | None:
        seen = self._seen.pop(change.session, None)
        if change.revision is None:
            key = change.key or change.session
            return {"event": "deleted", "session_key": key, "session_id": change.session}
        try:
            session = await self._feed.get(change.session)
        except SessionNotFound:
            return None  # deleted since: a later change says so
        self._note(session)
        if seen is None and change.kind in CREATED:
            return _session_event("created", session)
        compacted = change.kind == "compact" if seen is None else seen.compaction != session.last_compaction
        return _session_event("compacted" if compacted else "updated", session)

    def _note(self, session: Session) -> None:
        """Remember recently changed sessions, so that live text and repeated states cause no event."""
        self._seen[session.id] = _Seen(session.revision, session.last_compaction, schema.key_of(session))
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]


class _Position(NamedTuple):
    """The last message sent, and the state of the session sent with it."""

    last: str | None
    revision: int
    compaction: int | None


class SessionEvents:
    """Events of one session: its messages, live text, and its own state."""

    def __init__(self, feed: Feed, session: Session, position: _Position) -> None:
        self.over = False
        self._feed, self._position = feed, position
        self._id, self._key = session.id, schema.key_of(session)
        self._last_live = ("", 0)

    @classmethod
    async def begin(cls, feed: Feed, session_id: str, cursor: str | None) -> SessionEvents:
        """Start at the cursor, or now."""
        session = await feed.get(session_id)
        if cursor is not None:
            return cls(feed, session, feed.sessions.changes.position(feed.who, session.id, cursor, _Position))
        last = await feed.last_entry(session.id)
        return cls(feed, session, _Position(last, session.revision, session.last_compaction))

    def concerns(self, change: Change) -> bool:
        return change.session == self._id

    async def pending(self) -> AsyncIterator[Json]:
        try:
            session = await self._feed.get(self._id)
            if session.revision != self._position.revision:
                async for event in self._entries():
                    yield event
                compacted = session.last_compaction != self._position.compaction
                self._position = _Position(self._position.last, session.revision, session.last_compaction)
                if schema.key_of(session) != self._key:
                    yield await self._moved(session)
                yield _session_event("compacted" if compacted else "updated", session)
            for delta in await self._deltas():
                yield delta
        except SessionNotFound:
            self.over = True
            yield {"event": "deleted", **self._names()}

    def cursor(self) -> str:
        return self._feed.sessions.changes.cursor(self._feed.who, self._id, self._position)

    async def _entries(self) -> AsyncIterator[Json]:
        more = True
        while more:
            try:
                page = await self._feed.entries(self._id, self._position.last)
            except EntryNotFound:
                yield await self._reset()
                return
            more = page.next is not None
            if page.raw:
                self._position = self._position._replace(last=page.entries[-1].id)
                yield {
                    "event": "entries",
                    **self._names(),
                    "messages": list(map(schema.message, page.entries)),
                }

    async def _moved(self, session: Session) -> Json:
        """The key belongs to another session now; this one is followed by its id."""
        key, self._key = self._key, schema.key_of(session)
        try:
            fresh = (await self._feed.sessions.channels.resolve(self._feed.who, key)).id
        except SessionNotFound:
            fresh = None
        return {"event": "moved", "session_key": key, "session_id": self._id, "new_session_id": fresh}

    async def _reset(self) -> Json:
        """The conversation was rewound to before the last message sent: the client must read it again."""
        self._position = self._position._replace(last=await self._feed.last_entry(self._id))
        return {"event": "entries", **self._names(), "messages": [], "reset": True}

    async def _deltas(self) -> list[Json]:
        """The live text that was not sent yet, thoughts and texts in their order."""
        data = await self._feed.live(self._id)
        if data is None:
            return []
        live = msgspec.convert(decode_json(data), Live)
        entry, seen = self._last_live
        pieces = list(unseen(live, seen if entry == live.entry else 0))
        self._last_live = (
            live.entry,
            (seen if entry == live.entry else 0) + sum(len(text) for _, text in pieces),
        )
        return [
            {
                "event": "delta",
                **self._names(),
                "message_id": live.entry,
                "text": text,
                **({"thought": True} if thought else {}),
            }
            for thought, text in pieces
        ]

    def _names(self) -> Json:
        return {"session_key": self._key, "session_id": self._id}


def _session_event(event: str, session: Session) -> Json:
    names = {"session_key": schema.key_of(session), "session_id": session.id}
    return {"event": event, **names, "session": schema.session_info(session)}
