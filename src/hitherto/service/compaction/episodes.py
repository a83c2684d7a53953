"""Episodes: a session that starts anew keeps what was said before, under a heading, and remembers what is worth it.

What is worth remembering is found while nothing is locked, in the checkpoint that the episode has become.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

from msgspec.structs import replace

from hitherto.errors import RevisionConflict, StoreError
from hitherto.limits import EPISODES_PAGE, checked_limit
from hitherto.model import EPISODE, Draft, Entry, Episode, Principal, Session, Text, decode_entry
from hitherto.ports import Reader, Record, Writer
from hitherto.service.compaction.compact import ATTEMPTS, load_writable_context
from hitherto.service.compaction.plan import ContextSnapshot, clean, clean_findings
from hitherto.service.core import Core, Room
from hitherto.service.history.append import append_entries, complete_draft
from hitherto.service.history.branches import TEXT_CHARS, first_words
from hitherto.service.history.checkpoints import add_checkpoint
from hitherto.service.history.places import payload_at
from hitherto.service.memory.findings import remember_findings
from hitherto.service.notes import ENDED, Note
from hitherto.service.records import (
    Lists,
    change_session,
    load_lists,
    recount_session,
    require_session,
    require_writable,
)
from hitherto.service.validation import checked_owner
from hitherto.summaries.builtin import digest, findings
from hitherto.summaries.extraction import statements
from hitherto.summariser import CompactionPolicy, Finding
from hitherto.values import spans as algebra
from hitherto.values.days import today
from hitherto.values.spans import EntryPlace, Stretch
from hitherto.values.token_count import ESTIMATED, PER_ENTRY, estimate

Reason = Literal["daily", "idle", "manual"]
RECAP_TOKENS = 300
"""How long a recap is that is asked for where none is set."""
LOOKED_THROUGH = 5
"""How many messages of an episode are looked through for its first prompt."""


class Ending(NamedTuple):
    """What is kept of an episode that ends: facts, and a recap for the next one, which may be empty."""

    seen: ContextSnapshot
    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]
    recap: str


class Episodes(Room):
    """The parts of a session from one reset to the next."""

    async def reset(
        self, who: Principal, session_id: str, *, recap: bool | None = None, fence: int | None = None
    ) -> Session:
        """Start the session anew: the context is empty, or has a short `recap` of what was there (None: as it is set).

        What was there becomes an episode of the conversation, and a checkpoint; the facts in it are remembered.
        """
        tokens = recap_tokens(self._core.compaction, recap)
        done = await self._settled(who, session_id, tokens, fence)
        # It is done: what cannot be remembered now is noted, and taken at the next reset.
        with suppress(StoreError):
            await remember_episodes(self._core, checked_owner(who), session_id)
        return done

    async def _settled(self, who: Principal, session_id: str, tokens: int, fence: int | None) -> Session:
        for _ in range(ATTEMPTS - 1 if tokens else 0):
            with suppress(RevisionConflict):
                return await self._restart(who, session_id, tokens, fence)
        return await self._restart(who, session_id, tokens, fence)

    async def _restart(self, who: Principal, session_id: str, tokens: int, fence: int | None) -> Session:
        ending: Ending | None = None
        if tokens:  # it cannot be told before it was read
            seen = await self._store.read(partial(load_writable_context, who, session_id, fence))
            ending = await asyncio.to_thread(ending_of, seen, self._core.compaction, tokens, self._now())

        async def work(tx: Writer) -> Session:
            record = await require_session(tx, who, session_id)
            await require_writable(tx, record, fence)
            return await end_episode(self._core, tx, record, "manual", ending)

        return await self._store.write(work, session_id)

    async def known(self, who: Principal, session_id: str, *, limit: int = 100) -> list[Episode]:
        """The newest episodes of a session, oldest first. The last is the present one."""

        async def work(tx: Reader) -> list[Episode]:
            record = await require_session(tx, who, session_id)
            checked_limit(limit, EPISODES_PAGE)
            lists = await load_lists(tx, record)
            parts = _parts(lists.conversation())
            start = max(len(parts) - limit, 0)
            begun = [await _beginning(tx, record, lists, part) for part in parts[start:]]
            return [
                replace(
                    episode,
                    number=start + at,
                    ended_at=begun[at].began_at if at < len(begun) else None,
                    reason=begun[at].reason if at < len(begun) else None,
                    checkpoint=begun[at].checkpoint if at < len(begun) else None,
                )
                for at, episode in enumerate(begun, 1)
            ]

        return await self._store.read(work)


def recap_tokens(policy: CompactionPolicy, wanted: bool | None = None) -> int:
    """How long the recap of an episode may be; 0 if there is to be none."""
    if wanted is None:
        return policy.recap_tokens
    return (policy.recap_tokens or RECAP_TOKENS) if wanted else 0


def ending_of(seen: ContextSnapshot, policy: CompactionPolicy, tokens: int, now: int) -> Ending:
    """What to keep of a context that ends, with a recap of at most so many tokens. Takes a while if it is long."""
    entries = tuple(map(decode_entry, seen.payloads))
    found = statements(entries)
    told = digest(entries, found, tokens) if tokens else ""
    text = clean(f"[Recap of the conversation until {today(now)}]\n{told}") if told else ""
    return Ending(seen, entries, clean_findings(findings(found, policy), policy), text)


async def end_episode(
    core: Core, tx: Writer, record: Record, reason: Reason, ending: Ending | None
) -> Session:
    """End the episode of a session and begin the next. Where nothing was said, the episode goes on.

    Raises `RevisionConflict` if it is not as its ending was drawn from. Without an ending, its facts are still to be remembered,
    and that is noted.
    """
    now, recap = core.now(), "" if ending is None else ending.recap
    if ending is not None and ending.seen[:2] != (record.num, record.session.revision):
        raise RevisionConflict(ending.seen.revision, record.session.revision)
    present = algebra.closed(await tx.spans(record.owner, record.num), record.num, record.head)
    checkpoint = await add_checkpoint(core, tx, record, "reset") if algebra.is_begun(present) else None
    if checkpoint is None:
        updated = max(record.session.updated_at, now)
        return (await change_session(tx, record, "reset", updated_at=updated)).session
    if ending is None:
        await _note_ended(core, tx, record, checkpoint)
    elif core.home.remembers:
        await remember_findings(tx, record, ending.findings, ending.entries, core.new_id)
    heading = complete_draft(_heading(recap, checkpoint, reason), now, core.new_id)
    record = await append_entries(tx, record, [heading], now, core.store.secret)
    spans = algebra.restarted(EntryPlace(record.num, record.head), checkpoint, recap=bool(recap))
    await tx.put_spans(record.owner, record.num, algebra.opened(spans, record.num, record.head))
    session = await recount_session(tx, record, spans, record.session)
    return (await tx.rewrite(replace(record, session=session, heard_at=None), "reset")).session


async def _note_ended(core: Core, tx: Writer, record: Record, checkpoint: str) -> None:
    if core.home.remembers:
        ended = await _ended(tx, record.owner, record.session.id)
        await ENDED.put(tx, record.owner, record.session.id, Note([*ended, checkpoint], core.now()))


async def _ended(tx: Reader, owner: str, session_id: str) -> list[str]:
    note = await ENDED.get(tx, owner, session_id)
    return [] if note is None else note.value


async def remember_episodes(core: Core, owner: str, session_id: str) -> None:
    """Remember the facts of episodes of a session that have ended: now, and whatever a process that was killed has left."""
    for _ in range(ATTEMPTS):
        seen = await core.store.read(partial(_load_ended, owner, session_id))
        if not seen:
            return
        endings = [
            (name, await asyncio.to_thread(ending_of, each, core.compaction, 0, 0)) for name, each in seen
        ]
        with suppress(RevisionConflict):  # something in them was erased meanwhile
            await core.store.write(partial(_remember_ended, core, owner, session_id, endings))
            return


async def _load_ended(owner: str, session_id: str, tx: Reader) -> list[tuple[str, ContextSnapshot]]:
    """The contexts of the episodes of which no facts are remembered yet, by checkpoint."""
    record = await tx.session(owner, session_id)
    if record is None:
        return []
    found: list[tuple[str, ContextSnapshot]] = []
    for name in await _ended(tx, owner, session_id):
        spans = await tx.spans(owner, record.num, name)
        stretches = algebra.context(spans, record.num, record.head)
        found.append((name, ContextSnapshot(record.num, 0, await tx.payloads(owner, stretches))))
    return found


async def _remember_ended(
    core: Core, owner: str, session_id: str, endings: Sequence[tuple[str, Ending]], tx: Writer
) -> None:
    record, noted = await tx.session(owner, session_id), dict(await _load_ended(owner, session_id, tx))
    if record is None:
        return
    for name, ending in endings:
        now = noted.pop(name, None)
        if now is None:
            continue  # somebody else has done it
        if now != ending.seen:
            raise RevisionConflict(0, record.session.revision)
        await remember_findings(tx, record, ending.findings, ending.entries, core.new_id)
    await ENDED.put(tx, owner, session_id, Note(list(noted), core.now()))


def _heading(recap: str, checkpoint: str, reason: Reason) -> Draft:
    meta = {"compaction": checkpoint, EPISODE: reason}
    if not recap:
        return Draft(role="system", meta=meta)
    tokens = PER_ENTRY + estimate(recap)
    return Draft(role="system", parts=(Text(text=recap),), tokens=tokens, meta={**meta, ESTIMATED: True})


class _Part(NamedTuple):
    """The stretches of an episode; `heading` is the one with which it begins."""

    heading: Stretch | None
    said: list[Stretch]


def _parts(conversation: Sequence[Stretch]) -> list[_Part]:
    parts = [_Part(None, [])]
    for stretch in conversation:
        if stretch.heading:
            parts.append(_Part(stretch, []))
        elif not stretch.mark:
            parts[-1].said.append(stretch)
    return parts


async def _beginning(tx: Reader, record: Record, lists: Lists, part: _Part) -> Episode:
    """An episode as far as its own messages tell; `reason` and `checkpoint` are those of the one before it."""
    looked = await tx.payloads(record.owner, algebra.slice_of(part.said, 0, LOOKED_THROUGH))
    entries = [decode_entry(payload) for payload in looked]
    episode = Episode(
        number=0,
        began_at=entries[0].at if entries else record.session.created_at,
        message_count=algebra.size(part.said),
        first=entries[0].id if entries else None,
        text=first_words(entries)[:TEXT_CHARS],
    )
    if part.heading is None:
        return episode
    place = EntryPlace(part.heading.log, part.heading.first)
    heading = decode_entry(await payload_at(tx, record.owner, place))
    return replace(
        episode,
        began_at=heading.at,
        heading=heading.id,
        reason=str(heading.meta.get(EPISODE, "manual")),
        checkpoint=lists.checkpoint_of(place),
    )
