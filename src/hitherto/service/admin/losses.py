"""What was deleted and erased in one store, done again in another that still has it: in a backup that takes its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from hitherto.errors import StoreDamaged
from hitherto.model import Session, Value
from hitherto.ports import Losses, Store, Writer
from hitherto.service.catalog.deletion import collect
from hitherto.service.catalog.sessions import add_session
from hitherto.service.history.erased import KEYLESS
from hitherto.service.history.erasure import erase_known
from hitherto.service.notes import forget_question

AT_ONCE = 200


class Lost(Value, frozen=True):
    """How many sessions were deleted again, how many messages erased, and which sessions could not be read for it."""

    deleted: int = 0
    erased: int = 0
    unread: tuple[str, ...] = ()


async def lose_again(store: Store, losses: Losses, now: int, *, include_deleted: bool = False) -> Lost:
    """Delete and erase in a store what was lost in another, and remember it, so that it does not come back later.

    With `include_deleted`, sessions that were deleted there stay if they are here; what was erased in them goes all the same.
    """
    there: list[tuple[str, str]] = []
    for start in range(0, len(losses.deleted), AT_ONCE):
        some = losses.deleted[start : start + AT_ONCE]
        there += await store.write(partial(_bury_absent, some, now))
    deleted, erased, unread = 0, 0, list[str]()
    for owner, session_id in () if include_deleted else there:
        try:
            await store.write(partial(_bury, owner, session_id, now))
            deleted += 1
        except StoreDamaged:
            unread.append(session_id)
    for (owner, session_id), marks in _marks(store, losses).items():
        await store.write(partial(_remember, owner, session_id, marks, now))
        try:
            erased += await store.write(partial(_erase, store.secret, owner, session_id))
        except StoreDamaged:
            unread.append(session_id)
    await collect(store)
    return Lost(deleted=deleted, erased=erased, unread=tuple(unread))


def _marks(store: Store, losses: Losses) -> dict[tuple[str, str], list[str]]:
    """The marks of each session, without those that only another store's secret explains."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for owner, session_id, mark in losses.erased:
        if losses.secret == store.secret or mark.startswith(KEYLESS):
            found[owner, session_id].append(mark)
    return found


async def _bury_absent(some: Sequence[tuple[str, str]], now: int, tx: Writer) -> list[tuple[str, str]]:
    """Leave a tombstone for each session that is not here; returns the others."""
    there: list[tuple[str, str]] = []
    for owner, session_id in some:
        if await tx.with_prefix(owner, session_id, 1) == [session_id]:
            there.append((owner, session_id))
        elif not await tx.buried(owner, session_id):
            blank = Session(id=session_id, revision=1, created_at=now, updated_at=now)
            await tx.bury(await add_session(tx, owner, blank), now)
    return there


async def _bury(owner: str, session_id: str, now: int, tx: Writer) -> None:
    record = await tx.session(owner, session_id)
    if record is not None:
        await tx.bury(record, now)
        await forget_question(tx, owner, session_id)


async def _remember(owner: str, session_id: str, marks: Sequence[str], now: int, tx: Writer) -> None:
    await tx.put_erasures(owner, session_id, marks, now)


async def _erase(key: bytes, owner: str, session_id: str, tx: Writer) -> int:
    record = await tx.session(owner, session_id)
    return 0 if record is None else await erase_known(tx, key, record)
