"""Holds a store to what it said while a fault struck: done or refused, whole, and ready for the next try."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from hitherto.service import Sessions
from tests.support.outcomes import outcome, plain
from torture.faults.operations import FIRST_ID, Ids, Operation, opened, state_of
from torture.trial.program import at_work

TYPED = frozenset({"store_unavailable", "store_full", "store_damaged", "store_error"})
"""What may be said of a disk, a memory or a database that fails: nothing of the caller's request is wrong."""
ID = re.compile("00000000-0000-7000-8000-[0-9a-f]{12}")
MOST = 5_000
"""So many calls no operation makes: what comes here does not end."""

Struck = Callable[[Any], bool]
Once = Callable[[int], Awaitable[bool]]


class Right(NamedTuple):
    """What an operation comes to if nothing fails."""

    before: list[Any]
    answer: Any
    after: list[Any]


class Judge:
    """What was found. `certain`: what was refused was not done; else a second try with the same key makes it certain."""

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain
        self.sums = Counter[str]()
        self.wrong: list[str] = []

    async def in_turn(self, name: str, once: Once, struck: Callable[[], str] = str) -> None:
        """Let the first, the second, … call fail, until all have; `struck` names the one that did."""
        for at in range(1, MOST):
            before = len(self.wrong)
            has_struck = await once(at)
            self.wrong[before:] = [f"{name} at {at} {struck()}: {each}" for each in self.wrong[before:]]
            if not has_struck:
                return
            self.sums["faults"] += 1
            at_work()
        self.wrong.append(f"{name}: never passed")

    async def operated(
        self,
        url: str,
        operation: Operation,
        right: Right,
        failing: AbstractContextManager[None],
        struck: Struck,
    ) -> bool:
        """Try the operation while it fails, and once more; returns whether the fault has struck."""
        ids = Ids(FIRST_ID)
        async with opened(url, ids) as sessions:
            with failing:
                answer = await tried(operation.do(sessions))
            has_struck = struck(answer)
            await self._held(sessions, answer, right, has_struck=has_struck)
            ids.again()
            if not _are_alike(again := await tried(operation.do(sessions)), right.answer):
                self.wrong.append(f"the next try is answered {_short(again)}")
            if not _are_alike(found := await tried(state_of(sessions)), right.after):
                self.wrong.append(f"after the next try: {_unlike(found, right)}")
        return has_struck

    async def _held(self, sessions: Sessions, answer: Any, right: Right, *, has_struck: bool) -> None:
        is_right = _are_alike(answer, right.answer)
        if not is_right:
            self.expect_typed(answer)
        self.count(has_struck, refused=not is_right)
        allowed = [right.after] if is_right else [right.before]
        if not is_right and not self._certain:
            allowed.append(right.after)
        found = await tried(state_of(sessions))
        if not any(_are_alike(found, each) for each in allowed):
            self.wrong.append(f"{'done' if is_right else 'refused'}, but {_unlike(found, right)}")

    def count(self, has_struck: bool, *, refused: bool) -> None:
        """Count a fault by what became of it."""
        self.sums["refused" if refused else "passed"] += has_struck

    def expect_typed(self, answer: Any) -> None:
        """An answer that is none, or not the right one, must be an error of the store."""
        if not is_typed(answer):
            self.wrong.append(f"answered {_short(answer)}")

    async def examine(self, url: str, right: list[Any] | None) -> None:
        """The store as the next process finds it; `right` is what must be in it, None if that is not known."""

        async def look() -> None:
            async with opened(url, Ids(FIRST_ID)) as sessions:
                self.wrong += (await sessions.admin.check(repair=False)).problems
                if right is not None and not _are_alike(await state_of(sessions), right):
                    self.wrong.append("opened again, the store is not as it was")

        await self.expect_done(look(), "the store cannot be used any more")

    async def expect_done(self, work: Awaitable[Any], what: str) -> None:
        """Work that answers nothing must not fail."""
        if (failed := await tried(work)) is not None:
            self.wrong.append(f"{what}: {_short(failed)}")


async def right_of(url: str, operation: Operation) -> Right:
    """What an operation comes to on this store, which it changes."""
    async with opened(url, Ids(FIRST_ID)) as sessions:
        before = await state_of(sessions)
        answer = plain(await operation.do(sessions))
        return Right(before, answer, await state_of(sessions))


async def tried(work: Awaitable[Any]) -> Any:
    """The answer, or the error as plain values; one that is not of the program is a finding."""
    try:
        return await outcome(work)
    except Exception as error:  # noqa: BLE001  whatever is no error of the program's own is a finding
        return ("untyped", type(error).__name__, str(error))


def is_typed(answer: Any) -> bool:
    """Whether an answer is an error of the store."""
    return isinstance(answer, tuple) and len(answer) == 3 and any(answer[1] == code for code in TYPED)


def is_failure(answer: Any) -> bool:
    """Whether it is any error."""
    return is_typed(answer) or (isinstance(answer, tuple) and answer[:1] == ("untyped",))


def _are_alike(one: Any, other: Any) -> bool:
    """Whether they are the same but for ids that were made: who tries again by itself takes the next."""
    return _without_ids(one) == _without_ids(other)


def _without_ids(value: Any) -> str:
    text = repr(value)
    made = sorted({each for each in ID.findall(text) if int(each[-12:], 16) >= FIRST_ID})
    places = {each: f"made {place}" for place, each in enumerate(made)}
    return ID.sub(lambda found: places.get(found[0], found[0]), text)


def _unlike(found: Any, right: Right) -> str:
    if _are_alike(found, right.after):
        return "it was done"
    if _are_alike(found, right.before):
        return "nothing was done"
    if isinstance(found, tuple):
        return f"the store says {_short(found)}"
    return "the store is neither as before nor as after"


def _short(answer: Any) -> str:
    return repr(answer)[:300]
