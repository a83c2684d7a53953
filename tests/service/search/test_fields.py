"""The fields of a query, on every store: what each finds, in both orders, how much that is, and of which kinds."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from hitherto.errors import InvalidQuery
from hitherto.model import (
    Condition,
    Draft,
    Filter,
    Found,
    Image,
    Origin,
    Plan,
    Principal,
    Sender,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from hitherto.service import Sessions
from hitherto.values.days import DAY_MS
from hitherto.values.query.language import parse_query
from tests.support.conversations import finds, hits, listed, say, started
from tests.support.homes import Clock

BEGIN = 1_750_000_000_000  # 2025-06-15T15:06:40Z, a Sunday


def call(tool: str, number: str, **given: object) -> Draft:
    part = ToolCall(id=number, name=tool, input=given)
    return Draft(role="assistant", model="claude-opus-4-1", parts=(Text(text="The quince"), part))


def result(number: str, text: str, *, failed: bool = False) -> Draft:
    part = ToolResult(id=number, content=(Text(text=text),), is_error=failed)
    return Draft(role="tool", parts=(part,))


async def history(sessions: Sessions, ann: Principal, clock: Clock) -> dict[str, str]:
    """Three sessions: code was changed in one, the second is a chat, the last turn of the third failed."""
    clock.now = BEGIN
    code = await sessions.create(
        ann,
        title="Code",
        project="github.com/ada/engine",
        branch="release/2",
        agent_id="coder",
        tags=["a", "b"],
    )
    await sessions.append(ann, code.id, say("Fix the quince"))
    await sessions.append(
        ann,
        code.id,
        [
            call("Edit", "1", file_path="/srv/src/quince.py", old_string="one", new_string="two"),
            result("1", "The quince is changed"),
            call("Bash", "2", command="make"),
            result("2", "quince: no such target", failed=True),
            call("mcp__github__search", "3", query="medlar"),
        ],
    )
    clock.advance(DAY_MS)
    chat = await sessions.create(
        ann, title="Chat", project="github.com/ada/web", branch="main", channel="irc", tags=["b"]
    )
    origin = Origin(sender=Sender(id="U7", name="Ada Lovelace"))
    picture = Image(mime_type="image/png", data="AA==")
    said = Draft(role="user", parts=(Text(text="A quince, in src/quince.py"), picture), origin=origin)
    await sessions.append(ann, chat.id, said)
    clock.advance(DAY_MS)
    failed = await sessions.create(ann, title="Failed", project="notes", tags=["c"])
    thinking = (Thought(text="hm"), Plan(steps=({"content": "x"},)), Text(text="```\nquince\n```"))
    await sessions.append(
        ann, failed.id, Draft(role="assistant", model="gpt-5", parts=(*thinking, Text(text="old quince")))
    )
    await sessions.catalog.set_status(ann, failed.id, "failed")
    await sessions.pin(ann, failed.id)
    clock.advance(60_000)
    return {code.id: "code", chat.id: "chat", failed.id: "failed"}


NARROWING = {
    "project:engine": "code",
    "project:engine,notes": "failed code",
    "project:ada/web project:notes": "failed chat",
    "-project:engine": "failed chat",
    "agent:coder": "code",
    "branch:main": "chat",
    "branch:release/*,main": "chat code",
    "channel:irc": "chat",
    "source:hitherto": "failed chat code",
    "source:claude": "",
    "tag:a,c": "failed code",
    "tag:a tag:b": "code",
    "tag:b -tag:a": "chat",
    "title:chat,code": "chat code",
    "-title:chat": "failed code",
    "is:failed": "failed",
    "is:failed is:pinned": "failed",
    "-is:failed": "chat code",
    "is:failed,archived": "failed",
    "is:fork": "",
    "file:quince.py": "chat code",
    "file:src/quince.py -file:nowhere.py": "chat code",
    "-file:quince.py": "failed",
    "file:other/quince.py": "",
    "role:user": "chat code",
    "role:user,assistant": "failed chat code",
    "-role:user": "failed code",
    "from:ada": "chat",
    'from:"ada lovelace"': "chat",
    "from:U7": "chat",
    "-from:ada": "failed code",
    "model:opus": "code",
    "model:gpt*,opus": "failed code",
    "tool:edit": "code",
    "tool:bash,none": "code",
    "tool:github": "code",
    "has:edit": "code",
    "has:error tool:bash": "code",
    "has:error tool:edit": "",
    "has:image": "chat",
    "has:attachment,code": "failed chat",
    "has:thought has:plan": "failed",
    "-has:tool": "failed chat code",
    "after:2025-06-16": "failed chat",
    "before:2025-06-16": "code",
    "on:2025-06-16": "chat",
    "after:2025-06-16 before:2025-06-17": "chat",
    "after:2d": "failed chat",
    "on:yesterday": "chat",
    "-old": "chat code",
    '-"no such" -old': "chat code",
}
"""What narrows `quince`, and the sessions that are left, the newest first."""


async def test_each_field_narrows_in_both_orders(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    names = await history(sessions, ann, clock)
    for field, expected in NARROWING.items():
        found = [names[hit.session.id] for hit in (await reader.search(ann, f"quince {field}")).hits]
        assert found == expected.split(), field
        best = [hit.session.id for hit in (await reader.search(ann, f"quince {field}", order="best")).hits]
        assert sorted(names[each] for each in best) == sorted(expected.split()), field
        counted = (await reader.search(ann, f"quince {field}", count=True)).found
        assert counted is not None
        assert (counted.sessions, counted.more) == (len(expected.split()), False), field
        assert (await reader.search(bob, f"quince {field}", count=True)).found == Found(hits=0, sessions=0)


ALONE = {
    "yesterday": "chat",
    "quince this week": "failed chat",
    "quince in June": "failed chat code",
    "quince in May": "",
    'quince "yesterday"': "",
    "tool:bash": "code",
    "tool:github": "code",
    "tool:bash has:error": "code",
    "file:src/quince.py": "chat code",
    "file:quince.py has:edit": "code",
    "model:gpt": "failed",
    "from:ada": "chat",
    "has:image,plan": "failed chat",
    "-quince": "failed chat code",
    "-quince role:tool,assistant": "",
    "is:failed": "failed",
    "branch:release/* tag:a": "code",
    "after:yesterday project:engine,web": "chat",
    "on:2025-06-15": "code",
}
"""Queries that have no other words, and what they find, the newest first."""


async def test_fields_and_times_are_queries_of_their_own(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    names = await history(sessions, ann, clock)
    for query, expected in ALONE.items():
        for limit in (1, 20):
            cursor, found = None, []
            while True:
                page = await reader.search(ann, query, limit=limit, cursor=cursor)
                found += [names[hit.session.id] for hit in page.hits]
                if (cursor := page.cursor) is None:
                    break
            assert found == expected.split(), query


async def test_a_field_that_does_not_exist_is_answered_with_those_that_do(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    plain, _ = await started(sessions, ann, "See https://x.org/a and std::map in C:\\work at TypeError:oops")
    for text in ("https://x.org", "std::map", "C:\\work", "TypeError:oops"):
        assert await finds(reader, ann, text) == [plain.id], text
    for ask in (reader.search, reader.index.narrowed, reader.index.facets):
        with pytest.raises(InvalidQuery, match=r"no field projekt: it has .*project:.*tool:"):
            await ask(ann, "map projekt:x")
    with pytest.raises(InvalidQuery, match="no field projekt:"):
        await reader.within(ann, plain.id, "projekt:x")


async def test_what_is_found_is_counted_exactly_up_to_a_thousand(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    first = await sessions.create(ann, title="First")
    await sessions.append(ann, first.id, [say(f"quince {number}") for number in range(999)])
    fork = await sessions.fork(ann, first.id)
    page = await reader.search(ann, "quince", limit=1, count=True)
    assert page.found == Found(hits=999, sessions=2)
    assert (await reader.search(ann, "quince", limit=1, count=True, cursor=page.cursor)).found == page.found
    await sessions.append(ann, fork.id, [say("quince"), say("medlar")])
    assert (await reader.search(ann, "quince", count=True)).found == Found(hits=1_000, sessions=2)
    await sessions.append(ann, first.id, say("quince"))
    assert (await reader.search(ann, "quince", count=True)).found == Found(hits=1_000, sessions=2, more=True)
    best = await reader.search(ann, "any medlars", count=True, order="best")
    assert best.found == Found(hits=1, sessions=1)
    assert (await reader.search(ann, "title:first", count=True)).found == Found(hits=0, sessions=2)
    assert (await reader.search(ann, "quince")).found is None


async def test_a_list_takes_fields_about_sessions(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    names = await history(sessions, ann, clock)

    async def shown(text: str, limit: int = 50) -> str:
        given = await reader.index.narrowed(ann, text)
        ids = await listed(reader, ann, given, limit=limit)
        assert await reader.count(ann, given) == len(ids)
        return " ".join(names[each] for each in ids)

    assert await shown("project:engine,web") == "chat code"
    assert await shown("project:engine,web", limit=1) == "chat code"
    assert await shown("-tag:a branch:*") == "chat"
    assert await shown("code") == "code"
    assert await shown("yesterday") == "chat"
    assert await shown("after:2025-06-16 before:2025-06-17") == "chat"
    for text in ("role:user", "file:x", "-word"):
        with pytest.raises(InvalidQuery, match="about messages"):
            await shown(text)


async def test_facets_follow_the_search_and_the_other_filters(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    await history(sessions, ann, clock)
    chosen = Condition(field="project", values=("github.com/ada/engine", "github.com/ada/web"))
    given = Filter(archived="include", where=(chosen,))
    found = await reader.index.facets(ann, given=given)
    assert found.tags == (("b", 2), ("a", 1))
    assert dict(found.projects) == {"github.com/ada/engine": 1, "github.com/ada/web": 1, "notes": 1}
    assert (found.total, found.pinned, found.agents) == (3, 0, (("coder", 1),))
    said = await reader.index.facets(ann, "quince from:ada", given=given)
    assert (said.total, said.projects, said.tags) == (1, (("github.com/ada/web", 1),), (("b", 1),))
    asked = await reader.index.facets(ann, "quinces", given=given, order="best")
    assert (asked.total, asked.tags, asked.more) == (3, (("b", 2), ("a", 1)), ())


async def test_times_are_those_of_a_plain_look(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    chance = random.Random(4)
    moments = [-5, 0, 1, *(chance.randrange(1, 10**6) for _ in range(40)), 500_000, 500_000, 10**12]
    chance.shuffle(moments)
    said: dict[str, int] = {}
    for at in moments:
        session = await sessions.create(ann, title="Other")
        await sessions.append(ann, session.id, say("a quince", at=at))
        said[session.id] = at
    dates = ["1969-12-31T23:59:59.997", "1970-01-01T00:00:00.001", "1970-01-01T00:08:20", "2247", "9999"]
    moment = {date: parse_query(f"after:{date}").after for date in dates}
    assert len(said) == len(moments)
    for begin, end in combinations(dates, 2):
        found = [hit.at for hit in await hits(reader, ann, f"quince after:{begin} before:{end}", limit=7)]
        wanted = [at for at in said.values() if (moment[begin] or 0) <= at < (moment[end] or 0)]
        assert sorted(at or 0 for at in found) == sorted(wanted), (begin, end)
        assert found[3:] == sorted(found[3:], key=lambda at: at or 0, reverse=True)


async def test_what_is_left_out_is_left_out_of_long_messages_too(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    """Of a word that is said often, a store may not keep every place."""
    long = " ".join(["filler", *["quince"] * 300, "medlar pie", *["quince"] * 300, "pie quince"])
    session, _ = await started(sessions, ann, long, title="Other")
    for left_out, is_found in (("medlar pie", False), ("pie quince", False), ("pie medlar", True)):
        for query in (f'filler -"{left_out}"', f'role:user -"{left_out}"'):
            assert await finds(reader, ann, query) == [session.id] * is_found, query
        within = await reader.within(ann, session.id, f'filler -"{left_out}"')
        assert len(within.entries) == is_found


async def test_the_best_match_is_found_below_many_of_other_sessions(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    wanted, _ = await started(sessions, ann, "the quince", title="Other", project="wanted")
    other = await sessions.create(ann, title="Other", project="other")
    await sessions.append(ann, other.id, [say("a quince") for _ in range(1_100)])
    page = await reader.search(ann, "which quinces project:wanted", order="best", count=True)
    assert [hit.session.id for hit in page.hits] == [wanted.id]
    assert page.found == Found(hits=1, sessions=1)
