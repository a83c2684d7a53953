"""Facts of all sessions: finding, adding and forgetting them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from hitherto.errors import InvalidInput, TooLarge
from hitherto.limits import FACTS_EXAMINED, FACTS_PAGE, FACTS_PER_CALL, checked_limit, checked_number
from hitherto.model import Fact, Principal
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.memory.findings import note_forgotten
from hitherto.service.memory.matches import query_words, rank_facts
from hitherto.service.records import require_session
from hitherto.service.validation import checked_fact, checked_name, checked_owner, is_clean
from hitherto.values.facts import FactQuery, stem_mark

WORDS_ASKED = 16
"""At most this many words of a query are looked for."""


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
        limit: int = 50,
        offset: int = 0,
    ) -> list[Fact]:
        """The caller's facts that still hold: newest first, or with a query those with its words, best first; of very
        many with its words the newest are looked at.

        With an agent, a person or a session: only what is known of theirs.
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
            return await self._store.read(lambda tx: tx.find_facts(checked_owner(who), asked))
        near = replace(asked, offset=0)
        found = await self._store.read(lambda tx: _near(tx, checked_owner(who), query_words(query), near))
        return (await asyncio.to_thread(rank_facts, found, query))[offset : offset + limit]

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
