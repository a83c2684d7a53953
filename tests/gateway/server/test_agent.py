"""The agent for editors over a WebSocket: one message in each text frame, each caller with their own sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.servers import Client, Json, Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('agent') / 'r.db'}") as running:
        yield running


async def ready(client: Client) -> Json:
    told: Json = await client.call("initialize", {"protocolVersion": 1})
    return told


async def new(client: Client, cwd: Path) -> str:
    session: str = (await client.call("session/new", {"cwd": str(cwd), "mcpServers": []}))["sessionId"]
    return session


async def name(client: Client, session: str) -> None:
    """Have a session listed in which nothing was said yet."""
    await client.call("session/set_title", {"sessionId": session, "title": "Named"})


async def listed(client: Client) -> list[str]:
    return [row["sessionId"] for row in (await client.call("session/list"))["sessions"]]


async def test_an_editor_makes_lists_and_prompts_sessions(server: Server, tmp_path: Path) -> None:
    async with server.socket(path="/acp") as client:
        assert (await ready(client))["protocolVersion"] == 1
        session = await new(client, tmp_path)
        assert session not in await listed(client)
        prompt = [{"type": "text", "text": "Hello"}]
        done = await client.call("session/prompt", {"sessionId": session, "prompt": prompt})
        assert session in await listed(client)
        assert done["stopReason"] == "end_turn"
        told = [message["params"]["update"] for message in client.seen]
        said = [each["content"]["text"] for each in told if each["sessionUpdate"] == "agent_message_chunk"]
        assert "".join(said) == "You said: Hello"


async def test_the_server_looks_into_no_folder_that_a_caller_names(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    async with server.socket(path="/acp") as client:
        await ready(client)
        session = await new(client, tmp_path)
        await name(client, session)
        rows = (await client.call("session/list"))["sessions"]
        (row,) = (row for row in rows if row["sessionId"] == session)
        assert not {"hitherto/project", "hitherto/branch"} & row["_meta"].keys()


async def test_what_an_editor_says_is_seen_over_the_methods_and_the_other_way_round(
    server: Server, tmp_path: Path
) -> None:
    async with server.socket(path="/acp") as editor, server.socket() as client:
        await ready(editor)
        session = await new(editor, tmp_path)
        said = [{"role": "user", "content": "From elsewhere"}]
        await client.call("session.append", {"session_id": session, "messages": said})
        await editor.until(lambda params: "From elsewhere" in str(params))
        loading = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await editor.call("session/load", loading)
        assert "From elsewhere" in str(editor.seen[-1])


async def test_each_caller_has_their_own_sessions(server: Server, tmp_path: Path) -> None:
    async with server.socket("ann", "/acp") as ann, server.socket("bob", "/acp") as bob:
        await ready(ann)
        await ready(bob)
        session = await new(ann, tmp_path)
        assert session not in await listed(bob)
        loading = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        assert (await bob.rpc("session/load", loading))["error"]["code"] == -32002


async def test_two_connections_of_one_caller_see_the_same(server: Server, tmp_path: Path) -> None:
    async with server.socket("ann", "/acp") as here, server.socket("ann-runs", "/acp") as there:
        await ready(here)
        await ready(there)
        session = await new(here, tmp_path)
        await name(here, session)
        assert session in await listed(there)


async def test_bad_messages_are_answered_and_the_connection_goes_on(server: Server) -> None:
    async with server.socket(path="/acp") as client:
        for text, code in (("{", -32700), ("[]", -32600), ('{"jsonrpc":"2.0","id":1}', None)):
            await client.send(text)
            if code is not None:
                assert (await client.receive())["error"]["code"] == code
        assert (await ready(client))["protocolVersion"] == 1


async def test_a_connection_has_an_id_and_ignores_frames_that_it_does_not_know(server: Server) -> None:
    ids = set()
    for _ in range(2):
        async with server.socket(path="/acp") as client:
            assert client.connection.response is not None
            ids.add(client.connection.response.headers["Acp-Connection-Id"])
            await client.connection.send(b"\x00\x01")
            assert (await ready(client))["protocolVersion"] == 1
    assert len(ids) == 2
    assert all(ids)


async def test_a_turn_goes_on_when_its_socket_drops_and_is_followed_over_the_next(
    server: Server, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    async with server.socket(path="/acp") as client:
        await ready(client)
        session = await new(client, tmp_path)
        prompt = [{"type": "text", "text": f"wait {tmp_path / 'go'}"}]
        await client.begin("session/prompt", {"sessionId": session, "prompt": prompt})
        await client.until(lambda params: "Waiting. " in str(params))
        client.connection.transport.abort()  # no goodbye
    async with server.socket(path="/acp") as client:
        await ready(client)
        await client.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await client.until(lambda params: "Waiting. " in str(params))
        (tmp_path / "go").write_text("go")
        await client.until(lambda params: "Done." in str(params))
