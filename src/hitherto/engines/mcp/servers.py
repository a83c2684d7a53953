"""The MCP servers of a session, started and ended with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Self

from hitherto.engine import Elicit, Elicitation, Notice, Reply, ServerPrompt, nobody_asked
from hitherto.engines.mcp.public_addresses import Resolve, resolve_addresses, url_fault
from hitherto.engines.tool_calls import Tool
from hitherto.errors import InvalidInput, install_advice
from hitherto.limits import NAME_CHARS, is_storable
from hitherto.model import Part
from hitherto.tasks import finish
from hitherto.values.mcp_servers import McpServer, StdioServer

if TYPE_CHECKING:
    from hitherto.engines.mcp.server_task import ServerTask

START_SECONDS = 15.0
CALL_SECONDS = 300.0


class McpServers:
    """Servers that belong to one session alone.

    Entering starts all of them side by side and does not wait; leaving ends them, with every process in their process
    groups, from whichever task and however the block ends. What is wrong with one is reported with its name, and the
    others continue. For callers who are not `local` no program is started, and only public addresses are connected to.
    """

    def __init__(
        self,
        servers: tuple[McpServer, ...],
        *,
        cwd: str | None,
        local: bool,
        report: Callable[[Notice], None],
        start_seconds: float | None = None,
        call_seconds: float = CALL_SECONDS,
        resolve: Resolve = resolve_addresses,
        roots: Sequence[str] = (),
        elicits: frozenset[str] = frozenset(),
    ) -> None:
        self._servers = servers
        self._cwd = cwd
        self._local = local
        self._report = report
        self._start_seconds = START_SECONDS if start_seconds is None else start_seconds
        self._call_seconds = call_seconds
        self._resolve = resolve
        self._roots, self._elicits = tuple(roots), elicits
        self._elicit: Elicit = nobody_asked
        self._server_tasks: tuple[ServerTask, ...] = ()

    async def __aenter__(self) -> Self:
        right: list[McpServer] = []
        for server, fault in check_servers(self._servers, local=self._local):
            if fault is None:
                right.append(server)
            else:
                self._refuse(server, fault)
        self._starting = asyncio.create_task(self._start(right), name="mcp")
        return self

    async def __aexit__(self, *error: object) -> None:
        await finish(self._close())

    async def tools(self) -> tuple[Tool, ...]:
        """The tools of all servers, once each of them is ready, has failed, or has run out of time."""
        await asyncio.wait((self._starting,))
        if not self._server_tasks:
            return ()
        from hitherto.engines.mcp.tools import (
            offered_tools,  # here: it needs the SDK, as a running server does
        )

        lists = await asyncio.gather(*(server_task.tools() for server_task in self._server_tasks))
        pairs = zip(self._server_tasks, lists, strict=True)
        return offered_tools(
            [(server_task.name, server_task.call, tool) for server_task, tools in pairs for tool in tools]
        )

    async def instructions(self) -> tuple[tuple[str, str], ...]:
        """What each server says about its use, by its name, once each of them is ready, has failed, or has run out of time."""
        await self.tools()
        return tuple((each.name, said) for each in self._server_tasks if (said := each.instructions))

    async def prompts(self) -> tuple[ServerPrompt, ...]:
        """The prompts of all servers, likewise."""
        await self.tools()
        return tuple(prompt for prompt, _, _ in self._prompts())

    async def expand(self, name: str, arguments: dict[str, str]) -> tuple[Part, ...]:
        """What a prompt says. Raises `InvalidInput`."""
        for prompt, server_task, its_name in self._prompts():
            if prompt.name == name:
                return await server_task.expand(its_name, arguments)
        raise InvalidInput(f"no MCP server offers the prompt {name!r:.100}")

    @contextmanager
    def answered_by(self, elicit: Elicit) -> Iterator[None]:
        """While a turn runs, it says what users reply to servers; at other times nobody does."""
        self._elicit = elicit
        try:
            yield
        finally:
            self._elicit = nobody_asked

    async def _ask(self, asked: Elicitation) -> Reply:
        return await self._elicit(asked)

    def _prompts(self) -> Iterator[tuple[ServerPrompt, ServerTask, str]]:
        if not self._server_tasks:
            return
        from hitherto.engines.mcp.tools import offered_prompt

        for server_task in self._server_tasks:
            for prompt in server_task.prompts:
                yield offered_prompt(server_task.name, prompt), server_task, prompt.name

    async def _start(self, servers: list[McpServer]) -> None:
        if not servers:
            return
        try:
            await asyncio.to_thread(import_module, "hitherto.engines.mcp.server_task")
        except ImportError:
            for server in servers:
                self._refuse(server, install_advice("it", "models"))
            return
        from hitherto.engines.mcp.server_task import ServerTask

        self._server_tasks = tuple(
            ServerTask(
                server,
                cwd=self._cwd,
                local=self._local,
                report=self._report,
                resolve=self._resolve,
                start_seconds=self._start_seconds,
                call_seconds=self._call_seconds,
                roots=self._roots,
                elicits=self._elicits,
                elicit=self._ask,
            )
            for server in servers
        )

    async def _close(self) -> None:
        self._starting.cancel()
        await asyncio.wait((self._starting,))
        await asyncio.gather(*(server_task.close() for server_task in self._server_tasks))

    def _refuse(self, server: McpServer, fault: str) -> None:
        self._report(
            Notice(text=f"The MCP server {server.name!r:.100} is not used: {fault}.", severity="error")
        )


HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def check_servers(servers: Sequence[McpServer], *, local: bool) -> Iterator[tuple[McpServer, str | None]]:
    """Each server, and what is wrong with it: None if nothing is. Of several with one name the first is right."""
    names: set[str] = set()
    for server in servers:
        yield server, "another server has this name" if server.name in names else fault(server, local=local)
        names.add(server.name)


def fault(server: McpServer, *, local: bool) -> str | None:
    """What is wrong with a server by itself."""
    if not server.name.strip():
        return "it has no name"
    if len(server.name) > NAME_CHARS or not is_storable(server.name):
        return f"its name has more than {NAME_CHARS} characters, or characters that cannot be stored"
    if not isinstance(server, StdioServer):
        return url_fault(server.url) or _header_fault(server.headers)
    if not local:
        return "programs are started only for callers on this machine"
    return _command_fault(server)


def _header_fault(headers: dict[str, str]) -> str | None:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            return f"its header {name!r:.80} cannot be sent"
    return None


def _command_fault(server: StdioServer) -> str | None:
    if not server.command.strip():
        return "it has no command"
    if not all(map(_is_passable, (server.command, *server.args, *server.env, *server.env.values()))):
        return "its command contains characters that cannot be passed to a program"
    if any(not name or "=" in name for name in server.env):
        return "its environment has a variable with an invalid name"
    return None


def _is_passable(text: str) -> bool:
    """Whether a program can be given this text; undecodable bytes of file names, as Python keeps them, can be."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
