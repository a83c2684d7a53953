"""What a client calls to make, open, list and put away sessions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import TypedDict, Unpack

from hitherto.acp.client.capabilities import ARCHIVED, check, prompt_blocks, session_params
from hitherto.acp.client.requests import Requests
from hitherto.acp.client.updates import Hear
from hitherto.acp.client.values import (
    Ended,
    OpenedSession,
    SessionPage,
    SessionRow,
    Update,
    ended,
    objects_with,
    opened,
    page,
    required_text,
)
from hitherto.errors import EngineError, InvalidInput, SessionNotFound
from hitherto.model import Json
from hitherto.values.mcp_servers import McpServer


class Setting(TypedDict, total=False):
    """What a session is opened with besides its folder. Nothing of it is remembered: each opening says it anew."""

    additional_directories: Sequence[str]
    mcp_servers: Sequence[McpServer]
    meta: Json


class SessionCalls(Requests):
    """See the module."""

    async def new_session(self, cwd: str, **how: Unpack[Setting]) -> OpenedSession:
        """A new session, open."""
        answer = await self._ask("session/new", self._setting(cwd, how), how.get("meta"))
        return self._note(opened(required_text(answer, "sessionId"), answer))

    async def load_session(
        self, session_id: str, cwd: str, *, hear: Hear = lambda _: None, **how: Unpack[Setting]
    ) -> OpenedSession:
        """Open a session; `hear` has heard its whole conversation when this returns."""
        params = {"sessionId": session_id, **self._setting(cwd, how)}
        with self._inbox.hearing(session_id, hear):
            answer = await self._ask("session/load", params, how.get("meta"))
        return self._note(opened(session_id, answer))

    async def replay_session(
        self, session_id: str, cwd: str, **how: Unpack[Setting]
    ) -> AsyncGenerator[Update | OpenedSession, None]:
        """The same as an iterator: the whole conversation, then the session, open. A slow reader holds the agent up."""
        replay = self._stream("session/load", session_id, self._setting(cwd, how), how.get("meta"))
        async with aclosing(replay) as steps:
            async for step in steps:
                yield step if isinstance(step, Update) else self._note(opened(session_id, step))

    async def resume_session(self, session_id: str, cwd: str, **how: Unpack[Setting]) -> OpenedSession:
        """Open a session without hearing what was said in it."""
        params = {"sessionId": session_id, **self._setting(cwd, how)}
        return self._note(opened(session_id, await self._ask("session/resume", params, how.get("meta"))))

    async def fork_session(self, session_id: str, cwd: str, **how: Unpack[Setting]) -> OpenedSession:
        """A new session, open, that continues this one's conversation."""
        params = {"sessionId": session_id, **self._setting(cwd, how)}
        answer = await self._ask("session/fork", params, how.get("meta"))
        return self._note(opened(required_text(answer, "sessionId"), answer))

    async def close_session(self, session_id: str) -> None:
        """Let the agent free what it keeps for an open session; one that it does not know is closed already."""
        with suppress(SessionNotFound):
            await self._ask("session/close", {"sessionId": session_id})
        self._opened.pop(session_id, None)

    async def delete_session(self, session_id: str) -> None:
        """Delete a session for good."""
        await self._ask("session/delete", {"sessionId": session_id})
        self._opened.pop(session_id, None)

    async def archive_session(self, session_id: str) -> None:
        """Close a session and leave it out of lists."""
        await self._ask("session/archive", {"sessionId": session_id})
        self._opened.pop(session_id, None)

    async def unarchive_session(self, session_id: str) -> None:
        """Have a session in lists again."""
        await self._ask("session/unarchive", {"sessionId": session_id})

    async def set_title(self, session_id: str, title: str) -> str:
        """Give a session a title; returns it as it was stored."""
        return required_text(
            await self._ask("session/set_title", {"sessionId": session_id, "title": title}), "title"
        )

    async def status(self, session_id: str) -> str:
        """`open` if some process has the session in memory, `saved` if none has; an agent may say something else."""
        return required_text(await self._ask("session/status", {"sessionId": session_id}), "status")

    async def list_page(
        self,
        *,
        cwd: str | None = None,
        cursor: str | None = None,
        archived: str | None = None,
        meta: Json | None = None,
    ) -> SessionPage:
        """A page of sessions: the first, or the one at a cursor. `archived` is `exclude`, `include` or `only`; a cursor
        goes with the filter that it came from."""
        if archived is not None:
            check(self.agent, ARCHIVED, "archived sessions")
        given = {"cwd": cwd, "cursor": cursor, "archived": archived}
        params = {name: value for name, value in given.items() if value is not None}
        return page(await self._ask("session/list", params, meta))

    async def list_sessions(
        self, *, cwd: str | None = None, archived: str | None = None, meta: Json | None = None
    ) -> AsyncGenerator[SessionRow, None]:
        """All sessions, page by page, as the agent orders them. One that changes meanwhile may come twice."""
        cursor: str | None = None
        while True:
            found = await self.list_page(cwd=cwd, cursor=cursor, archived=archived, meta=meta)
            for row in found.sessions:
                yield row
            if found.next_cursor is None:
                return
            if found.next_cursor == cursor:
                raise EngineError("the agent returned the same cursor twice; stopping")
            cursor = found.next_cursor

    def _setting(self, cwd: str, how: Setting) -> Json:
        return session_params(
            self.agent, cwd, how.get("additional_directories", ()), how.get("mcp_servers", ())
        )

    def _note(self, session: OpenedSession) -> OpenedSession:
        self._opened[session.session_id] = session
        return session


class TurnCalls(Requests):
    """See the module."""

    async def prompt(
        self, session_id: str, prompt: str | Sequence[Json], *, meta: Json | None = None
    ) -> AsyncGenerator[Update | Ended, None]:
        """Prompt a session: what happens until the prompt is answered, then how it ended. The prompt is a text or a
        list of content blocks. Leaving early (see `contextlib.aclosing`) cancels the turn and waits for its end."""
        params = {"prompt": prompt_blocks(self.agent, prompt)}

        async def leave() -> None:
            await self.cancel(session_id)

        turn = self._stream("session/prompt", session_id, params, meta, leave=leave)
        async with aclosing(turn) as steps:
            async for step in steps:
                yield step if isinstance(step, Update) else ended(step)

    async def cancel(self, session_id: str) -> None:
        """End the running turn: its prompt is then answered with `cancelled`, and questions about it are withdrawn."""
        await self._notify("session/cancel", {"sessionId": session_id})
        self._callbacks.withdraw(session_id)

    async def set_mode(self, session_id: str, mode: str) -> None:
        """Choose one of the modes that the session came with."""
        _check_offered("modes", [each["id"] for each in self._session(session_id).modes], mode)
        await self._ask("session/set_mode", {"sessionId": session_id, "modeId": mode})

    async def set_config_option(self, session_id: str, option: str, value: str | bool) -> tuple[Json, ...]:
        """Set one of the options that the session came with; returns all of them as they are now."""
        _check_offered("options", [each["id"] for each in self._session(session_id).options], option)
        params: Json = {"sessionId": session_id, "configId": option, "value": value}
        if isinstance(value, bool):
            params["type"] = "boolean"
        answer = await self._ask("session/set_config_option", params)
        return objects_with(answer.get("configOptions"), ("id", "name", "type"))

    def _session(self, session_id: str) -> OpenedSession:
        if session_id not in self._opened:
            raise InvalidInput(f"session {session_id!r:.100} is not open in this client; open it first")
        return self._opened[session_id]


def _check_offered(what: str, offered: Sequence[str], chosen: str) -> None:
    if chosen not in offered:
        raise InvalidInput(
            f"{chosen!r:.100} is not one of this session's {what}: {', '.join(offered) or 'none'}"
        )
