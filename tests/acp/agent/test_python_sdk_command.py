"""The protocol's own Python client with `hitherto acp` itself and a model on the loopback interface."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.client.connection import ClientSideConnection
from acp.schema import ClientCapabilities

import hitherto
from hitherto.model import LOCAL
from tests.acp.agent.test_python_sdk import Editor, text
from tests.acp.wire import environment, url_of
from tests.engines.provider import PAUSE, Provider, serving
from tests.support.paths import ROOT
from tests.support.waits import NEVER, arrives


class Listener(Editor):
    """Says when something more has been said."""

    def __init__(self) -> None:
        super().__init__()
        self.spoken = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
        before = self.said(session_id)
        await super().session_update(session_id, update, **meta)
        if self.said(session_id) != before:
            self.spoken.set()


@asynccontextmanager
async def command(folder: Path, editor: Editor) -> AsyncIterator[tuple[ClientSideConnection, Provider]]:
    arguments = ("-m", "hitherto", "acp", "--store", url_of(folder), "--model", "openai:gpt-5")
    with serving() as provider:
        async with acp.spawn_agent_process(
            editor,  # type: ignore[arg-type]  # it needs no more than this agent asks for
            sys.executable,
            *arguments,
            env=environment(folder, provider.environ()),
            cwd=ROOT,
            transport_kwargs={"shutdown_timeout": NEVER},
        ) as (connection, process):
            greeting = await connection.initialize(
                protocol_version=1, client_capabilities=ClientCapabilities()
            )
            assert greeting.agent_info is not None
            assert greeting.agent_info.name == "hitherto"
            yield connection, provider
        assert await arrives(process.wait(), "the agent to end") == 0


async def test_a_prompt_reaches_the_model_is_loaded_again_in_the_mode_that_was_set_and_the_next_one_is_cancelled(
    tmp_path: Path,
) -> None:
    editor, cwd = Listener(), str(tmp_path)
    async with command(tmp_path, editor) as (agent, provider):
        provider.script(["Hel", "lo."])
        session = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
        await agent.set_session_mode(session_id=session, mode_id="plan")
        answer = await agent.prompt(session_id=session, prompt=text("Hi"))  # type: ignore[arg-type]
        assert answer.stop_reason == "end_turn"
        assert editor.said(session) == "Hello."
    editor = Listener()
    async with command(tmp_path, editor) as (agent, provider):
        loaded = await agent.load_session(session_id=session, cwd=cwd, mcp_servers=[])
        assert loaded is not None
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "plan"
        await arrives(editor.spoken.wait(), "the first words")
        assert editor.said(session) == "Hello."
        editor.spoken.clear()
        provider.script(["Half", PAUSE, "whole"])
        prompt = asyncio.ensure_future(agent.prompt(session_id=session, prompt=text("Go")))  # type: ignore[arg-type]
        await arrives(editor.spoken.wait(), "the first words")
        await agent.cancel(session_id=session)
        assert (await arrives(prompt, "the end of the turn")).stop_reason == "cancelled"
        assert editor.said(session) == "Hello.Half"
        provider.go.set()


async def test_its_pages_hold_every_session_once_and_a_wrong_cursor_is_refused(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        made = [(await sessions.create(LOCAL, cwd="/p")).id for _ in range(120)]
    async with command(tmp_path, Editor()) as (agent, _):
        seen: list[str] = []
        cursor = None
        while cursor is not None or not seen:
            page = await agent.list_sessions(cwd="/p", cursor=cursor)
            seen += [row.session_id for row in page.sessions]
            cursor = page.next_cursor
        assert sorted(seen) == sorted(made)
        with pytest.raises(acp.RequestError) as refused:
            await agent.list_sessions(cursor="nonesuch")
        assert refused.value.code == -32602
