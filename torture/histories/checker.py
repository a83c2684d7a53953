"""Decides whether a recorded history can be explained: some order of its calls, each at a moment between its begin and its
end, in which a store that does one thing at a time (the store in memory) gives the same answers.

The search is that of Wing and Gong: of the calls that may come next, try one on the model; if its answer is the recorded
one, go on from there, else take it back and try another. A state that was found to lead nowhere is not tried twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from hitherto.model import Filter, Principal
from hitherto.ports import Writer
from hitherto.service import Sessions
from hitherto.stores.memory.store import MemoryStore, Shared
from hitherto.stores.memory.tables import Journal
from hitherto.stores.memory.write_tx import MemoryWriter
from tests.support.conversations import exported, listed
from tests.support.homes import Clock
from torture.histories.calls import Event, Named, begin, make, spelled

T = TypeVar("T")
WHO = Principal(owner="model")
STEPS = 200_000
"""How many calls of the model a history may take."""


READS = ("get", "history", "context", "checkpoints")
REFUSED = "('"
"""How the answer of a call that was refused begins: with the name of its error."""


class Undecided(Exception):
    """The search has come to its limit."""


class UndoableStore(MemoryStore):
    """The store in memory, which can go back."""

    def __init__(self) -> None:
        super().__init__(Shared(""), Clock())
        self._journals: list[Journal] = []

    async def write(self, work: Callable[[Writer], Awaitable[T]], about: str | None = None) -> T:  # noqa: ARG002 - the port's own
        journal = Journal()
        self._journals.append(journal)
        try:
            return await work(MemoryWriter(self._shared.tables, self._now, journal))
        except BaseException:
            journal.undo()
            raise

    def mark(self) -> int:
        """Where it stands."""
        return len(self._journals)

    def back(self, mark: int) -> None:
        """Go back to where it stood."""
        while len(self._journals) > mark:
            self._journals.pop().undo()


class Model:
    """The sequential model, and what is recorded of a history."""

    def __init__(self, events: Sequence[Event], steps: int = STEPS) -> None:
        self._most = steps
        self._events = sorted(events, key=lambda event: event.ended)
        self._store = UndoableStore()
        self._ids = Named()
        self._sessions = Sessions(self._store, now=Clock(), new_id=self._ids)
        self._dead: set[tuple[int, str]] = set()
        self._deepest = 0
        """The calls of the longest order that was tried, as far as it went."""
        self.steps = 0

    def stuck(self) -> list[Event]:
        """The calls of which none could come next where the search came farthest."""
        return [self._events[index] for index in self._next(self._deepest)]

    async def explained(self) -> list[Event] | None:
        """An order that explains the history; None if there is none. Raises `Undecided`."""
        await begin(self._sessions, WHO)
        every = (1 << len(self._events)) - 1
        # Each level: the calls that are done there, those still to be tried there, and where the store stood.
        done, order = 0, list[int]()
        levels = [(self._next(0), self._store.mark())]
        while done != every:
            candidates, mark = levels[-1]
            if not candidates:
                levels.pop()
                if not levels:
                    return None
                self._dead.add((done, await self._state()))
                last = order.pop()
                done ^= 1 << last
                self._store.back(levels[-1][1])
                continue
            index = candidates.pop(0)
            if await self._fits(self._events[index]) and not await self._is_dead(done | 1 << index):
                if _is_without_effect(self._events[index]):
                    candidates.clear()  # wherever it could come later, it can come now
                order.append(index)
                done |= 1 << index
                self._deepest = max(self._deepest, done, key=int.bit_count)
                levels.append((self._next(done), self._store.mark()))
            else:
                self._store.back(mark)
        return [self._events[index] for index in order]

    def _next(self, done: int) -> list[int]:
        """The calls that may come next: those that began before any that is still to come had ended.

        Those without effect come first, then the one that ended first.
        """
        left = [index for index in range(len(self._events)) if not done >> index & 1]
        if not left:
            return []
        first_end = self._events[left[0]].ended
        found = [index for index in left if self._events[index].began <= first_end]
        return sorted(found, key=lambda index: not _is_without_effect(self._events[index]))

    async def _fits(self, event: Event) -> bool:
        self.steps += 1
        if self.steps > self._most:
            raise Undecided(f"{self._most:,} steps decide nothing")
        answer = await make(self._sessions, self._ids, WHO, event.call)
        return spelled(answer) == event.answer

    async def _is_dead(self, done: int) -> bool:
        return bool(self._dead) and (done, await self._state()) in self._dead

    async def _state(self) -> str:
        """All that later answers can depend on, whatever the store's own numbers are."""
        names = sorted(await listed(self._sessions, WHO, Filter(archived="include"), limit=500))
        return repr([await self._state_of(name) for name in names])

    async def _state_of(self, name: str) -> object:
        record = await self._store.read(lambda tx: tx.session(WHO.owner, name))
        return (await exported(self._sessions, WHO, name), record and record.lease)


def _is_without_effect(event: Event) -> bool:
    """Whether it was refused, or only reads."""
    return event.call.kind in READS or event.answer.startswith(REFUSED)


async def explain(events: Sequence[Event]) -> list[Event] | None:
    """An order in which the calls of a history could have been done one after the other; None if there is none."""
    return await Model(events).explained()
