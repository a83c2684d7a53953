"""The agent on standard input and output, after `initialize` was answered."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from hitherto import composition
from hitherto.acp.agent.connection import Offer
from hitherto.acp.agent.serve import serve
from hitherto.acp.agent.wires import Wires
from hitherto.acp.pipes import Pipes
from hitherto.acp.protocol.initialize import Client
from hitherto.engine import Event, Turn, answering
from hitherto.errors import EngineError, HithertoError, StoreError, StoreUnavailable
from hitherto.model import LOCAL
from hitherto.service import Sessions

if TYPE_CHECKING:
    from hitherto.acp.agent.stdio import MakeAgent

HEAVY = "hitherto.engines.model.loop"
log = logging.getLogger(__name__)


async def run_on(wires: Wires, make: MakeAgent, client: Client | None) -> None:
    """Serve until the client disconnects or the process gets a signal; either way everything said is stored."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="hitherto: %(message)s")
    serving = asyncio.ensure_future(_run(wires, make, client))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


async def _run(wires: Wires, make: MakeAgent, client: Client | None) -> None:
    async with AsyncExitStack() as stack:
        pipes = Pipes(wires.source, wires.target, wires.lines)
        stack.callback(pipes.close)
        try:
            engine, store, given = make()
            sessions: Sessions | HithertoError = await stack.enter_async_context(composition.open(store))
        except HithertoError as error:
            engine, given, sessions = _no_store, None, store_failure(error)
        offer = given or Offer()
        warm = _import_ahead() if offer.models else None
        await serve(pipes, sessions, LOCAL, engine, client=client, offer=offer, warm=warm)


def store_failure(error: HithertoError) -> StoreError:
    """The error for every request if there is no store. A wrong setting is reported as an unavailable store, because the
    request's parameters are not at fault."""
    log.error("%s [%s]", error.message, error.code)
    return error if isinstance(error, StoreError) else StoreUnavailable(error.message)


@answering
async def _no_store(_: Turn) -> AsyncIterator[Event]:
    """Never used: without a store no turn runs."""
    raise EngineError("there is no store")
    yield


def _import_ahead() -> asyncio.Event:
    """Import what a turn needs, so that the first prompt does not wait for it; set when that is done."""
    warm, loop = asyncio.Event(), asyncio.get_running_loop()

    def work() -> None:
        with suppress(ImportError):  # the first prompt says what is missing
            import_module(HEAVY)
        with suppress(RuntimeError):  # the client has left meanwhile
            loop.call_soon_threadsafe(warm.set)

    threading.Thread(target=work, daemon=True).start()
    return warm
