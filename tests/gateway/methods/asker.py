"""Asking the method table as a transport does: JSON in, JSON or an error out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hitherto.gateway.dispatch.method import Context, answer
from hitherto.gateway.methods import METHODS
from hitherto.model import Token
from hitherto.rpc.errors import Failure
from hitherto.service import Sessions
from hitherto.values.scopes import SCOPES

KEY = "agent:main:main"


def token(owner: str, scopes: Sequence[str] = SCOPES, role: str = "owner") -> Token:
    return Token(id=f"token-{owner}", owner=owner, scopes=tuple(scopes), role=role, created_at=0)


class Asker:
    """A caller with a token."""

    def __init__(self, sessions: Sessions, owner: str = "ann", **context: Any) -> None:
        self.context = Context(sessions=sessions, token=token(owner), **context)

    def allowed(self, *scopes: str) -> Asker:
        """The same caller with a token of these scopes only."""
        return self.with_(token=token(self.context.token.owner, scopes))

    def with_(self, **changes: Any) -> Asker:
        """The same caller, asked by another server, or with other rights."""
        other = Asker(self.context.sessions)
        other.context = replace(self.context, **changes)
        return other

    async def ask(self, method: str, **params: Any) -> Any:
        """The result."""
        return json.loads(await self.sent(method, params))

    async def sent(self, method: str, params: Any) -> bytes:
        """The result as it goes out."""
        return await answer(METHODS, self.context, method, json.dumps(params).encode())

    async def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """The error, as it goes out."""
        return await self.refusal(method, json.dumps(params).encode())

    async def refusal(self, method: str, params: bytes) -> dict[str, Any]:
        try:
            result = await answer(METHODS, self.context, method, params)
        except Failure as failure:
            return {"code": failure.code, "message": failure.message, "data": failure.data}
        raise AssertionError(f"{method} was answered: {result[:500]!r}")

    async def code(self, method: str, **params: Any) -> str:
        """The stable code of the error."""
        return str((await self.refused(method, **params))["data"]["code"])

    async def outcome(self, method: str, **params: Any) -> Any:
        """The result, or the error."""
        try:
            return await self.ask(method, **params)
        except Failure as failure:
            return {"code": failure.code, "message": failure.message, "data": failure.data}

    async def say(self, *texts: str, session_key: str = KEY, role: str = "user") -> Any:
        """Append messages to a session, which is made if need be."""
        messages = [{"role": role, "content": text} for text in texts]
        return await self.ask("session.append", session_key=session_key, messages=messages, create=True)

    async def said(self, session_key: str = KEY, **params: Any) -> list[str]:
        """What a history shows."""
        found = await self.ask("session.history", session_key=session_key, **params)
        return [message["content"] for message in found["messages"]]
