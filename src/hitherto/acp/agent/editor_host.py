"""Tools that act in the editor: on its unsaved files and in its terminals. If it lacks one, this machine does the work, for
users of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from hitherto.acp.protocol.initialize import Client
from hitherto.engine import Finished, Host, running_call
from hitherto.model import Json, ToolCall
from hitherto.rpc.errors import Gone, Refused
from hitherto.rpc.peer import Peer

if TYPE_CHECKING:
    from hitherto.engines.tools.local_host import LocalHost

SHELL = "/bin/sh"
HANDS = {"write_file": "writes_files", "edit_file": "writes_files", "run_command": "terminals"}
"""The tools that act in an editor which has what they need."""
SHOW_SECONDS = 1.0
ENDING_SECONDS = 5.0


class _Content(msgspec.Struct):
    content: str


class _Created(msgspec.Struct, rename="camel"):
    terminal_id: str


class _Exit(msgspec.Struct, rename="camel"):
    exit_code: int | None = None
    signal: str | None = None


class _Output(msgspec.Struct, rename="camel"):
    output: str
    truncated: bool = False
    exit_status: _Exit | None = None


Start = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
Embed = Callable[[str, str], None]
"""Shows that the command of a tool call, by its id, runs in a terminal of the editor."""


def editor_host(
    peer: Peer[Any],
    session_id: str,
    client: Client,
    roots: tuple[str, ...],
    start: Start,
    embed: Embed,
    *,
    local: bool,
    apart: bool = False,
) -> Host | None:
    """The host for a session; None if the editor offers nothing, or tools may touch nothing. `start` starts tasks that end
    with the connection. `local`: what the editor lacks is done by this machine. `apart`: the editor may be on another machine."""
    if not roots or not (client.reads_files or client.writes_files or client.terminals):
        return None
    return EditorHost(peer, session_id, client, roots, start, embed, local=local, apart=apart)


async def text_within(
    roots: tuple[str, ...], host: Host | None, path: str, *, local: bool = True
) -> str | None:
    """The text of a file as tools see it; None if it does not exist, is not text, or is outside the roots. Those of a client
    that is not `local` are on its own machine."""
    if not roots or (host is None and not local):
        return None
    from hitherto.engines.tools.local_host import LocalHost
    from hitherto.engines.tools.roots import ClientRoots, Roots

    try:
        async with asyncio.timeout(ENDING_SECONDS):
            if host is not None and not local:
                return await host.read_text(ClientRoots(roots).resolve(path))
            within = Roots(roots)
            return await (host or LocalHost(within)).read_text(await asyncio.to_thread(within.resolve, path))
    except (OSError, ValueError, TimeoutError):
        return None


class EditorHost:
    """See `engine.Host`."""

    def __init__(
        self,
        peer: Peer[Any],
        session_id: str,
        client: Client,
        roots: tuple[str, ...],
        start: Start,
        embed: Embed,
        *,
        local: bool,
        apart: bool = False,
    ) -> None:
        self._peer, self._session, self._client, self._roots = peer, session_id, client, roots
        self._start, self._embed, self._is_local, self._is_apart = start, embed, local, apart
        self._own: LocalHost | None = None

    @property
    def reads_files(self) -> bool:
        return self._is_local or self._client.reads_files

    @property
    def writes_files(self) -> bool:
        return self._is_local or self._client.writes_files

    @property
    def runs_commands(self) -> bool:
        return self._is_local or self._client.terminals

    def approves(self, call: ToolCall) -> bool:
        needed = HANDS.get(call.name)
        return self._is_apart and needed is not None and bool(getattr(self._client, needed))

    async def read_text(self, path: str) -> str:
        if not self._client.reads_files:
            return await self._local().read_text(path)
        answer: _Content = await self._ask("fs/read_text_file", {"path": path}, _Content)
        return answer.content

    async def write_text(self, path: str, text: str) -> None:
        if not self._client.writes_files:
            await self._local().write_text(path, text)
            return
        await self._ask("fs/write_text_file", {"path": path, "content": text}, None)

    async def run(
        self, command: str, cwd: str, *, seconds: float, output_bytes: int, show: Callable[[str], None]
    ) -> Finished:
        if not self._client.terminals:
            return await self._local().run(
                command, cwd, seconds=seconds, output_bytes=output_bytes, show=show
            )
        asked = {"command": SHELL, "args": ["-c", command], "cwd": cwd, "outputByteLimit": output_bytes}
        terminal = await self._create_terminal(asked)
        if (call := running_call.get()) is not None:
            self._embed(call.id, terminal["terminalId"])
        try:
            ended = await self._wait_exit(terminal, seconds, show)
            if ended is None:
                await self._ask("terminal/kill", terminal, None)
            seen = await self._ask("terminal/output", terminal, _Output)
        except asyncio.CancelledError:
            await self._quietly("terminal/kill", terminal)
            raise
        finally:
            await self._quietly("terminal/release", terminal)
        how = seen.exit_status or ended or _Exit()
        return Finished(
            output=seen.output,
            exit_code=how.exit_code,
            signal=how.signal,
            cut=seen.truncated,
            timed_out=ended is None,
        )

    async def _create_terminal(self, asked: Json) -> Json:
        """Create a terminal. If the caller is cancelled meanwhile, the terminal is killed and released in the background."""
        making = asyncio.ensure_future(self._ask("terminal/create", asked, _Created))
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:
            self._start(self._release_late(making))
            raise
        return {"terminalId": made.terminal_id}

    async def _release_late(self, making: asyncio.Future[_Created]) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                terminal = {"terminalId": (await making).terminal_id}
            await self._quietly("terminal/kill", terminal)
            await self._quietly("terminal/release", terminal)

    async def _wait_exit(self, terminal: Json, seconds: float, show: Callable[[str], None]) -> _Exit | None:
        """How the command ended; None if it ran out of time. Its output is shown at intervals."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        ending = asyncio.ensure_future(self._ask("terminal/wait_for_exit", terminal, _Exit))
        try:
            while (left := deadline - loop.time()) > 0:
                await asyncio.wait([ending], timeout=min(left, SHOW_SECONDS))
                if ending.done():
                    ended: _Exit = ending.result()
                    return ended
                show((await self._ask("terminal/output", terminal, _Output)).output)
            return None
        finally:
            ending.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await ending

    async def _ask(self, method: str, params: Json, shape: type[Any] | None) -> Any:
        """The editor's answer. Raises `OSError` if it refuses, disconnects, or answers in an unknown form."""
        try:
            result: Raw = await self._peer.ask(method, {"sessionId": self._session, **params})
            return None if shape is None else msgspec.json.decode(result, type=shape)
        except Refused as refused:
            raise OSError(f"the editor refused {method}: {refused.message}") from None
        except (Gone, msgspec.MsgspecError) as error:
            raise OSError(f"the editor did not answer {method}") from error

    async def _quietly(self, method: str, params: Json) -> None:
        """Clean up in the editor, without waiting long and without raising."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                await self._ask(method, params, None)

    def _local(self) -> LocalHost:
        """This machine, for its users only."""
        if not self._is_local:
            raise OSError("the editor does not offer this")
        if self._own is None:
            from hitherto.engines.tools.local_host import LocalHost
            from hitherto.engines.tools.roots import Roots

            self._own = LocalHost(Roots(self._roots))
        return self._own
