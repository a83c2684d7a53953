"""The numbers of sessions as lists show them: those of `usage`, kept beside each session and continued where it grew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from hitherto.model import Draft, Entry, Principal, Text, ToolResult, Usage
from hitherto.ports import Store
from hitherto.service import Imported, Sessions
from hitherto.service.compaction.imported import Branch, Summarised
from hitherto.values.usage.sessions import SessionUsage
from tests.support.conversations import say
from tests.support.homes import Home

SONNET = "claude-sonnet-4-5"
NOON = 1_748_865_600_000


def prompt(at: int, text: str = "And?", **fields: Any) -> Draft:
    return say(text, at=NOON + at, **fields)


def answer(at: int, size: int = 1_000, **usage: Any) -> Draft:
    used = Usage(input=size, output=100, cache_read=size // 2, cache_write=10, **usage)
    return say("Yes.", "assistant", at=NOON + at, model=SONNET, usage=used)


def failure(at: int) -> Draft:
    return Draft(role="tool", parts=(ToolResult(id="c", is_error=True),), at=NOON + at)


def turn(at: int, **usage: Any) -> list[Draft]:
    return [prompt(at), answer(at + 10, **usage), failure(at + 20), answer(at + 30, size=2_000, **usage)]


class Spy:
    """A store that counts what is asked of it, and how many rows come back."""

    def __init__(self, inner: Any, asked: Counter[str]) -> None:
        self._inner, self._asked = inner, asked

    async def read(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await self._inner.read(lambda tx: work(Spy(tx, self._asked)))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        async def counted(*given: Any, **named: Any) -> Any:
            result = await found(*given, **named)
            self._asked[name] += len(result) if isinstance(result, list) else 1
            return result

        return counted


def spied(store: Store) -> tuple[Sessions, Counter[str]]:
    asked: Counter[str] = Counter()
    return Sessions(cast("Store", Spy(store, asked))), asked


async def whole(sessions: Sessions, who: Principal, ids: Sequence[str]) -> dict[str, SessionUsage]:
    """What all of each session says, read from its messages."""
    return {each: replace(await sessions.usage(who, each), turns=()) for each in ids}


async def test_lists_tell_what_all_messages_say_however_a_session_came_about(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    grows, compacted, rewound = [(await sessions.create(ann)).id for _ in range(3)]
    for each in (grows, compacted, rewound):
        await sessions.append(ann, each, [*turn(0, cost=0.5), prompt(1_000, id="p"), answer(1_010)])
    await sessions.compact(ann, compacted, say("In short.", usage=Usage(input=5, output=5)), keep=1)
    await sessions.rewind(ann, rewound, "p", before=True)
    forked = (await sessions.fork(ann, grows)).id
    ids = [grows, compacted, rewound, forked]
    assert await reader.spending.numbers(ann, ids) == await whole(reader, ann, ids)
    # Counted and kept; then each grows, one message at a time.
    assert await sessions.spending.count(ann)
    for draft in (prompt(2_000, "x" * 400), answer(2_010, size=9_000), failure(2_020), prompt(3_000)):
        for each in ids:
            await sessions.append(ann, each, draft)
        assert await reader.spending.numbers(ann, ids) == await whole(reader, ann, ids)
    assert await sessions.spending.count(ann)
    assert await reader.spending.numbers(ann, ids, most=0) == await whole(reader, ann, ids)
    short, long = [(await reader.spending.numbers(ann, ids))[each] for each in (compacted, grows)]
    assert (short.messages, short.context_messages, short.tool_failures) == (10, 6, 2)
    assert (long.context_tokens > 9_100, long.context_estimated, long.window) == (True, True, 200_000)


async def test_numbers_follow_what_a_sync_changes(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    def said(name: str, at: int, output: int = 100, **meta: Any) -> Entry:
        usage = Usage(input=1_000, output=output, request=name)
        parts = (Text(text=name),)
        return Entry(
            id=name, at=NOON + at, role="assistant", parts=parts, model=SONNET, usage=usage, meta=meta
        )

    async def sync(entries: list[Entry], *, meta: dict[str, Any] | None = None, **how: Any) -> SessionUsage:
        given = Imported(
            id="claude:1", source="claude", created_at=NOON, updated_at=NOON + 9, meta=meta or {}
        )
        await sessions.transfer.sync(ann, given, entries, **how)
        told = await reader.spending.numbers(ann, ["claude:1"])
        assert told == await whole(reader, ann, ["claude:1"])
        assert await sessions.spending.count(ann)
        return told["claude:1"]

    entries = [said("a", 0), said("b", 10)]
    assert (await sync(entries)).usage.requests == 2
    assert (await sync([*entries, said("c", 20)])).usage.requests == 3
    assert (await sync([], extends=True, amended=said("c", 20, output=70))).usage.output == 270
    branched = await sync([*entries, said("d", 30), said("e", 40)], branches=[Branch("a", 1)])
    assert branched.usage.requests == 5
    summary = said("s", 50, compact_summary=True)
    short = await sync([*entries, said("d", 30), summary], compactions=[Summarised("s")])
    assert (short.messages, short.context_messages) == (3, 1)
    paid = await sync([*entries, said("d", 30)], meta={"cost": 0.02, "cost_at": NOON + 35})
    assert round(paid.usage.reported, 4) == 0.02


async def test_what_is_not_counted_yet_is_marked_and_foreign_sessions_are_left_out(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, turn(0))
    ids = [session.id, "nothing", "\ud800"]
    assert await reader.spending.numbers(ann, ids, most=0) == {}
    assert await sessions.spending.count(ann)
    before = (await reader.spending.numbers(ann, ids, most=0))[session.id]
    await sessions.append(ann, session.id, turn(1_000))
    behind = (await reader.spending.numbers(ann, ids, most=0))[session.id]
    assert (before.current, behind) == (True, replace(before, current=False))
    assert await reader.catalog.used(ann, ids) == {session.id: behind}
    assert (await reader.spending.numbers(ann, ids))[session.id].messages == 8
    assert await reader.spending.numbers(bob, ids) == {}


async def test_a_session_has_failed_if_its_last_turn_has_and_failures_of_tools_are_counted_apart(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)

    async def failed(*drafts: Draft) -> tuple[bool, int, list[bool]]:
        await sessions.append(ann, session.id, drafts)
        told = (await reader.spending.numbers(ann, [session.id]))[session.id]
        found = await reader.usage(ann, session.id)
        assert (found.failed, found.tool_failures) == (told.failed, told.tool_failures)
        assert await sessions.spending.count(ann)
        return told.failed, told.tool_failures, [each.failed for each in found.turns]

    overloaded = say("Overloaded", "system", at=NOON + 40, meta={"error": "overloaded"})
    assert await failed(*turn(0)) == (False, 1, [False])
    assert await failed(overloaded) == (True, 1, [True])
    assert await failed(answer(50)) == (False, 1, [False])
    assert await failed(prompt(60), overloaded) == (True, 1, [False, True])
    assert await failed(prompt(70)) == (False, 1, [False, True, False])


async def test_a_page_of_a_list_asks_once_and_what_grew_is_not_read_again(
    store: Store, sessions: Sessions, ann: Principal
) -> None:
    ids = [(await sessions.create(ann)).id for _ in range(50)]
    for each in ids:
        await sessions.append(ann, each, turn(0))
    assert await sessions.spending.count(ann)
    counting, asked = spied(store)
    assert len(await counting.spending.numbers(ann, ids)) == 50
    assert asked == {"session_usage": 1}
    await sessions.append(ann, ids[0], [prompt(2_000 + number) for number in range(300)])
    assert await sessions.spending.count(ann)
    await sessions.append(ann, ids[0], prompt(5_000))
    asked.clear()
    assert (await counting.spending.numbers(ann, ids))[ids[0]].messages == 305
    assert asked == {"session_usage": 1, "session": 1, "spans": 1, "log_after": 1}


async def test_what_a_session_used_goes_with_it(sessions: Sessions, home: Home, ann: Principal) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, turn(0))
    assert await sessions.spending.count(ann)
    assert home.rows()["session_usage"] == 1
    await sessions.delete(ann, session.id)
    assert home.rows()["session_usage"] == 0
    assert (await sessions.admin.check()).problems == ()


async def test_statistics_count_once_what_forks_share(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    assert (await reader.statistics.stats(ann))["cost"] is None
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, turn(0, cost=0.5))
    fork = await sessions.fork(ann, session.id)
    await sessions.append(ann, fork.id, turn(1_000, cost=0.25))
    found = await reader.statistics.stats(ann)
    assert (found["cost"], found["cost_complete"]) == (1.5, True)
    await sessions.delete(ann, session.id)
    assert (await reader.statistics.stats(ann))["cost"] == 1.5
