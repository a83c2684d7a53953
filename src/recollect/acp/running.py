"""The agent on standard input and output, once the client has been greeted."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from contextlib import AsyncExitStack, suppress
from importlib import import_module

from recollect import wiring
from recollect.acp.agent import serve
from recollect.acp.door import Offer
from recollect.acp.greeting import Client
from recollect.acp.pipes import Pipes
from recollect.acp.stdio import Wires
from recollect.engine import Engine
from recollect.errors import RecollectError
from recollect.model import LOCAL
from recollect.service import Sessions

HEAVY = "recollect.engines.loop"
log = logging.getLogger(__name__)


async def run_on(
    wires: Wires, engine: Engine, store: str | None, client: Client | None, offer: Offer | None
) -> None:
    """Serve until the client leaves or the process is told to end; either way all that was said is stored."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="recollect: %(message)s")
    serving = asyncio.ensure_future(_run(wires, engine, store, client, offer or Offer()))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


async def _run(wires: Wires, engine: Engine, store: str | None, client: Client | None, offer: Offer) -> None:
    async with AsyncExitStack() as stack:
        pipes = Pipes(wires.source, wires.target, wires.lines)
        stack.callback(pipes.close)
        sessions = await _opened(stack, store)
        warm = _warmed() if offer.models else None
        await serve(pipes, sessions, LOCAL, engine, client=client, offer=offer, warm=warm)


async def _opened(stack: AsyncExitStack, store: str | None) -> Sessions | RecollectError:
    """The sessions of the store, or why there are none: the client is told at its first request."""
    try:
        return await stack.enter_async_context(wiring.open(store))
    except RecollectError as error:
        log.error("%s [%s]", error.message, error.code)
        return error


def _warmed() -> asyncio.Event:
    """Import what a turn needs, so that the first prompt does not wait for it; set when that is done."""
    warm, loop = asyncio.Event(), asyncio.get_running_loop()

    def work() -> None:
        with suppress(ImportError):  # the first prompt says what is missing
            import_module(HEAVY)
        with suppress(RuntimeError):  # the client has left meanwhile
            loop.call_soon_threadsafe(warm.set)

    threading.Thread(target=work, daemon=True).start()
    return warm
