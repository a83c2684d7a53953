"""How much a page costs: as much as it shows, however much there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page.list_query import parse_query
from hitherto.gateway.page.render.window import WindowRequest
from hitherto.gateway.page.views.list import home
from hitherto.gateway.page.views.session import session_page
from hitherto.model import Draft, Principal, Text
from hitherto.ports import Store
from hitherto.service import Sessions
from hitherto.stores import connector

FEW, MANY = 100, 100_000


class Counted:
    """A transaction or a store that counts what is asked of it, and how many rows come back."""

    def __init__(self, inner: Any, counts: dict[str, int]) -> None:
        self._inner, self._counts = inner, counts

    async def read(self, work: Callable[[Any], Awaitable[Any]], *ahead: Any) -> Any:
        return await self._inner.read(lambda tx: work(Counted(tx, self._counts)), *ahead)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        async def counted(*given: Any, **named: Any) -> Any:
            result = await found(*given, **named)
            rows = len(result) if isinstance(result, list) else 1
            self._counts[name] = self._counts.get(name, 0) + rows
            return result

        return counted


async def here(work: Callable[..., bytes], *given: Any) -> bytes:
    """Do it at once, in this process."""
    return work(*given)


async def cost(
    store: Store, who: Principal, show: Callable[[Caller], Awaitable[bytes]]
) -> tuple[dict[str, int], int]:
    """What one page asks of the store, and how many bytes it is."""
    counts: dict[str, int] = {}
    token, secret = await Sessions(store).tokens.create(who.owner)
    counting = Sessions(Counted(store, counts))
    return counts, len(await show(Caller(counting, token, secret)))


@pytest.mark.parametrize("query", [b"", b"q=needle", b"tag=red", b"archived=1"])
async def test_a_list_costs_the_same_among_few_and_among_many(query: bytes) -> None:
    costs = []
    for number in (FEW, MANY // 20):
        async with connector("memory:")("memory:", None) as store:
            sessions, who = Sessions(store), Principal(owner="ann")
            for each in range(number):
                made = await sessions.create(
                    who, title=f"Session {each:06}", tags=("red",) if each >= number - 60 else ()
                )
                if each >= number - 30:
                    await sessions.append(who, made.id, Draft(role="user", parts=(Text(text="needle"),)))
            costs.append(await cost(store, who, lambda caller: home(caller, parse_query(query))))
    (few, few_bytes), (many, many_bytes) = costs
    assert few == many
    assert abs(few_bytes - many_bytes) < 0.02 * few_bytes + 200


async def test_a_transcript_costs_the_same_however_long_it_is() -> None:
    costs = []
    for number in (FEW, MANY):
        async with connector("memory:")("memory:", None) as store:
            sessions, who = Sessions(store), Principal(owner="ann")
            made = await sessions.create(who, session_id="talk")
            for start in range(0, number, FEW):
                drafts = [Draft(role="user", parts=(Text(text=f"{start + at:09}"),)) for at in range(FEW)]
                await sessions.append(who, made.id, drafts)
            assert await sessions.spending.numbers(who, [made.id], most=MANY)  # which are kept from then on
            costs.append(
                await cost(
                    store, who, lambda caller: session_page(caller, WindowRequest(session="talk"), here)
                )
            )
    (few, few_bytes), (many, many_bytes) = costs
    assert few == many
    assert abs(few_bytes - many_bytes) < 0.02 * few_bytes + 200
