"""Everything of one person: taking it along, and erasing it.

A person's are the direct chats with any of their accounts, what they wrote in chats with others, and what memory has about them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial

from hitherto.errors import TooLarge
from hitherto.limits import PERSON_BYTES
from hitherto.model import Account, Entry, Fact, Filter, Principal, Session, Value, decode_entry
from hitherto.ports import Reader, Record, Writer
from hitherto.service.access.identities import Identities
from hitherto.service.catalog.deletion import bury_session, collect
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Room, clean_afterwards
from hitherto.service.history.entries import Entries
from hitherto.service.history.erasure import erase_entries
from hitherto.service.history.places import load_everything
from hitherto.service.memory.findings import note_forgotten
from hitherto.service.records import load_lists, require_session
from hitherto.service.validation import checked_owner
from hitherto.values import spans as algebra
from hitherto.values.keys import encode_name
from hitherto.values.spans import Stretch

PAGE = 200
ERASED_AT_ONCE = 20


class PersonErased(Value, frozen=True):
    """How much of a person was erased: sessions and links that are gone, messages that are blank, facts that are forgotten."""

    accounts: tuple[Account, ...]
    sessions: int
    messages: int
    facts: int
    links: int


class PersonSession(Value, frozen=True):
    """Messages of a person in a session: all that was said in it if it is `theirs`, else what they wrote."""

    session: Session
    theirs: bool
    entries: tuple[Entry, ...]


class PersonExport(Value, frozen=True):
    """All that is kept of a person."""

    accounts: tuple[Account, ...]
    sessions: tuple[PersonSession, ...]
    facts: tuple[Fact, ...]


class People(Room):
    """People behind accounts, and what is kept of them."""

    def __init__(self, core: Core, catalog: Catalog, entries: Entries, identities: Identities) -> None:
        super().__init__(core)
        self._catalog, self._entries, self._identities = catalog, entries, identities

    async def export(self, who: Principal, channel: str, user_id: str) -> PersonExport:
        """All that is kept of the person with this account. Raises `TooLarge` beyond 64 MB."""
        accounts = await self._identities.accounts(who, channel, user_id)
        found, left = list[PersonSession](), PERSON_BYTES
        async for session, theirs in self._sessions(who, accounts):
            entries: list[Entry] = []
            async for payloads in self._payloads(who, session, whole=False):
                said = [decode_entry(payload) for payload in payloads]
                kept = said if theirs else [entry for entry in said if _wrote(accounts, session, entry)]
                left -= sum(map(len, payloads)) if theirs else sum(len(str(entry)) for entry in kept)
                entries += kept
                if left < 0:
                    raise TooLarge(
                        f"what is kept of this person exceeds {PERSON_BYTES} bytes: use session.export"
                    )
            if theirs or entries:
                found.append(PersonSession(session=session, theirs=theirs, entries=tuple(entries)))
        facts = await self._store.read(partial(_facts_about, checked_owner(who), _names(accounts)))
        return PersonExport(accounts=tuple(accounts), sessions=tuple(found), facts=tuple(facts))

    async def erase(self, who: Principal, channel: str, user_id: str) -> PersonErased:
        """Erase all that is kept of the person with this account, for good: delete their sessions, blank what they wrote in others,
        forget what is known about them, and drop the links of their accounts.

        The links go last: if this is interrupted, it can be done again.
        """
        owner, accounts = checked_owner(who), await self._identities.accounts(who, channel, user_id)
        sessions = messages = 0
        for session, theirs in [each async for each in self._sessions(who, accounts)]:
            if theirs:
                await self._store.write(partial(self._bury, who, session.id), session.id)
                sessions += 1
            else:
                messages += await self._blank(who, session, accounts)
        facts = await self._store.write(partial(self._forget, owner, _names(accounts)))
        links = [
            await self._identities.unlink(who, *account) for account in accounts[1:]
        ]  # the first is the one that they are linked to
        await clean_afterwards(collect(self._core.aside))
        return PersonErased(
            accounts=tuple(accounts), sessions=sessions, messages=messages, facts=facts, links=sum(links)
        )

    async def _sessions(
        self, who: Principal, accounts: Sequence[Account]
    ) -> AsyncIterator[tuple[Session, bool]]:
        """The sessions that are theirs, or in which they may have written, and whether they are."""
        names, seen = _names(accounts), set[str]()
        async for session in self._catalog.every(who, Filter(archived="include")):
            if session.id not in seen and session.source is None:
                seen.add(session.id)
                person = None if session.identity is None else session.identity.identity_id
                yield session, person is not None and _without_account(person) in names

    async def _payloads(self, who: Principal, session: Session, *, whole: bool) -> AsyncIterator[list[bytes]]:
        """What was said in a session, page by page; `whole`: with what only checkpoints have."""
        view = await self._store.read(partial(_load_view, who, session.id, whole))
        for start in range(0, algebra.size(view), PAGE):
            yield await self._store.read(partial(_load_payloads, checked_owner(who), view, start))

    async def _blank(self, who: Principal, session: Session, accounts: Sequence[Account]) -> int:
        """Blank what they wrote in a session of others; returns how many messages."""
        found: dict[str, None] = {}
        async for payloads in self._payloads(who, session, whole=True):
            for payload in payloads:
                if b'"origin"' in payload and _wrote(accounts, session, entry := decode_entry(payload)):
                    found[entry.id] = None
        ids = list(found)
        for start in range(0, len(ids), ERASED_AT_ONCE):
            part = ids[start : start + ERASED_AT_ONCE]
            await self._store.write(partial(self._erase, who, session.id, part), session.id)
        wrote = partial(_wrote, accounts, session)
        waiting = await self._store.read(partial(_load_waiting, who, session.id, wrote))
        for entry_id in waiting:
            await self._entries.erase(who, session.id, entry_id)
        return len(ids) + len(waiting)

    async def _bury(self, who: Principal, session_id: str, tx: Writer) -> int:
        return await bury_session(tx, await require_session(tx, who, session_id), self._now())

    async def _erase(self, who: Principal, session_id: str, ids: Sequence[str], tx: Writer) -> None:
        await erase_entries(tx, self._core.aside.secret, await require_session(tx, who, session_id), ids)

    async def _forget(self, owner: str, names: Collection[str], tx: Writer) -> int:
        doomed = await _facts_about(owner, names, tx)
        if doomed:
            await tx.forget_facts(owner, sorted(fact.id for fact in doomed))
            await note_forgotten(tx, owner, doomed, self._now())
        return len(doomed)


def _names(accounts: Sequence[Account]) -> frozenset[str]:
    """The identities of a person."""
    return frozenset(f"{encode_name(channel)}:{encode_name(name)}" for channel, name in accounts)


def _without_account(identity: str) -> str:
    """The same person, whichever of your own accounts they wrote to."""
    channel, _, rest = identity.partition(":")
    kind, _, more = rest.partition(":")
    return f"{channel}:{more.partition(':')[2]}" if kind == "account" and more else identity


def _wrote(accounts: Sequence[Account], session: Session, entry: Entry) -> bool:
    """Whether they wrote this. An id counts on its own channel; elsewhere only with the name of the channel before it."""
    sender = None if entry.origin is None or entry.origin.sender is None else entry.origin.sender.id
    return any(
        (sender == name and session.channel == channel) or sender == f"{channel}:{name}"
        for channel, name in accounts
    )


async def _load_view(who: Principal, session_id: str, whole: bool, tx: Reader) -> list[Stretch]:
    record = await require_session(tx, who, session_id)
    if not whole:
        return [stretch for stretch in (await load_lists(tx, record)).conversation() if not stretch.mark]
    view: list[Stretch] = []
    for stretch in await load_everything(tx, record):
        view += algebra.without(stretch, view)
    return view


async def _load_payloads(owner: str, view: Sequence[Stretch], start: int, tx: Reader) -> list[bytes]:
    return await tx.payloads(owner, algebra.slice_of(view, start, start + PAGE))


async def _load_waiting(
    who: Principal, session_id: str, wrote: Callable[[Entry], bool], tx: Reader
) -> list[str]:
    record: Record = await require_session(tx, who, session_id)
    rows = await tx.inbox(record.owner, record.num)
    return [next(filter(wrote, row.entries)).id for row in rows if any(map(wrote, row.entries))]


async def _facts_about(owner: str, names: Collection[str], tx: Reader) -> list[Fact]:
    about = (fact for fact in await tx.facts(owner, None) if fact.identity_id is not None)
    return [fact for fact in about if _without_account(fact.identity_id or "") in names]
