"""Work that is run without a connection, on what is known already."""

from __future__ import annotations

from typing import Any

from psycopg.abc import Params

from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.transactions import Statements


class MoreIsNeeded(BaseException):
    """The work asks for what is not known: it must run in a transaction. No `except Exception` may stop this."""


class NoStatements(Statements):
    """In place of a connection: whatever is asked of it raises `MoreIsNeeded`."""

    def __init__(self) -> None: ...

    async def limit_search(self) -> None:
        raise MoreIsNeeded

    async def rows(self, statement: str, params: Params = (), **how: bool) -> list[Row]:
        raise MoreIsNeeded

    async def once(self, statement: str, params: Params) -> list[Row]:
        raise MoreIsNeeded

    async def queue(self, statement: str, params: Params = ()) -> None:
        raise MoreIsNeeded

    async def queue_many(self, statement: str, params: list[Any]) -> None:
        raise MoreIsNeeded
