"""Methods of our own, under `_recollect/`: search, several sessions at once, lists that tell their changes."""

from __future__ import annotations

import asyncio

from recollect.acp.door import Door
from recollect.acp.rows import row
from recollect.acp.shapes import BatchGet, Search, Subscribe, Unsubscribe
from recollect.acp.times import rfc3339
from recollect.errors import SessionNotFound, TooLarge
from recollect.filters import normal_filter, passes
from recollect.ids import uuid7
from recollect.model import Change, Filter, Hit, Json, Session
from recollect.rpc.peer import Then

BATCH = 100
HITS = 20
SUBSCRIPTIONS = 32
CHANGES = "_recollect/session/list/changes"
COALESCED_SECONDS = 0.2


async def search(door: Door, params: Search) -> Json:
    """`_recollect/session/search`: the newest hit of each session, newest first."""
    given = Filter(cwd=params.cwd, native=door.offer.native, archived=params.archived or "include")
    page = await door.sessions.search(door.who, params.query, given=given, cursor=params.cursor, limit=HITS)
    answer: Json = {"hits": [_hit(hit) for hit in page.hits]}
    return answer if page.cursor is None else {**answer, "nextCursor": page.cursor}


async def batch_get(door: Door, params: BatchGet) -> Json:
    """`_recollect/session/batch_get`: the rows of these sessions, and which of them are not there."""
    if len(params.session_ids) > BATCH:
        raise TooLarge(f"at most {BATCH} sessions can be asked for at once")
    found = {name: await _found(door, name) for name in dict.fromkeys(params.session_ids)}
    return {
        "sessions": [row(session) for session in found.values() if session is not None],
        "missing": [name for name, session in found.items() if session is None],
    }


async def subscribe(door: Door, params: Subscribe) -> Then:
    """`_recollect/session/list/subscribe`: from now on changes of the list are told as they happen."""
    looked = Filter(cwd=params.cwd, native=door.offer.native, archived=params.archived or "exclude")
    given = normal_filter(looked)
    if len(door.watchers) >= SUBSCRIPTIONS:
        raise TooLarge(f"a client may have at most {SUBSCRIPTIONS} subscriptions")
    await door.follow()
    subscription = _Subscription(door, uuid7(), given, await door.sessions.newest_change(door.who))
    door.watchers[subscription.id] = subscription.note

    async def begin() -> None:
        door.start(subscription.run())

    return Then({"subscriptionId": subscription.id}, begin)


async def unsubscribe(door: Door, params: Unsubscribe) -> Json:
    """`_recollect/session/list/unsubscribe`."""
    door.watchers.pop(params.subscription_id, None)
    return {}


class _Subscription:
    """Gathers the ids of changed sessions, and tells them when the client has taken what was told before.

    What is gathered is bounded by the number of sessions; a session that changes often is told once.
    """

    def __init__(self, door: Door, subscription: str, given: Filter, after: int) -> None:
        self.id = subscription
        self._door, self._given, self._after = door, given, after
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()

    def note(self, change: Change) -> None:
        if change.kind != "live" and change.number > self._after:
            self._changed[change.session] = None
            self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(COALESCED_SECONDS)  # what happens together is told together
            if self.id not in self._door.watchers:
                return
            self._wake.clear()
            names = list(self._changed)
            self._changed.clear()
            for start in range(0, len(names), BATCH):
                await self._tell(names[start : start + BATCH])

    async def _tell(self, names: list[str]) -> None:
        found = {name: await _found(self._door, name) for name in names}
        listed = {
            name: session
            for name, session in found.items()
            if session is not None and passes(session, self._given)
        }
        told = {
            "subscriptionId": self.id,
            "sessions": [row(session) for session in listed.values()],
            "removed": [name for name in names if name not in listed],
        }
        await self._door.peer.notify(CHANGES, told)


async def _found(door: Door, session_id: str) -> Session | None:
    try:
        return await door.sessions.get(door.who, session_id)
    except SessionNotFound:
        return None


def _hit(hit: Hit) -> Json:
    fields: Json = {"session": row(hit.session), "snippet": hit.snippet, "marks": hit.marks, "more": hit.more}
    if hit.entry is not None:
        fields["messageId"] = hit.entry
    if hit.role is not None:
        fields["role"] = hit.role
    if hit.at is not None:
        fields["at"] = rfc3339(hit.at)
    return fields
