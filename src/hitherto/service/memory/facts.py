"""Facts of all sessions: finding, adding and forgetting them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import InvalidInput, NotFound, TooLarge
from hitherto.limits import FACTS_EXAMINED, FACTS_PAGE, FACTS_PER_CALL, checked_limit, checked_number
from hitherto.model import Entry, Fact, Principal, Session, Text, Value
from hitherto.ports import Reader, Writer
from hitherto.secrets import redact
from hitherto.service.core import Room
from hitherto.service.memory.findings import note_forgotten, settle_fact
from hitherto.service.memory.matches import query_words, rank_facts
from hitherto.service.records import require_session
from hitherto.service.validation import checked_fact, checked_name, checked_owner, is_clean
from hitherto.summaries.extraction import statements
from hitherto.values.facts import FactQuery, stem_mark

WORDS_ASKED = 16
"""At most this many words of a query are looked for."""
EVERYONE = "*"
"""Stands in a fact for the person that it is about if everybody is told it. No person is called so."""


class NewFact(Value, frozen=True):
    """Something to remember. What comes from a session is about whoever speaks in it, whatever else is given."""

    text: str
    kind: str = "fact"
    subject: str | None = None
    agent_id: str | None = None
    identity_id: str | None = None
    session: str | None = None
    entries: tuple[str, ...] = ()
    confidence: float | None = None


class Noted(NamedTuple):
    """A fact that was remembered, and the ids of those that it replaced."""

    fact: Fact
    replaced: tuple[str, ...]


class Memory(Room):
    """What is remembered of all sessions."""

    async def search(
        self,
        who: Principal,
        query: str | None = None,
        *,
        agent_id: str | None = None,
        identity_id: str | None = None,
        session_id: str | None = None,
        superseded: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Fact]:
        """The caller's facts that still hold: newest first, or with a query those with its words, best first; of very
        many with its words the newest are looked at.

        With an agent, a person or a session: only what is known of theirs. Without a query, `superseded` lists also what was
        replaced.
        """
        checked_limit(limit, FACTS_PAGE)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise InvalidInput(f"an offset is a whole number of at least 0, not {offset!r:.40}")

        asked = FactQuery(
            agent_id=checked_name(agent_id, "an agent id"),
            identity_id=checked_name(identity_id, "an identity"),
            session=checked_name(session_id, "a session id"),
            limit=limit,
            offset=checked_number(offset, "an offset"),
        )
        if query is None:
            find = _every if superseded else _all_known
            return await self._store.read(partial(find, checked_owner(who), asked))
        near = replace(asked, offset=0)
        found = await self._store.read(lambda tx: _near(tx, checked_owner(who), query_words(query), near))
        return (await asyncio.to_thread(rank_facts, found, query))[offset : offset + limit]

    async def known(
        self,
        who: Principal,
        people: Sequence[str | None],
        query: str | None = None,
        *,
        limit: int = 50,
    ) -> list[Fact]:
        """The facts that hold about exactly these people (None: about nobody), newest first, or best first with a query."""
        checked_limit(limit, FACTS_EXAMINED)
        found: list[Fact] = []
        for person in dict.fromkeys(people):
            checked_name(person, "an identity")
            asked = FactQuery(identity_id=person, nobody=person is None, limit=FACTS_EXAMINED)
            found += await self._store.read(partial(_all_known, checked_owner(who), asked))
        if query is None:
            return sorted(found, key=lambda fact: (fact.at, fact.id), reverse=True)[:limit]
        return (await asyncio.to_thread(rank_facts, found, query))[:limit]

    async def note(self, who: Principal, new: NewFact) -> Noted:
        """Remember something that somebody says is so now: what was known about the same is replaced by it. Secrets in it
        are not kept."""
        self._core.home.check_allowed("added to memory")

        async def work(tx: Writer) -> Noted:
            fact = await self._fact(tx, who, new)
            return Noted(fact, await settle_fact(tx, checked_owner(who), fact))

        return await self._store.write(work)

    async def update(self, who: Principal, fact_id: str, text: str) -> Noted:
        """Correct a fact: the new one, about the same, takes its place. `NotFound` if there is none that holds."""
        owner, now = checked_owner(who), self._now()

        async def work(tx: Writer) -> Noted:
            behind = await tx.facts_behind(owner, fact_id) if is_clean(fact_id) else []
            old = next((fact for fact in behind if fact.id == fact_id), None)
            if old is None:
                raise NotFound(f"no fact {fact_id!r:.200}")
            new = replace(
                old,
                id=self._new_id(),
                at=max(now, old.at + 1),
                text=_kept_text(text),
                entries=(),
                invalidated_by=None,
            )
            await tx.put_facts(owner, [replace(old, invalidated_by=new.id), checked_fact(new)])
            return Noted(new, (old.id,))

        return await self._store.write(work)

    async def _fact(self, tx: Writer, who: Principal, new: NewFact) -> Fact:
        session = None if new.session is None else (await require_session(tx, who, new.session)).session
        text = _kept_text(new.text)
        fact = Fact(
            id=self._new_id(),
            at=self._now(),
            text=text,
            kind=new.kind,
            session=new.session,
            entries=new.entries,
            agent_id=new.agent_id if session is None else session.agent_id,
            identity_id=new.identity_id if session is None else _person(session),
            cwd=None if session is None else session.cwd,
            confidence=new.confidence,
            subject=new.subject or _subject(text),
        )
        return checked_fact(fact)

    async def forget(self, who: Principal, fact_id: str) -> bool:
        """Forget a fact, and what it had taken the place of; whether there was such a fact.

        It does not come back from what was said before: only if it is said again. Of its words a digest is kept.
        """
        now = self._now()

        async def work(tx: Writer) -> bool:
            owner = checked_owner(who)
            doomed = await tx.facts_behind(owner, fact_id) if is_clean(fact_id) else []
            if doomed:
                await tx.forget_facts(owner, sorted(fact.id for fact in doomed))
                await note_forgotten(tx, owner, doomed, now)
            return bool(doomed)

        return await self._store.write(work)

    async def add(self, who: Principal, facts: Sequence[Fact]) -> None:
        """Remember facts. One that names a session goes with it."""
        self._core.home.check_allowed("added to memory")
        owner = checked_owner(who)

        async def work(tx: Writer) -> None:
            for session_id in {fact.session for fact in facts if fact.session is not None}:
                await require_session(tx, who, session_id)
            if len(facts) > FACTS_PER_CALL:
                raise TooLarge(f"one call adds at most {FACTS_PER_CALL} facts, not {len(facts)}")
            await tx.put_facts(owner, [checked_fact(fact) for fact in facts])

        await self._store.write(work)

    async def facts(self, who: Principal, session_id: str | None = None) -> list[Fact]:
        """The caller's facts, of one session or all, newest first."""

        async def work(tx: Reader) -> list[Fact]:
            if session_id is not None:
                await require_session(tx, who, session_id)
            return await tx.facts(checked_owner(who), session_id)

        return await self._store.read(work)


async def _all_known(owner: str, asked: FactQuery, tx: Reader) -> list[Fact]:
    return await tx.find_facts(owner, asked)


async def _every(owner: str, asked: FactQuery, tx: Reader) -> list[Fact]:
    """Also those that no longer hold."""
    found = [
        fact
        for fact in await tx.facts(owner, asked.session)
        if asked.agent_id in (None, fact.agent_id) and asked.identity_id in (None, fact.identity_id)
    ]
    return found[asked.offset : asked.offset + asked.limit]


def _kept_text(text: str) -> str:
    kept = redact(text.strip(), Counter())
    if not kept:
        raise InvalidInput("a fact must say something")
    return kept


def _subject(text: str) -> str | None:
    """What a sentence is about, if only one thing can be true of that: as when it is found in a conversation."""
    found = statements([Entry(id="", at=0, role="user", parts=(Text(text=text),))])
    return found[0].subject if len(found) == 1 else None


def _person(session: Session) -> str | None:
    return None if session.identity is None else session.identity.identity_id


async def _near(tx: Reader, owner: str, words: Sequence[str], wanted: FactQuery) -> list[Fact]:
    """Facts that may have these words, newest first: all of a person or a session, if there are not too many. Else each
    word has its share, so that a common one does not crowd out a rare one."""
    if wanted.identity_id is not None or wanted.session is not None:
        few = await tx.find_facts(owner, replace(wanted, limit=FACTS_EXAMINED))
        if len(few) < FACTS_EXAMINED:
            return few
    found: dict[str, Fact] = {}
    asked = words[:WORDS_ASKED]
    share = FACTS_EXAMINED // max(len(asked), 1)
    for word in asked:
        for mark in dict.fromkeys((word, stem_mark(word))):
            near = await tx.find_facts(owner, replace(wanted, mark=mark, limit=share))
            found |= {fact.id: fact for fact in near}
            if len(near) >= share:
                break  # there are more than enough that have the word itself
    return sorted(found.values(), key=lambda fact: (fact.at, fact.id), reverse=True)
