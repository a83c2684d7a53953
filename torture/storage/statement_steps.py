"""A process that opens a store and stands still before the statement that it is told, to be killed there.

`python -m torture.storage.statement_steps` reads lines `NUMBER URL`. For each it becomes a second process, which opens the store with
the program and stops before its statement of that number (0: it does not stop). It says `stopped PID`; or, if the store
was opened, `opened STATEMENTS FIRST LAST`, where the first and the last step of the schema were noted as done before the
statements of these numbers; or `failed …`. It goes on with the next line once the second process is gone.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any

import apsw
from psycopg import AsyncTransaction

import hitherto
from hitherto import composition
from hitherto.stores.postgres import store as postgres_store
from hitherto.stores.postgres.connection import EagerConnection
from hitherto.stores.sqlite import store as sqlite_store

LOADED = (composition, sqlite_store, postgres_store)
"""What opening a store imports: here once, not in each of the second processes."""

NOTE = "INSERT INTO schema_migration"
_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|;", re.DOTALL)
_execute = EagerConnection.execute
_enter, _leave = AsyncTransaction.__aenter__, AsyncTransaction.__aexit__


class Steps:
    """Counts statements, and stops this process before one of them."""

    def __init__(self, stop_at: int) -> None:
        self.count, self._stop_at = 0, stop_at
        self.first = self.noted = 0

    def step(self, statement: str = "") -> None:
        self.count += 1
        if statement.startswith(NOTE):
            self.noted = self.count + 1
            self.first = self.first or self.noted
        if self.count == self._stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)

    def watch(self) -> None:
        """See every statement of both kinds of store from here on."""

        def trace(_: object, statement: str, __: object) -> bool:
            self.step(statement)
            return True

        def connected(db: apsw.Connection) -> None:
            db.exec_trace = trace

        async def execute(connection: Any, query: Any, params: Any = None, **how: Any) -> Any:
            text = query.decode() if isinstance(query, bytes) else query
            for piece in statements(text) if params is None else [text]:
                self.step(piece)
                cursor = await _execute(connection, piece, params, **how)
            return cursor

        async def enter(transaction: Any) -> Any:
            self.step()
            return await _enter(transaction)

        async def leave(transaction: Any, *error: Any) -> Any:
            self.step()
            return await _leave(transaction, *error)

        apsw.connection_hooks.append(connected)
        for place, name, seen in (
            (EagerConnection, "execute", execute),
            (AsyncTransaction, "__aenter__", enter),
            (AsyncTransaction, "__aexit__", leave),
        ):
            setattr(place, name, seen)


def statements(text: str) -> Iterator[str]:
    """The statements of an SQL text, one by one: PostgreSQL would take them all at once."""
    start = 0
    for found in _TOKEN.finditer(text):
        if found[0] == ";":
            yield text[start : found.end()]
            start = found.end()
    if text[start:].strip():
        yield text[start:]


async def _open(url: str) -> None:
    async with hitherto.open(url):
        pass


def _become(stop_at: int, url: str, said: int) -> None:
    """The second process: opens the store and says how many statements that took."""
    steps = Steps(stop_at)
    steps.watch()
    outcome = "failed"
    try:
        asyncio.run(_open(url))
        outcome = "opened"
    finally:
        os.write(said, f"{outcome} {steps.count} {steps.first} {steps.noted}".encode())
        os._exit(0)


def main() -> None:
    for line in sys.stdin:
        number, _, url = line.rstrip("\n").partition(" ")
        says, said = os.pipe()
        child = os.fork()
        if not child:
            _become(int(number), url, said)
        os.close(said)
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            _say(f"stopped {child}")
            os.waitpid(child, 0)
        else:
            _say(os.read(says, 100).decode())
        os.close(says)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
