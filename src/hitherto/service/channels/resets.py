"""Resets by the clock: a chat in which nobody has written for a while, or since the night, starts anew. Off unless set.

What was there becomes an episode, as with every reset. Only sessions with a session key are chats.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Literal, NamedTuple

from msgspec import field

from hitherto.errors import InvalidInput, InvalidKey, RevisionConflict, StoreDamaged
from hitherto.model import Principal, Session, Value, decode_entry
from hitherto.ports import Reader, Record, SilentChat, Writer
from hitherto.service.compaction.compact import load_snapshot
from hitherto.service.compaction.episodes import (
    Ending,
    end_episode,
    ending_of,
    recap_tokens,
    remember_episodes,
)
from hitherto.service.compaction.plan import ContextSnapshot
from hitherto.service.core import Room
from hitherto.service.records import active_lease, load_context
from hitherto.service.validation import checked_owner
from hitherto.summaries.kept_tail import is_prompt
from hitherto.values import spans as algebra
from hitherto.values.days import DAY_MS
from hitherto.values.keys import Kind, parse_key

Reason = Literal["daily", "idle"]
CHATS = (Kind.MAIN, Kind.DIRECT_MESSAGE, Kind.GROUP)
"""What a rule for all is about; tasks and subagents have one only if they are named."""
KINDS = tuple(str(kind) for kind in Kind if kind is not Kind.EPHEMERAL)
LOOKED_AT = 50
"""So many entries at a time are read, from the end, to find the last prompt."""

_DAILY = re.compile(r"daily@([01]?\d|2[0-3]):([0-5]\d)")
_IDLE = re.compile(r"idle@([1-9]\d{0,5})([mhd])")
_MS = {"m": 60_000, "h": 3_600_000, "d": DAY_MS}


class ResetRule(Value, frozen=True):
    """When a chat starts anew: every day at a minute after midnight, after so long without a word from its user, or both.

    Without either, never.
    """

    daily: int | None = None
    idle_ms: int | None = None

    def limit(self, now: int, zone: tzinfo | None) -> tuple[int, Reason] | None:
        """A chat whose user was last heard of before this moment is to start anew, for this reason."""
        limits: list[tuple[int, Reason]] = []
        if self.daily is not None:
            limits.append((_last(now, self.daily, zone), "daily"))
        if self.idle_ms is not None:
            limits.append((now - self.idle_ms, "idle"))
        return max(limits, default=None)


class ResetPolicy(Value, frozen=True):
    """Which rule holds where: a channel's own before that of a kind of chat, and that before the one for all."""

    rule: ResetRule = ResetRule()
    kinds: Mapping[str, ResetRule] = field(default_factory=dict)
    channels: Mapping[str, ResetRule] = field(default_factory=dict)

    def of(self, session: Session) -> ResetRule:
        """The rule for a session."""
        try:
            kind = None if session.key is None else parse_key(session.key).kind
        except InvalidKey:
            kind = None
        if kind is None or session.source is not None:
            return ResetRule()
        return self.of_chat(kind, session.channel or "")

    def of_chat(self, kind: str, channel: str) -> ResetRule:
        """The rule for chats of a kind in a channel."""
        if (own := self.channels.get(channel)) is not None:
            return own
        return self.kinds.get(kind, self.rule if kind in CHATS else ResetRule())

    def __bool__(self) -> bool:
        return any(rule != ResetRule() for rule in (self.rule, *self.kinds.values(), *self.channels.values()))


class DueReset(Value, frozen=True):
    """A chat that is to start anew, why, and when its user was last heard of."""

    session: Session
    reason: Reason
    active_at: int


class Resets(Room):
    """Starting chats anew. What is not due is not looked at: the stores keep since when a chat is silent, or a time before that."""

    at_once = 500
    """So many chats at a time are looked for."""

    async def due(
        self, who: Principal, policy: ResetPolicy, *, zone: tzinfo | None = None, now: int | None = None
    ) -> list[DueReset]:
        """The chats that the policy starts anew now, or at that moment. Days begin in `zone`; None is this machine's."""
        moment = _Moment(policy, self._now() if now is None else now, zone)
        found: list[DueReset] = []
        async for chats in self._silent(checked_owner(who), moment):
            for record in (chat.record for chat in chats if chat.record is not None):
                with suppress(StoreDamaged):
                    due = moment.due(record, await self._heard_at(record))
                    found += [] if due is None else [due]
        return found

    async def run(
        self, who: Principal, policy: ResetPolicy, *, zone: tzinfo | None = None, now: int | None = None
    ) -> list[DueReset]:
        """Start them anew, but for those in which a turn runs."""
        moment = _Moment(policy, self._now() if now is None else now, zone)
        return [done async for batch in self._sweep(checked_owner(who), moment) for done in batch]

    async def sweep(
        self, policy: ResetPolicy, *, zone: tzinfo | None = None, now: int | None = None
    ) -> AsyncIterator[list[DueReset]]:
        """The same for every owner, some chats at a time: what was started anew of each such batch."""
        moment = _Moment(policy, self._now() if now is None else now, zone)
        async for batch in self._sweep(None, moment):
            yield batch

    async def _sweep(self, owner: str | None, moment: _Moment) -> AsyncIterator[list[DueReset]]:
        async for chats in self._silent(owner, moment):
            done = list[DueReset]()
            for chat in chats:
                with suppress(StoreDamaged):  # the others are none the worse for it
                    due = await self._restart(chat, moment)
                    done += [] if due is None else [due]
            yield done

    async def _silent(self, owner: str | None, moment: _Moment) -> AsyncIterator[list[SilentChat]]:
        """The chats, of an owner or of all, that may be due, some at a time."""
        for chat in await self._store.read(lambda tx: tx.chats()) if moment.policy else ():
            limit = moment.limit_of(chat)
            last: SilentChat | None = None
            while limit is not None:
                ask = partial(
                    _silent, owner=owner, chat=chat, before=limit[0], after=last, limit=self.at_once
                )
                found = await self._store.read(ask)
                if found:
                    yield found
                if len(found) < self.at_once:
                    break
                last = found[-1]

    async def _heard_at(self, record: Record) -> int | None:
        if record.heard_at is not None:
            return record.heard_at
        return await self._store.read(lambda tx: _last_heard(tx, record))

    async def _restart(self, chat: SilentChat, moment: _Moment) -> DueReset | None:
        """Start a chat anew if it is due and no turn runs in it; if it is not, note when it may be. One in which something
        is said meanwhile waits for the next time."""
        policy, ending = self._core.compaction, None
        tokens = recap_tokens(policy)
        if tokens:
            seen = await self._store.read(partial(_ending_chat, chat=chat, moment=moment))
            ending = await asyncio.to_thread(ending_of, seen, policy, tokens, self._now()) if seen else None
        try:
            due = await self._store.write(partial(self._reset, chat=chat, moment=moment, ending=ending))
        except RevisionConflict:
            return None
        if due is not None and ending is None:
            await remember_episodes(self._core, chat.owner, chat.id)
        return due

    async def _reset(
        self, tx: Writer, chat: SilentChat, moment: _Moment, ending: Ending | None
    ) -> DueReset | None:
        record = await tx.session(chat.owner, chat.id)
        if record is None or record.silent_since is None:
            return None
        heard_at = await _last_heard(tx, record) if record.heard_at is None else record.heard_at
        due = moment.due(record, heard_at)
        if due is not None:
            if active_lease(record.lease, await tx.now()) is not None:
                return None
            await end_episode(self._core, tx, record, due.reason, ending)
        elif heard_at is None:
            await tx.put_silent_since(record, moment.now)
        elif record.heard_at is None:
            await tx.put_heard_at(record, heard_at)
        return due


class _Moment(NamedTuple):
    """A policy at a time."""

    policy: ResetPolicy
    now: int
    zone: tzinfo | None

    def limit(self, rule: ResetRule) -> tuple[int, Reason] | None:
        """See `ResetRule.limit`."""
        return rule.limit(self.now, self.zone)

    def limit_of(self, chat: str) -> tuple[int, Reason] | None:
        """The limit for a kind and channel; where the kind is open, none is later."""
        if chat:
            return self.limit(self.policy.of_chat(*chat.partition(":")[::2]))
        policy = self.policy
        limits = map(self.limit, (policy.rule, *policy.kinds.values(), *policy.channels.values()))
        return max((limit for limit in limits if limit is not None), default=None)

    def due(self, record: Record, heard_at: int | None) -> DueReset | None:
        """Whether a chat whose user was last heard of then is due."""
        limit = self.limit(self.policy.of(record.session))
        if heard_at is None or limit is None or max(heard_at, record.session.created_at) >= limit[0]:
            return None
        return DueReset(session=record.session, reason=limit[1], active_at=heard_at)


async def _silent(
    tx: Reader, owner: str | None, chat: str, before: int, after: SilentChat | None, limit: int
) -> list[SilentChat]:
    return await tx.silent(owner, chat, before, after, limit)


async def _ending_chat(tx: Reader, chat: SilentChat, moment: _Moment) -> ContextSnapshot | None:
    """The context of a chat that is due; None if it is not, or a turn runs in it."""
    record = await tx.session(chat.owner, chat.id)
    if record is None or record.silent_since is None:
        return None
    heard_at = await _last_heard(tx, record) if record.heard_at is None else record.heard_at
    if moment.due(record, heard_at) is None or active_lease(record.lease, await tx.now()) is not None:
        return None
    return await load_snapshot(tx, record)


async def _last_heard(tx: Reader, record: Record) -> int | None:
    """When the user was last heard of in the context, which is searched for it; None if that was never."""
    stretches = await load_context(tx, record)
    for stop in range(algebra.size(stretches), 0, -LOOKED_AT):
        part = algebra.slice_of(stretches, max(stop - LOOKED_AT, 0), stop)
        entries = map(decode_entry, reversed(await tx.payloads(record.owner, part)))
        if (prompt := next(filter(is_prompt, entries), None)) is not None:
            return prompt.at
    return None


def parse_resets(text: str) -> ResetPolicy:
    """A policy as a setting writes it: `idle@4h, group=daily@04:00+idle@30m, channel:irc=off`; each part is optional.

    Raises `InvalidInput`.
    """
    everywhere, kinds, channels = ResetRule(), dict[str, ResetRule](), dict[str, ResetRule]()
    for part in filter(None, map(str.strip, text.split(","))):
        place, assigned, rule = part.rpartition("=")
        what, _, name = place.partition(":")
        if not assigned:
            everywhere = _rule(part)
        elif place in KINDS:
            kinds[place] = _rule(rule)
        elif what == "channel" and name:
            channels[name] = _rule(rule)
        else:
            raise InvalidInput(
                f"cannot set a reset for {place!a:.60}: use {', '.join(KINDS)} or channel:NAME"
            )
    return ResetPolicy(rule=everywhere, kinds=kinds, channels=channels)


def _rule(text: str) -> ResetRule:
    daily = idle = None
    for word in text.strip().split("+") if text.strip() != "off" else ():
        if found := _DAILY.fullmatch(word.strip()):
            daily = 60 * int(found[1]) + int(found[2])
        elif found := _IDLE.fullmatch(word.strip()):
            idle = int(found[1]) * _MS[found[2]]
        else:
            raise InvalidInput(
                f"invalid reset {word!a:.60}: use daily@HH:MM, idle@30m, idle@4h, idle@7d or off"
            )
    return ResetRule(daily=daily, idle_ms=idle)


def _last(now: int, minute: int, zone: tzinfo | None) -> int:
    """The last time at which it was this minute of a day."""
    moment = datetime.fromtimestamp(now / 1_000, zone)
    then = moment.replace(hour=minute // 60, minute=minute % 60, second=0, microsecond=0)
    if then > moment:
        then -= timedelta(days=1)
    return round(then.timestamp() * 1_000)
