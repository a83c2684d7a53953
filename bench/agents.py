"""Agents whose replay is measured, each a process: `python -m bench.agents sdk|splice FILE`.

`FILE` has the texts of the messages (sdk) or the very lines of the replay (splice).
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any


def splice(file: Path) -> None:
    """Answer with prepared bytes: as fast as a pipe can be filled."""
    prepared = file.read_bytes()
    out = sys.stdout.buffer
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "session/load":
            out.write(prepared)
        out.write(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % request["id"])
        out.flush()


def sdk(file: Path) -> None:
    """The same conversation told by an agent that is made with the protocol's Python package."""
    import acp
    from acp import schema

    texts: list[str] = json.loads(file.read_bytes())

    class Teller:
        client: Any

        def on_connect(self, conn: Any) -> None:
            self.client = conn

        async def initialize(self, **_: Any) -> schema.InitializeResponse:
            return schema.InitializeResponse(protocol_version=1)

        async def load_session(self, session_id: str, **_: Any) -> schema.LoadSessionResponse:
            for number, text in enumerate(texts):
                chunk = acp.update_agent_message_text if number % 2 else acp.update_user_message_text
                await self.client.session_update(session_id, chunk(text))
            return schema.LoadSessionResponse()

    agent: Any = Teller()
    asyncio.run(acp.run_agent(agent))


if __name__ == "__main__":
    {"sdk": sdk, "splice": splice}[sys.argv[1]](Path(sys.argv[2]))
