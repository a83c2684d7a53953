"""Branches of a session that another agent wrote: what was said in it beside the conversation that the agent would resume.

Each is kept as a checkpoint, so that whatever reaches, exports, erases or checks a checkpoint does so with a branch too.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from hitherto.errors import BranchNotFound, EntryNotFound
from hitherto.model import Branch, Checkpoint, Entry, Principal, decode_entry, plain_text
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Room
from hitherto.service.history.places import find_place, payload_at
from hitherto.service.records import Lists, load_expansions, load_lists, measure, require_session
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace, Spans, Stretch

BRANCH = "branch"
"""The reason of the checkpoints that are branches."""
TEXT_CHARS = 200
LOOKED_THROUGH = 20
"""How many of its messages are looked through for the first prompt."""
_BRANCHES = uuid.UUID("4b8d7a52-0b61-5d0c-9a57-2f6f4d1b9c11")
"""The namespace of their ids: what is read again gets the same one."""


class BranchLists(NamedTuple):
    """A branch and its span lists."""

    checkpoint: Checkpoint
    lists: Lists

    def own(self, told: Sequence[Stretch]) -> list[Stretch]:
        """What it says that was not told before, in order."""
        said = [stretch for stretch in self.lists.conversation() if not stretch.mark]
        return [left for stretch in said for left in algebra.without(stretch, told)]


class Branches(Room):
    """What was said beside conversations."""

    async def known(self, who: Principal, session_id: str) -> list[Branch]:
        """The branches of a session beside its conversation, oldest first."""

        async def work(tx: Reader) -> list[Branch]:
            record = await require_session(tx, who, session_id)
            known, found = await load_branches(tx, record), list[Branch]()
            told = (await load_lists(tx, record)).conversation() if known else []
            for each in known:
                found.append(await _described(tx, record, each, told))
                told += each.lists.conversation()
            return found

        return await self._store.read(work)

    async def resolve(self, who: Principal, session_id: str, name: str) -> Branch:
        """The branch of this id, of this beginning of an id, or of this number: 1 is the oldest. Raises `BranchNotFound`."""
        known = await self.known(who, session_id)
        if name.isascii() and name.isdecimal() and len(name) <= len(str(len(known))) and int(name):
            found = known[int(name) - 1 : int(name)]
        else:
            found = [each for each in known if name and each.id.startswith(name)]
        if len(found) != 1:
            raise BranchNotFound(name)
        return found[0]


async def load_branches(tx: Reader, record: Record) -> list[BranchLists]:
    """The branches of a session, oldest first; only those that another agent wrote have any."""
    if record.session.source is None:
        return []
    found: list[BranchLists] = []
    for checkpoint in await tx.checkpoints(record.owner, record.num):
        if checkpoint.reason == BRANCH:
            spans = await tx.spans(record.owner, record.num, checkpoint.id)
            lists = Lists(record, spans, await load_expansions(tx, record, spans))
            found.append(BranchLists(checkpoint, lists))
    return sorted(found, key=lambda each: (each.checkpoint.at, each.checkpoint.id))


async def lists_with(tx: Reader, record: Record, entry_id: str) -> tuple[Lists, str | None]:
    """The lists of the conversation, or those of the branch that has this entry if only a branch does, and its id."""
    lists = await load_lists(tx, record)
    branches = await load_branches(tx, record)
    if branches:
        for candidate, name in ((lists, None), *((each.lists, each.checkpoint.id) for each in branches)):
            with suppress(EntryNotFound):
                await find_place(tx, record, candidate.conversation(), entry_id)
                return candidate, name
    return lists, None


async def put_branches(
    tx: Writer, record: Record, branches: Mapping[str, tuple[Spans, int]], covered: Sequence[Stretch]
) -> None:
    """Keep exactly these branches, by id, with their spans and the time of their last message.

    One that was there and is not given stays if it has something that is not among what is `covered`.
    """
    for known in await load_branches(tx, record):
        name = known.checkpoint.id
        given = branches.get(name)
        if given is None and known.own(covered):
            continue
        if given is None or given[0] != known.lists.present:
            await tx.drop_checkpoint(record.owner, record.num, name)
    there = {each.id for each in await tx.checkpoints(record.owner, record.num)}
    for name, (spans, at) in branches.items():
        if name in there:
            continue
        stretches = algebra.context(spans, record.num, record.head)
        checkpoint = Checkpoint(
            id=name,
            at=at,
            reason=BRANCH,
            message_count=algebra.size(stretches),
            token_count=(await measure(tx, record.owner, stretches)).tokens or None,
        )
        await tx.put_checkpoint(record.owner, record.num, checkpoint, spans)


def branch_id(session_id: str, first: str) -> str:
    """The id of the branch that begins with this entry."""
    return str(uuid.uuid5(_BRANCHES, repr((session_id, first))))


async def _described(tx: Reader, record: Record, branch: BranchLists, told: Sequence[Stretch]) -> Branch:
    own = branch.own(told)
    view = branch.lists.conversation()
    first = None if not own else algebra.ordinal(view, EntryPlace(own[0].log, own[0].first))
    after = None
    if first:
        (before,) = algebra.slice_of(view, first - 1, first)
        payload = await payload_at(tx, record.owner, EntryPlace(before.log, before.first))
        after = decode_entry(payload).id
    looked = await tx.payloads(record.owner, algebra.slice_of(own, 0, LOOKED_THROUGH))
    entries = [decode_entry(payload) for payload in looked]
    return Branch(
        id=branch.checkpoint.id,
        at=branch.checkpoint.at,
        message_count=algebra.size(own),
        text=first_words(entries)[:TEXT_CHARS],
        first=entries[0].id if entries else None,
        after=after,
    )


def first_words(entries: Sequence[Entry]) -> str:
    """The first prompt among entries, else the first text; empty if there is none."""
    prompts = (plain_text(entry) for entry in entries if entry.role == "user" and not entry.meta.get("meta"))
    return next(filter(None, prompts), None) or next(filter(None, map(plain_text, entries)), "")
