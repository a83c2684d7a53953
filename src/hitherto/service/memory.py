"""Memory: facts that outlive the context they were drawn from."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.facts import STEM, Rivals, Wanted, beginning, said, spoken, words_of
from hitherto.limits import (
    FACT_CHARS,
    FACTS_EXAMINED,
    FACTS_PAGE,
    NAME_CHARS,
    checked_limit,
    checked_number,
    is_storable,
)
from hitherto.model import Entry, Fact, Principal, Session, encode
from hitherto.ports import Reader, Writer
from hitherto.service.notes import FOR_EVER, FORGOTTEN, Note
from hitherto.service.records import Core
from hitherto.service.validation import checked_name, checked_owner, is_clean
from hitherto.summaries.sentences import STOPWORDS
from hitherto.summariser import Finding
from hitherto.words import searchable, tokens

Scope = tuple[str | None, str | None, str | None]
"""The agent to whom a fact is known, the person and the folder that it is about."""
ANYTHING = "anything"
WORDS_ASKED = 16
"""So many words of a query are looked for."""
PERSONAL = frozenset({"identity", "preference"})
"""Facts about a person: the same in every folder."""


class Memory(Core):
    """What is remembered of all sessions."""

    async def remembered(
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
            raise InvalidInput(f"an offset is a whole number from 0 on, not {offset!r:.40}")

        asked = Wanted(
            agent_id=checked_name(agent_id, "an agent id"),
            identity_id=checked_name(identity_id, "an identity"),
            session=checked_name(session_id, "a session id"),
            limit=limit,
            offset=checked_number(offset, "an offset"),
        )
        if query is None:
            return await self._store.read(lambda tx: tx.find_facts(checked_owner(who), asked))
        near = replace(asked, offset=0)
        found = await self._store.read(lambda tx: _near(tx, checked_owner(who), words_asked(query), near))
        return (await asyncio.to_thread(ranked, found, query))[offset : offset + limit]

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
                names = {_name(_scope_of(fact), fact.text) for fact in doomed}
                for name in (ANYTHING, *sorted(names)):
                    await FORGOTTEN.put(tx, owner, name, Note(now, FOR_EVER))
            return bool(doomed)

        return await self._store.write(work)


async def _near(tx: Reader, owner: str, words: Sequence[str], wanted: Wanted) -> list[Fact]:
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
        for mark in dict.fromkeys((word, beginning(word))):
            near = await tx.find_facts(owner, replace(wanted, mark=mark, limit=share))
            found |= {fact.id: fact for fact in near}
            if len(near) >= share:
                break  # there are more than enough that have the word itself
    return sorted(found.values(), key=lambda fact: (fact.at, fact.id), reverse=True)


async def unforgotten(
    tx: Reader, owner: str, found: Sequence[Finding], session: Session, entries: Sequence[Entry]
) -> list[Finding]:
    """The findings without those that were forgotten after they had been said for the last time."""
    if not found or await FORGOTTEN.get(tx, owner, ANYTHING) is None:
        return list(found)
    times, left = {entry.id: entry.at for entry in entries}, []
    for finding in found:
        forgotten = await FORGOTTEN.get(tx, owner, _name(_scope(session), _stored(finding)))
        said = max((times[entry] for entry in finding.entries if entry in times), default=None)
        if forgotten is None or (said is not None and said > forgotten.value):
            left.append(finding)
    return left


async def rivals_of(tx: Reader, owner: str, found: Sequence[Finding], session: Session) -> list[Fact]:
    """What is remembered beside which these findings may not hold."""
    agent_id, identity_id, _ = _scope(session)
    subjects = {(each.subject or "")[:NAME_CHARS] for each in found} - {""}
    wanted = Rivals(
        agent_id=agent_id,
        identity_id=identity_id,
        said=tuple(sorted({said(_stored(each)) for each in found})),
        subjects=tuple(sorted(filter(is_storable, subjects))),
    )
    return await tx.rivals(owner, wanted) if found else []


class Merged(NamedTuple):
    """Facts to be stored, and how many of them are new."""

    facts: list[Fact]
    added: int


def merged(
    known: Sequence[Fact],
    found: Sequence[Finding],
    session: Session,
    entries: Sequence[Entry],
    new_id: Callable[[], str],
) -> Merged:
    """What to store so that the memory knows these findings too; `known` are their `rivals_of`.

    What the session has told before is not stored again. Of two facts that say the same, or something else of one
    subject, to one agent about one person, the one that was said later takes the place of the other.
    """
    times = {entry.id: entry.at for entry in entries}
    shelf = _Shelf(fact for fact in known if _scope_of(fact)[:2] == _scope(session)[:2])
    added = 0
    for finding in found:
        fact = _fact(finding, session, times, new_id)
        if fact is not None:
            added += shelf.take(fact)
    return Merged(list(shelf.changed.values()), added)


class _Shelf:
    """Facts by what they say and by what they are about."""

    def __init__(self, known: Iterable[Fact]) -> None:
        self.changed: dict[str, Fact] = {}
        self._facts: dict[str, Fact] = {}
        self._places: dict[tuple[str, str], dict[str, None]] = {}
        for fact in known:
            self._put(fact)

    def take(self, fact: Fact) -> bool:
        """Put a fact beside the others; False if the session had told it already."""
        rivals = list(self._rivals(fact))
        same = (
            each for each in rivals if each.session == fact.session and spoken(each.text) == spoken(fact.text)
        )
        if (old := next(same, None)) is not None:
            self._change(old, replace(old, entries=fact.entries, at=max(old.at, fact.at)))
            return False
        holding = [each for each in rivals if each.invalidated_by is None]
        newer = max((each for each in holding if each.at > fact.at), key=lambda each: each.at, default=None)
        self._change(None, fact if newer is None else replace(fact, invalidated_by=newer.id))
        for each in holding if newer is None else ():
            self._change(each, replace(each, invalidated_by=fact.id))
        return True

    def _rivals(self, fact: Fact) -> Iterator[Fact]:
        """Those of which only one can hold beside this."""
        found = dict.fromkeys(fact_id for key in _keys(fact) for fact_id in self._places.get(key, ()))
        near = (self._facts[fact_id] for fact_id in found)
        return (each for each in near if each.cwd == fact.cwd or fact.kind in PERSONAL)

    def _change(self, old: Fact | None, new: Fact) -> None:
        if new != old:
            self.changed[new.id] = new
            self._put(new)

    def _put(self, fact: Fact) -> None:
        self._facts[fact.id] = fact
        for key in _keys(fact):
            self._places.setdefault(key, {})[fact.id] = None


def _keys(fact: Fact) -> list[tuple[str, str]]:
    about = [] if fact.subject is None else [("subject", fact.subject)]
    return [("said", spoken(fact.text)), *about]


def _name(scope: Scope, text: str) -> str:
    """What is kept of a fact that was forgotten: it tells nothing, and the same fact has the same."""
    return hashlib.sha256(encode([*scope[:2], spoken(text)])).hexdigest()


def _stored(finding: Finding) -> str:
    """The text of the fact that a finding becomes."""
    return finding.text.strip()[:FACT_CHARS]


def _fact(
    finding: Finding, session: Session, times: dict[str, int], new_id: Callable[[], str]
) -> Fact | None:
    """The finding as a fact; None if it says nothing. Whoever found it is not believed more than need be."""
    text = _stored(finding)
    kind, subject = finding.kind[:NAME_CHARS], (finding.subject or "")[:NAME_CHARS]
    if not text or not kind or not is_storable(kind):
        return None
    drawn = tuple(entry for entry in finding.entries if entry in times)
    agent_id, identity_id, cwd = _scope(session)
    return Fact(
        id=new_id(),
        at=max((times[entry] for entry in drawn), default=session.updated_at),
        text=text,
        kind=kind,
        session=session.id,
        entries=drawn,
        agent_id=agent_id,
        identity_id=identity_id,
        cwd=cwd,
        confidence=None if finding.confidence is None else min(max(finding.confidence, 0.0), 1.0),
        subject=subject if subject and is_storable(subject) else None,
    )


def _scope(session: Session) -> Scope:
    return session.agent_id, session.identity.identity_id if session.identity else None, session.cwd


def _scope_of(fact: Fact) -> Scope:
    return fact.agent_id, fact.identity_id, fact.cwd


ALIKE = 0.6
"""How much of the longer of two such words they must share."""


def ranked(facts: Sequence[Fact], query: str) -> list[Fact]:
    """The facts that have any word of the query, best first: rare words count for more, then certainty, then age."""
    words = [set(words_of(fact)) for fact in facts]
    known = Counter(word for each in words for word in each)
    forms = [_forms(word, known) for word in words_asked(query)]
    scored = []
    for number, (fact, has) in enumerate(zip(facts, words, strict=True)):
        score = sum(
            max((weight for word, weight in form.items() if word in has), default=0.0) for form in forms
        )
        if score > 0:
            scored.append((-score - 0.1 * (fact.confidence or 0.5), number))
    return [facts[number] for _, number in sorted(scored)]


def words_asked(query: str) -> list[str]:
    """The words of a query; those that say nothing count only if there is no other."""
    words = list(dict.fromkeys(tokens(searchable(query))))
    return [word for word in words if word not in STOPWORDS] or words


def _forms(word: str, known: Counter[str]) -> dict[str, float]:
    """The words of the facts that this one may mean, each with what finding it is worth."""
    rarity = math.log(2 + sum(known.values()))
    found = {
        other: share * (rarity - math.log(1 + count))
        for other, count in known.items()
        if (share := _likeness(word, other))
    }
    return {other: max(weight, 0.01) for other, weight in found.items()}


def _likeness(word: str, other: str) -> float:
    """1 for the same word, less for one that begins alike, else 0."""
    if word == other:
        return 1.0
    if word[:STEM] != other[:STEM] or len(word) < STEM or len(other) < STEM:
        return 0.0
    shorter, longer = sorted((word, other), key=len)
    shared = next((at for at, char in enumerate(shorter) if char != longer[at]), len(shorter))
    return 0.7 * shared / len(longer) if shared >= ALIKE * len(longer) else 0.0
