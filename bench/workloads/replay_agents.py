"""Agents whose replay is measured, each a process: `python -m bench.workloads.replay_agents sdk|splice FILE`.

`FILE` has the lines of a replay: the one sends the same updates as models of the protocol's Python package, the other
these very bytes.
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

    chunks: dict[str, Any] = {
        "user_message_chunk": schema.UserMessageChunk,
        "agent_message_chunk": schema.AgentMessageChunk,
    }
    updates = [json.loads(line)["params"]["update"] for line in file.read_bytes().splitlines()]

    class Teller:
        client: Any

        def on_connect(self, conn: Any) -> None:
            self.client = conn

        async def initialize(self, **_: Any) -> schema.InitializeResponse:
            return schema.InitializeResponse(protocol_version=1)

        async def load_session(self, session_id: str, **_: Any) -> schema.LoadSessionResponse:
            for update in updates:
                kind = update["sessionUpdate"]
                chunk = chunks[kind](
                    session_update=kind,
                    message_id=update["messageId"],
                    content=acp.text_block(update["content"]["text"]),
                    field_meta=update["_meta"],
                )
                await self.client.session_update(session_id, chunk)
            return schema.LoadSessionResponse()

    agent: Any = Teller()
    asyncio.run(acp.run_agent(agent))


if __name__ == "__main__":
    {"sdk": sdk, "splice": splice}[sys.argv[1]](Path(sys.argv[2]))
