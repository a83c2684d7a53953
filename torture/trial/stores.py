"""Where the stores of a trial are: files of SQLite, or databases of one PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import hitherto
from tests.support.postgres_server import PostgresServer
from torture.trial.program import Environment, store_in


class StoreProvider(Protocol):
    """Every folder has a store of its own."""

    def store(self, folder: Path) -> str:
        """The address of a folder's store."""

    async def left(self, folder: Path) -> tuple[str, ...]:
        """What the program's own examination finds wrong with a store as a kill has left it."""


class Files:
    """Each store is a file in its folder."""

    def store(self, folder: Path) -> str:
        return store_in(folder)

    async def left(self, folder: Path) -> tuple[str, ...]:
        # A copy: to open the store itself would mend what the next process must find as it was left.
        copy = _copied(folder)
        try:
            return await examined(store_in(copy))
        finally:
            shutil.rmtree(copy)


class Databases:
    """Each store is a database."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._made: dict[Path, str] = {}

    def store(self, folder: Path) -> str:
        if folder not in self._made:
            self._made[folder] = self._server.create_database(f"store{len(self._made)}")
        return self._made[folder]

    async def left(self, folder: Path) -> tuple[str, ...]:
        return await examined(self.store(folder))


FILES = Files()


@contextmanager
def databases() -> Iterator[Databases]:
    """The databases of a PostgreSQL that keeps what it has committed."""
    with PostgresServer(fast=False) as server:
        yield Databases(server)


def of(store_provider: StoreProvider, folder: Path, environment: Environment) -> Environment:
    """What a process is given to use a folder's store."""
    return {"HITHERTO_STORE": store_provider.store(folder), **environment}


def _copied(folder: Path) -> Path:
    copy = folder / "copy"
    copy.mkdir()
    for file in folder.glob("hitherto.db*"):
        shutil.copy(file, copy)
    return copy


async def examined(url: str) -> tuple[str, ...]:
    """What the program's own examination finds wrong with a store."""
    async with hitherto.open(url) as sessions:
        return (await sessions.admin.check(repair=False)).problems
