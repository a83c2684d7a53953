"""`/mcp`: earlier sessions looked up over MCP by agents of whoever holds the token."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from hitherto.gateway.desk import Desk
from hitherto.gateway.replies import Refusal, forbidden, refuse
from hitherto.recall.looking import Recall


class History:
    """The endpoint. Each request is answered by itself, with the rights that its token has then."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from hitherto.recall.server import (
            serve_request,  # here: the SDK is heavy, and most servers have no such guest
        )

        try:
            caller = await self._desk.admit(scope)
            if not caller.may("read"):
                raise forbidden("read")
        except Refusal as refusal:
            await refuse(scope, send, refusal)
        else:
            await serve_request(Recall(self._desk.sessions, caller.who, _page(scope)), scope, receive, send)


def _page(scope: Scope) -> str:
    """Where the page is, as this caller reaches it; the guard has looked at the name."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return f"{scope.get('scheme', 'http')}://{host.decode('latin-1')}"
