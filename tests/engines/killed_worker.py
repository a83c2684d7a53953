"""A process whose children run one turn each, for a test that kills them.

`python -m tests.engines.killed_worker URL SESSION` runs a turn, which imports all that turns need, and then forks a child for
each line on its input. A child runs a turn with a real model engine and says on its output what it is told, as it is told.
A child that has ended is collected when the next line comes: until then its number is nobody else's.
"""

from __future__ import annotations

import asyncio
import os
import sys

import hitherto
from hitherto.engine import Choices
from hitherto.engines.model import ModelEngine
from hitherto.model import LOCAL, Text
from hitherto.updates import Said, Stored, Update

MODEL = "anthropic:claude-sonnet-5"


def tell(update: Update) -> None:
    match update:
        case Stored(entry=entry):
            say(f"stored {entry.id}")
        case Said():
            say("said")
        case _:
            say("other")


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def turn(url: str, session_id: str, text: str) -> None:
    async with (
        hitherto.open(url) as sessions,
        sessions.opened(LOCAL, session_id, ModelEngine(MODEL), improve_titles=False) as opened,
    ):
        await opened.prompt((Text(text=text),), choices=Choices(mode="bypassPermissions"), emit=tell)


def main(url: str, session_id: str) -> None:
    asyncio.run(turn(url, session_id, "The first one"))
    say("ready")
    ended = 0
    for line in sys.stdin:
        if ended:
            os.waitpid(ended, 0)
        pid = os.fork()
        if pid == 0:
            say(f"child {os.getpid()}")
            asyncio.run(turn(url, session_id, line.strip()))
            say("done")
            os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        say("ended")
        ended = pid


if __name__ == "__main__":
    main(*sys.argv[1:])
