"""One suite for every client and every way to serve: over HTTP and over a WebSocket, by one server and by three.

The one server keeps its sessions in SQLite. The three share a PostgreSQL, and each request goes to another of them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import pytest

import hitherto
from hitherto.gateway.methods import METHODS
from hitherto.service import Sessions
from hitherto.values.scopes import SCOPES
from tests.gateway.methods.asker import KEY, Asker
from tests.gateway.seed_examples import EXAMPLES, NOW, differences
from tests.gateway.servers import Client, Json, Server, Token, serving
from tests.support.homes import Clock, PostgresHome
from tests.support.postgres_server import PostgresServer

TIME = NOW + 3_000
"""What all servers believe the time is."""
SERVERS = {"one server": 1, "three servers": 3}
Send = Callable[[str], Awaitable[Json]]
_names = itertools.count(1)


class Fleet(NamedTuple):
    """Servers of one store."""

    url: str
    servers: Sequence[Server]


@pytest.fixture(scope="module", params=SERVERS)
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    count, url = SERVERS[request.param], f"sqlite:///{tmp_path_factory.mktemp('examples') / 'r.db'}"
    with ExitStack() as stack:
        if count > 1:
            database: PostgresServer = request.getfixturevalue("postgres_server")
            url = PostgresHome(database, "examples").url
            stack.callback(database.drop_database, "examples")
        servers = [stack.enter_context(serving(url, tokens={}, now=TIME)) for _ in range(count)]
        yield Fleet(url, servers)


@asynccontextmanager
async def by_http(servers: Sequence[Server], name: str) -> AsyncIterator[Send]:
    turns = itertools.cycle(servers)

    async def send(text: str) -> Json:
        answer: Json = next(turns).post(text.encode(), name).json
        return answer

    yield send


@asynccontextmanager
async def by_socket(servers: Sequence[Server], name: str) -> AsyncIterator[Send]:
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(server.socket(name)) for server in servers]
        turns = itertools.cycle(sockets)

        async def send(text: str) -> Json:
            socket = next(turns)
            await socket.send(text)
            return await socket.receive()

        yield send


Way = Callable[[Sequence[Server], str], AbstractAsyncContextManager[Send]]
WAYS: dict[str, Way] = {"http": by_http, "socket": by_socket}


@asynccontextmanager
async def owner(fleet: Fleet, clock: Clock) -> AsyncIterator[tuple[str, Sessions]]:
    """Somebody new, whose token all servers know, and the store itself."""
    name = f"owner {next(_names)}"
    async with hitherto.open(fleet.url, now=clock) as sessions:
        token, secret = await sessions.tokens.create(name, scopes=sorted(SCOPES))
        for server in fleet.servers:
            server.tokens = {**server.tokens, name: Token(token.id, secret, name)}
        yield name, sessions


# The examples that the gateway was asked for


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", EXAMPLES)
async def test_an_example_is_answered_field_by_field(
    fleet: Fleet, method: str, way: str, clock: Clock
) -> None:
    example = EXAMPLES[method]
    async with owner(fleet, clock) as (name, sessions), WAYS[way](fleet.servers, name) as send:
        await example.prepare(Asker(sessions, name), clock)
        sent, answer = json.loads(example.request), await send(example.request)
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", sent["id"])
        assert differences(json.loads(example.answer), answer["result"]) == []
        for _ in fleet.servers:  # each of them is asked, and knows the same
            later = await send(example.then or example.request)
            told = later.get("result", later.get("error"))
            assert differences(json.loads(example.afterwards or example.answer), told) == []


# Every method, each asked of the next server


class Kept(NamedTuple):
    """In an answer: any value, which is kept under this name. In a request: that value."""

    name: str


class Step(NamedTuple):
    method: str
    params: Json
    answer: Json


PEER = "agent:main:telegram:dm:7"
LONG = [{"role": ("user", "assistant")[number % 2], "content": "word " * 400} for number in range(40)]
NAMED: Json = {"session_key": KEY}
ID, FIRST, EXPORT, CHECKPOINT, FACT, CORRECTED, FORK = map(
    Kept, ("id", "first", "export", "checkpoint", "fact", "corrected", "fork")
)
MADE_ID = Kept("token")
MADE: Json = {
    "token_id": MADE_ID, "label": "Reader", "scopes": ["read"], "created_at": TIME, "expires_at": None, "revoked_at": None,
    "last_used_at": None,
}  # fmt: skip
ROW: Json = {
    "session_key": KEY, "session_id": ID, "agent_id": "main", "channel": "gateway", "title": "Plans", "status": "idle",
    "message_count": 4, "token_count": int, "created_at": TIME, "updated_at": TIME, "revision": int,
}  # fmt: skip
DETAILS: Json = {
    **ROW, "last_compaction": None, "cwd": "/srv", "tags": [], "pinned": False, "parent": None, "source": None,
    "identity": {"role": "owner", "identity_id": "owner", "source_channel": "gateway"},
}  # fmt: skip
RUNTIME_ROW: Json = {**DETAILS, "key": KEY, "session_type": "main", "topic": "Plans", "last_active_at": TIME}
SAID: list[Json] = [
    {"role": "user", "content": "The word is alpha", "timestamp": NOW, "message_id": FIRST},
    {"role": "assistant", "content": "Alpha it is", "timestamp": NOW + 1, "tool_calls": []},
    {"role": "user", "content": "And now?", "timestamp": TIME},
    {"role": "assistant", "content": "Noted.", "timestamp": TIME, "tool_calls": []},
]
ACCOUNT = {"channel": "discord", "peer_id": "ann#1"}
PERSON = {"channel": "telegram", "peer_id": "123"}
STEPS = [
    Step(
        "session.create",
        {**NAMED, "title": "Plans", "cwd": "/srv"},
        {**NAMED, "session_id": ID, "name": "Plans"},
    ),
    Step(
        "session.append",
        {**NAMED, "messages": [
            {"role": "user", "content": "The word is alpha", "timestamp": NOW},
            {"role": "assistant", "content": "Alpha it is", "timestamp": NOW + 1},
        ]},
        {**NAMED, "session_id": ID, "revision": int, "message_count": 2},
    ),
    Step("session.send", {**NAMED, "content": "And now?"}, {"message": SAID[3], "stop_reason": "end_turn", "usage": dict}),
    Step("session.question", NAMED, {**NAMED, "question": None, "elicitation": None}),
    Step("session.reply", {**NAMED, "elicitation_id": "x", "action": "decline"}, {**NAMED, "answered": False}),
    Step("session.answer", {**NAMED, "tool_call_id": "x", "choice": "allow_once"}, {**NAMED, "answered": False}),
    Step("session.cancel", NAMED, {**NAMED, "cancelled": False}),
    Step("session.inbox", NAMED, {**NAMED, "waiting": []}),
    Step("session.inbox.cancel", {**NAMED, "message_id": "x"}, {**NAMED, "cancelled": False}),
    Step("session.changes", NAMED, {**NAMED, "added": 0, "removed": 0, "files": []}),
    Step("changes.list", {}, {"changes": []}),
    Step("session.episodes", NAMED, {**NAMED, "episodes": list, "total": int}),
    Step(
        "usage.report",
        {"since": "2025-01-01", "until": "2035-01-01", "by": "session"},
        {"since": "2025-01-01", "until": "2035-01-01", "zone": "UTC", "rows": list, "total": dict, "sessions": 0, "complete": bool},
    ),
    Step("session.get", NAMED, DETAILS),
    Step("session.list", {}, {"sessions": [ROW], "total": 1}),
    Step("sessions.list", {}, {"sessions": [RUNTIME_ROW], "count": 1, "total": 1}),
    Step("session.history", NAMED, {**NAMED, "messages": SAID, "total": 4, "token_count": int}),
    Step("sessions.history", {**NAMED, "limit": 2}, {**NAMED, "messages": SAID[2:], "count": 2}),
    Step(
        "sessions.preview",
        {**NAMED, "limit": 1},
        {
            **NAMED, "meta": RUNTIME_ROW, "message_count": 4,
            "messages": [{"role": "assistant", "content": "Noted.", "timestamp": TIME}],
        },
    ),
    Step(
        "session.usage",
        NAMED,
        {
            **NAMED, "tokens": int, "input_tokens": None, "output_tokens": None, "messages": 4, "created_at": TIME,
            "last_active_at": TIME, "cost_usd": None, "cost_status": "unknown",
        },
    ),
    Step(
        "session.search",
        {"query": "alpha"},
        {"results": [{**NAMED, "session_id": ID, "title": "Plans", "message_id": str, "snippet": str, "more": 1}]},
    ),
    Step("session.resolve", NAMED, {**NAMED, "session_id": ID, "agent_id": "main", "title": "Plans"}),
    Step(
        "route.resolve",
        {"agent_id": "main", "channel": "telegram", "peer_id": "7"},
        {"session_key": PEER, "dm_scope": "per_peer", "reason": str},
    ),
    Step(
        "session.fork",
        {**NAMED, "message_id": FIRST, "title": "Fork", "new_session_key": PEER},
        {"session_key": PEER, "session_id": FORK, "parent": ID},
    ),
    Step("sessions.set_topic", {"session_key": PEER, "topic": "Other"}, {"session_key": PEER, "revision": int, "updated": True}),
    Step("sessions.patch", {"session_key": PEER, "pinned": True}, {"session_key": PEER, "revision": int, "updated": True}),
    Step("session.export", {"session_key": PEER, "raw": True}, {"session_key": PEER, "format": "json", "data": EXPORT}),
    Step("session.delete", {"session_key": PEER}, {"session_key": PEER, "messages_removed": 1, "deleted": True}),
    Step("session.import", {"data": EXPORT, "new_session_key": PEER, "include_deleted": True}, {"session_key": PEER, "session_id": str, "message_count": 1}),
    Step("sessions.delete", {"session_key": PEER}, {"session_key": PEER, "events_retired": 1, "deleted": True}),
    Step("session.append", {**NAMED, "messages": LONG}, {**NAMED, "session_id": ID, "revision": int, "message_count": 44}),
    Step(
        "session.compact",
        NAMED,
        {
            **NAMED, "compacted": True, "messages_before": 44, "messages_after": int, "tokens_before": int,
            "tokens_after": int, "facts_extracted": 8, "estimated": True, "checkpoint_id": CHECKPOINT,
        },
    ),
    Step(
        "sessions.compaction.list",
        NAMED,
        {**NAMED, "total": 1, "checkpoints": [
            {"checkpoint_id": CHECKPOINT, "created_at": TIME, "reason": "compaction", "message_count": 44, "token_count": int}
        ]},
    ),
    Step(
        "sessions.compaction.branch",
        {**NAMED, "checkpoint_id": CHECKPOINT, "new_session_key": "agent:main:cron:again"},
        {
            **NAMED, "checkpoint_id": CHECKPOINT, "new_session_key": "agent:main:cron:again", "session_id": str,
            "message_count": 44, "created": True,
        },
    ),
    Step(
        "sessions.compaction.restore",
        {**NAMED, "checkpoint_id": CHECKPOINT},
        {**NAMED, "checkpoint_id": CHECKPOINT, "message_count": 44, "revision": int, "updated": True},
    ),
    Step(
        "memory.search",
        {"query": "Fact 3", "limit": 1},
        {"facts": [{
            "id": FACT, "content": "Fact 3.", "kind": str, "confidence": None, "session_key": KEY, "created_at": NOW,
        }]},
    ),
    Step("memory.update", {"id": FACT, "content": "Fact 3 is another."}, {"id": CORRECTED, "replaced": [FACT], "created_at": int}),
    Step("memory.forget", {"id": CORRECTED}, {"id": CORRECTED, "forgotten": True}),
    Step(
        "memory.add",
        {**NAMED, "content": "Fact 4 is told."},
        {**NAMED, "id": str, "replaced": [], "created_at": int},
    ),
    Step("memory.list", {"limit": 1}, {"facts": [{"id": str, "content": "Fact 4 is told.", "session_key": KEY, "created_at": int}]}),
    Step("session.erase", {**NAMED, "message_id": FIRST}, {**NAMED, "message_id": FIRST, "erased": True}),
    Step("sessions.reset", NAMED, {**NAMED, "events_retired": 44, "reset": True}),
    Step(
        "sessions.new",
        {**NAMED, "topic": "Fresh"},
        {**NAMED, "session_id": str, "old_session_key": ID, "new_session_key": KEY, "topic": "Fresh"},
    ),
    Step("identity.link", {**ACCOUNT, "canonical": PERSON}, {"accounts": [PERSON, ACCOUNT]}),
    Step("identity.accounts", PERSON, {"accounts": [PERSON, ACCOUNT]}),
    Step("identity.export", PERSON, {"accounts": [PERSON, ACCOUNT], "sessions": list, "facts": list}),
    Step("identity.unlink", ACCOUNT, {"unlinked": True}),
    Step(
        "identity.erase",
        ACCOUNT,
        {"accounts": [ACCOUNT], "sessions_deleted": 0, "messages_erased": 0, "facts_forgotten": 0, "links_removed": 0},
    ),
    Step("token.create", {"scopes": ["read"], "label": "Reader"}, {"token": MADE, "secret": str}),
    Step("token.list", {}, {"tokens": list, "total": 2}),
    Step("token.rotate", {"token_id": MADE_ID}, {"token": MADE, "secret": str}),
    Step("token.revoke", {"token_id": MADE_ID}, {"token_id": MADE_ID, "revoked": True}),
    Step("rpc.discover", {}, {"openrpc": str, "methods": list}),
]  # fmt: skip
TOLD_LATER = {"session.inbox.move", "session.subscribe", "session.unsubscribe"}
"""Methods of which more than the answer matters: see below, and the tests of the inbox."""


def test_every_method_is_one_of_the_steps() -> None:
    known = {name for name in METHODS if not name.startswith("store.")}
    assert {step.method for step in STEPS} | TOLD_LATER == known


@pytest.mark.parametrize("way", WAYS)
async def test_every_method_is_answered_by_whichever_server(fleet: Fleet, way: str, clock: Clock) -> None:
    kept: dict[str, Any] = {}
    async with owner(fleet, clock) as (name, _), WAYS[way](fleet.servers, name) as send:
        for number, (method, params, expected) in enumerate(STEPS):
            sent = {"jsonrpc": "2.0", "id": number, "method": method, "params": filled(params, kept)}
            answer = await send(json.dumps(sent))
            assert "result" in answer, (sent, answer)
            keep(expected, answer["result"], kept)
            assert differences(filled(expected, kept), answer["result"], method) == []


def filled(value: Any, kept: Json) -> Any:
    """The value with what was kept in its places."""
    if isinstance(value, Kept):
        return kept[value.name]
    if isinstance(value, dict):
        return {name: filled(item, kept) for name, item in value.items()}
    return [filled(item, kept) for item in value] if isinstance(value, list) else value


def keep(expected: Any, actual: Any, kept: Json) -> None:
    """Take note of what an answer holds at the places that have a name."""
    if isinstance(expected, Kept):
        kept.setdefault(expected.name, actual)
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for name in expected.keys() & actual.keys():
            keep(expected[name], actual[name], kept)
    elif isinstance(expected, list) and isinstance(actual, list):
        for one, other in zip(expected, actual, strict=False):
            keep(one, other, kept)


# Being told


def said(events: Iterable[Json]) -> list[str]:
    """The messages that were told of."""
    told = (message for event in events if event["event"] == "entries" for message in event["messages"])
    return [message["content"] for message in told]


@pytest.mark.parametrize("way", WAYS)
async def test_a_subscriber_that_moves_from_server_to_server_is_told_everything_once(
    fleet: Fleet, way: str, clock: Clock
) -> None:
    stays = 6
    texts = [f"message {number}" for number in range(5 * stays)]
    wish: Json = {"session_key": KEY, "events": ["entries"]}
    told: list[Json] = []
    async with owner(fleet, clock) as (name, _), WAYS[way](fleet.servers, name) as send:
        await append(send, "before")
        for stay in range(stays):
            here = texts[5 * stay : 5 * (stay + 1)]
            if stay:
                await append(send, *here[:2])  # while it is nowhere
            async with fleet.servers[stay % len(fleet.servers)].socket(name, max_queue=None) as client:
                await client.call("session.subscribe", wish)
                await append(send, *here[2 if stay else 0 :])
                last = here[-1 if stay == stays - 1 else 2]  # else it leaves before it has been told of all
                await client.until(partial(has, last))
                told += client.events
                wish["cursor"] = client.events[-1]["cursor"]
        assert said(told) == texts


async def append(send: Send, *texts: str) -> None:
    """Say each of these in a message of its own."""
    for text in texts:
        params = {"session_key": KEY, "messages": [{"role": "user", "content": text}], "create": True}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "session.append", "params": params}
        assert "result" in await send(json.dumps(asked))


def has(text: str, event: Json) -> bool:
    return text in said([event])


async def test_sessions_made_at_all_servers_at_once_are_told_of_once_wherever_the_subscriber_is(
    fleet: Fleet, clock: Clock
) -> None:
    async with owner(fleet, clock) as (name, _), AsyncExitStack() as stack:
        writers = [await stack.enter_async_context(server.socket(name)) for server in (*fleet.servers,) * 3]
        first, last = fleet.servers[0], fleet.servers[-1]

        async def make(client: Client) -> list[str]:
            return [(await client.call("session.create"))["session_id"] for _ in range(6)]

        async with first.socket(name, max_queue=None) as client:
            await client.call("session.subscribe", {"events": ["created", "updated"]})
            made = {each for ids in await asyncio.gather(*map(make, writers)) for each in ids}
            await client.until(lambda _: len(client.events) == len(made) // 2)
            told, cursor = client.events[: len(made) // 2], client.events[len(made) // 2 - 1]["cursor"]
        async with last.socket(name, max_queue=None) as client:
            await client.call("session.subscribe", {"events": ["created", "updated"], "cursor": cursor})
            await client.until(lambda _: len(told) + len(client.events) == len(made))
            told += client.events
            assert [event["event"] for event in told] == ["created"] * len(made)
            assert {event["session_id"] for event in told} == made
            gone = told[0]["session_id"]
            await writers[0].call("session.delete", {"session_id": gone})
            number = await client.begin("session.subscribe", {"events": ["deleted"], "cursor": cursor})
            await client.answer(number)
            await client.until(lambda event: event["event"] == "deleted" and event["session_id"] == gone)
            assert {event["event"] for event in client.events} == {"created", "deleted"}
