"""The command line as its users have it: in this process, as a program in a pipe, as a program on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from click.testing import CliRunner

import hitherto
from hitherto.cli import app
from hitherto.service import Sessions
from tests.support.waits import kill, or_killed, output

T = TypeVar("T")
PROGRAM = (sys.executable, "-m", "hitherto")
# Makes the terminal on stdin the one whose ^C the program hears, then becomes the program.
TAKE_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
COLOURS = re.compile("\x1b\\[[0-9;]*m")


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str = ""

    @property
    def json(self) -> Any:
        """The one document that it printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """What it printed, by line."""
        return self.out.splitlines()


class Shell:
    """A folder to work in, with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "sessions.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.store}"

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """An environment that depends on nothing of the machine."""
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return {**kept, "LANG": "C.UTF-8", **self.variables(), **(extra or {})}

    def variables(self) -> dict[str, str]:
        """What the commands are told by the environment."""
        home = str(self.folder / "home")  # what lies in the user's own would be taken in
        return {"HITHERTO_STORE": str(self.store), "TZ": "UTC", "HOME": home}

    def inside(self, work: Callable[[Sessions], Awaitable[T]], **options: Any) -> T:
        """Do something with the store itself."""

        async def run() -> T:
            async with hitherto.open(self.url, **options) as sessions:
                return await work(sessions)

        return asyncio.run(run())

    def invoke(self, *arguments: str, stdin: str | bytes = "") -> Done:
        """Run a command in this process: the quick way."""
        result = CliRunner().invoke(app, list(arguments), input=stdin, env=self.variables())
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    def ok(self, *arguments: str, stdin: str | bytes = "") -> Done:
        """The same for a command that must succeed."""
        done = self.invoke(*arguments, stdin=stdin)
        assert done.code == 0, done
        return done

    @contextlib.contextmanager
    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, umask: int = -1
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start the program with pipes around it; whatever happens, it does not outlive the test."""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            (*PROGRAM, *arguments),
            env=self.environment(env),
            cwd=self.folder,
            umask=umask,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        ) as process:
            try:
                yield process
            except BaseException:
                kill(process)
                raise

    def run(
        self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, umask: int = -1
    ) -> Done:
        """Run the program with pipes around it."""
        with self.start(*arguments, env=env, umask=umask) as process:
            out, err = output(process, f"{arguments} to end", stdin)
        return Done(process.returncode, out.decode(), err.decode())

    def terminal(
        self,
        *arguments: str,
        answers: Sequence[tuple[str, str]] = (),
        env: Mapping[str, str] | None = None,
        stdout: Path | None = None,
        columns: int = 120,
    ) -> Done:
        """Run the program on a terminal; each answer is typed when its question appears. `stdout` goes to a file."""
        with contextlib.ExitStack() as undo:
            master, slave = pty.openpty()
            undo.callback(os.close, master)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            target = slave if stdout is None else undo.enter_context(stdout.open("wb"))
            process = subprocess.Popen(
                (sys.executable, "-c", TAKE_TERMINAL, *PROGRAM, *arguments),
                env=self.environment({"TERM": "xterm-256color", "PAGER": "cat", **(env or {})}),
                cwd=self.folder,
                stdin=slave,
                stdout=target,
                stderr=slave,
                start_new_session=True,
            )
            os.close(slave)
            try:
                with or_killed(process, f"{arguments} to end"):
                    seen = _converse(master, list(answers))
                    process.wait()
            finally:
                kill(process)
                process.wait()
        return Done(process.returncode, seen.decode().replace("\r\n", "\n"))


def _converse(master: int, answers: list[tuple[str, str]]) -> bytes:
    """Everything that appears on the terminal until the program has gone."""
    seen, answered = b"", 0
    while chunk := _read(master):
        seen += chunk
        while answers and (found := seen.find(answers[0][0].encode(), answered)) >= 0:
            question, answer = answers.pop(0)
            answered = found + len(question.encode())
            os.write(master, answer.encode())
    return seen


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end of a terminal that is closed
        return b""


def plain(text: str) -> str:
    """What is left on the screen when the colours are taken away."""
    return COLOURS.sub("", text)
