"""The program itself, as its user starts it: `hitherto serve` and other commands, in a home of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.gateway.servers import Server, Token
from tests.mutants import ROOT
from tests.support.waits import LIMIT
from torture.trial.program import Environment


def home_of(folder: Path, environment: Environment) -> dict[str, str]:
    """The environment of somebody whose home is this folder."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HITHERTO_", "XDG_"))}
    return {**own, "HOME": str(folder), "HITHERTO_DATA_DIR": str(folder / "data"), **environment}


def command(
    folder: Path, environment: Environment, *words: str, given: bytes = b"", umask: int = -1
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "hitherto", *words],
        input=given,
        cwd=ROOT,
        env=home_of(folder, environment),
        capture_output=True,
        check=False,
        timeout=LIMIT,
        umask=umask,
    )


class Served(Server):
    """A server, and the file with what it writes to its standard error: a pipe that nobody reads would stop it."""

    log: Path

    @property
    def logged(self) -> bytes:
        """What it wrote there until now."""
        return self.log.read_bytes()


@contextmanager
def served(folder: Path, environment: Environment, *words: str, umask: int = -1) -> Iterator[Served]:
    """`hitherto serve` on a free port, with the token of its user as `ann`'s."""
    log = Path(tempfile.mkstemp(prefix="log", dir=folder.parent)[1])
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "hitherto", "serve", "--port", "0", "--json", "--no-sync", *words],
            cwd=ROOT,
            env=home_of(folder, environment),
            stdout=subprocess.PIPE,
            stderr=errors,
            umask=umask,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        told = json.loads(line)
        secret = Path(told["token_file"]).read_text().strip()
        server = Served(process, int(told["address"].rsplit(":", 1)[1]), {"ann": Token("", secret, "local")})
        server.log = log
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
