"""The quarantine: messages that nothing explains. They are kept until a person has looked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

from hitherto.errors import NotFound, StoreDamaged
from hitherto.model import Session, Value
from hitherto.ports import QuarantinedLog, Reader, Writer
from hitherto.service.catalog.sessions import add_session
from hitherto.service.core import Core
from hitherto.service.records import measure, with_counts
from hitherto.values import spans as algebra
from hitherto.values.spans import Span, Stretch

TITLE = "Put back from quarantine"


class Quarantined(Value, frozen=True):
    """Messages of one log, under a number of the store's own."""

    number: int
    owner: str
    at: int
    why: str
    messages: int


class Quarantine:
    """What `Store.check` has set aside."""

    def __init__(self, core: Core) -> None:
        self._store, self._now, self._new_id = core.store, core.now, core.new_id

    async def all(self) -> list[Quarantined]:
        """See `Admin.quarantined`."""
        found = await self._store.read(lambda tx: tx.quarantined())
        return [
            Quarantined(
                number=each.log,
                owner=each.owner,
                at=each.at,
                why=each.why,
                messages=algebra.size(each.stretches),
            )
            for each in found
        ]

    async def messages(self, number: int) -> AsyncIterator[bytes]:
        """See `Admin.quarantined_messages`."""
        found = await self._store.read(lambda tx: _find(tx, number))
        for stretch in found.stretches:
            for seq in range(stretch.first, stretch.last + 1):
                with suppress(StoreDamaged):
                    yield await self._payload(found.owner, Stretch(number, seq, seq))

    async def _payload(self, owner: str, place: Stretch) -> bytes:
        return (await self._store.read(lambda tx: tx.payloads(owner, [place])))[0]

    async def put_back(self, number: int) -> Session | None:
        """See `Admin.put_back`."""

        async def work(tx: Writer) -> Session | None:
            found = await _find(tx, number)
            await tx.release(found.owner, number)
            if await tx.reaching(found.owner, number) or await tx.by_num(found.owner, number) is not None:
                return None
            return await self._add_session(tx, found)

        return await self._store.write(work)

    async def _add_session(self, tx: Writer, found: QuarantinedLog) -> Session:
        now = self._now()
        session = Session(
            id=self._new_id(), revision=1, created_at=now, updated_at=now, title=TITLE, title_by="user"
        )
        sums = await measure(tx, found.owner, found.stretches)
        session = with_counts(session, algebra.size(found.stretches), sums)
        record = await add_session(tx, found.owner, session)
        spans = tuple(Span(each.log, each.first, each.last) for each in found.stretches)
        await tx.put_spans(found.owner, record.num, algebra.opened(spans, record.num, record.head))
        return record.session


async def _find(tx: Reader, number: int) -> QuarantinedLog:
    found = [each for each in await tx.quarantined() if each.log == number]
    if not found:
        raise NotFound(
            f"nothing is in quarantine under {number}; `hitherto doctor --quarantine` lists what is"
        )
    return found[0]
