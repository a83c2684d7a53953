"""A connection to a server by the SDK, and what went wrong with one in plain words."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any

import httpx2
import mcp_types
from mcp.client import Client
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import FileUrl

import hitherto
from hitherto.engines.mcp.http import PublicTransport, Web
from hitherto.engines.mcp.public_addresses import NotPublic, Resolve
from hitherto.engines.mcp.stdio import Stdio
from hitherto.values.mcp_servers import McpServer, StdioServer

# What fails is reported with the server's name; the SDK's own log is for those who have set one up.
logging.getLogger("mcp").addHandler(logging.NullHandler())

TOOLS = 1_000
"""The most tools of one server that are offered."""

PROMPTS = 100
"""The most prompts of one server that are offered."""

Transport = Stdio | Web


def transport_to(
    server: McpServer, *, cwd: str | None, local: bool, resolve: Resolve, noisy: Callable[[], None]
) -> Transport:
    """The way to a server. For a caller from outside it leads to public addresses only."""
    if isinstance(server, StdioServer):
        return Stdio(server, cwd, noisy)
    return Web(server, None if local else PublicTransport(resolve))


Asked = Callable[[mcp_types.ElicitRequestParams], Awaitable[mcp_types.ElicitResult | mcp_types.ErrorData]]


def client_of(
    transport: Transport,
    *,
    ended: Callable[[], None],
    changed: Callable[[], None],
    roots: Sequence[str] = (),
    asked: Asked | None = None,
) -> Client:
    """A client, not yet connected, that says when the connection ends and when the server's list of tools changes. It tells the
    server the session's folders, if it has any; without `asked`, that the user cannot be asked anything."""

    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            changed()

    async def list_roots(context: ClientRequestContext) -> mcp_types.ListRootsResult:  # noqa: ARG001 - named by the SDK
        return mcp_types.ListRootsResult(roots=[_root(path) for path in roots])

    async def elicit(
        context: ClientRequestContext,  # noqa: ARG001 - named by the SDK
        params: mcp_types.ElicitRequestParams,
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        assert asked is not None  # noqa: S101 - else it is not given to the client
        return await asked(params)

    return Client(
        _ObservedTransport(transport, ended),
        client_info=mcp_types.Implementation(name="hitherto", version=hitherto.__version__),
        message_handler=on_message,
        list_roots_callback=list_roots if roots else None,
        elicitation_callback=None if asked is None else elicit,
        cache=None,
    )


def _root(path: str) -> mcp_types.Root:
    folder = PurePosixPath(path)
    return mcp_types.Root(uri=FileUrl(folder.as_uri()), name=folder.name or None)


async def list_tools(client: Client) -> tuple[mcp_types.Tool, ...]:
    """The tools of a server, or more than `TOOLS` of them; none, if it has nothing to do with tools."""
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    while len(tools) <= TOOLS:
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == mcp_types.METHOD_NOT_FOUND:
                break
            raise
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools)


async def list_prompts(client: Client) -> tuple[mcp_types.Prompt, ...]:
    """The prompts of a server, at most `PROMPTS`; none, if it has nothing to do with prompts."""
    if client.server_capabilities.prompts is None:
        return ()
    prompts: list[mcp_types.Prompt] = []
    cursor: str | None = None
    while len(prompts) < PROMPTS:
        page = await client.list_prompts(cursor=cursor)
        prompts += page.prompts
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(prompts[:PROMPTS])


class _ObservedTransport:
    """A transport whose end is noticed: the SDK fails pending requests then, and notifies nobody else."""

    def __init__(self, transport: Transport, ended: Callable[[], None]) -> None:
        self._transport = transport
        self._ended = ended

    async def __aenter__(self) -> TransportStreams:
        received, sent = await self._transport.__aenter__()
        return _ObservedStream(received, self._ended), sent

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)


class _ObservedStream:
    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    async def receive(self) -> SessionMessage | Exception:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _ObservedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> _ObservedStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


# What went wrong


CLOSED = "Connection closed"
"""All that the SDK says when it does not know more."""

DESCRIPTIONS: tuple[tuple[type[Exception], Callable[[Any], str]], ...] = (
    (NotPublic, lambda _: "its address is not on the public internet"),
    (FileNotFoundError, lambda error: f"{error.filename!r} does not exist"),
    (PermissionError, lambda error: f"{error.filename!r} cannot be run: permission denied"),
    (socket.gaierror, lambda _: "unknown host name"),
    (TimeoutError, lambda _: "it does not answer"),
    (OSError, lambda error: error.strerror or str(error)),
    (httpx2.ConnectError, lambda _: "it is unreachable"),
    (httpx2.TimeoutException, lambda _: "it does not answer"),
    (httpx2.RemoteProtocolError, lambda _: "the connection broke off"),
    (
        httpx2.HTTPStatusError,
        lambda error: f"it answered {error.response.status_code} {error.response.reason_phrase}",
    ),
    (httpx2.ReadError, lambda error: str(error) or "the connection broke off"),
    (httpx2.SSEError, str),
)


def describe_error(error: BaseException, transport: Transport) -> str:
    """What went wrong, for whoever asked for this server. No header, variable or URL of it is named."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        if error.code != mcp_types.CONNECTION_CLOSED:
            return f"it answered: {error.message:.500}{transport.remark}"
        return (
            transport.end_description()
            if error.message == CLOSED
            else f"the connection was interrupted: {error.message:.500}"
        )
    for kind, describe in DESCRIPTIONS:
        if isinstance(error, kind):
            return describe(error)
    return f"it does not follow the MCP protocol ({type(error).__name__})"
