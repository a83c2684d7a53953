"""Servers that are reached by HTTP: the SDK's two transports on a client that keeps to bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import cast

import httpx2
from httpx2 import codes
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from hitherto.engines.mcp.public_addresses import NotPublic, Resolve, is_public
from hitherto.engines.mcp.stdio import MESSAGE_BYTES
from hitherto.values.mcp_servers import HttpServer, SseServer

TIMEOUT = httpx2.Timeout(30.0, read=None)
"""Nothing is said for how long an answer may take: a call has its own limit, and an event stream may be idle."""


class PublicTransport(httpx2.AsyncHTTPTransport):
    """Connects to public addresses only. Each request looks its host up, has every address of it checked, and goes to
    one that was: what the name means a moment later, or where a redirect leads, makes no difference."""

    def __init__(self, resolve: Resolve, allowed: Callable[[str], bool] = is_public) -> None:
        super().__init__(trust_env=False)
        self._resolve = resolve
        self._allowed = allowed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.raw_host.decode("ascii")
        addresses = await self._resolve(host, request.url.port or 443)
        if not addresses or not all(map(self._allowed, addresses)):
            raise NotPublic(host)
        for address in addresses[:-1]:
            try:
                return await super().handle_async_request(_with_address(address, host, request))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await super().handle_async_request(_with_address(addresses[-1], host, request))


def _with_address(address: str, host: str, request: httpx2.Request) -> httpx2.Request:
    """The same request to an address; the `Host` header and the name in the certificate stay the host's."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


class _Bounded(httpx2.AsyncByteStream):
    """An answer's bytes, up to the limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MESSAGE_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"it sent more than {MESSAGE_BYTES} bytes at once")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class Web:
    """A transport of the SDK: streamable HTTP, or HTTP with server-sent events."""

    def __init__(self, server: HttpServer | SseServer, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._server = server
        self._transport = transport
        self._status: int | None = None

    async def __aenter__(self) -> TransportStreams:
        open_it = self._open_http if isinstance(self._server, HttpServer) else self._open_sse
        async with AsyncExitStack() as stack:
            streams = await open_it(stack)
            self._stack = stack.pop_all()
        return streams

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    @property
    def remark(self) -> str:
        """How its last answer began, if that was a refusal."""
        return "" if self._status is None else f" ({self._status} {codes.get_reason_phrase(self._status)})"

    def end_description(self) -> str:
        """How the connection came to its end."""
        return f"the connection was interrupted{self.remark}"

    async def _open_http(self, stack: AsyncExitStack) -> TransportStreams:
        client = await stack.enter_async_context(self._client())
        opening = streamable_http_client(
            self._server.url, http_client=client, max_sse_event_size=MESSAGE_BYTES
        )
        return await stack.enter_async_context(opening)

    async def _open_sse(self, stack: AsyncExitStack) -> TransportStreams:
        opening = sse_client(
            self._server.url,
            httpx_client_factory=lambda headers=None, timeout=None, auth=None: self._client(),  # noqa: ARG005
        )
        return await stack.enter_async_context(opening)

    def _client(self) -> httpx2.AsyncClient:
        headers = httpx2.Headers(self._server.headers)
        headers["accept-encoding"] = "identity"  # so that what is received is as long as what comes of it
        return httpx2.AsyncClient(
            headers=headers,
            timeout=TIMEOUT,
            transport=self._transport,
            trust_env=self._transport is None,
            event_hooks={"response": [self._look_at]},
        )

    async def _look_at(self, response: httpx2.Response) -> None:
        self._status = response.status_code if response.is_error else None
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("it compresses its answers though it was asked not to")
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if not is_stream:  # in a stream, each event is bounded
            response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))
