"""Extension methods under `_hitherto/`: search, several sessions at once, subscriptions to lists."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hitherto.acp.agent.connection import Connection
from hitherto.acp.protocol.params import BatchGet, Search, Subscribe, Unsubscribe
from hitherto.acp.protocol.session_rows import row
from hitherto.acp.protocol.times import rfc3339
from hitherto.errors import SessionNotFound, TooLarge
from hitherto.ids import uuid7
from hitherto.model import DRAFT, Change, Filter, Hit, Json, Session, is_subagent
from hitherto.rpc.peer import Then
from hitherto.values.filters import normal_filter, passes
from hitherto.values.positions import covers

BATCH = 100
HITS = 20
SUBSCRIPTIONS = 32
CHANGES = "_hitherto/session/list/changes"
COALESCED_SECONDS = 0.2
LEAVING = frozenset(("archive", "move", "sync"))
"""Kinds of changes by which a session may leave a list."""


async def search(connection: Connection, params: Search) -> Json:
    """`_hitherto/session/search`: the newest hit of each session, newest first; with `count`, how much there is in all."""
    given = Filter(
        cwd=params.cwd and await connection.folder(params.cwd),
        native=connection.offer.native,
        archived=params.archived or "include",
    )
    page = await connection.sessions.search(
        connection.who, params.query, given=given, cursor=params.cursor, limit=HITS, count=params.count
    )
    rows = await _rows(connection, [hit.session for hit in page.hits])
    answer: Json = {"hits": [_hit(hit, row) for hit, row in zip(page.hits, rows, strict=True)]}
    if page.found is not None:
        answer["total"] = {"hits": page.found.hits, "sessions": page.found.sessions, "more": page.found.more}
    return answer if page.cursor is None else {**answer, "nextCursor": page.cursor}


async def batch_get(connection: Connection, params: BatchGet) -> Json:
    """`_hitherto/session/batch_get`: the rows of these sessions, and the ids that do not exist."""
    if len(params.session_ids) > BATCH:
        raise TooLarge(f"too many session ids: {len(params.session_ids)}, at most {BATCH}")
    found = {name: await _find_session(connection, name) for name in dict.fromkeys(params.session_ids)}
    return {
        "sessions": await _rows(connection, [session for session in found.values() if session is not None]),
        "missing": [name for name, session in found.items() if session is None],
    }


async def subscribe(connection: Connection, params: Subscribe) -> Then:
    """`_hitherto/session/list/subscribe`: notify the client of changes of the list from now on."""
    looked = Filter(
        cwd=params.cwd and await connection.folder(params.cwd),
        native=connection.offer.native,
        archived=params.archived or "exclude",
    )
    given = normal_filter(looked)
    if len(connection.watchers) >= SUBSCRIPTIONS:
        raise TooLarge(f"too many subscriptions: a client may have {SUBSCRIPTIONS}")
    await connection.follow()
    subscription = _Subscription(
        connection, uuid7(), given, await connection.sessions.changes.newest(connection.who)
    )
    connection.watchers[subscription.id] = subscription

    async def begin() -> None:
        subscription.task = connection.start(subscription.run())

    return Then({"subscriptionId": subscription.id}, begin)


async def unsubscribe(connection: Connection, params: Unsubscribe) -> Json:
    """`_hitherto/session/list/unsubscribe`."""
    subscription = connection.watchers.pop(params.subscription_id, None)
    if subscription is not None:
        subscription.end()
    return {}


class _Subscription:
    """Collects the ids of changed sessions, and notifies the client when it has taken the previous notification.

    Memory is bounded by the number of sessions; a session that changes often is reported once.
    """

    task: asyncio.Task[None] | None = None

    def __init__(self, connection: Connection, subscription: str, given: Filter, after: str) -> None:
        self.id = subscription
        self._connection, self._given, self._after = connection, given, after
        self._changed: dict[str, bool] = {}
        self._listed: set[str] = set()
        self._wake, self._ended = asyncio.Event(), False

    def note(self, change: Change) -> None:
        if change.kind != "live" and not covers(self._after, change.position):
            may_leave = change.kind in LEAVING or self._changed.get(change.session, False)
            self._changed[change.session] = may_leave
            self._wake.set()

    def end(self) -> None:
        self._ended = True
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        while not self._ended:
            await self._wake.wait()
            await asyncio.sleep(COALESCED_SECONDS)  # changes close together are reported together
            self._wake.clear()
            changed, self._changed = list(self._changed.items()), {}
            for start in range(0, len(changed), BATCH):
                await self._notify(dict(changed[start : start + BATCH]))

    def _lists(self, session: Session) -> bool:
        return DRAFT not in session.meta and not is_subagent(session) and passes(session, self._given)

    async def _notify(self, changed: dict[str, bool]) -> None:
        found = {name: await _find_session(self._connection, name) for name in changed}
        listed = {
            name: session for name, session in found.items() if session is not None and self._lists(session)
        }
        removed = [
            name
            for name, may_leave in changed.items()
            if name not in listed and (found[name] is None or may_leave or name in self._listed)
        ]
        self._listed = (self._listed | listed.keys()).difference(removed)
        if not listed and not removed:
            return  # none of them was or is in this list
        rows = await _rows(self._connection, list(listed.values()))
        await self._connection.peer.notify(
            CHANGES, {"subscriptionId": self.id, "sessions": rows, "removed": removed}
        )


async def _find_session(connection: Connection, session_id: str) -> Session | None:
    try:
        return await connection.sessions.get(connection.who, session_id)
    except SessionNotFound:
        return None


async def _rows(connection: Connection, sessions: Sequence[Session]) -> list[Json]:
    used = await connection.sessions.spending.numbers(connection.who, [each.id for each in sessions])
    return [row(each, used.get(each.id)) for each in sessions]


def _hit(hit: Hit, row: Json) -> Json:
    fields: Json = {"session": row, "snippet": hit.snippet, "marks": hit.marks, "more": hit.more}
    if hit.entry is not None:
        fields["messageId"] = hit.entry
    if hit.role is not None:
        fields["role"] = hit.role
    if hit.at is not None:
        fields["at"] = rfc3339(hit.at)
    return fields
