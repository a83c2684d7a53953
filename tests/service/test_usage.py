"""What sessions used and cost: nothing lowers it, and what several sessions share counts once."""

from __future__ import annotations

import pytest

from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import Draft, Entry, Principal, Role, Text, ToolResult, Usage
from hitherto.service import Imported, Sessions
from hitherto.values.days import DAY_MS
from hitherto.values.usage.requests import UsageSum
from hitherto.values.usage.sessions import SessionUsage

SONNET = "claude-sonnet-4-5"
NOON = 1_748_865_600_000
"""2025-06-02 12:00 UTC, a Monday."""


def say(text: str, role: Role = "user", *, at: int | None = None, **fields: object) -> Draft:
    return Draft(role=role, parts=(Text(text=text),), at=at, **fields)  # type: ignore[arg-type]


def answer(
    cost: float | None = None, *, at: int | None = None, read: int | None = None, written: int | None = None
) -> Draft:
    usage = Usage(input=1_000, output=100, cost=cost, cache_read=read, cache_write=written)
    return say("Yes.", "assistant", at=at, model=SONNET, usage=usage)


def answered(name: str, at: int, request: str | None = None, output: int = 100) -> Entry:
    usage = Usage(input=1_000, output=output, request=request)
    return Entry(id=name, at=at, role="assistant", parts=(Text(text="Yes."),), model=SONNET, usage=usage)


async def report(
    sessions: Sessions, who: Principal, **how: object
) -> dict[tuple[str | None, str | None], UsageSum]:
    found = await sessions.spending.report(
        who,
        since_day="2025-06-01",
        until_day="2025-06-30",
        **how,  # type: ignore[arg-type]
    )
    assert found.complete
    assert sum(row.usage.requests for row in found.rows) == found.total.requests
    return {(row.period, row.name): row.usage for row in found.rows}


async def spent(sessions: Sessions, who: Principal) -> UsageSum:
    found = await sessions.spending.report(who, since_day="2025-06-01", until_day="2025-06-30", period=None)
    assert found.complete
    return found.total


async def test_usage_is_that_of_all_that_was_said_also_of_what_was_compacted(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    session = await sessions.create(ann)
    nothing = await reader.usage(ann, session.id)
    assert (nothing.messages, nothing.context_tokens, nothing.usage.cost_status) == (0, 0, "unknown")
    await sessions.append(ann, session.id, [say("Is it?"), answer(0.5, read=400, written=50)])
    await sessions.compact(ann, session.id, say("They agreed."))
    await sessions.append(ann, session.id, say("Sure?", "assistant", usage=Usage(input=1)))
    found = await reader.usage(ann, session.id)
    assert (found.messages, found.context_messages) == (3, 2)
    assert found.usage == UsageSum(
        requests=2, input=1_001, output=100, cache_read=400, cache_write=50, reported=0.5, unpriced=1
    )
    assert found.usage.cost_status == "partial_missing_price"
    with pytest.raises(SessionNotFound):
        await reader.usage(bob, session.id)


async def test_each_turn_has_its_own_numbers(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    failed = Draft(role="tool", parts=(ToolResult(id="c", is_error=True),), at=NOON + 2_000)
    first = [say("One?", at=NOON), answer(0.25, at=NOON + 1_000), failed, answer(0.25, at=NOON + 5_000)]
    second = [say("Two?", at=NOON + 60_000), answer(0.125, at=NOON + 61_500)]
    await sessions.append(ann, session.id, [*first, *second])
    found = await reader.usage(ann, session.id)
    told = [(t.at, t.duration_ms, t.messages, t.tool_failures, t.usage.cost) for t in found.turns]
    assert told == [(NOON, 5_000, 4, 1, 0.5), (NOON + 60_000, 1_500, 2, 0, 0.125)]
    assert (found.duration_ms, found.tool_failures, found.model) == (6_500, 1, SONNET)


async def test_the_size_of_the_context_is_the_newest_answer_s_and_what_follows_it(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    async def context(session_id: str) -> tuple[int, bool, int, bool]:
        found: SessionUsage = await reader.usage(ann, session_id)
        return found.context_tokens, found.context_estimated, found.window, found.window_assumed

    session = await sessions.create(ann)
    await sessions.append(ann, session.id, [say("x" * 4_000)])
    tokens, estimated, window, assumed = await context(session.id)
    assert (900 < tokens < 1_100, estimated, window, assumed) == (True, True, 128_000, True)
    await sessions.append(ann, session.id, answer(0.5))
    assert await context(session.id) == (1_100, False, 200_000, False)
    await sessions.append(ann, session.id, say("y" * 400))
    assert await context(session.id) == (1_204, True, 200_000, False)


async def test_nothing_lowers_the_cost(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    prompts = [say("One?", at=NOON, id="p1"), answer(0.25, at=NOON + 1)]
    await sessions.append(ann, session.id, prompts)
    await sessions.append(ann, session.id, [say("Two?", at=NOON + 2, id="p2"), answer(0.5, at=NOON + 3)])
    assert (await reader.get(ann, session.id)).cost == 0.75
    await sessions.compact(ann, session.id, say("In short.", usage=Usage(input=5, output=5, cost=0.125)))
    assert (await reader.get(ann, session.id)).cost == 0.875
    await sessions.append(ann, session.id, [say("Three?", at=NOON + 4, id="p3"), answer(0.0625, at=NOON + 5)])
    await sessions.rewind(ann, session.id, "p3", before=True)
    assert (await reader.get(ann, session.id)).cost == 0.9375
    assert (await reader.usage(ann, session.id)).usage.cost == 0.9375
    assert (await spent(reader, ann)).cost == 0.9375
    fork = await sessions.fork(ann, session.id)
    assert (await reader.get(ann, fork.id)).cost == 0.875
    assert (await spent(reader, ann)).cost == 0.9375
    assert (await sessions.admin.check()).problems == ()


async def test_a_fork_keeps_what_it_shares_when_its_source_is_deleted(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, [say("One?", at=NOON), answer(0.25, at=NOON + 1)])
    fork = await sessions.fork(ann, session.id)
    assert (await spent(reader, ann)).cost == 0.25
    await sessions.delete(ann, session.id)
    assert (await spent(reader, ann)).cost == 0.25
    assert await report(reader, ann, period=None, by="session") == {(None, fork.id): await spent(reader, ann)}
    await sessions.delete(ann, fork.id)
    assert (await spent(reader, ann)).requests == 0


async def test_copies_of_a_request_count_once_where_it_was_first_made(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    async def take(name: str, created: int, entries: list[Entry], who: Principal = ann) -> None:
        given = Imported(id=f"claude:{name}", source="claude", created_at=created, updated_at=NOON + 9)
        await sessions.transfer.sync(who, given, entries)

    shared = [answered("a", NOON, "msg_1 req_1"), answered("b", NOON + 1)]
    await take("copy", NOON + 5, [answered("other", NOON + 7, "msg_1 req_1"), answered("b2", NOON + 1)])
    await take(
        "copy",
        NOON + 5,
        [
            answered("other", NOON + 7, "msg_1 req_1"),
            answered("b2", NOON + 1),
            answered("c", NOON + 8, "msg_2 req_2"),
        ],
    )
    await take("first", NOON, shared)
    await take("bobs", NOON, shared, bob)
    found = await report(reader, ann, period=None, by="session")
    assert {name: used.requests for (_, name), used in found.items()} == {"claude:first": 2, "claude:copy": 1}
    assert (await spent(reader, bob)).requests == 2
    await sessions.delete(ann, "claude:first")
    assert (await spent(reader, ann)).requests == 3


async def test_only_the_newest_form_of_an_amended_answer_counts(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    given = Imported(id="claude:1", source="claude", created_at=NOON, updated_at=NOON + 9)
    await sessions.transfer.sync(ann, given, [answered("a", NOON, output=10)])
    assert (await spent(reader, ann)).output == 10
    grown = answered("a", NOON, output=70)
    await sessions.transfer.sync(ann, given, [], extends=True, amended=grown)
    assert ((await spent(reader, ann)).requests, (await spent(reader, ann)).output) == (1, 70)


async def test_days_weeks_and_months_are_those_of_the_zone(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/src/app", project="ada/app")
    late = NOON - DAY_MS + 11 * 3_600_000  # 2025-06-01 23:00 UTC
    await sessions.append(ann, session.id, [answer(0.25, at=late), answer(0.5, at=NOON)])

    async def periods(period: str, zone: str) -> dict[str | None, float | None]:
        found = await report(reader, ann, period=period, zone=zone)
        return {when: used.cost for (when, _), used in found.items()}

    assert await periods("day", "UTC") == {"2025-06-01": 0.25, "2025-06-02": 0.5}
    assert await periods("day", "Europe/Berlin") == {"2025-06-02": 0.75}
    assert await periods("week", "UTC") == {"2025-W22": 0.25, "2025-W23": 0.5}
    assert await periods("week", "+01:00") == {"2025-W23": 0.75}
    assert await periods("month", "UTC") == {"2025-06": 0.75}
    assert await report(reader, ann, period=None, by="project") == {
        (None, "ada/app"): await spent(reader, ann)
    }
    for zone in ("Nowhere", "", "../etc", "+99:00"):
        with pytest.raises(InvalidInput):
            await report(reader, ann, zone=zone)


async def test_what_nobody_reported_is_estimated_and_what_nobody_knows_is_said(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    unknown = say("?", "assistant", at=NOON, model="nobody:knows", usage=Usage(input=1, output=1))
    await sessions.append(ann, session.id, [answer(0.5, at=NOON), answer(at=NOON + 1), unknown])
    used = await spent(reader, ann)
    assert (used.reported, used.estimated, used.unpriced) == (0.5, 0.0045, 1)
    assert await report(reader, ann, period=None, by="model") == {
        (None, SONNET): UsageSum(requests=2, input=2_000, output=200, reported=0.5, estimated=0.0045),
        (None, "nobody:knows"): UsageSum(requests=1, input=1, output=1, unpriced=1),
    }


async def test_what_claude_says_that_a_session_cost_goes_before_the_estimate(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    meta = {"cost": 0.01, "cost_at": NOON + 1}
    given = Imported(id="claude:1", source="claude", created_at=NOON, updated_at=NOON + 9, meta=meta)
    child = Imported(
        id="claude:1:a", source="claude", created_at=NOON, updated_at=NOON + 9, parent="claude:1"
    )
    await sessions.transfer.sync(ann, given, [answered("a", NOON, "1"), answered("late", NOON + 9, "2")])
    await sessions.transfer.sync(ann, child, [answered("b", NOON + 1, "3")])
    used = await spent(reader, ann)
    assert (round(used.reported, 6), used.estimated) == (0.01, 0.0045)
