"""A process that makes one session after the other smaller, and says which are done: `python -m tests.support.shrink_worker URL SESSION…`."""

from __future__ import annotations

import asyncio
import sys

import hitherto
from hitherto.model import Principal

OWNER = Principal(owner="ann")


async def main(url: str, session_ids: list[str]) -> None:
    async with hitherto.open(url) as sessions:
        for session_id in session_ids:
            done = await sessions.compaction.shrink(OWNER, session_id)
            sys.stdout.write(f"{session_id} {done.facts_extracted}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
