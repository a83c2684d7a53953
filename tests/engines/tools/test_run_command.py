"""Running commands: what is seen of them, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from hitherto.engine import Finished
from hitherto.engines.tools import processes
from hitherto.engines.tools import processes as groups
from hitherto.engines.tools.limits import COMMAND_BYTES, COMMAND_CHARS, COMMAND_SECONDS_MOST
from hitherto.engines.tools.local_host import LocalHost
from hitherto.engines.tools.processes import is_running
from hitherto.engines.tools.roots import OutsideRoots, Roots
from hitherto.engines.tools.run_command import without_secrets
from tests.engines.tools.bench import Bench, words
from tests.support.waits import LIMIT, NEVER, arrives, block_until, line_of, within

FAMILY = "sleep 1000 & (sleep 1000 & sleep 1000) & (sleep 1000; true) | (sleep 1000; true) & "
"""Children and grandchildren, in the background."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told to end, or made to, has the time that it needs; what does not want to end has less, by its test."""
    for place, name in ((groups, "GRACE"), (groups, "LAST"), (processes, "LAST")):
        monkeypatch.setattr(place, name, NEVER)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class Running:
    """A command that says, after its process group's number, when it is ready."""

    def __init__(self, folder: Path, command: str, *, seconds: float = NEVER) -> None:
        self._ready = asyncio.Event()
        self._shown = ""
        host = LocalHost(Roots((str(folder),)))
        run = host.run(
            f"echo $$; {command}", str(folder), seconds=seconds, output_bytes=COMMAND_BYTES, show=self._show
        )
        self.task: asyncio.Task[Finished] = asyncio.create_task(run)

    def _show(self, text: str) -> None:
        self._shown = text
        if "ready" in text:
            self._ready.set()

    async def ready(self) -> int:
        await arrives(self._ready.wait(), "the command to be ready")
        return int(self._shown.split()[0])


async def timed_out(folder: Path, command: str) -> tuple[int, Finished]:
    """The group of a command that has come to its time limit after being ready, and how it ended."""
    for seconds in (0.3, 3, 30, 120):
        finished = await Running(folder, command, seconds=seconds).task
        assert finished.timed_out
        if "ready" in finished.output:
            return int(finished.output.split()[0]), finished
    raise AssertionError("the command is never ready")


# What is seen


async def test_both_streams_are_seen_in_order_with_the_exit_code(bench: Bench) -> None:
    ran = await bench.call("run_command", command="echo one; echo two >&2; echo three; exit 3")
    assert words(ran) == "one\ntwo\nthree\n(exit code 3)"
    assert ran.is_error
    assert ran.output == {"exitCode": 3, "signal": None, "timedOut": False, "cut": False}


async def test_a_command_runs_in_the_working_directory(bench: Bench) -> None:
    assert await bench.told("run_command", command="pwd; echo text > file") == str(bench.folder)
    assert (bench.folder / "file").read_text() == "text\n"


async def test_a_command_that_prints_nothing_says_so(bench: Bench) -> None:
    assert await bench.told("run_command", command="true") == "(no output)"


async def test_a_command_that_ends_by_a_signal_says_which(bench: Bench) -> None:
    ran = await bench.call("run_command", command="kill -KILL $$")
    assert words(ran) == "(no output)\n(ended by SIGKILL)"
    assert ran.output["signal"] == "SIGKILL"
    assert ran.output["exitCode"] is None


async def test_there_is_no_input_to_wait_for(bench: Bench) -> None:
    """Not even where this process has one that does not end."""
    reads, writes = os.pipe()
    own = os.dup(0)
    os.dup2(reads, 0)
    try:
        told = await bench.told("run_command", command="cat; read line || echo none", seconds=int(LIMIT))
    finally:
        os.dup2(own, 0)
        for descriptor in (reads, writes, own):
            os.close(descriptor)
    assert told == "none"


async def test_output_is_shown_while_the_command_runs(tmp_path: Path) -> None:
    running = Running(tmp_path, "echo ready; while ! test -e go; do sleep 0.01; done; echo gone")
    await running.ready()
    (tmp_path / "go").touch()
    finished = await arrives(running.task, "the end of the command")
    assert finished.output.endswith("ready\ngone\n")
    assert finished.exit_code == 0


async def test_what_is_no_text_is_shown_as_far_as_it_is(bench: Bench) -> None:
    assert await bench.told("run_command", command=r"printf 'a\377b'") == "a\ufffdb"


async def test_one_byte_more_than_is_kept_cuts_the_beginning(bench: Bench) -> None:
    ran = await bench.call("run_command", command=f"head -c {COMMAND_BYTES} /dev/zero | tr '\\0' x")
    assert words(ran) == "x" * COMMAND_BYTES
    assert ran.output["cut"] is False
    ran = await bench.call("run_command", command=f"printf y; head -c {COMMAND_BYTES} /dev/zero | tr '\\0' x")
    assert words(ran) == "(the beginning of the output is left out)\n" + "x" * COMMAND_BYTES
    assert ran.output["cut"] is True


async def test_output_is_not_cut_in_the_middle_of_a_character(bench: Bench) -> None:
    ran = await bench.call("run_command", command=f"printf 'ü%.0s' $(seq {COMMAND_BYTES}); printf x")
    assert words(ran).endswith("ü" * (COMMAND_BYTES // 2 - 1) + "x")
    assert "\ufffd" not in words(ran)


async def test_huge_output_takes_little_memory(bench: Bench) -> None:
    tracemalloc.start()
    try:
        told = await bench.told(
            "run_command", command="head -c 300000000 /dev/zero | tr '\\0' x; echo; echo end"
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told.endswith("x\nend")
    assert peak < 20 * COMMAND_BYTES


@pytest.mark.parametrize(
    "given",
    [
        {"command": ""},
        {"command": "x" * (COMMAND_CHARS + 1)},
        {"command": "true", "seconds": 0},
        {"command": "true", "seconds": COMMAND_SECONDS_MOST + 1},
        {"command": "true\0"},
        {"command": "true\ud800"},
    ],
)
async def test_a_command_that_cannot_be_run_is_refused(given: dict[str, object], bench: Bench) -> None:
    ran = await bench["run_command"].call(given, lambda _: None)
    assert ran.is_error
    assert ran.output is None


async def test_the_longest_command_and_time_are_taken(bench: Bench) -> None:
    command = "echo done #".ljust(COMMAND_CHARS, "x")
    assert await bench.told("run_command", command=command, seconds=COMMAND_SECONDS_MOST) == "done"


async def test_a_working_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "gone")
    assert "No such file or directory" in await bench.refused("run_command", command="true")


async def test_the_host_runs_nothing_outside_of_the_roots(tmp_path: Path) -> None:
    host = LocalHost(Roots((str(tmp_path),)))
    with pytest.raises(OutsideRoots):
        await host.run("true", "/", seconds=1, output_bytes=1, show=lambda _: None)


async def test_nothing_stays_open_behind_a_command(bench: Bench) -> None:
    await bench.call("run_command", command="true")
    before = len(os.listdir("/dev/fd"))
    for command in ("true", "exit 1", "sleep 1000 & echo x", "true\0"):
        await bench.call("run_command", command=command)
    assert len(os.listdir("/dev/fd")) == before


# Nothing stays


async def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    group, finished = await timed_out(tmp_path, f"{FAMILY} echo ready; wait")
    assert finished.signal == "SIGTERM"
    assert not is_running(group)


async def test_cancelling_ends_the_whole_group(tmp_path: Path) -> None:
    running = Running(tmp_path, f"{FAMILY} echo ready; wait")
    group = await running.ready()
    assert is_running(group)
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await arrives(running.task, "the end of the command")
    assert not is_running(group)


async def test_cancelling_again_and_again_still_ends_the_whole_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "GRACE", 0.5)
    running = Running(tmp_path, f"trap '' TERM; {FAMILY} echo ready; wait")
    group = await running.ready()
    async with within("the end of the command"):
        while not running.task.done():
            running.task.cancel()
            await asyncio.wait((running.task,), timeout=0.05)
    assert running.task.cancelled()
    assert not is_running(group)


async def test_what_does_not_want_to_end_is_made_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GRACE", 0.2)
    group, finished = await timed_out(tmp_path, f"trap '' TERM; {FAMILY} echo ready; wait")
    assert finished.signal == "SIGKILL"
    assert not is_running(group)


async def test_what_hears_that_it_shall_end_may_say_a_last_word(tmp_path: Path) -> None:
    command = "trap 'echo bye; exit 7' TERM; sleep 1000 & echo ready; wait"
    _, finished = await timed_out(tmp_path, command)
    assert "bye\n" in finished.output
    assert finished.exit_code == 7


async def test_children_that_outlive_the_command_are_ended_with_it(tmp_path: Path) -> None:
    finished = await Running(tmp_path, f"{FAMILY} exit 0").task
    assert finished.exit_code == 0
    assert not finished.timed_out
    assert not is_running(int(finished.output))


async def test_children_that_print_nothing_are_ended_too(tmp_path: Path) -> None:
    finished = await Running(tmp_path, "nohup sleep 1000 >/dev/null 2>&1 & exit 0").task
    assert not is_running(int(finished.output.split()[0]))


async def test_a_pipe_has_a_moment_to_finish_behind_the_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "SETTLE", NEVER)
    told = await bench.told("run_command", command="echo one > >(cat; echo two)")
    assert told == "one\ntwo"


async def test_what_has_left_the_group_does_not_keep_anybody_waiting(tmp_path: Path) -> None:
    leave = (
        'import os, time; os.setsid(); print(os.getpid(), flush=True); open("left", "w"); time.sleep(1000)'
    )
    until = "while ! test -e left; do sleep 0.01; done"
    finished = await Running(tmp_path, f"{sys.executable} -c '{leave}' & {until}").task
    os.kill(int(finished.output.split()[1]), signal.SIGKILL)
    assert finished.exit_code == 0
    assert not finished.timed_out


async def test_a_call_that_was_cancelled_before_it_began_starts_nothing(tmp_path: Path) -> None:
    async def call() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await Bench(tmp_path).call("run_command", command="touch file")

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(call())
    assert os.listdir(tmp_path) == []


def test_the_end_of_the_program_ends_the_whole_group(tmp_path: Path) -> None:
    async def leave() -> int:
        return await Running(tmp_path, f"trap '' TERM; {FAMILY} echo ready; wait").ready()

    group = asyncio.run(leave())
    block_until(lambda: not is_running(group), "the end of the group")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_killed_takes_its_commands_with_it(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        sys.executable,
        "-m",
        "tests.engines.tools.command_worker",
        str(tmp_path),
        f"echo $$; {FAMILY} wait",
    )
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
        group = int(line_of(running, "the group of the command"))
        assert is_running(group)
        running.send_signal(number)
    block_until(lambda: not is_running(group), "the end of the group")


# Secrets


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "OPENAI_APIKEY",
        "openai_api_key",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "HF_TOKEN_READ",
        "CLIENT_SECRET",
        "PGPASSWORD",
        "MYSQL_PWD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "DOCKER_AUTH_CONFIG",
        "KEY",
        "MYAPIKEY",
        "OPENAIKEY",
        "SIGNING_PRIVATEKEY",
        "GH_PAT",
        "DB_PASS",
        "PASS",
        "BEARER",
        "SESSION_COOKIE",
        "SLACK_WEBHOOK_URL",
    ],
)
async def test_what_is_called_a_secret_is_not_told_to_commands(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "do-not-tell")
    monkeypatch.setenv("NOT_A_PROBLEM", "tell")
    told = await bench.told("run_command", command="env")
    assert "do-not-tell" not in told
    assert "NOT_A_PROBLEM=tell" in told


def test_values_with_a_secret_in_them_are_not_told_and_the_rest_is() -> None:
    plain = {
        "PATH": "/bin:/usr/bin",
        "PWD": "/",
        "OLDPWD": "/",
        "KEYBOARD": "us",
        "TOKENIZERS_PARALLELISM": "1",
        "SSH_AUTH_SOCK": "/run/agent",
        "PATHS": "/opt/x",
        "LANG": "de_DE.UTF-8",
        "LS_COLORS": "rs=0:di=01;34:ln=01;36:*.tar=01;31",
        "INVOCATION_ID": "4f1c2a9be07d4c1c8f5d6a7b3e2d1c0f",
        "LD_LIBRARY_PATH": "/store/Z9x8W7v6U5t4S3r2Q1p0O9n8M7l6K5j4-lib/lib:/lib",
        "BUILD": "3.2.1+sha.0f1e2d3c4b5a69788796a5b4c3d2e1f0a1b2c3d4",
        "DATABASE_URL": "postgresql:///db?user=ann",
        "PAGE": "https://example.org:80/a@b",
        "USER_PAGE": "https://ann@example.org/",
    }
    secret = {
        "DATABASE": "postgresql://ann:word@localhost/db",
        "HTTPS_PROXY": "http://:word@proxy",
        "STORE": "postgresql:///db?user=ann&password=word",
        "ACCOUNT": "AccountName=x;AccountKey=word",
        "NOTIFY": "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        "MODEL": "sk-ant-api03-" + "a1B2" * 8,
        "BUCKET": "https://x.example.org/b?sig=Zm9vYmFyMTIz",
        "SETTINGS": '{"password": "correct-horse-7"}',
    }
    assert without_secrets({**plain, **secret}) == plain
