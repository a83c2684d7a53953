"""The protocol's own Python client, which we did not write, gets along with the agent."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.client.connection import ClientSideConnection
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse, TextContentBlock

from tests.acp.wire import environment, url_of
from tests.support.paths import ROOT

CALL = {"id": "t1", "name": "run", "kind": "execute", "input": {"command": "ls"}}


class Editor:
    """A client: it allows everything, and remembers what it was told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))

    async def request_permission(self, options: Any, **_: Any) -> RequestPermissionResponse:
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )

    def on_connect(self, conn: Any) -> None:
        pass

    def said(self, session_id: str) -> str:
        texts = [
            update.content.text for name, update in self.updates if name == session_id and _is_text(update)
        ]
        return "".join(texts)


def _is_text(update: Any) -> bool:
    return bool(update.session_update == "agent_message_chunk")


@asynccontextmanager
async def connected(folder: Path, editor: Editor) -> AsyncIterator[ClientSideConnection]:
    command = (sys.executable, "-m", "tests.acp.scripted_agent", url_of(folder))
    async with acp.spawn_agent_process(
        editor,  # type: ignore[arg-type]  # it needs no more than this agent asks for
        *command,
        env=environment(folder),
        cwd=ROOT,
        use_unstable_protocol=True,
    ) as (connection, _):
        await connection.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
        yield connection


def text(said: str | list[Any]) -> list[TextContentBlock]:
    return [TextContentBlock(type="text", text=said if isinstance(said, str) else json.dumps(said))]


async def test_a_session_is_made_prompted_listed_loaded_resumed_forked_and_closed(tmp_path: Path) -> None:
    editor, cwd = Editor(), str(tmp_path)
    async with connected(tmp_path, editor) as agent:
        session = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
        script = ["Hello.", {"call": CALL}, {"permit": True}, {"result": "a.txt"}, " Done."]
        answer = await agent.prompt(session_id=session, prompt=text(script))  # type: ignore[arg-type]
        assert answer.stop_reason == "end_turn"
        assert editor.said(session) == "Hello. Done."
        rows = (await agent.list_sessions(cwd=cwd)).sessions
        assert [row.session_id for row in rows] == [session]
        options = await agent.set_config_option(session_id=session, config_id="mode", value="plan")
        assert options is not None
        fork = await agent.fork_session(session_id=session, cwd=cwd, mcp_servers=[])
        await agent.close_session(session_id=session)
    editor = Editor()
    async with connected(tmp_path, editor) as agent:
        loaded = await agent.load_session(session_id=session, cwd=cwd, mcp_servers=[])
        assert loaded is not None
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "plan"
        await agent.prompt(session_id=session, prompt=text("More"))  # type: ignore[arg-type]
        assert editor.said(session) == "Hello. Done.You said: More"
        await agent.resume_session(session_id=fork.session_id, cwd=cwd, mcp_servers=[])
        await agent.prompt(session_id=fork.session_id, prompt=text("Other"))  # type: ignore[arg-type]
        assert editor.said(fork.session_id) == "You said: Other"


async def test_a_missing_session_is_an_error_with_its_code(tmp_path: Path) -> None:
    async with connected(tmp_path, Editor()) as agent:
        with pytest.raises(acp.RequestError) as refused:
            await agent.load_session(session_id="nowhere", cwd=str(tmp_path), mcp_servers=[])
        assert refused.value.code == -32002
