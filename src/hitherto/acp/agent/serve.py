"""An ACP agent over any transport."""

from __future__ import annotations

import asyncio
from functools import partial

from hitherto.acp.agent.connection import Connection, Offer, Outliving, to_failure
from hitherto.acp.agent.methods import NOTIFICATIONS, REQUESTS
from hitherto.acp.protocol.initialize import Client
from hitherto.engine import Engine
from hitherto.errors import HithertoError
from hitherto.model import Principal
from hitherto.rpc.peer import Peer
from hitherto.rpc.transport import Transport
from hitherto.service import Sessions


async def serve(
    transport: Transport,
    sessions: Sessions | HithertoError,
    who: Principal,
    engine: Engine,
    *,
    client: Client | None = None,
    offer: Offer = Offer(),  # noqa: B008 - a frozen value
    warm: asyncio.Event | None = None,
    outliving: Outliving | None = None,
) -> None:
    """Serve one client until it disconnects; everything said is stored by then.

    `client` is one whose `initialize` has been answered already. `warm` is set when the engine has imported what it
    needs: until then it is asked nothing but to answer prompts. If the store could not be opened, the reason is given
    in its place, and reported to the client. `outliving`: turns go on when the client disconnects, and this returns after them.
    """
    async with asyncio.TaskGroup() as tasks:
        connection = Connection(
            sessions, who, engine, tasks, client=client, offer=offer, warm=warm, outliving=outliving
        )
        connection.peer = Peer(
            transport, REQUESTS, NOTIFICATIONS, connection, to_failure=partial(to_failure, offer=offer)
        )
        try:
            await connection.peer.run()
            await connection.outlive()
        finally:
            await connection.close()
