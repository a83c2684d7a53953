"""Resets by the clock: a chat in which nobody has written for a while, or since the night, starts anew. Off unless set.

What was there becomes a checkpoint, as with every reset. Only sessions with a session key are chats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Literal

from msgspec import field

from hitherto.errors import InvalidInput, InvalidKey
from hitherto.model import Filter, Principal, Session, Value, decode_entry
from hitherto.ports import Reader, Writer
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Room
from hitherto.service.history.checkpoints import reshape_session
from hitherto.service.records import active_lease, load_lists
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
        if (own := self.channels.get(session.channel or "")) is not None:
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
    """Starting chats anew."""

    def __init__(self, core: Core, catalog: Catalog) -> None:
        super().__init__(core)
        self._catalog = catalog

    async def due(
        self, who: Principal, policy: ResetPolicy, *, zone: tzinfo | None = None, now: int | None = None
    ) -> list[DueReset]:
        """The chats that the policy starts anew now, or at that moment. Days begin in `zone`; None is this machine's."""
        found: dict[str, DueReset] = {}
        if not policy:
            return []
        now = self._now() if now is None else now
        async for session in self._catalog.every(who, Filter()):
            limit = policy.of(session).limit(now, zone)
            if limit is None or not session.message_count or session.created_at >= limit[0]:
                continue
            active_at = await self._active_at(who, session)
            if active_at is not None and active_at < limit[0]:
                found[session.id] = DueReset(session=session, reason=limit[1], active_at=active_at)
        return list(found.values())

    async def run(
        self, who: Principal, policy: ResetPolicy, *, zone: tzinfo | None = None, now: int | None = None
    ) -> list[DueReset]:
        """Start them anew; those in which a turn runs, or something has happened since they were looked at, are left."""
        due = await self.due(who, policy, zone=zone, now=now)
        return [each for each in due if await self._reset_if_same(who, each.session)]

    async def _active_at(self, who: Principal, session: Session) -> int | None:
        """When the user was last heard of in the context; None if that was never. This is not a reading of it."""

        async def work(tx: Reader) -> int | None:
            record = await tx.session(checked_owner(who), session.id)
            stretches = [] if record is None else (await load_lists(tx, record)).context()
            for stop in range(algebra.size(stretches), 0, -LOOKED_AT):
                part = algebra.slice_of(stretches, max(stop - LOOKED_AT, 0), stop)
                entries = map(decode_entry, reversed(await tx.payloads(checked_owner(who), part)))
                if (prompt := next(filter(is_prompt, entries), None)) is not None:
                    return prompt.at
            return None

        return await self._store.read(work)

    async def _reset_if_same(self, who: Principal, session: Session) -> bool:
        async def work(tx: Writer) -> bool:
            record = await tx.session(checked_owner(who), session.id)
            if record is None or record.session.revision != session.revision:
                return False
            if active_lease(record.lease, await tx.now()) is not None:
                return False
            await reshape_session(self._core, tx, record, (), "reset")
            return True

        return await self._store.write(work)


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
