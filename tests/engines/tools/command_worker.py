"""A process that runs a command and passes on what it says, for a test that kills the process meanwhile.

python -m tests.engines.tools.command_worker FOLDER COMMAND
"""

from __future__ import annotations

import asyncio
import os
import sys

from hitherto.engines.tools.local_host import LocalHost
from hitherto.engines.tools.roots import Roots


async def run(folder: str, command: str) -> None:
    host = LocalHost(Roots((folder,)))
    await host.run(command, folder, seconds=600, output_bytes=1_000, show=say)


def say(text: str) -> None:
    os.write(1, text.encode())


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
