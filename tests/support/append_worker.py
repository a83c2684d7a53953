"""A process that appends to sessions as fast as it can and says which appends were acknowledged.

`python -m tests.support.append_worker URL NAME COUNT SESSION…` waits for a line on its input, so that all begin together.
"""

from __future__ import annotations

import asyncio
import sys

import hitherto
from hitherto.model import Draft, Principal, Text

OWNER = Principal(owner="ann")


async def main(url: str, name: str, count: int, session_ids: list[str]) -> None:
    async with hitherto.open(url) as sessions:
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        for number in range(count):
            for session_id in session_ids:
                text = f"{name} {number}"
                done = await sessions.append(OWNER, session_id, Draft(role="user", parts=(Text(text=text),)))
                say(f"{session_id} {done.entries[0]} {done.revision} {text}")
        for session_id in session_ids:
            for number in range(count // 10):
                await sessions.tag(OWNER, session_id, add=[f"{name}-{number}"])


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
