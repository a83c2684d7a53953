"""Sessions that share the beginning of their history: which they are, and where two of them diverge."""

from __future__ import annotations

from hitherto.errors import InvalidInput
from hitherto.model import Principal, Session, Value, decode_entry
from hitherto.ports import Reader, Record
from hitherto.service.core import Room
from hitherto.service.records import load_lists, measure, require_session
from hitherto.service.validation import MICROS
from hitherto.values import spans as algebra
from hitherto.values.spans import Stretch

RELATIVES = 50
"""At most this many of the newest relatives are listed."""


class Relative(Value, frozen=True):
    """A session that begins with the same messages, and how many those are."""

    session: Session
    shared: int


class Side(Value, frozen=True):
    """One of two sessions, and what it has beyond the part that they share. What is not known is None."""

    session: Session
    messages: int
    tokens: int | None = None
    failures: int = 0
    cost: float | None = None


class Comparison(Value, frozen=True):
    """Two sessions: how many messages both begin with, the last of those, and what follows in each."""

    shared: int
    ancestor: str | None
    sides: tuple[Side, Side]


class Comparisons(Room):
    """Comparing forks. The spans show what is shared, without reading it."""

    async def relatives(self, who: Principal, session_id: str) -> list[Relative]:
        """The sessions that begin as this one does, newest first; not itself."""

        async def work(tx: Reader) -> list[Relative]:
            record = await require_session(tx, who, session_id)
            said = await _said(tx, record)
            nums = await tx.reaching(record.owner, said[0].log) if said else []
            found = [
                await tx.by_num(record.owner, num) for num in sorted(nums, reverse=True)[: RELATIVES + 1]
            ]
            others = [each for each in found if each is not None and each.num != record.num]
            known = [
                Relative(session=each.session, shared=algebra.shared(said, await _said(tx, each)))
                for each in others[:RELATIVES]
            ]
            return [each for each in known if each.shared]

        return await self._store.read(work)

    async def compare(self, who: Principal, session_id: str, other_id: str) -> Comparison:
        """Where the conversations of two sessions diverge, and how much follows in each."""

        async def work(tx: Reader) -> Comparison:
            one, other = await require_session(tx, who, session_id), await require_session(tx, who, other_id)
            if one.num == other.num:
                raise InvalidInput("a session cannot be compared with itself: name two sessions")
            both = [await _said(tx, each) for each in (one, other)]
            shared = algebra.shared(*both)
            sides = [
                await _side(tx, record, algebra.slice_of(said, shared, algebra.size(said)))
                for record, said in zip((one, other), both, strict=True)
            ]
            return Comparison(
                shared=shared,
                ancestor=await _entry_at(tx, one.owner, both[0], shared - 1) if shared else None,
                sides=(sides[0], sides[1]),
            )

        return await self._store.read(work)


async def _said(tx: Reader, record: Record) -> list[Stretch]:
    return (await load_lists(tx, record)).conversation()


async def _side(tx: Reader, record: Record, rest: list[Stretch]) -> Side:
    sums = await measure(tx, record.owner, rest)
    return Side(
        session=record.session,
        messages=algebra.size(rest),
        tokens=sums.tokens or None,
        failures=sums.errors,
        cost=sums.cost / MICROS if sums.cost else None,
    )


async def _entry_at(tx: Reader, owner: str, said: list[Stretch], position: int) -> str:
    (payload,) = await tx.payloads(owner, algebra.slice_of(said, position, position + 1))
    return decode_entry(payload).id


__all__ = ["Comparison", "Comparisons", "Relative", "Side"]
