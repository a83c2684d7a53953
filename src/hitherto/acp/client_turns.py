"""What a client calls in a session that is open: prompts, and what the user chooses for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from hitherto.acp.client_asking import Asking
from hitherto.acp.client_capabilities import content
from hitherto.acp.client_values import Ended, OpenedSession, Update, ended, named
from hitherto.errors import InvalidInput
from hitherto.model import Json


class TurnCalls(Asking):
    """See the module."""

    async def prompt(
        self, session_id: str, prompt: str | Sequence[Json], *, meta: Json | None = None
    ) -> AsyncGenerator[Update | Ended, None]:
        """Prompt a session: what happens until the prompt is answered, then how it ended. The prompt is a text or a
        list of content blocks. Leaving early (see `contextlib.aclosing`) cancels the turn and waits for its end."""
        params = {"prompt": content(self.agent, prompt)}

        async def leave() -> None:
            await self.cancel(session_id)

        turn = self._streamed("session/prompt", session_id, params, meta, leave=leave)
        async with aclosing(turn) as steps:
            async for step in steps:
                yield step if isinstance(step, Update) else ended(step)

    async def cancel(self, session_id: str) -> None:
        """End the running turn: its prompt is then answered with `cancelled`, and questions about it are withdrawn."""
        await self._tell("session/cancel", {"sessionId": session_id})
        self._desk.withdraw(session_id)

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
        return named(answer.get("configOptions"), ("id", "name", "type"))

    def _session(self, session_id: str) -> OpenedSession:
        if session_id not in self._opened:
            raise InvalidInput(f"session {session_id!r:.100} is not open here: open it first")
        return self._opened[session_id]


def _check_offered(what: str, offered: Sequence[str], chosen: str) -> None:
    if chosen not in offered:
        raise InvalidInput(
            f"the {what} of this session are {', '.join(offered) or 'none'}, not {chosen!r:.100}"
        )
