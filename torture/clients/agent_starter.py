"""Starts agents quickly: `python -m torture.clients.agent_starter KIND STORE MODEL` listens, and every connection gets an agent of its own.

An agent is the command `hitherto acp` on both ends of the connection; before it speaks, the number of its process is
written there. `warm` ones are forks of this process, which has had a turn already and so has imported what turns need;
`cold` ones begin with nothing, as those that an editor starts.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from hitherto import composition
from hitherto.__main__ import main as program
from hitherto.acp.agent import run, serve
from hitherto.model import LOCAL, Text

WARM, COLD = "warm", "cold"
IMPORTED = (serve, run)
"""What an agent imports when it was greeted."""


async def warmed(model: str) -> None:
    """Run a turn that nobody keeps."""
    async with composition.open("memory:") as sessions:
        session = await sessions.create(LOCAL)
        async with sessions.opened(
            LOCAL, session.id, composition.engine(model), improve_titles=False
        ) as opened:
            await opened.prompt((Text(text="p0 Good morning"),))


def become(connection: socket.socket, kind: str, arguments: list[str]) -> None:
    """Be the agent of this connection; does not return."""
    connection.sendall(b"%d\n" % os.getpid())
    os.dup2(connection.fileno(), 0)
    os.dup2(connection.fileno(), 1)
    connection.close()
    if kind == COLD:
        os.execv(sys.executable, [sys.executable, "-m", "hitherto", *arguments])  # noqa: S606 - as an editor does
    try:
        program(arguments)
    finally:
        os._exit(0)


def main(kind: str, store: str, model: str) -> None:
    if kind == WARM:
        asyncio.run(warmed(model))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        # None of them is waited for: as long as this process lives, no other gets the number of one that has ended.
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                become(connection, kind, ["acp", "--store", store, "--model", model])
            connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
