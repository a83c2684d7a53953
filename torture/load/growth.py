"""The same uses of stores of rising size, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psycopg

from tests.support.homes import CARELESS
from tests.support.postgres_server import PostgresServer
from torture.load.multiply import TIMES, multiply
from torture.load.store_growth import SessionUsage, checked, fill, grown, measured
from torture.trial.program import Environment, apart, store_in

Grown = dict[int, dict[str, SessionUsage]]
"""By number of sessions, what each use costs."""
Say = Callable[[str], None]
SETTINGS = ("autovacuum = off", "max_wal_size = '8GB'")
"""What is cleaned up by itself would be counted too; it is cleaned up before."""


def on_sqlite(
    folder: Path, environment: Environment, sizes: Sequence[int], seed: int, *, few: bool = False
) -> Grown:
    """One store that grows; `few`: as in `measured`."""
    found = apart(grown, environment, url=store_in(folder), sizes=list(sizes), seed=seed, few=few)
    return {size: _spent(each) for size, each in zip(sizes, found, strict=True)}


def on_postgres(environment: Environment, sizes: Sequence[int], seed: int, say: Say) -> Grown:
    """A store for each size, each ten times the one before; all are made before one is used."""
    with PostgresServer() as server:
        _configure(server)
        urls = dict[int, str]()
        for number, size in enumerate(sizes):
            urls[size] = _larger(server, environment, number, size)
            say(f"PostgreSQL, {size:,} sessions: filled")
        problems = apart(checked, environment, url=urls[sizes[min(1, len(sizes) - 1)]])
        assert not problems, problems
        return {
            size: _spent(apart(measured, environment, url=url, size=size, seed=seed, server=server.pid))
            for size, url in urls.items()
        }


def _spent(found: Mapping[str, Sequence[float]]) -> dict[str, SessionUsage]:
    return {name: SessionUsage(*each) for name, each in found.items()}


def _larger(server: PostgresServer, environment: Environment, number: int, size: int) -> str:
    if number == 0:
        url = server.create_database("grown0") + CARELESS
        apart(fill, environment, url=url, first=0, until=size)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    else:
        url = server.create_database(f"grown{number}", template=f"grown{number - 1}") + CARELESS
        multiply(url, size // TIMES)
    return url


def _configure(server: PostgresServer) -> None:
    with psycopg.connect(server.uri(), autocommit=True) as connection:
        for setting in SETTINGS:
            connection.execute(f"ALTER SYSTEM SET {setting}".encode())
        connection.execute("SELECT pg_reload_conf()")
