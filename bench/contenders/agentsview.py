"""agentsview beside Hitherto: each by its own command, in a home of its own that holds the same transcripts."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
START_SECONDS = 60


class Spent(NamedTuple):
    """What a command took: by the clock, and of the processors, with the processes that it began."""

    seconds: float
    cpu: float

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.seconds + other.seconds, self.cpu + other.cpu)


class Question(NamedTuple):
    """A request to a server."""

    method: str
    path: str
    body: str = ""


class Server:
    """A server in a process of its own, over one connection."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, headers: Mapping[str, str]) -> None:
        self._process, self._headers = process, headers
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)

    def ask(self, question: Question) -> Any:
        """What it answers, as plain JSON values."""
        self._connection.request(question.method, question.path, question.body or None, dict(self._headers))
        answer = self._connection.getresponse()
        read = answer.read()
        assert answer.status == http.HTTPStatus.OK, read[:200]
        return json.loads(read)

    def cost(self, question: Question, calls: int) -> Spent:
        """What it took to answer so many times: for each, by the clock, and of its processors."""
        began, used = time.perf_counter(), self._cpu()
        for _ in range(calls):
            self.ask(question)
        return Spent((time.perf_counter() - began) / calls, (self._cpu() - used) / calls)

    def _cpu(self) -> float:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


class Program(NamedTuple):
    """A program with all that it keeps in the folder `data`, reading what lies in the folder `home`."""

    home: Path
    data: Path

    def size(self) -> int:
        """How many bytes it keeps."""
        return sum(path.stat().st_size for path in self.data.rglob("*") if path.is_file())


class Agentsview(Program):
    """Without its daemon: what it is asked is done when the command ends."""

    def sync(self) -> Spent:
        """The first sync, into an empty archive; its index is up to date then."""
        return spent((self._program(), "sync"), self.home, self._own())

    @contextmanager
    def served(self) -> Iterator[Server]:
        """Its server, which reads no transcripts meanwhile."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        quiet = ("--no-sync", "--no-browser", "--no-update-check", "--port", str(port))
        with running((self._program(), "serve", *quiet), self.home, self._own()) as (process, told):
            for line in told:
                if b"listening" in line:
                    break
            yield Server(process, port, {})

    def questions(self, word: str) -> Mapping[str, Question]:
        """A page of the list, and a search."""
        return {
            "newest 50 sessions": Question("GET", "/api/v1/sessions?limit=50"),
            "search for a word": Question("GET", f"/api/v1/search?q={word}&limit=20"),
        }

    def _program(self) -> str:
        return str(Path(sys.executable).with_name("agentsview"))

    def _own(self) -> dict[str, str]:
        return {"AGENTSVIEW_DATA_DIR": str(self.data), "AGENTSVIEW_NO_DAEMON": "1"}


class Hitherto(Program):
    """The same of ours: a search brings the index up to date."""

    def sync(self) -> Spent:
        """The first sync, into an empty store, and a search for what nobody said."""
        program = self._program()
        begun = spent((*program, "sync"), self.home, self._own())
        return begun.plus(spent((*program, "search", "zzzznothing"), self.home, self._own(), also=1))

    @contextmanager
    def served(self) -> Iterator[Server]:
        """Its server."""
        serve = (*self._program(), "serve", "--port", "0", "--grace", "1", "--json", "--no-sync")
        with running(serve, self.home, self._own()) as (process, told):
            where = json.loads(told.readline())
            token = Path(where["token_file"]).read_text(encoding="ascii").strip()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            yield Server(process, int(where["address"].rpartition(":")[2]), headers)

    def questions(self, word: str) -> Mapping[str, Question]:
        """A page of the list, and a search."""
        return {
            "newest 50 sessions": _called("session.list", limit=50),
            "search for a word": _called("session.search", query=word, limit=20),
        }

    def _program(self) -> Sequence[str]:
        from bench.parts.turns import RUNTIME  # here: the parts import the contenders

        return os.environ.get(RUNTIME, sys.executable), "-m", "hitherto"

    def _own(self) -> dict[str, str]:
        return {"HITHERTO_DATA_DIR": str(self.data)}


def _called(method: str, **params: Any) -> Question:
    return Question(
        "POST", "/rpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    )


@contextmanager
def running(
    command: Sequence[str], home: Path, own: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A server, and what it tells."""
    environ = {**os.environ, "HOME": str(home), **own}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout
        finally:
            process.terminate()


def spent(command: Sequence[str], home: Path, own: Mapping[str, str], *, also: int = 0) -> Spent:
    """Run a command to its end. It must succeed, or end with the status `also`."""
    began = time.perf_counter()
    child = subprocess.Popen(
        command,
        env={**os.environ, "HOME": str(home), **own},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, also):
        raise RuntimeError(f"{command[0]} ended with {child.returncode}")
    return Spent(time.perf_counter() - began, used.ru_utime + used.ru_stime)
