"""A server for tests, in a process of its own: the real one, whose engine does as a prompt says.

`python -m tests.gateway.server_worker JSON`: the store, limits, where it is, and the tokens to make. It prints its port
and the tokens, and serves until it is told to end. A prompt `wait PATH…` is answered when something is written to each
of these pipes; `block` keeps a thread for ever; any other prompt is a script as in `tests.acp.scripted_agent`. Given the time (`now`), the time is always that,
and its engine is that of the examples: it answers "Noted." and makes their summary. `live`: so many seconds a page that
asks for news waits for them. `last`: so many seconds after the grace period the process ends. `search`
and `follow`: so many seconds a search may take, and feeds its index. `patience`: so many seconds it waits for a lock.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

from hitherto import composition
from hitherto.acp.agent.connection import Offer, Outliving
from hitherto.acp.agent.serve import serve as serve_agent
from hitherto.engine import Delta, Engine, Event, Message, Setup, Turn, answering
from hitherto.gateway import serve as gateway
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page.views import live
from hitherto.gateway.serve import run_quickly
from hitherto.gateway.server.state import Agent, ServerState
from hitherto.gateway.transport.limits import Limits
from hitherto.model import Text, plain_text
from hitherto.rpc.transport import Transport
from hitherto.service import Sessions
from hitherto.stores.sqlite import connection, search_index
from tests.acp import scripted_agent
from tests.support.waits import NEVER

WAIT, BLOCK = "wait ", "block"


@answering
async def engine(turn: Turn) -> AsyncIterator[Event]:
    said = plain_text(turn.history[-1])
    if said == BLOCK:
        yield Delta(text="Blocked.")
        await asyncio.to_thread(threading.Event().wait)
    if said.startswith(WAIT):
        text = ""
        for pipe in said.removeprefix(WAIT).split():
            more = "Still waiting. " if text else "Waiting. "
            yield Delta(text=more)
            text += more
            await written(pipe)
        yield Message(parts=(Text(text=f"{text}Done."),))
        return
    async with scripted_agent.engine.open(Setup(session_id=turn.session.id)) as conversation:
        async for event in conversation.run(turn):
            yield event


async def written(path: str) -> None:
    """Wait until something is written to a pipe."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def agent(sessions: Sessions) -> Agent:
    async def serve(transport: Transport, caller: Caller) -> None:
        offer = Offer(local=caller.may("commands"))
        outliving = Outliving(NEVER, caller.holds)
        await serve_agent(transport, sessions, caller.who, engine, offer=offer, outliving=outliving)

    return serve


def of_examples() -> Engine:
    """The engine of the examples."""
    from tests.gateway.seed_examples import Summariser
    from tests.support.scripted_engine import Scripted  # here: other servers start more quickly without

    return Scripted(summariser=Summariser())


async def main(given: Any) -> None:
    live.WAIT_SECONDS = given.get("live", live.WAIT_SECONDS)
    gateway.LAST_SECONDS = given.get("last", gateway.LAST_SECONDS)
    search_index.SEARCH_SECONDS = given.get("search", search_index.SEARCH_SECONDS)
    connection.PATIENCE_SECONDS = given.get("patience", connection.PATIENCE_SECONDS)
    search_index.FOLLOW_SECONDS = given.get("follow", search_index.FOLLOW_SECONDS)
    now = given.get("now")
    answers, clock = (engine, None) if now is None else (of_examples(), lambda: now)
    where = gateway.ListenAddress(port=given.get("port", 0), **given.get("where", {}))
    with gateway.listen(where) as listener:
        async with composition.open(given["store"], now=clock, ephemeral=True) as sessions:
            tokens = {}
            for name, (owner, scopes) in given.get("tokens", {}).items():
                token, secret = await sessions.tokens.create(owner, scopes=scopes)
                tokens[name] = {"id": token.id, "secret": secret, "owner": owner}
            state = ServerState(
                sessions,
                answers,
                agent(sessions),
                Limits(**given.get("limits", {})),
                proxied=bool(where.origins),
            )
            told = {"port": listener.getsockname()[1], "tokens": tokens}
            await gateway.run(state, where, listener, lambda: print(json.dumps(told), flush=True))  # noqa: T201


if __name__ == "__main__":
    gateway.start_logging()
    run_quickly(main(json.loads(sys.argv[1])))
