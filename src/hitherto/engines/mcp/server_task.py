"""One server, from its start to its end. The SDK wants a connection closed by the task that has opened it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import mcp_types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec.structs import replace

from hitherto.clean_text import clean_lines
from hitherto.engine import Elicit, Notice, running_call
from hitherto.engines.mcp.connect import (
    TOOLS,
    client_of,
    describe_error,
    list_prompts,
    list_tools,
    transport_to,
)
from hitherto.engines.mcp.elicitation import elicitation_of, result_of
from hitherto.engines.mcp.public_addresses import Resolve
from hitherto.engines.mcp.tools import part, progress_callback, tool_output
from hitherto.engines.tool_calls import Show, ToolOutput, is_proper
from hitherto.errors import InvalidInput
from hitherto.model import Json, Part, Text
from hitherto.values.mcp_servers import McpServer

CLOSE_SECONDS = 5.0
"""How long a server's connection may take to close, before what hangs there is cancelled."""
INSTRUCTIONS_CHARS = 4_000


class ServerTask:
    """Starts a server in a task of its own, and reports once if it fails to start or stops.

    Its tools can be called from any task, and it can be closed by any.
    """

    def __init__(
        self,
        server: McpServer,
        *,
        cwd: str | None,
        local: bool,
        report: Callable[[Notice], None],
        resolve: Resolve,
        start_seconds: float,
        call_seconds: float,
        roots: Sequence[str] = (),
        elicits: frozenset[str] = frozenset(),
        elicit: Elicit,
    ) -> None:
        self.name = server.name
        self._roots, self._elicits, self._ask = roots, elicits, elicit
        self._running: dict[object, asyncio.Timeout] = {}
        self.prompts: tuple[mcp_types.Prompt, ...] = ()
        self._report = report
        self._start_seconds = start_seconds
        self._call_seconds = call_seconds
        self._transport = transport_to(server, cwd=cwd, local=local, resolve=resolve, noisy=self._noisy)
        self._settled = asyncio.Event()
        self._ended = asyncio.Event()
        self._changed = asyncio.Event()
        self._client: Client | None = None
        self._tools: tuple[mcp_types.Tool, ...] = ()
        self._failure: str | None = None
        self._is_noisy = False
        self._task = asyncio.create_task(self._run(), name=f"mcp:{self.name}")

    async def tools(self) -> tuple[mcp_types.Tool, ...]:
        """What the server offers, as soon as it is ready; nothing, once it is clear that it will not be."""
        await self._settled.wait()
        client = self._client
        if client is None:
            return ()
        if self._changed.is_set():
            self._changed.clear()
            try:
                async with asyncio.timeout(self._start_seconds):
                    await self._list(client)
            except Exception as error:  # noqa: BLE001 - whatever it is, the tools of before are still there
                self._warn(f"cannot list its tools again: {describe_error(error, self._transport)}")
        return self._tools

    async def call(self, tool: str, given: Json, show: Show) -> ToolOutput:
        """Call a tool. Whatever fails is in the answer; when this is cancelled, the server is notified."""
        client = self._client
        if client is None:
            return _failed(self._failure or f"The MCP server {self.name!r} is not running.")
        if not _is_json(given):
            return _failed("The input contains characters or numbers that cannot be sent.")
        try:
            async with self._limited():
                return tool_output(
                    await client.call_tool(tool, given, progress_callback=progress_callback(show))
                )
        except TimeoutError:
            return _failed(f"The MCP server {self.name!r} did not answer within {self._call_seconds:g} s.")
        except Exception as error:  # noqa: BLE001 - a tool raises nothing
            return _failed(f"The MCP server {self.name!r} failed: {describe_error(error, self._transport)}.")

    @property
    def instructions(self) -> str:
        """What the server says about how it is used."""
        client = self._client
        said = None if client is None else client.instructions
        return clean_lines(said or "")[:INSTRUCTIONS_CHARS].strip()

    async def expand(self, prompt: str, arguments: dict[str, str]) -> tuple[Part, ...]:
        """What a prompt of the server says. Raises `InvalidInput`."""
        client = self._client
        if client is None:
            raise InvalidInput(self._failure or f"The MCP server {self.name!r} is not running.")
        try:
            async with asyncio.timeout(self._call_seconds):
                told = await client.get_prompt(prompt, arguments or None)
        except Exception as error:
            why = describe_error(error, self._transport)
            raise InvalidInput(f"the MCP server {self.name!r} gave no prompt: {why}") from error
        return tuple(part(message.content) for message in told.messages)

    async def close(self) -> None:
        """End the server, whether it runs or still starts."""
        if not self._ended.is_set():  # from here on its end is no failure
            self._failure = self._failure or f"The MCP server {self.name!r} is closed."
        while not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=CLOSE_SECONDS)

    async def _run(self) -> None:
        late = asyncio.get_running_loop().call_later(self._start_seconds, self._late)
        try:
            async with client_of(
                self._transport,
                ended=self._ended.set,
                changed=self._changed.set,
                roots=self._roots,
                asked=self._asked if self._elicits else None,
            ) as client:
                await self._list(client)
                await self._list_prompts(client)
                late.cancel()
                self._client = client
                self._settled.set()
                await self._stay(client)
                self._client = None
        except asyncio.CancelledError:  # it is being closed, or was too late, which has been reported
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the other servers continue
            self._fail(describe_error(error, self._transport))
        finally:
            late.cancel()
            self._client = None
            if self._ended.is_set():
                self._fail(self._transport.end_description())
            self._settled.set()

    async def _stay(self, client: Client) -> None:
        """Until the connection ends. Newer servers announce changed tools only while a client listens."""
        tools = client.server_capabilities.tools
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and tools.list_changed:
            try:
                async with client.listen(tools_list_changed=True):
                    await self._end()
            except (MCPError, RuntimeError):  # it does not announce changes: the tools stay as they are
                pass
        await self._end()

    async def _end(self) -> None:
        """The end of the connection. If a request of it fails, the SDK cancels whoever has opened it, and says why only
        when all is taken down; whoever closes the server meanwhile must not take that for an end that was wanted."""
        try:
            await self._ended.wait()
        except asyncio.CancelledError:
            self._ended.set()
            raise

    async def _list(self, client: Client) -> None:
        tools = await list_tools(client)
        if len(tools) > TOOLS:
            self._warn(f"has more than {TOOLS} tools; only the first {TOOLS} are offered")
        self._tools = tools[:TOOLS]

    async def _list_prompts(self, client: Client) -> None:
        try:
            self.prompts = await list_prompts(client)
        except MCPError as error:
            self._warn(f"cannot list its prompts: {describe_error(error, self._transport)}")

    async def _asked(
        self, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """What the user says to this server. The time of its calls stands still meanwhile."""
        asked = elicitation_of(self.name, params, self._elicits)
        if isinstance(asked, mcp_types.ErrorData):
            return asked
        call = next(reversed(self._running), "")
        with self._time_stopped():
            try:
                return result_of(await self._ask(replace(asked, call=call if isinstance(call, str) else "")))
            except Exception:  # noqa: BLE001 - whatever it is, the server gets a reply
                return mcp_types.ElicitResult(action="cancel")

    @asynccontextmanager
    async def _limited(self) -> AsyncIterator[None]:
        """The time that a call may take; it is known by the id of the tool call, as long as it runs."""
        call = running_call.get()
        key: object = object() if call is None else call.id
        async with asyncio.timeout(self._call_seconds) as limit:
            self._running[key] = limit
            try:
                yield
            finally:
                del self._running[key]

    @contextmanager
    def _time_stopped(self) -> Iterator[None]:
        now = asyncio.get_running_loop().time
        left = {key: (limit.when() or now()) - now() for key, limit in self._running.items()}
        for limit in self._running.values():
            limit.reschedule(None)
        try:
            yield
        finally:
            for key, seconds in left.items():
                if key in self._running:
                    self._running[key].reschedule(now() + seconds)

    def _late(self) -> None:
        self._fail(f"it was not ready within {self._start_seconds:g} s")
        self._task.cancel()

    def _fail(self, reason: str) -> None:
        if self._failure is not None:
            return
        what = "has stopped" if self._settled.is_set() else "did not start"
        self._failure = f"The MCP server {self.name!r} {what}: {reason.rstrip('.')}."
        self._settled.set()
        self._report(Notice(text=self._failure, severity="error"))

    def _noisy(self) -> None:
        if not self._is_noisy:
            self._is_noisy = True
            self._warn("prints lines to standard output that are not messages; they are skipped")

    def _warn(self, what: str) -> None:
        self._report(Notice(text=f"The MCP server {self.name!r} {what}.", severity="warning"))


def _is_json(given: Json) -> bool:
    """Whether this can be sent; the SDK gives up the whole connection for what cannot."""
    if not is_proper(given):
        return False
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return True


def _failed(text: str) -> ToolOutput:
    return ToolOutput(content=(Text(text=text),), is_error=True)
