"""What must hold when something is written, and what is remembered of it; and several calls in one transaction.

Both are stores that stand in for the real one while a call of the service runs, so that every call can be retried,
guarded and composed without knowing of it.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from hitherto.errors import HithertoError, IdempotencyConflict
from hitherto.model import Principal, Value, decode_json, encode
from hitherto.ports import Memo, Reader, Store, Writer
from hitherto.service.catalog.sessions import MEMOS_KEPT_MS, expect_revision
from hitherto.service.records import Core, required
from hitherto.service.validation import checked_name, checked_owner

T = TypeVar("T")
C = TypeVar("C", bound=Core)


class Guard(Value, frozen=True):
    """What a write depends on. With a `key`, what was `asked` of the `method` is done at most once.

    With `expected_revision` the session must still be as the caller has seen it.
    """

    method: str
    asked: Any
    key: str | None = None
    session_id: str = ""
    expected_revision: int | None = None


class Guarding(Core):
    """Writing under conditions."""

    async def guarded(
        self, who: Principal, guard: Guard, effect: Callable[[Any], Awaitable[T]], answer: Callable[[T], Any]
    ) -> Any:
        """What `answer` makes of the effect, or the first answer to the same request, as plain JSON values.

        `effect` is given this service and makes one call of it that writes; its first transaction also checks the
        guard and remembers the answer, so that nothing is written if `answer` raises there.
        """
        if guard.key is None and guard.expected_revision is None:
            return answer(await effect(self))
        now = self._now()
        store = _Guarded(self._store, who, guard, now, answer)
        try:
            # Before anything is done for it; and once more when it is written, since others may be quicker.
            await self._store.read(lambda tx: _check(tx, who, guard, now))
            value = await effect(_over(self, store))
        except _Known as before:
            return before.answer
        except (_Refused, HithertoError) as failed:
            # Whoever asked the same at the same time may have been quicker, and that is why.
            if (known := await self.answered_before(who, guard)) is not None:
                return known
            raise failed.error if isinstance(failed, _Refused) else failed from None
        return store.answer if store.is_written else answer(value)

    async def answered_before(self, who: Principal, guard: Guard) -> Any:
        """The first answer to the same request; None if there was none."""
        now = self._now()
        return await self._store.read(lambda tx: _known(tx, checked_owner(who), guard, now))


def within(service: C, tx: Writer) -> C:
    """The service, all of whose calls are part of this transaction."""
    return _over(service, _Within(tx, service._store.secret))


class _Known(Exception):
    """It was done before. Not an error of the service, so that no call of it takes it for one of its own."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class _Refused(Exception):
    """It must not be done; likewise."""

    def __init__(self, error: HithertoError) -> None:
        self.error = error


class _Guarded:
    """The store; the first thing that is written to it is guarded."""

    def __init__(
        self, store: Store, who: Principal, guard: Guard, now: int, answer: Callable[[Any], Any]
    ) -> None:
        self._store, self._who, self._guard, self._now, self._shaped = store, who, guard, now, answer
        self.answer: Any = None
        self.is_written = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Callable[[Writer], Awaitable[T]]) -> T:
        if self.is_written:
            return await self._store.write(work)

        async def guarded(tx: Writer) -> tuple[T, Any]:
            guard, owner = self._guard, checked_owner(self._who)
            await _check(tx, self._who, guard, self._now)
            value = await work(tx)
            answer = self._shaped(value)
            if guard.key is not None:
                memo = Memo(_digest(guard), encode(answer), self._now)
                await tx.put_memo(owner, guard.method, guard.key, memo)
            return value, answer

        value, self.answer = await self._store.write(guarded)
        self.is_written = True
        return value


class _Within:
    """A store that is one transaction."""

    def __init__(self, tx: Writer, secret: bytes) -> None:
        self._tx, self.secret = tx, secret

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        return await work(self._tx)

    async def write(self, work: Callable[[Writer], Awaitable[T]]) -> T:
        return await work(self._tx)


def _over(service: C, store: object) -> C:
    other = copy.copy(service)
    other._store = cast("Store", store)
    return other


async def _check(tx: Reader, who: Principal, guard: Guard, now: int) -> None:
    """Raise unless this is to be done now."""
    try:
        known = await _known(tx, checked_owner(who), guard, now)
        if known is None and guard.expected_revision is not None:
            expect_revision(await required(tx, who, guard.session_id), guard.expected_revision)
    except HithertoError as error:
        raise _Refused(error) from error
    if known is not None:
        raise _Known(known)


async def _known(tx: Reader, owner: str, guard: Guard, now: int) -> Any:
    """What was answered to this before; None if it was not asked, or so long ago that it is forgotten."""
    if checked_name(guard.key, "an idempotency key") is None or guard.key is None:
        return None
    memo = await tx.memo(owner, guard.method, guard.key)
    if memo is None or now - memo.at >= MEMOS_KEPT_MS:
        return None
    if memo.digest != _digest(guard):
        raise IdempotencyConflict(guard.key)
    return decode_json(memo.answer)


def _digest(guard: Guard) -> bytes:
    return hashlib.sha256(encode(guard.asked)).digest()
