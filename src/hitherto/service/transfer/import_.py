"""Bringing sessions in: all of one is checked before anything is written, and it is written whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from hitherto import spans as algebra
from hitherto.errors import AlreadyExists, SessionNotFound
from hitherto.exports.lines import at_line, head_of, spans_of
from hitherto.exports.read import Foreign, unfolded
from hitherto.model import Principal, Session
from hitherto.ports import Record, Writer
from hitherto.service.catalog.sessions import add_session
from hitherto.service.transfer.export import Exporting
from hitherto.service.transfer.parcel import Parcel, unpacked
from hitherto.service.transfer.untrusted import adopted, checked_bulk, humble
from hitherto.service.validation import checked_name, checked_owner


class Importing(Exporting):
    """Bringing sessions in."""

    async def import_session(
        self,
        who: Principal,
        lines: Sequence[bytes],
        *,
        new_id: bool = False,
        trusted: bool = True,
        key: str | None = None,
        first_line: int = 1,
    ) -> Session:
        """A session from the lines of its export, or from the lines of a document that holds it.

        Trusted is a copy that its owner has made: all of it is restored, under its own id (`AlreadyExists` if it is
        there) or a new one. Of anything else only what was said is taken, under an id that its content gives it; if it
        is there already, that session is returned and nothing is written. `key` is the session key that the caller, not
        the file, gives it. What is wrong is said with its line, counted from `first_line`.
        """
        owner = checked_owner(who)
        checked_name(key, "a session key")
        parcel, restored = await asyncio.to_thread(self._parcel, lines, first_line, trusted)
        fresh = new_id or key is not None
        if fresh:
            parcel = self._renewed(parcel, key)
        if not restored and not fresh and (known := await self._known(who, parcel.session.id)):
            return known
        self._check_home(parcel.session)
        return await self._store.write(partial(_put, owner, parcel, self._now()))

    async def already_there(
        self, who: Principal, lines: Sequence[bytes], *, trusted: bool = True, first_line: int = 1
    ) -> Session | None:
        """The session that an import of these lines would only repeat: it is there, exactly so."""
        checked_owner(who)
        given = unfolded(lines, first_line)
        if not trusted or isinstance(given, Foreign):
            parcel, _ = await asyncio.to_thread(self._parcel, lines, first_line, trusted)
            return await self._known(who, parcel.session.id)
        with at_line(first_line):
            head = head_of(given[0] if given else b"")
        known = await self._known(who, head.session.id)
        return known if known and await self._equals(who, known.id, given) else None

    async def _equals(self, who: Principal, session_id: str, lines: Sequence[bytes]) -> bool:
        given = (bare for line in lines if (bare := line.strip()))
        async for line in self.export(who, session_id):
            if next(given, None) != line:
                return False
        return next(given, None) is None

    def _parcel(self, lines: Sequence[bytes], first: int, trusted: bool) -> tuple[Parcel, bool]:
        """What is to be written, and whether it is restored as it was."""
        if not trusted:
            checked_bulk(lines)
        given = unfolded(lines, first)
        if isinstance(given, Foreign):
            return adopted(given, self._now()), False
        parcel = unpacked(given, first)
        return (parcel, True) if trusted else (humble(parcel, self._now()), False)

    def _renewed(self, parcel: Parcel, key: str | None) -> Parcel:
        """The same under a new id; the original keeps its key and its facts."""
        ids: dict[str | None, str] = {fact.id: self._new_id() for fact in parcel.facts}
        facts = (
            replace(fact, id=ids[fact.id], invalidated_by=ids.get(fact.invalidated_by))
            for fact in parcel.facts
        )
        return replace(
            parcel, session=replace(parcel.session, id=self._new_id(), key=key), facts=tuple(facts)
        )

    async def _known(self, who: Principal, session_id: str) -> Session | None:
        try:
            return await self.get(who, session_id)
        except SessionNotFound:
            return None


async def _put(owner: str, parcel: Parcel, now: int, tx: Writer) -> Session:
    session = parcel.session
    if await tx.session(owner, session.id) is not None:
        raise AlreadyExists(f"there is a session {session.id!r} already: import it under a new id (--new-id)")
    # The title comes last, as in an append: it is the newest document of the session.
    bare = replace(session, title=None, title_by=None, earlier_titles=())
    record = await add_session(tx, owner, bare, order_at=min(session.updated_at, now))
    if parcel.rows:
        record = replace(record, head=len(parcel.rows), totals=parcel.rows[-1].totals)
        record = await tx.extend(record, parcel.rows)
    record = await tx.rewrite(replace(record, session=session), "import")
    await _put_beside(record, parcel, tx)
    return record.session


async def _put_beside(record: Record, parcel: Parcel, tx: Writer) -> None:
    owner, num = record.owner, record.num
    for checkpoint, ranges in parcel.checkpoints:
        await tx.put_checkpoint(owner, num, checkpoint, spans_of(ranges, num))
    for copy in parcel.copies:
        await tx.put_raw_copy(owner, num, copy)
    await tx.put_spans(owner, num, algebra.opened(spans_of(parcel.spans, num), num, record.head))
    await tx.put_facts(owner, [replace(fact, session=record.session.id) for fact in parcel.facts])
