"""Stores of earlier schemas, as the trial of migrations makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import hitherto
from tests.support.homes import CARELESS
from tests.support.postgres_server import PostgresServer
from torture.storage.versions import Content, Postgres, fill

OVERVIEW = 4
"""The first schema that counts what sessions have in common."""
TODAY = "versions_today"


async def opened(url: str) -> Sequence[str]:
    """Bring the store to today's schema, and examine it."""
    async with hitherto.open(url + CARELESS) as sessions:
        return (await sessions.admin.check(repair=False)).problems


def test_a_database_of_an_earlier_schema_becomes_one_of_today_with_the_same_rows(
    postgres_server: PostgresServer,
) -> None:
    kind = Postgres(postgres_server)
    kind.make(TODAY, 0, TODAY)
    asyncio.run(fill(kind.url(TODAY) + CARELESS, 3, 2))
    for version in (OVERVIEW, kind.newest - 1):
        place = f"versions_{version}"
        kind.make(place, version, TODAY)
        columns = {table: names for table, names in kind.columns(place).items() if table not in kind.derived}
        before: Content = kind.content(place, columns)
        assert not asyncio.run(opened(kind.url(place)))
        assert kind.content(place, columns) == before
        kind.remove(place)
    kind.remove(TODAY)
