"""MCP servers of a session: real programs and sockets, the good ones made with the SDK."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from mcp.client import session
from mcp.shared import jsonrpc_dispatcher

from hitherto.engine import HttpServer, McpServer, Notice, SseServer, StdioServer
from hitherto.engines.mcp import McpServers, stdio
from hitherto.engines.tool_calls import Tool, ToolOutput
from hitherto.model import Audio, Image, Json, Resource, ResourceLink, Text
from tests.engines.mcp.sdk_server import PIXEL, SOUND
from tests.support.paths import ROOT
from tests.support.waits import LIMIT, NEVER, arrives, end_of, ended, until

PYTHON = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
BARE = str(Path(__file__).with_name("bare_server.py"))


def sdk_server(name: str = "sdk", env: dict[str, str] | None = None) -> StdioServer:
    args = ("-m", "tests.engines.mcp.sdk_server", "stdio")
    return StdioServer(name=name, command=sys.executable, args=args, env=PYTHON | (env or {}))


def bare_server(name: str = "bare", *args: str) -> StdioServer:
    return StdioServer(name=name, command=sys.executable, args=("-S", BARE, *args))


def shell_server(name: str, script: str) -> StdioServer:
    return StdioServer(name=name, command="sh", args=("-c", script))


@contextmanager
def web_server(*more: str) -> Iterator[str]:
    """The SDK's server on a socket that already listens, so whoever connects waits for it; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [
            sys.executable,
            "-m",
            "tests.engines.mcp.sdk_server",
            "web",
            str(listening.fileno()),
            *more,
        ]
        environment = {**os.environ, **PYTHON}
        program = subprocess.Popen(
            command, pass_fds=[listening.fileno()], env=environment, stderr=subprocess.DEVNULL
        )
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield address
    finally:
        program.kill()
        ended(program, "the end of a killed server")


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with web_server() as address:
        yield address


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that starts slowly is not taken for one of an older protocol, and what is killed has time to be gone."""
    monkeypatch.setattr(session, "DISCOVER_TIMEOUT_SECONDS", NEVER)
    monkeypatch.setattr(stdio, "ENDING", ((signal.SIGTERM, 0.5), (signal.SIGKILL, NEVER)))


@pytest.fixture
def notices() -> list[Notice]:
    return []


@pytest.fixture
def open_servers(notices: list[Notice], tmp_path: Path) -> Callable[..., McpServers]:
    def make(*servers: McpServer, local: bool = True, start_seconds: float = NEVER) -> McpServers:
        return McpServers(
            servers,
            cwd=str(tmp_path),
            local=local,
            report=notices.append,
            start_seconds=start_seconds,
            call_seconds=NEVER,
        )

    return make


Open = Callable[..., McpServers]


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    """A named pipe that a server tells its process id through, and one beside it to let it go on."""
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.go")
    return str(tmp_path / "pipe")


def at(transport: str, web: str) -> McpServer:
    """The SDK's server as it is reached by a transport."""
    token = {"X-Token": "open sesame"}
    if transport == "http":
        return HttpServer(name="sdk", url=f"{web}/mcp", headers=token)
    if transport == "sse":
        return SseServer(name="sdk", url=f"{web}/sse", headers=token)
    return sdk_server()


async def called(tools: tuple[Tool, ...], name: str, /, **given: object) -> ToolOutput:
    """What the tool of this name answers."""
    (tool,) = (tool for tool in tools if tool.name.endswith(f"__{name}"))
    return await tool.call(given, lambda _: None)


async def number(tools: tuple[Tool, ...], name: str) -> int:
    """The process id that a bare server answers with."""
    (part,) = (await called(tools, name)).content
    assert isinstance(part, Text)
    return int(part.text)


async def more_than(tools: tuple[Tool, ...], servers: McpServers) -> tuple[Tool, ...]:
    """What is offered by now, if that is more."""
    found = await servers.tools()
    return found if len(found) > len(tools) else ()


@contextmanager
def hearing(pipe: str) -> Iterator[Callable[[], bytes | None]]:
    """Reads what is in a pipe: nothing if nobody has it open to write, and None if somebody has, and says nothing."""

    def read() -> bytes | None:
        with suppress(BlockingIOError):
            return os.read(end, 1_000)
        return None

    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield read
    finally:
        os.close(end)


def has_processes(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


TRANSPORTS = ("stdio", "http", "sse")


# What works


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_tools_are_called_and_all_they_give_back_is_kept(
    transport: str, web: str, open_servers: Open, notices: list[Notice]
) -> None:
    async with open_servers(at(transport, web)) as servers:
        tools = await servers.tools()
        everything = await called(tools, "show_all")
        assert await called(tools, "echo", text="ä\u2028\0") == ToolOutput(content=(Text(text="ä\u2028\0"),))
        added = await called(tools, "add", a=20, b=22)
        failed = await called(tools, "fail")
        wrong = await called(tools, "add", a="twenty", b=22)
    assert everything.content == (
        Text(text="A picture:"),
        Image(mime_type="image/png", data=PIXEL),
        Audio(mime_type="audio/wav", data=SOUND),
        Resource(uri="note://1", mime_type="text/plain", text="a note"),
        Resource(uri="blob://1", blob=SOUND),
        ResourceLink(
            uri="file:///there",
            name="there",
            title="There",
            description="far",
            mime_type="text/plain",
            size=3,
        ),
    )
    assert (added.output, added.is_error) == ({"sum": 42}, False)
    assert (failed.is_error, wrong.is_error) == (True, True)
    assert "it does not work today" in str(failed.content)
    assert notices == []


async def test_a_tool_is_offered_as_the_server_describes_it(web: str, open_servers: Open) -> None:
    async with open_servers(at("http", web)) as servers:
        tools = {tool.name: tool for tool in await servers.tools()}
    echo, add = tools["mcp__sdk__echo"], tools["mcp__sdk__add"]
    assert (echo.description, echo.kind, echo.title({})) == ("Says what it is told.", "other", "Say it again")
    assert echo.schema["required"] == ["text"]
    assert (add.kind, add.title({})) == ("other", None)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_headers_arrive(transport: str, web: str, open_servers: Open) -> None:
    async with open_servers(at(transport, web)) as servers:
        assert (await called(await servers.tools(), "headers")).output["x-token"] == "open sesame"


async def test_a_program_gets_its_variables_and_folder_and_nothing_of_ours(
    open_servers: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    async with open_servers(sdk_server(env={"GREETING": "hello"})) as servers:
        tools = await servers.tools()
        variables = (await called(tools, "environment")).output
        whereabouts = (await called(tools, "whereabouts")).output
    assert variables["GREETING"] == "hello"
    assert variables["PATH"] == os.environ["PATH"]
    assert "ANTHROPIC_API_KEY" not in variables
    assert whereabouts["cwd"] == str(tmp_path)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_that_is_cancelled_stops_the_tool_and_leaves_the_server_usable(
    transport: str, web: str, open_servers: Open
) -> None:
    async with open_servers(at(transport, web)) as servers:
        tools = await servers.tools()
        (hold,) = (tool for tool in tools if tool.name.endswith("__hold"))
        begun = asyncio.Event()
        shown: list[str] = []

        def show(text: str) -> None:
            shown.append(text)
            begun.set()

        running = asyncio.ensure_future(hold.call({"name": transport}, show))
        await arrives(begun.wait(), "the tool to begin")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await arrives(running, "the end of the call")
        assert await called(tools, "await_stop", name=transport) == ToolOutput(
            content=(Text(text="stopped"),)
        )
    assert shown == ["begun"]


@pytest.mark.parametrize("server", [sdk_server(), bare_server()], ids=("new protocol", "old protocol"))
async def test_tools_that_come_later_are_offered_from_then_on(server: McpServer, open_servers: Open) -> None:
    async with open_servers(server) as servers:
        before = await servers.tools()
        await called(before, "grow")
        # The news of it comes beside the answer.
        after = await until(lambda: more_than(before, servers), "the new tool")
    assert {tool.name for tool in after} - {tool.name for tool in before} == {f"mcp__{server.name}__grown"}


async def test_sessions_have_servers_of_their_own(open_servers: Open) -> None:
    async with open_servers(bare_server("left")) as left:
        async with open_servers(bare_server("right"), bare_server("left")) as right:
            left_tools, right_tools = await left.tools(), await right.tools()
            assert {tool.name.split("__")[1] for tool in left_tools} == {"left"}
            assert {tool.name.split("__")[1] for tool in right_tools} == {"left", "right"}
            ours = await number(left_tools, "pid")
            theirs = await number(tuple(tool for tool in right_tools if "left" in tool.name), "pid")
            assert ours != theirs
        assert not has_processes(theirs)
        assert await number(left_tools, "pid") == ours


# What fails


FAILING: dict[str, tuple[McpServer, str]] = {
    "a missing command": (
        StdioServer(name="x", command="no-such-program"),
        "The MCP server 'x' did not start: 'no-such-program' does not exist.",
    ),
    "a command that is no program": (
        StdioServer(name="x", command="/etc/passwd"),
        "The MCP server 'x' did not start: '/etc/passwd' cannot be run: permission denied.",
    ),
    "one that gives up": (
        shell_server("x", "echo no licence >&2; exit 3"),
        "The MCP server 'x' did not start: it exited with code 3; it said: no licence.",
    ),
    "one that is killed": (
        shell_server("x", "kill -9 $$"),
        "The MCP server 'x' did not start: it was ended by signal 9.",
    ),
    "one whose child keeps its output": (
        shell_server("x", "sleep 600 & exit 3"),
        "The MCP server 'x' did not start: it exited with code 3.",
    ),
    "one whose child keeps its pipes": (
        shell_server("x", "exec 3<&0; sleep 600 <&3 & exit 3"),
        "The MCP server 'x' did not start: it exited with code 3.",
    ),
    "one that closes its output": (
        shell_server("x", "exec >&-; exec sleep 600"),
        "The MCP server 'x' did not start: the connection was interrupted.",
    ),
    "an endless line": (
        shell_server("x", "exec cat /dev/zero"),
        "The MCP server 'x' did not start: it sent a line of more than 8388608 bytes.",
    ),
    "a wrong path": (
        HttpServer(name="x", url="{web}/elsewhere"),
        "The MCP server 'x' did not start: it answered: Not Found (404 Not Found).",
    ),
    "a wrong path for events": (
        SseServer(name="x", url="{web}/elsewhere"),
        "The MCP server 'x' did not start: it answered 404 Not Found.",
    ),
}


@pytest.mark.parametrize("case", FAILING)
async def test_a_server_that_fails_is_reported_and_the_others_go_on(
    case: str, web: str, open_servers: Open, notices: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, report = FAILING[case]
    if "exited" in report or "signal" in report:
        monkeypatch.setattr(stdio, "LEAVE_SECONDS", NEVER)
    if not isinstance(server, StdioServer):
        server = type(server)(name=server.name, url=server.url.format(web=web))
    async with open_servers(server, bare_server()) as servers:
        tools = await servers.tools()
        assert {tool.name.split("__")[1] for tool in tools} == {"bare"}
        assert await number(tools, "pid")
    assert notices == [Notice(text=report, severity="error")]


@pytest.mark.parametrize("kind", [HttpServer, SseServer])
async def test_nobody_at_the_port_is_reported(
    kind: type[HttpServer | SseServer], open_servers: Open, notices: list[Notice]
) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        async with open_servers(kind(name="x", url=f"http://127.0.0.1:{deaf.getsockname()[1]}/")) as servers:
            assert await servers.tools() == ()
    assert [notice.text for notice in notices] == ["The MCP server 'x' did not start: it is unreachable."]


async def test_one_that_never_answers_is_given_up_and_the_others_go_on(
    web: str, open_servers: Open, notices: list[Notice], pipe: str
) -> None:
    # On a machine that is busy the good one may need more time than that, which the others use up too.
    for seconds in (2.0, 20.0, 120.0):
        notices.clear()
        if await offering_within(seconds, web, open_servers, notices, pipe):
            break
    assert [notice.text for notice in notices if "'sdk'" in notice.text] == []


async def offering_within(
    seconds: float, web: str, open_servers: Open, notices: list[Notice], pipe: str
) -> set[str]:
    """Which of the servers offer tools: one that answers, and two that never do."""
    with hearing(pipe) as heard, socket.create_server(("127.0.0.1", 0)) as silent:
        slow = HttpServer(name="slow", url=f"http://127.0.0.1:{silent.getsockname()[1]}/")
        mute = shell_server("mute", f"exec 9>{pipe}; exec sleep 600")
        async with open_servers(slow, mute, at("http", web), start_seconds=seconds) as servers:
            offering = {tool.name.split("__")[1] for tool in await servers.tools()}
            # Nobody has the pipe open any more, and the session goes on.
            await until(lambda: heard() == b"", "the end of the mute one")
    assert sorted(notice.text for notice in notices if "'sdk'" not in notice.text) == [
        f"The MCP server 'mute' did not start: it was not ready within {seconds:g} s.",
        f"The MCP server 'slow' did not start: it was not ready within {seconds:g} s.",
    ]
    return offering


async def test_too_many_tools_are_reported_and_the_first_are_offered(
    open_servers: Open, notices: list[Notice]
) -> None:
    async with open_servers(bare_server("hive")) as servers:
        few = await servers.tools()
        await called(few, "swarm")
        await called(few, "pid")
        many = await servers.tools()
    assert [tool.name for tool in many[: len(few)]] == [tool.name for tool in few]
    assert len(many) == 1_000
    text = "The MCP server 'hive' has more than 1000 tools; only the first 1000 are offered."
    assert notices == [Notice(text=text, severity="warning")]


async def test_noise_is_skipped_and_reported_once(open_servers: Open, notices: list[Notice]) -> None:
    async with open_servers(bare_server("loud", "say", "Welcome!")) as servers:
        tools = await servers.tools()
        assert await number(tools, "noise") == await number(tools, "noise")
    text = "The MCP server 'loud' prints lines to standard output that are not messages; they are skipped."
    assert notices == [Notice(text=text, severity="warning")]


async def test_a_server_that_says_much_on_its_standard_error_is_not_held_up(open_servers: Open) -> None:
    async with open_servers(bare_server()) as servers:
        tools = await servers.tools()
        assert await number(tools, "grumble") == await number(tools, "pid")


async def test_a_program_that_does_not_listen_any_more_is_given_up(
    open_servers: Open, notices: list[Notice]
) -> None:
    async with open_servers(bare_server()) as servers:
        tools = await servers.tools()
        assert not (await called(tools, "deafen")).is_error
        assert (await called(tools, "pid")).is_error
    assert [notice.text for notice in notices] == [
        "The MCP server 'bare' has stopped: the connection was interrupted."
    ]


@pytest.mark.parametrize("how", ["deep", "behind", "cut", "empty"])
async def test_an_answer_that_cannot_be_read_fails_its_call_alone(
    how: str, open_servers: Open, notices: list[Notice]
) -> None:
    async with open_servers(bare_server()) as servers:
        tools = await servers.tools()
        failed = await called(tools, how)
        assert await number(tools, "pid")
    text = "The MCP server 'bare' failed: it answered: an unreadable message."
    assert failed == ToolOutput(content=(Text(text=text),), is_error=True)
    assert notices == []


async def test_halves_of_characters_are_replaced(open_servers: Open, notices: list[Notice]) -> None:
    async with open_servers(bare_server()) as servers:
        assert await called(await servers.tools(), "halves") == ToolOutput(content=(Text(text="a?b"),))
    assert notices == []


async def test_a_long_answer_is_cut_for_the_model(open_servers: Open) -> None:
    async with open_servers(bare_server()) as servers:
        tool_output = await called(await servers.tools(), "long")
    cut = Text(text="(6900000 more bytes omitted)")
    assert tool_output == ToolOutput(content=(Text(text="x" * 100_000), cut))


async def test_a_call_to_a_server_that_does_not_read_is_cancelled_without_it(
    open_servers: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonrpc_dispatcher, "_ABANDON_WRITE_TIMEOUT", NEVER)
    async with open_servers(bare_server()) as servers:
        tools = await servers.tools()
        assert not (await called(tools, "doze")).is_error
        stuck = asyncio.ensure_future(called(tools, "pid", much="x" * 2_000_000))
        for _ in range(100):
            await asyncio.sleep(0)
        stuck.cancel()
        await arrives(asyncio.wait((stuck,)), "the end of the call")
        assert stuck.cancelled()


DEATHS = {
    "die": "it exited with code 7",
    "flood": "it sent a line of more than 8388608 bytes",
}


@pytest.mark.parametrize("how", DEATHS)
async def test_a_program_that_dies_in_mid_call_fails_the_call_and_each_later_one(
    how: str, open_servers: Open, notices: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "die":
        monkeypatch.setattr(stdio, "LEAVE_SECONDS", NEVER)
    async with open_servers(bare_server("frail"), bare_server()) as servers:
        tools = await servers.tools()
        frail = tuple(tool for tool in tools if "frail" in tool.name)
        others = tuple(tool for tool in tools if tool not in frail)
        pending = asyncio.create_task(called(frail, "mute"))
        assert (await called(frail, how)).is_error
        assert (await arrives(pending, "the end of the other call")).is_error
        later = await called(frail, "pid")
        assert later.is_error
        assert "The MCP server 'frail'" in str(later.content)
        assert await number(others, "pid")
        assert {tool.name.split("__")[1] for tool in await servers.tools()} == {"bare"}
    assert [notice.text for notice in notices] == [f"The MCP server 'frail' has stopped: {DEATHS[how]}."]


@pytest.mark.parametrize("transport", [*TRANSPORTS, "http of old"])
async def test_a_server_that_crashes_in_mid_call_is_reported(
    transport: str, open_servers: Open, notices: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "LEAVE_SECONDS", NEVER)
    transport, *more = transport.split(" of ")
    with web_server(*more) as own:
        async with open_servers(at(transport, own)) as servers:
            tools = await servers.tools()
            assert (await called(tools, "crash")).is_error
            for _ in range(3):
                assert (await called(tools, "echo", text="are you there?")).is_error
    (notice,) = notices
    assert notice.text.startswith("The MCP server 'sdk' has stopped: ")
    if transport == "stdio":
        assert notice.text.endswith("it exited with code 3; it said: the disk is on fire.")


async def test_a_call_that_takes_too_long_is_given_up_and_the_server_stays(notices: list[Notice]) -> None:
    servers = McpServers(
        (bare_server(),),
        cwd=None,
        local=True,
        report=notices.append,
        start_seconds=NEVER,
        call_seconds=2.0,
    )
    async with servers:
        tools = await servers.tools()
        late = await called(tools, "mute")
        assert late.is_error
        assert late.content == (Text(text="The MCP server 'bare' did not answer within 2 s."),)

        async def answers() -> bool:
            return not (await called(tools, "pid")).is_error

        await until(answers, "the server to answer another call in time")
    assert notices == []


@pytest.mark.parametrize("given", [{"text": "\ud800"}, {"text": float("nan")}], ids=("surrogate", "nan"))
async def test_input_that_is_no_json_fails_the_call_alone(given: Json, web: str, open_servers: Open) -> None:
    async with open_servers(at("http", web)) as servers:
        tools = await servers.tools()
        assert (await called(tools, "echo", **given)).is_error
        assert await called(tools, "echo", text="fine") == ToolOutput(content=(Text(text="fine"),))


# The end


async def in_its_own_task(work: Callable[[], Awaitable[object]]) -> None:
    async def run() -> None:
        await work()

    await arrives(asyncio.create_task(run()), "what another task does")


async def test_all_of_the_process_group_is_ended(
    open_servers: Open, notices: list[Notice], tmp_path: Path
) -> None:
    async with open_servers(sdk_server()) as servers:
        spawned = (await called(await servers.tools(), "spawn", path=str(tmp_path / "heard"))).output
        assert has_processes(spawned["group"])
        assert os.getpgid(spawned["child"]) == spawned["group"]
    assert not has_processes(spawned["group"])
    assert notices == []


async def test_the_process_group_of_a_server_that_crashed_is_ended(
    open_servers: Open, notices: list[Notice], pipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "LEAVE_SECONDS", NEVER)
    with hearing(pipe) as heard:
        async with open_servers(sdk_server()) as servers:
            tools = await servers.tools()
            spawned = (await called(tools, "spawn", path=pipe)).output
            await called(tools, "crash")
            # The child hears the first signal and stays; the block ends before the second one, unless the child is slow.
            await until(
                lambda: heard() or not has_processes(spawned["group"]), "the child to hear the signal"
            )
    assert not has_processes(spawned["group"])
    assert [notice.text.partition(";")[0] for notice in notices] == [
        "The MCP server 'sdk' has stopped: it exited with code 3"
    ]


async def test_servers_can_be_opened_and_closed_by_different_tasks(
    web: str, open_servers: Open, notices: list[Notice]
) -> None:
    others = HttpServer(name="http", url=f"{web}/mcp"), SseServer(name="sse", url=f"{web}/sse")
    servers = open_servers(bare_server(), *others)
    await in_its_own_task(servers.__aenter__)
    tools = await servers.tools()
    group = await number(tools, "pid")
    await in_its_own_task(lambda: servers.__aexit__(None, None, None))
    assert not has_processes(group)
    assert (await called(tools, "pid")).is_error
    assert notices == []


async def test_a_block_that_is_cancelled_ends_its_servers(open_servers: Open, notices: list[Notice]) -> None:
    groups: list[int] = []
    opened = asyncio.Event()

    async def holding() -> None:
        async with open_servers(bare_server()) as servers:
            groups.append(await number(await servers.tools(), "pid"))
            opened.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(holding())
    await arrives(opened.wait(), "the server to start")
    running.cancel()
    await asyncio.wait((running,), timeout=0)
    running.cancel()  # once more, while it closes
    with pytest.raises(asyncio.CancelledError):
        await arrives(running, "the end of the session")
    assert [has_processes(group) for group in groups] == [False]
    assert notices == []


async def test_a_block_in_a_cancelled_scope_ends_its_servers(open_servers: Open) -> None:
    group = 0
    with anyio.CancelScope() as scope:
        async with open_servers(bare_server()) as servers:
            group = await number(await servers.tools(), "pid")
            scope.cancel()
            await anyio.sleep_forever()
    assert group
    assert not has_processes(group)


async def test_a_server_that_is_slow_to_start_is_waited_for(open_servers: Open, pipe: str) -> None:
    with hearing(pipe) as heard:
        async with open_servers(bare_server("slow", "wait", pipe)) as servers:
            listing = asyncio.create_task(servers.tools())
            process = int(await until(heard, "the server to start") or 0)
            assert not listing.done()
            end = await until(lambda: end_of(Path(pipe + ".go")), "the server to wait")
            assert end is not None
            with end:
                end.write(b"x")
            assert await number(await arrives(listing, "its tools"), "pid") == process


async def test_closing_while_a_server_starts_ends_it(
    open_servers: Open, pipe: str, notices: list[Notice]
) -> None:
    with hearing(pipe) as heard:
        async with open_servers(bare_server("slow", "wait", pipe)) as servers:
            listing = asyncio.create_task(servers.tools())
            group = int(await until(heard, "the server to start") or 0)
            assert has_processes(group)
    assert not has_processes(group)
    assert await arrives(listing, "the end of the list") == ()
    assert notices == []


async def test_closing_at_once_starts_nothing_that_stays(open_servers: Open, notices: list[Notice]) -> None:
    async with open_servers(bare_server()) as servers:
        pass
    assert await servers.tools() == ()
    assert notices == []


async def test_a_stopped_server_is_ended_too(open_servers: Open) -> None:
    async with open_servers(bare_server()) as servers:
        group = await number(await servers.tools(), "pid")
        os.kill(group, signal.SIGSTOP)
    assert not has_processes(group)


# Who may have what


async def test_what_is_configured_badly_is_reported_and_the_rest_is_used(
    open_servers: Open, notices: list[Notice]
) -> None:
    bad: list[McpServer] = [
        StdioServer(name=" ", command="true"),
        bare_server("twice"),
        StdioServer(name="nothing", command=""),
        StdioServer(name="nul", command="a\0b"),
        StdioServer(name="argument", command="true", args=("a\0b",)),
        StdioServer(name="variable", command="true", env={"A=B": "c"}),
        HttpServer(name="file", url="file:///etc/passwd"),
        HttpServer(name="credentials", url="http://me:secret@localhost/"),
        HttpServer(name="port", url="http://localhost:no/"),
        SseServer(name="host", url="http:///sse"),
        SseServer(name="space", url="http://local host/"),
        HttpServer(name="header", url="http://localhost/", headers={"x": "a\r\nsecret: b"}),
    ]
    async with open_servers(bare_server("twice"), *bad) as servers:
        assert {tool.name.split("__")[1] for tool in await servers.tools()} == {"twice"}
    assert [notice.text for notice in notices] == [
        "The MCP server ' ' is not used: it has no name.",
        "The MCP server 'twice' is not used: another server has this name.",
        "The MCP server 'nothing' is not used: it has no command.",
        "The MCP server 'nul' is not used: its command contains characters that cannot be passed to a program.",
        "The MCP server 'argument' is not used: its command contains characters that cannot be passed to a program.",
        "The MCP server 'variable' is not used: its environment has a variable with an invalid name.",
        "The MCP server 'file' is not used: its URL must begin with http:// or https://.",
        "The MCP server 'credentials' is not used: its URL has credentials in it; give them as headers.",
        "The MCP server 'port' is not used: its URL cannot be read.",
        "The MCP server 'host' is not used: its URL names no host.",
        "The MCP server 'space' is not used: its URL has spaces or control characters.",
        "The MCP server 'header' is not used: its header 'x' cannot be sent.",
    ]


async def test_no_program_is_started_for_a_caller_from_outside(
    open_servers: Open, notices: list[Notice], tmp_path: Path
) -> None:
    async with open_servers(shell_server("mine", "touch started"), local=False) as servers:
        assert await servers.tools() == ()
    assert [notice.text for notice in notices] == [
        "The MCP server 'mine' is not used: programs are started only for callers on this machine."
    ]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_caller_from_outside_reaches_no_private_address(
    transport: str, web: str, open_servers: Open, notices: list[Notice]
) -> None:
    async with open_servers(at(transport, web), local=False) as servers:
        assert await servers.tools() == ()
    assert [notice.text for notice in notices] == [
        "The MCP server 'sdk' did not start: its address is not on the public internet."
    ]


def test_importing_it_does_not_import_the_sdk() -> None:
    program = "import sys, hitherto.engines.mcp; print(sorted({'mcp', 'anyio', 'httpx2', 'pydantic'} & set(sys.modules)))"
    tool_output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT
    )
    assert tool_output.stdout.strip() == "[]"
