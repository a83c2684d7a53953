"""A process that has never seen a session: goes on with the entries that it reads, one on each line, by a prompt."""

from __future__ import annotations

import asyncio
import sys

from tests.engines.model.conversation import Talk, echo


async def go_on(name: str, prompt: str) -> None:
    talk = Talk(name, [echo()])
    talk.stored = sys.stdin.buffer.read().splitlines()
    await talk.prompt(prompt)


if __name__ == "__main__":
    asyncio.run(go_on(*sys.argv[1:]))
