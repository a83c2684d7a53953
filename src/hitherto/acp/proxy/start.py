"""`hitherto acp --agent`: an editor on standard input and output, an agent as a child, and the store between them."""

from __future__ import annotations

import asyncio
import logging
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress

from hitherto import composition
from hitherto.acp.agent.connection import Offer
from hitherto.acp.agent.run import store_failure
from hitherto.acp.agent.wires import Wires
from hitherto.acp.pipes import Pipes
from hitherto.acp.proxy.connection import ProxyConnection, to_failure
from hitherto.acp.proxy.editor_side import EditorTransport
from hitherto.acp.proxy.methods import NOTIFICATIONS, REQUESTS
from hitherto.errors import HithertoError
from hitherto.model import LOCAL, Principal
from hitherto.rpc.peer import Peer
from hitherto.rpc.transport import Transport
from hitherto.service import Sessions
from hitherto.settings import read_settings, store_url


def run_text(text: str, store: str | None) -> None:
    """The same as `run` for a command as a shell would read it; what is none ends the program."""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise SystemExit(f"hitherto: --agent is not a valid command: {error}") from None
    if not command:
        raise SystemExit("hitherto: --agent needs a command, such as 'opencode acp'")
    run(command, store)


def run(command: Sequence[str], store: str | None) -> None:
    """Stand between the editor and the agent of this command until the editor leaves."""
    with suppress(KeyboardInterrupt):  # before it was heard for; nothing has been begun
        asyncio.run(_heeding(Wires(), command, store))


async def serve(
    transport: Transport,
    sessions: Sessions | HithertoError,
    who: Principal,
    command: Sequence[str],
    *,
    offer: Offer = Offer(),  # noqa: B008 - a frozen value
    env: Mapping[str, str] | None = None,
) -> None:
    """Serve one editor until it leaves; all that was said is stored by then, and the agent has left too."""
    async with asyncio.TaskGroup() as tasks:
        connection = ProxyConnection(sessions, who, command, tasks, offer=offer, env=env)
        editor = EditorTransport(transport, connection)
        peer: Peer[ProxyConnection] = Peer(editor, REQUESTS, NOTIFICATIONS, connection, to_failure=to_failure)
        connection.peer, connection.send_now = peer, editor.send_now  # type: ignore[assignment]
        try:
            await peer.run()
        finally:
            await connection.close()


async def _heeding(wires: Wires, command: Sequence[str], store: str | None) -> None:
    """Serve until the editor leaves or the process gets a signal to end."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="hitherto: %(message)s")
    serving = asyncio.ensure_future(_run(wires, command, store))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


async def _run(wires: Wires, command: Sequence[str], store: str | None) -> None:
    async with AsyncExitStack() as stack:
        pipes = Pipes(wires.source, wires.target, wires.lines)
        stack.callback(pipes.close)
        offer = Offer()
        try:
            offer = Offer(imported=read_settings().lists_imported)
            sessions: Sessions | HithertoError = await stack.enter_async_context(
                composition.open(store_url(store))
            )
        except HithertoError as error:
            sessions = store_failure(error)
        await serve(pipes, sessions, LOCAL, command, offer=offer)
