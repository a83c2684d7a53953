"""Chats start anew by the clock: at an hour of the day, or when their user has been silent for long; never unless set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest

from hitherto.errors import InvalidInput
from hitherto.model import Draft, Principal, Text, ToolResult
from hitherto.ports import SilentChat
from hitherto.service import ResetPolicy, Sessions, address_of, parse_resets
from hitherto.service.channels.resets import ResetRule, Resets
from hitherto.values.keys import parse_key
from tests.support.conversations import everything, say, talk, told
from tests.support.homes import Clock

HOUR = 3_600_000
MAIN, DM, GROUP = "agent:main:main", "agent:main:irc:dm:ann", "agent:main:irc:group:all"
TASK, SUBAGENT = "agent:main:cron:nightly", "subagent:agent:main:helper"
NOON = int(datetime(2025, 6, 15, 12, tzinfo=UTC).timestamp() * 1_000)


async def chat(sessions: Sessions, who: Principal, key: str, *texts: str) -> str:
    session = await sessions.channels.begin(who, address_of(parse_key(key), "owner"))
    await talk(sessions, who, session.id, *texts)
    return session.id


async def due(sessions: Sessions, who: Principal, text: str, zone: tzinfo = UTC) -> dict[str | None, str]:
    found = await sessions.resets.due(who, parse_resets(text), zone=zone)
    return {each.session.key: each.reason for each in found}


async def test_a_chat_whose_user_was_silent_for_long_starts_anew(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    session_id = await chat(sessions, ann, DM, "Hello", "Are you there?")
    theirs = await chat(sessions, bob, DM, "Hello")
    clock.advance(4 * HOUR)
    policy = parse_resets("idle@4h")
    before = await everything(reader, ann, bob)
    assert await sessions.resets.run(ann, policy) == []
    clock.advance(1)
    assert await due(sessions, ann, "idle@4h") == {DM: "idle"}
    assert await everything(reader, ann, bob) == before  # looking is not reading
    assert (await reader.get(ann, session_id)).read_at is None
    (done,) = await sessions.resets.run(ann, policy)
    assert (done.session.id, done.active_at) == (session_id, clock.now - 4 * HOUR - 1)
    assert await told(reader, ann, session_id) == []
    (checkpoint,) = await reader.checkpoints(ann, session_id)
    assert (checkpoint.reason, checkpoint.message_count) == ("reset", 2)
    assert await sessions.resets.run(ann, policy) == []
    assert await told(reader, bob, theirs) == ["Hello"]
    await sessions.restore(ann, session_id, checkpoint.id)
    assert await told(reader, ann, session_id) == ["Hello", "Are you there?"]


async def test_only_the_user_s_own_words_count(sessions: Sessions, ann: Principal, clock: Clock) -> None:
    session_id = await chat(sessions, ann, DM, "Hello")
    clock.advance(3 * HOUR)
    result = Draft(role="user", parts=(ToolResult(id="c", content=(Text(text="done"),)),))
    others = [say("Ding", "assistant"), say("Note", "system"), result, *[say("Dong", "assistant")] * 200]
    await sessions.append(ann, session_id, others)
    assert await due(sessions, ann, "idle@2h") == {DM: "idle"}
    assert await due(sessions, ann, "idle@4h") == {}
    await talk(sessions, ann, session_id, "I am back")
    assert await due(sessions, ann, "idle@2h") == {}


async def test_a_chat_in_which_nobody_has_said_anything_is_left_alone(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    await chat(sessions, ann, GROUP)
    session_id = await chat(sessions, ann, DM)
    await sessions.append(ann, session_id, say("Good morning!", "assistant"))
    clock.advance(100 * HOUR)
    assert await due(sessions, ann, "idle@1h+daily@04:00") == {}


@pytest.mark.parametrize(
    ("said", "zone", "expected"),
    [
        (datetime(2025, 6, 15, 3, 59, tzinfo=UTC), UTC, {DM: "daily"}),
        (datetime(2025, 6, 14, 23, tzinfo=UTC), UTC, {DM: "daily"}),
        (datetime(2025, 6, 15, 4, tzinfo=UTC), UTC, {}),
        (datetime(2025, 6, 15, 1, 59, tzinfo=UTC), timezone(timedelta(hours=2)), {DM: "daily"}),
        (datetime(2025, 6, 15, 2, 1, tzinfo=UTC), timezone(timedelta(hours=2)), {}),
        (datetime(2025, 6, 14, 12, 59, tzinfo=UTC), timezone(timedelta(hours=-9)), {DM: "daily"}),
        (datetime(2025, 6, 14, 14, tzinfo=UTC), timezone(timedelta(hours=-9)), {}),
    ],
)
async def test_a_day_begins_at_an_hour_of_a_zone(
    sessions: Sessions,
    ann: Principal,
    clock: Clock,
    said: datetime,
    zone: tzinfo,
    expected: dict[str | None, str],
) -> None:
    clock.now = int(said.timestamp() * 1_000)
    await chat(sessions, ann, DM, "Hello")
    clock.now = NOON
    assert await due(sessions, ann, "daily@04:00", zone) == expected


async def test_a_channel_goes_before_a_kind_and_that_before_all(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    for key in (MAIN, DM, GROUP, TASK, SUBAGENT, "agent:main:xmpp:group:all"):
        await chat(sessions, ann, key, "Hello")
    keyless = await sessions.create(ann)
    await talk(sessions, ann, keyless.id, "Hello")
    odd = await sessions.create(ann, key="not a session key")
    await talk(sessions, ann, odd.id, "Hello")
    clock.advance(3 * HOUR)
    xmpp = "agent:main:xmpp:group:all"
    for text, expected in {
        "": set(),
        "off": set(),
        "idle@1h": {MAIN, DM, GROUP, xmpp},
        "idle@5h, idle@1h": {MAIN, DM, GROUP, xmpp},
        "group=idle@1h": {GROUP, xmpp},
        "idle@1h, group=off": {MAIN, DM},
        "task=idle@1h, subagent=idle@1h": {TASK, SUBAGENT},
        "idle@1h, channel:irc=off": {MAIN, xmpp},
        "group=idle@9h, channel:xmpp=idle@1h": {xmpp},
        "main=idle@9h+idle@1h": {MAIN},
    }.items():
        assert set(await due(sessions, ann, text)) == expected, text


async def test_a_chat_that_is_busy_or_has_changed_meanwhile_is_left_alone(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session_id = await chat(sessions, ann, DM, "Hello")
    clock.advance(3 * HOUR)
    policy = parse_resets("idle@1h")
    lease = await other.leases.acquire(ann, session_id, "a turn")
    assert await sessions.resets.run(ann, policy) == []
    await other.leases.release(ann, session_id, lease.fence)

    class Slow(Resets):
        async def _silent(self, *given: Any) -> AsyncIterator[list[SilentChat]]:
            async for found in super()._silent(*given):
                await talk(other, ann, session_id, "Wait!")
                yield found

    assert await Slow(sessions.core).run(ann, policy) == []
    assert await told(other, ann, session_id) == ["Hello", "Wait!"]


def test_a_policy_is_read_from_one_line() -> None:
    assert not parse_resets("")
    assert not parse_resets(" off , group=off")
    assert parse_resets("daily@4:05 + idle@30m, channel:a=b=idle@2d, directmessage=off") == ResetPolicy(
        rule=ResetRule(daily=245, idle_ms=1_800_000),
        kinds={"directmessage": ResetRule()},
        channels={"a=b": ResetRule(idle_ms=172_800_000)},
    )
    for wrong in ("daily", "daily@24:00", "idle@0h", "idle@-1h", "idle@4", "x=off", "channel:=off",
                  "ephemeral=off", "idle@4h+", "on"):  # fmt: skip
        with pytest.raises(InvalidInput):
            parse_resets(wrong)
