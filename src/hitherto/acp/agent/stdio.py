"""The agent on standard input and output. `initialize` is answered before anything else is imported.

Other code in the process, such as a `print` in a library or a child process, reads nothing from standard input and writes
to standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from hitherto.acp.agent.wires import Wires
from hitherto.acp.protocol.initialize import About, Client, InitializeParams, answer_initialize
from hitherto.engines.capabilities import Reads
from hitherto.rpc import frames
from hitherto.rpc.errors import Failure
from hitherto.rpc.frames import BadFrame

if TYPE_CHECKING:
    from hitherto.acp.agent.connection import Offer
    from hitherto.engine import Engine

    MakeAgent = Callable[[], tuple[Engine, str | None, Offer | None]]


def greet(wires: Wires, reads: Reads, about: About, *, signs_in: bool = False) -> Client | None:
    """Answer `initialize`, if that is the first message; anything else is left for later."""
    line = wires.first()
    if line is None:
        return None
    try:
        frame = frames.read_frame(line)
        if frame.method != "initialize" or not frames.has_id(frame):
            raise BadFrame(b"")
        params = frames.decode_params(msgspec.json.Decoder(InitializeParams), frames.params_of(frame))
        client, answer = answer_initialize(params, reads, about, signs_in=signs_in)
    except (BadFrame, Failure):
        wires.lines.put_back(line)
        return None
    wires.write(frames.answer(frame.id, frames.encode(answer)))
    return client


def run(engine: Engine, store: str | None = "memory:", *, offer: Offer | None = None) -> None:
    """Run as an ACP agent on standard input and output until the client disconnects; `engine` answers prompts.

    `store` is the URL of the store that keeps the sessions: `memory:` for as long as the program runs,
    `sqlite:///file.db`, None for the user's own.
    """
    known = (Reads(), About()) if offer is None else (offer.reads(), offer.about)
    run_made(lambda: (engine, store, offer), *known)


def run_made(make: MakeAgent, reads: Reads, about: About, *, signs_in: bool = False) -> None:
    """The same, with an engine, a store and an offer that are made after `initialize` was answered. `reads`, `about` and
    `signs_in` are those of the offer, for the default model."""
    try:
        wires = Wires()
        client = greet(wires, reads, about, signs_in=signs_in)
    except (BrokenPipeError, KeyboardInterrupt):
        return  # the client is gone, and nothing has started
    except OSError as error:
        raise SystemExit(f"hitherto: cannot talk to the client: {error.strerror}") from None
    try:
        import asyncio

        from hitherto.acp.agent.run import run_on

        asyncio.run(run_on(wires, make, client))
    except KeyboardInterrupt:
        pass  # before signal handlers are set; nothing has started
