"""Findings of a summariser become facts; facts that were forgotten stay so until they are said again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.limits import FACT_CHARS, NAME_CHARS, is_storable
from hitherto.model import Entry, Fact, Session, encode
from hitherto.ports import Reader, Record, Writer
from hitherto.service.notes import FOR_EVER, FORGOTTEN, Note
from hitherto.summariser import Finding
from hitherto.values.facts import RivalQuery, normal_text, text_digest

Scope = tuple[str | None, str | None, str | None]
"""The agent to whom a fact is known, the person and the folder that it is about."""
ANYTHING = "anything"
"""The name under which it is noted that there is something that was forgotten."""
PERSONAL = frozenset({"identity", "preference"})
"""Facts about a person: the same in every folder."""


async def remember_findings(
    tx: Writer,
    record: Record,
    findings: Sequence[Finding],
    entries: Sequence[Entry],
    new_id: Callable[[], str],
) -> int:
    """Put what was found in these entries of a session into the memory; returns how many facts are new."""
    owner, session = record.owner, record.session
    found = await _unforgotten(tx, owner, findings, session, entries)
    known = await _rivals_of(tx, owner, found, session)
    facts = merge_findings(known, found, session, entries, new_id)
    await tx.put_facts(owner, facts.facts)
    return facts.added


async def settle_fact(tx: Writer, owner: str, fact: Fact) -> tuple[str, ...]:
    """Put a fact into the memory, in the place of what says the same, or something else of its subject, unless that was said
    later. Returns the ids of what it replaced."""
    wanted = RivalQuery(
        agent_id=fact.agent_id,
        identity_id=fact.identity_id,
        said=(text_digest(fact.text),),
        subjects=() if fact.subject is None else (fact.subject,),
    )
    shelf = _KnownFacts(await tx.rivals(owner, wanted))
    shelf.put(fact)
    changed = list(shelf.changed.values())
    await tx.put_facts(owner, changed)
    return tuple(each.id for each in changed if each.invalidated_by == fact.id)


async def note_forgotten(tx: Writer, owner: str, facts: Iterable[Fact], now: int) -> None:
    """Note that these facts do not come back from what was said before."""
    names = {forgotten_name(_scope_of(fact), fact.text) for fact in facts}
    for name in (ANYTHING, *sorted(names)):
        await FORGOTTEN.put(tx, owner, name, Note(now, FOR_EVER))


async def _unforgotten(
    tx: Reader, owner: str, found: Sequence[Finding], session: Session, entries: Sequence[Entry]
) -> list[Finding]:
    """The findings without those that were forgotten after they had been said for the last time."""
    if not found or await FORGOTTEN.get(tx, owner, ANYTHING) is None:
        return list(found)
    times, left = {entry.id: entry.at for entry in entries}, []
    for finding in found:
        forgotten = await FORGOTTEN.get(tx, owner, forgotten_name(_scope(session), _fact_text(finding)))
        said = max((times[entry] for entry in finding.entries if entry in times), default=None)
        if forgotten is None or (said is not None and said > forgotten.value):
            left.append(finding)
    return left


async def _rivals_of(tx: Reader, owner: str, found: Sequence[Finding], session: Session) -> list[Fact]:
    """What is remembered beside which these findings may not hold."""
    agent_id, identity_id, _ = _scope(session)
    subjects = {(each.subject or "")[:NAME_CHARS] for each in found} - {""}
    wanted = RivalQuery(
        agent_id=agent_id,
        identity_id=identity_id,
        said=tuple(sorted({text_digest(_fact_text(each)) for each in found})),
        subjects=tuple(sorted(filter(is_storable, subjects))),
    )
    return await tx.rivals(owner, wanted) if found else []


class MergedFacts(NamedTuple):
    """Facts to be stored, and how many of them are new."""

    facts: list[Fact]
    added: int


def merge_findings(
    known: Sequence[Fact],
    found: Sequence[Finding],
    session: Session,
    entries: Sequence[Entry],
    new_id: Callable[[], str],
) -> MergedFacts:
    """What to store so that the memory knows these findings too; `known` are their rivals: what may not hold beside them.

    A fact that the session gave before is not stored again. Of two facts that say the same, or something else of one
    subject, to one agent about one person, the one that was said later takes the place of the other.
    """
    times = {entry.id: entry.at for entry in entries}
    shelf = _KnownFacts(fact for fact in known if _scope_of(fact)[:2] == _scope(session)[:2])
    added = 0
    for finding in found:
        fact = _fact(finding, session, times, new_id)
        if fact is not None:
            added += shelf.take(fact)
    return MergedFacts(list(shelf.changed.values()), added)


class _KnownFacts:
    """Facts by what they say and by what they are about."""

    def __init__(self, known: Iterable[Fact]) -> None:
        self.changed: dict[str, Fact] = {}
        self._facts: dict[str, Fact] = {}
        self._places: dict[tuple[str, str], dict[str, None]] = {}
        for fact in known:
            self._put(fact)

    def take(self, fact: Fact) -> bool:
        """Put a fact beside the others; False if the session gave it before."""
        rivals = list(self._rivals(fact))
        same = (
            each
            for each in rivals
            if each.session == fact.session and normal_text(each.text) == normal_text(fact.text)
        )
        if (old := next(same, None)) is not None:
            self._change(old, replace(old, entries=fact.entries, at=max(old.at, fact.at)))
            return False
        self.put(fact)
        return True

    def put(self, fact: Fact) -> None:
        """Put a fact beside the others, whoever gave it: the later ones of its rivals hold."""
        holding = [each for each in self._rivals(fact) if each.invalidated_by is None]
        newer = max((each for each in holding if each.at > fact.at), key=lambda each: each.at, default=None)
        self._change(None, fact if newer is None else replace(fact, invalidated_by=newer.id))
        for each in holding if newer is None else ():
            self._change(each, replace(each, invalidated_by=fact.id))

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
    return [("said", normal_text(fact.text)), *about]


def forgotten_name(scope: Scope, text: str) -> str:
    """What is kept of a fact that was forgotten: it reveals nothing, and the same fact has the same."""
    return hashlib.sha256(encode([*scope[:2], normal_text(text)])).hexdigest()


def _fact_text(finding: Finding) -> str:
    """The text of the fact that a finding becomes."""
    return finding.text.strip()[:FACT_CHARS]


def _fact(
    finding: Finding, session: Session, times: dict[str, int], new_id: Callable[[], str]
) -> Fact | None:
    """The finding as a fact; None if it says nothing. Whoever found it is not believed more than need be."""
    text = _fact_text(finding)
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
