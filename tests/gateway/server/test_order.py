"""What one connection sends to one session is stored in the order in which it was sent, whoever waits for the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from hitherto.model import LOCAL, Draft, Text
from hitherto.remote.sessions import open as open_remote
from tests.gateway.servers import Client, Json, Server, serving
from tests.support.homes import PostgresHome
from tests.support.postgres_server import PostgresServer
from tests.support.waits import arrives

MANY = 30
DATABASE = "order_of_requests"


@pytest.fixture(scope="module")
def database(postgres_server: PostgresServer) -> Iterator[str]:
    yield PostgresHome(postgres_server, DATABASE).url
    postgres_server.drop_database(DATABASE)


@pytest.fixture(scope="module", params=("memory", "sqlite", "postgres"))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with ExitStack() as stack:
        if request.param == "postgres":
            url = request.getfixturevalue("database")
        else:
            file = tmp_path_factory.mktemp("order") / "r.db"
            url = f"sqlite:///{file}" if request.param == "sqlite" else "memory:order"
        yield stack.enter_context(serving(url))


def said(text: str, **more: object) -> Json:
    return {"messages": [{"role": "user", "content": text}], **more}


async def created(client: Client) -> Json:
    made: Json = await client.call("session.create")
    return {"session_key": made["session_key"]}


async def texts(client: Client, named: Json) -> list[str]:
    page = await client.call("session.history", {**named, "limit": 200})
    return [each["content"] for each in page["messages"]]


async def answered(client: Client, numbers: list[int]) -> list[Json]:
    answers = [await client.answer(number) for number in numbers]
    assert all("result" in each for each in answers), answers
    return [each["result"] for each in answers]


async def test_messages_that_are_sent_without_waiting_are_stored_as_they_were_sent(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        sent = [f"message {number}" for number in range(MANY)]
        numbers = [await client.begin("session.append", {**named, **said(text)}) for text in sent]
        counts = [each["message_count"] for each in await answered(client, numbers)]
        assert counts == list(range(1, MANY + 1))
        assert await texts(client, named) == sent


async def test_one_session_under_two_names_is_one_session(server: Server) -> None:
    async with server.socket() as client:
        made = await client.call(
            "session.append", {"session_key": "agent:main:chat:dm:two.names", "create": True, **said("0")}
        )
        names = [{name: made[name]} for name in ("session_key", "session_id")]
        sent = [str(number) for number in range(1, MANY + 1)]
        numbers = [
            await client.begin("session.append", {**names[number % 2], **said(text)})
            for number, text in enumerate(sent)
        ]
        await answered(client, numbers)
        assert await texts(client, names[0]) == ["0", *sent]


async def test_what_follows_on_the_message_that_begins_a_session_finds_it(server: Server) -> None:
    async with server.socket() as client:
        named = {"session_key": "agent:main:chat:dm:begun"}
        sent = [f"message {number}" for number in range(MANY)]
        numbers = [await client.begin("session.append", {**named, **said(sent[0], create=True)})]
        numbers += [await client.begin("session.append", {**named, **said(text)}) for text in sent[1:]]
        await answered(client, numbers)
        assert await texts(client, named) == sent


async def test_changes_of_every_kind_keep_their_order_with_each_other(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        numbers = []
        for number in range(MANY // 3):
            numbers += [
                await client.begin("sessions.set_topic", {**named, "topic": f"topic {number}"}),
                await client.begin("sessions.reset", named),
                await client.begin("session.append", {**named, **said(f"message {number}")}),
            ]
        await answered(client, numbers)
        last = MANY // 3 - 1
        assert await texts(client, named) == [f"message {last}"]
        assert (await client.call("session.get", named))["title"] == f"topic {last}"


async def test_a_revision_that_what_was_sent_before_will_make_can_be_expected(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        revision = (await client.call("session.append", {**named, **said("0")}))["revision"]
        numbers = [
            await client.begin("session.append", {**named, **said(str(n)), "expected_revision": revision + n})
            for n in range(MANY)
        ]
        await answered(client, numbers)


async def test_a_deleted_session_takes_nothing_that_was_sent_after_it(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        first = await client.begin("session.append", {**named, **said("before")})
        second = await client.begin("session.delete", named)
        third = await client.begin("session.append", {**named, **said("after")})
        assert (await answered(client, [first, second]))[1]["messages_removed"] == 1
        assert (await client.answer(third))["error"]["data"]["code"] == "session_not_found"


async def test_a_long_message_that_is_uploaded_in_pieces_is_not_overtaken(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HITHERTO_TOKEN", server.tokens["ann"].secret)
    async with open_remote(f"http://{server.host}") as sessions:
        session = await sessions.create(LOCAL)
        long = "long " * 1_000_000
        sent = [text for number in range(3) for text in (f"{long}{number}", f"short {number}")]
        tasks = [
            asyncio.create_task(
                sessions.append(LOCAL, session.id, Draft(role="user", parts=(Text(text=text),)))
            )
            for text in sent
        ]
        await arrives(asyncio.gather(*tasks), "the end of all calls")
        page = await sessions.history(LOCAL, session.id)
        stored = [part.text for entry in page.entries for part in entry.parts if isinstance(part, Text)]
        assert [text[-7:] for text in stored] == [text[-7:] for text in sent]


async def test_a_session_that_has_to_wait_holds_up_no_other_and_no_reading(database: str) -> None:
    with serving(database) as server:
        async with server.socket() as client:
            slow, quick = await created(client), await created(client)
            sent = [f"message {number}" for number in range(5)]
            with psycopg.connect(database) as holder:
                holder.execute("select from session where id = %s for update", [slow["session_key"]])
                numbers = [await client.begin("session.append", {**slow, **said(text)}) for text in sent]
                for text in sent:
                    await client.call("session.append", {**quick, **said(text)})
                assert await texts(client, slow) == []
            await answered(client, numbers)
            assert [await texts(client, each) for each in (slow, quick)] == [sent, sent]
