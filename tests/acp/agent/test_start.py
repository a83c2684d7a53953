"""How the agent starts and ends, and what it keeps off its standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hitherto.acp.agent.wires import Wires
from hitherto.rpc.transport import FrameTooLong, Lines
from tests.acp.wire import Refusal, environment, running, separate, url_of
from tests.support.waits import LIMIT, ended, line_of

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
HEAVY = (
    "asyncio", "apsw", "click", "logging", "pathlib", "platformdirs", "importlib.metadata", "pydantic_ai",
    "hitherto.model", "hitherto.service", "hitherto.composition", "hitherto.engine",
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "setting", "image", "audio"),
    [
        ((), None, True, False),
        (("--model", "google:gemini-2.5-pro"), "openai:gpt-3.5-turbo", True, True),
        ((), "openai:gpt-3.5-turbo", False, False),
    ],
)
def test_initialize_tells_what_the_model_reads_before_anything_heavy_is_imported(
    tmp_path: Path, arguments: tuple[str, ...], setting: str | None, image: bool, audio: bool
) -> None:
    code = f"""
import sys
for name in {HEAVY!r}:
    sys.modules[name] = None
from hitherto.__main__ import main
main(["acp", *{arguments!r}])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=INITIALIZE,
        capture_output=True,
        env=environment(tmp_path, {} if setting is None else {"HITHERTO_MODEL": setting}),
        check=False,
        timeout=LIMIT,
    )
    result = json.loads(done.stdout)["result"]
    assert result["protocolVersion"] == 1
    told = result["agentCapabilities"]["promptCapabilities"]
    assert told == {"image": image, "audio": audio, "embeddedContext": True}
    assert b"import of asyncio halted" in done.stderr


def test_requests_in_a_file_are_answered_into_a_file(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(INITIALIZE + b'{"jsonrpc":"2.0","id":1,"method":"session/list"}\n')
    with asked.open("rb") as source, answered.open("wb") as target:
        done = subprocess.run(
            [sys.executable, "-m", "hitherto", "acp", f"--store={url_of(tmp_path)}"],
            stdin=source,
            stdout=target,
            env=environment(tmp_path),
            check=False,
            timeout=LIMIT,
        )
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in answered.read_bytes().splitlines()] == [0, 1]


async def test_a_store_that_cannot_be_opened_is_told_at_each_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    store = f"sqlite:///{tmp_path / 'file' / 's.db'}"
    async with running(tmp_path, "-m", "hitherto", "acp", "--store", store, noisy=True) as agent:
        await agent.initialize()
        for _ in range(2):
            with pytest.raises(Refusal) as refused:
                await agent.call("session/list")
            assert refused.value.error["data"]["code"] == "store_unavailable"


@pytest.mark.parametrize(
    ("store", "env"),
    [("nonsense://x", {}), ("memory:", {"HITHERTO_COMPACT_AT": "abc"})],
)
async def test_a_wrong_setting_is_told_at_each_request_and_is_no_fault_of_the_clients(
    tmp_path: Path, store: str, env: dict[str, str]
) -> None:
    arguments = ("-m", "hitherto", "acp", "--store", store)
    async with running(tmp_path, *arguments, env=env, noisy=True) as agent:
        await agent.initialize()
        for _ in range(2):
            with pytest.raises(Refusal) as refused:
                await agent.call("session/list")
            assert refused.value.error["data"]["code"] == "store_unavailable"
            assert refused.value.code == -32041


@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        ("<&-", "Bad file descriptor"),
        (">&-", "Bad file descriptor"),
        (">/dev/full", "No space left on device"),
    ],
)
def test_a_client_that_cannot_be_spoken_to_gives_one_line_and_no_trace(
    tmp_path: Path, redirected: str, said: str
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m hitherto acp {redirected}', sys.executable],
        input=INITIALIZE,
        capture_output=True,
        env=environment(tmp_path),
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [f"hitherto: cannot talk to the client: {said}"]


def test_a_client_that_leaves_before_it_is_greeted_is_nothing_to_speak_of(tmp_path: Path) -> None:
    pipe, command = subprocess.PIPE, [sys.executable, "-m", "hitherto", "acp"]
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(tmp_path)
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(INITIALIZE)
        process.stdin.close()
        assert ended(process, "the agent to end") == 0
        assert process.stderr.read() == b""


def test_a_first_line_that_is_too_long_is_left_to_be_answered() -> None:
    source, target = os.pipe()
    wires = Wires.__new__(Wires)  # the descriptors of this process stay as they are
    wires.source, wires.lines = source, Lines(longest=10)
    os.write(target, b'{"id":1,"method":"x"}\n')
    assert wires.first() is None
    with pytest.raises(FrameTooLong):
        wires.lines.take()
    os.close(source)
    os.close(target)


async def test_what_a_library_or_a_child_prints_does_not_reach_the_client(tmp_path: Path) -> None:
    async with separate(tmp_path, noisy=True) as agent:
        session = await agent.new(tmp_path)
        assert (await agent.prompt(session, [{"print": "to stdout"}, "x"]))["stopReason"] == "end_turn"


def test_a_client_that_stops_listening_ends_the_agent(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "hitherto", "acp", "--store", url_of(tmp_path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment(tmp_path)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        assert line_of(process, "the answer to the greeting")
        process.stdout.close()
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"session/list"}\n')
        process.stdin.flush()
        assert ended(process, "the agent to end") == 0


def test_help_and_mistakes_are_those_of_the_command_line(tmp_path: Path) -> None:
    for arguments, code, said in (
        (["--help"], 0, "ACP"),
        (["--stroe", "x"], 2, "No such option"),
        (["--store"], 2, "requires an argument"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "hitherto", "acp", *arguments],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == code
        assert said in done.stdout + done.stderr
