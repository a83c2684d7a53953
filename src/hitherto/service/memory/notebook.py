"""The memory of one session: what its agent knows about whoever speaks in it, and nobody else's.

A group is somebody of its own: what was said to the agent alone does not reach it, and what is known of a group reaches no
direct message. Facts for `EVERYONE` reach all; only whoever runs the gateway makes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from hitherto.limits import FACTS_EXAMINED
from hitherto.model import Entry, Fact, Principal, Session, plain_text
from hitherto.service.core import Core
from hitherto.service.memory.facts import EVERYONE, Memory, NewFact
from hitherto.service.memory.findings import PERSONAL
from hitherto.service.memory.matches import rank_facts
from hitherto.values.token_count import estimate


class SessionNotebook:
    """What a turn may know and note; `prompt` is the message that it answers."""

    def __init__(self, core: Core, who: Principal, session: Session, prompt: str) -> None:
        self._memory, self._who, self._session, self._prompt = Memory(core), who, session, prompt

    async def search(self, query: str, limit: int) -> list[Fact]:
        """Facts with words of the query, best first; without a query the newest."""
        known = await self._known()
        found = await asyncio.to_thread(rank_facts, known, query) if query.strip() else known
        return found[:limit]

    async def add(self, text: str, about: str | None = None) -> Fact:
        """Remember something of whoever speaks; it takes the place of what was known about the same."""
        new = NewFact(text=text, subject=about, session=self._session.id, entries=(self._prompt,))
        return (await self._memory.note(self._who, new)).fact

    async def bearing(
        self, history: Sequence[Entry], asked: Sequence[Entry], tokens: int
    ) -> tuple[Fact, ...]:
        """The facts that bear on what is asked, best first, in so many tokens; not those that the context says itself."""
        said = {entry.id for entry in history}
        known = [fact for fact in await self._known() if self._is_about_here(fact, said)]
        query = "\n".join(map(plain_text, asked))
        ranked = await asyncio.to_thread(rank_facts, known, query)
        lasting = [fact for fact in known if fact.kind in PERSONAL]
        return tuple(_fitting((*ranked, *lasting), tokens))

    async def _known(self) -> list[Fact]:
        identity = self._session.identity
        people = (None if identity is None else identity.identity_id, EVERYONE)
        found = await self._memory.known(self._who, people, limit=FACTS_EXAMINED)
        return [fact for fact in found if fact.agent_id in (None, self._session.agent_id)]

    def _is_about_here(self, fact: Fact, said: set[str]) -> bool:
        elsewhere = fact.cwd not in (None, self._session.cwd) and fact.kind not in PERSONAL
        return not elsewhere and not (fact.entries and said.issuperset(fact.entries))


def _fitting(facts: Iterable[Fact], tokens: int) -> Iterator[Fact]:
    """The first of them, each once, as long as they fit."""
    taken = set[str]()
    for fact in facts:
        cost = estimate(fact.text) + 20  # with its frame
        if fact.id not in taken and cost <= tokens:
            tokens -= cost
            taken.add(fact.id)
            yield fact
