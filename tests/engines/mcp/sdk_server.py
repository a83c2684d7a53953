"""A server made with the SDK: `python -m tests.engines.mcp.sdk_server stdio`, or `web FD` to serve HTTP (/mcp) and
server-sent events (/sse) on a listening socket; with `old` after that it speaks the protocol of old only."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from typing import Any

import anyio
import mcp_types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n pixel").decode()
SOUND = base64.b64encode(b"RIFF sound").decode()
STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1]).write_text("ouch"))
print("ready", flush=True)
while True:
    time.sleep(600)
"""

server = MCPServer("everything")
stopped: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)


@server.tool(
    title="Say it again", annotations=mcp_types.ToolAnnotations(read_only_hint=True), structured_output=False
)
def echo(text: str) -> str:
    """Says what it is told."""
    return text


@server.tool()
def add(a: int, b: int) -> dict[str, int]:
    """Adds, and answers with structure."""
    return {"sum": a + b}


@server.tool(structured_output=False)
def show_all() -> list[mcp_types.ContentBlock]:
    """One of each kind of content."""
    return [
        mcp_types.TextContent(text="A picture:"),
        mcp_types.ImageContent(data=PIXEL, mime_type="image/png"),
        mcp_types.AudioContent(data=SOUND, mime_type="audio/wav"),
        mcp_types.EmbeddedResource(
            resource=mcp_types.TextResourceContents(uri="note://1", mime_type="text/plain", text="a note")
        ),
        mcp_types.EmbeddedResource(resource=mcp_types.BlobResourceContents(uri="blob://1", blob=SOUND)),
        mcp_types.ResourceLink(
            uri="file:///there",
            name="there",
            title="There",
            description="far",
            mime_type="text/plain",
            size=3,
        ),
    ]


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("it does not work today")


@server.tool()
def environment() -> dict[str, str]:
    """The variables that the server has."""
    return dict(os.environ)


@server.tool()
def whereabouts() -> dict[str, Any]:
    """Its process and its folder."""
    return {"pid": os.getpid(), "cwd": os.getcwd()}


@server.tool()
def headers(ctx: Context[Any, Any]) -> dict[str, str]:
    """The headers that the server was sent."""
    return dict(ctx.headers or {})


@server.tool(structured_output=False)
async def hold(name: str, ctx: Context[Any, Any]) -> str:
    """Says that it has begun, and goes on until it is stopped."""
    try:
        await ctx.report_progress(1, 2, "begun")
        await anyio.sleep_forever()
    finally:
        stopped[name].set()
    return "never"


@server.tool(structured_output=False)
async def await_stop(name: str) -> str:
    """Answers once `hold` of this name was stopped."""
    await stopped[name].wait()
    return "stopped"


@server.tool(structured_output=False)
async def grow(ctx: Context[Any, Any]) -> str:
    """Offers one more tool from now on."""
    server.add_tool(echo, name="grown", structured_output=False)
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def crash() -> str:
    """Dies."""
    sys.stderr.write("the disk is on fire\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def spawn(path: str) -> dict[str, int]:
    """Starts a child and leaves it running; on SIGTERM it writes a word to the path, and stays."""
    child = subprocess.Popen([sys.executable, "-c", STUBBORN, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return {"group": os.getpgrp(), "child": child.pid}


class Old:
    """An application that does not know how servers are asked what they speak, since that came later."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (b"mcp-method", b"server/discover") in scope.get("headers", ()):
            await Response(status_code=404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def serve(descriptor: int, *, old: bool) -> None:
    streamed = server.streamable_http_app()
    both = Starlette(
        routes=[*streamed.routes, *server.sse_app().routes], lifespan=streamed.router.lifespan_context
    )
    listening = socket.socket(fileno=descriptor)
    config = uvicorn.Config(Old(both) if old else both, log_level="critical", timeout_graceful_shutdown=0)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1] == "web":
        serve(int(sys.argv[2]), old="old" in sys.argv)
    else:
        server.run("stdio")
