"""How much of a session is read for an answer: as many bytes as may be shown, not as many messages as there may be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hitherto.model import Draft, Principal, Text
from hitherto.recall.tools import READ_BYTES, Recall
from hitherto.service import Sessions
from hitherto.stores import connector

ANN = Principal(owner="ann")
LONG = 200_000


class Weighed:
    """A store, or a transaction of it, that notes how many bytes of messages were read."""

    def __init__(self, inner: Any, sizes: list[int]) -> None:
        self._inner, self._sizes = inner, sizes

    async def read(self, work: Callable[[Any], Awaitable[Any]], *ahead: Any) -> Any:
        return await self._inner.read(lambda tx: work(Weighed(tx, self._sizes)), *ahead)

    async def payloads(self, *given: Any) -> Any:
        found = await self._inner.payloads(*given)
        self._sizes.append(sum(map(len, found)))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def test_long_messages_are_read_in_pages_of_bytes() -> None:
    async with connector("memory:")("memory:", None) as store:
        session = await Sessions(store).create(ANN)
        drafts = [Draft(role="user", parts=(Text(text=f"{number} {'x' * LONG}"),)) for number in range(30)]
        await Sessions(store).append(ANN, session.id, drafts)
        sizes: list[int] = []
        recall = Recall(Sessions(Weighed(store, sizes)), ANN, "http://here")
        answer = await recall.read(session.id, limit=50)
        seen = [message.text.split()[0] for message in answer.messages]
        while answer.before is not None:
            answer = await recall.read(session.id, before=answer.before, limit=50)
            seen = [*(message.text.split()[0] for message in answer.messages), *seen]
        assert seen == [str(number) for number in range(30)]
        assert max(sizes) <= READ_BYTES
