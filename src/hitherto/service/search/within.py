"""Search within one session, however long: for words, and for the next message of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from hitherto.errors import EntryNotFound, InvalidInput
from hitherto.limits import FOUND_WITHIN, checked_limit
from hitherto.model import Principal, Value, decode_entry, is_error
from hitherto.ports import Reader
from hitherto.service.core import Room
from hitherto.service.history.places import find_place
from hitherto.service.records import load_lists, require_session
from hitherto.values import spans as algebra
from hitherto.values.query.language import Query, parse_query
from hitherto.values.spans import Stretch
from hitherto.values.words import Term

Kind = Literal["user", "assistant", "system", "tool", "failure", "summary", "edit"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class MessageHits(Value, frozen=True):
    """Entries with all the words, in the order of the conversation; if there are `more`, these are the newest."""

    entries: tuple[str, ...]
    more: bool = False
    terms: tuple[Term, ...] = ()


class ConversationSearch(Room):
    """Finding the way within a session."""

    async def find(self, who: Principal, session_id: str, text: str, *, limit: int = 1_000) -> MessageHits:
        """The messages of a conversation that have all the words: "phrases", prefix*, -words and role: as in a search.

        Other fields are understood, and passed over.
        """

        async def work(tx: Reader) -> MessageHits:
            record = await require_session(tx, who, session_id)
            checked_limit(limit, FOUND_WITHIN)
            query = parse_query(text if isinstance(text, str) else "")
            if not query.terms and not query.without and query.role is None:
                return MessageHits(entries=())
            stretches = (await load_lists(tx, record)).conversation()
            found = await _newest(tx, record.owner, stretches, query, limit + 1)
            return MessageHits(
                entries=tuple(reversed(found[:limit])), more=len(found) > limit, terms=query.terms
            )

        return await self._store.read(work)

    async def beside(
        self, who: Principal, session_id: str, entry_id: str | None, kind: Kind, *, backwards: bool = False
    ) -> str | None:
        """The next message of this kind after an entry of the conversation, or the one before it; None if there is none.

        Without an entry: the first, or the last, of all. A kind is a role, `failure`, `summary`: what a compaction left, or `edit`: what
        changed a file.
        """

        async def work(tx: Reader) -> str | None:
            record = await require_session(tx, who, session_id)
            if kind not in KINDS:
                raise InvalidInput(f"a kind is one of {', '.join(KINDS)}, not {kind!r}")
            stretches = (await load_lists(tx, record)).conversation()
            if entry_id is not None:
                place = algebra.ordinal(stretches, await find_place(tx, record, stretches, entry_id))
                if place is None:
                    raise EntryNotFound(entry_id)
                ends = (0, place) if backwards else (place + 1, algebra.size(stretches))
                stretches = algebra.slice_of(stretches, *ends)
            return await _first(tx, record.owner, stretches, kind, backwards=backwards)

        return await self._store.read(work)


async def _newest(
    tx: Reader, owner: str, stretches: Sequence[Stretch], query: Query, limit: int
) -> list[str]:
    found: list[str] = []
    for stretch in reversed(stretches):
        if len(found) == limit:
            break
        spots = await tx.within(
            owner,
            stretch,
            query.terms,
            query.role,
            limit - len(found),
            backwards=True,
            without=query.without,
        )
        found.extend(spot.id for spot in spots)
    return found


async def _first(
    tx: Reader, owner: str, stretches: Sequence[Stretch], kind: Kind, *, backwards: bool
) -> str | None:
    for stretch in reversed(stretches) if backwards else stretches:
        if kind == "summary":
            seq = stretch.first if stretch.mark else None
        elif kind == "failure":
            seq = await _failure(tx, owner, stretch, backwards=backwards)
        elif kind == "edit":
            seq = await _edit(tx, owner, stretch, backwards=backwards)
        else:
            spots = await tx.within(owner, stretch, (), kind, 1, backwards=backwards)
            seq = spots[0].seq if spots else None
        if seq is not None:
            (payload,) = await tx.payloads(owner, [stretch._replace(first=seq, last=seq)])
            return decode_entry(payload).id
    return None


async def _edit(tx: Reader, owner: str, stretch: Stretch, *, backwards: bool) -> int | None:
    """The place of the first entry of a stretch that changed a file, or of the last."""
    made = [each for batch in await tx.edits(owner, [stretch.log]) for each in batch.records()]
    seqs = [each.seq for each in made if not each.failed and stretch.first <= each.seq <= stretch.last]
    return (max if backwards else min)(seqs, default=None)


async def _failure(tx: Reader, owner: str, stretch: Stretch, *, backwards: bool) -> int | None:
    """The place of the first failure of a stretch, or of the last: the running sums say which half it is in."""
    log, low, high = stretch.log, stretch.first, stretch.last

    async def until(seq: int) -> int:
        return (await tx.totals(owner, log, seq)).errors

    # Decided by the first entry itself: the one before it may have been collected.
    (payload,) = await tx.payloads(owner, [stretch._replace(last=low)])
    before, all_of_them = await until(low) - is_error(decode_entry(payload)), await until(high)
    if before == all_of_them:
        return None
    wanted = all_of_them if backwards else before + 1
    while low < high:
        middle = (low + high) // 2
        if await until(middle) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


__all__ = ["KINDS", "ConversationSearch", "Kind", "MessageHits"]
