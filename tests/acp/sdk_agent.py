"""An agent made with the protocol's own Python package: sessions in memory, pages of two, and no fork, delete or title.

It repeats what it is told; `ask` asks for a permission, `read PATH` reads a file of the client's, `run COMMAND` runs
one in the client's terminal, `wait` waits to be cancelled, `leave` ends the process. With the argument `bare` it says
that it can neither list nor load nor resume.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import acp
from acp import schema

CAPABILITIES = schema.AgentCapabilities(
    load_session=True,
    prompt_capabilities=schema.PromptCapabilities(image=True),
    session_capabilities=schema.SessionCapabilities(
        list=schema.SessionListCapabilities(), resume=schema.SessionResumeCapabilities()
    ),
)
PAGE = 2
MODES = schema.SessionModeState(
    current_mode_id="calm",
    available_modes=[schema.SessionMode(id="calm", name="Calm"), schema.SessionMode(id="wild", name="Wild")],
)


class Known:
    """What the agent keeps of a session."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.said: list[tuple[str, str]] = []
        self.mode = "calm"
        self.cancelled = asyncio.Event()


class Repeater:
    """See the module. What the package hands over is checked by it; the names of the arguments are its own."""

    def __init__(self) -> None:
        self.sessions: dict[str, Known] = {}
        self.client: Any = None

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        assert protocol_version == 1
        return schema.InitializeResponse(
            protocol_version=1,
            agent_capabilities=CAPABILITIES,
            agent_info=schema.Implementation(name="repeater", version="1"),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        name = f"s{len(self.sessions) + 1}"
        self.sessions[name] = Known(cwd)
        return schema.NewSessionResponse(session_id=name, modes=MODES)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        for role, text in self._known(session_id, cwd).said:
            chunk = acp.update_user_message_text if role == "user" else acp.update_agent_message_text
            await self.client.session_update(session_id, chunk(text))
        return schema.LoadSessionResponse(modes=MODES)

    async def resume_session(self, cwd: str, session_id: str, **_: Any) -> schema.ResumeSessionResponse:
        self._known(session_id, cwd)
        return schema.ResumeSessionResponse(modes=MODES)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        rows = [
            schema.SessionInfo(session_id=name, cwd=known.cwd, title=f"Session {name}")
            for name, known in self.sessions.items()
            if cwd in (None, known.cwd)
        ]
        start = int(cursor or 0)
        more = str(start + PAGE) if start + PAGE < len(rows) else None
        return schema.ListSessionsResponse(sessions=rows[start : start + PAGE], next_cursor=more)

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        self.sessions[session_id].mode = mode_id
        return schema.SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        known = self.sessions[session_id]
        said = prompt[-1].text
        verb, _space, rest = said.partition(" ")
        work = getattr(self, f"_{verb}", None)
        answer = await work(session_id, rest) if work else f"{said} ({known.mode})"
        known.said += [("user", said), ("agent", answer)]
        for word in answer.split(" "):
            await self.client.session_update(session_id, acp.update_agent_message_text(f"{word} "))
        return schema.PromptResponse(stop_reason="cancelled" if known.cancelled.is_set() else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.sessions[session_id].cancelled.set()

    async def _wait(self, session_id: str, _: str) -> str:
        await self.client.session_update(session_id, acp.update_agent_message_text("waiting "))
        await self.sessions[session_id].cancelled.wait()
        return "waited"

    async def _leave(self, *_: str) -> str:
        os._exit(1)

    async def _ask(self, session_id: str, _: str) -> str:
        options = [
            schema.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
            schema.PermissionOption(option_id="n", name="No", kind="reject_once"),
        ]
        call = schema.ToolCallUpdate(tool_call_id="t1", title="Paint the barn")
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
        return f"{answer.outcome.outcome} {getattr(answer.outcome, 'option_id', '-')}"

    async def _read(self, session_id: str, path: str) -> str:
        answer = await self.client.read_text_file(session_id=session_id, path=path, line=2)
        await self.client.write_text_file(session_id=session_id, path=path, content=answer.content.upper())
        return str(answer.content)

    async def _run(self, session_id: str, command: str) -> str:
        made = await self.client.create_terminal(session_id=session_id, command=command, args=["-l"])
        here = {"session_id": session_id, "terminal_id": made.terminal_id}
        ended = await self.client.wait_for_terminal_exit(**here)
        said = await self.client.terminal_output(**here)
        await self.client.kill_terminal(**here)
        await self.client.release_terminal(**here)
        return f"{said.output} {ended.exit_code}"

    def _known(self, session_id: str, cwd: str) -> Known:
        known = self.sessions.get(session_id)
        if known is None or known.cwd != cwd:
            raise acp.RequestError(-32002, "Session not found", {"sessionId": session_id})
        return known


if __name__ == "__main__":
    if "bare" in sys.argv:
        CAPABILITIES = schema.AgentCapabilities()
    agent: Any = Repeater()
    asyncio.run(acp.run_agent(agent, use_unstable_protocol=True))
