"""`elicitation/create`: the user says what a tool server wants to know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hitherto.acp.protocol.initialize import Client
from hitherto.engine import Elicitation, Reply
from hitherto.model import Json
from hitherto.rpc.errors import Gone, Refused
from hitherto.rpc.peer import Peer
from hitherto.updates import Elicitor


def elicitor_of(
    peer: Peer[Any], session_id: str, client: Client, settle: Callable[[], Awaitable[None]]
) -> Elicitor | None:
    """Asks the user of this client, if it can; `settle` shows what has happened until then."""
    if not client.elicits:
        return None

    async def ask(asked: Elicitation) -> Reply:
        await settle()  # the call is shown before its server asks
        try:
            result = await peer.ask("elicitation/create", elicitation_fields(session_id, asked))
            return msgspec.json.decode(result, type=Reply)
        except (Refused, msgspec.MsgspecError):
            return Reply(action="cancel")
        except Gone:  # somebody elsewhere may reply
            nothing: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            return await nothing

    return Elicitor(client.elicits, ask)


def elicitation_fields(session_id: str, asked: Elicitation) -> Json:
    """The parameters of the request."""
    fields: Json = {"sessionId": session_id, "message": f"{asked.server}: {asked.message}"}
    if asked.call:
        fields["toolCallId"] = asked.call
    if asked.url is not None:
        return {**fields, "mode": "url", "elicitationId": asked.id, "url": asked.url}
    return {**fields, "mode": "form", "requestedSchema": asked.schema}
