"""Idempotency keys and expected revisions: a write happens at most once, and only on the state the caller has seen."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

from hitherto.errors import HithertoError, IdempotencyConflict, InvalidInput, RevisionConflict
from hitherto.model import Principal, Value, encode
from hitherto.ports import Reader, Record, Store, Writer
from hitherto.service.core import Core, Room
from hitherto.service.notes import Note, Notes, answers_to
from hitherto.service.outlines import filled, outlined
from hitherto.service.records import require_session
from hitherto.service.validation import checked_owner, checked_required

T = TypeVar("T")
V = TypeVar("V")
S = TypeVar("S")


class Request(Generic[V]):
    """A request with an idempotency key: the same request with the same key gets the first answer."""

    def __init__(self, notes: Notes[V], owner: str, key: str, asked: object, now: int) -> None:
        self._notes, self._owner, self._now = notes, owner, now
        self._key = checked_required(key, "an idempotency key")
        self._digest = _digest(asked)

    @classmethod
    def of(cls, notes: Notes[V], owner: str, key: str | None, asked: object, now: int) -> Request[V] | None:
        """The request; None without a key, for then it is done whenever it is asked."""
        return None if key is None else cls(notes, owner, key, asked, now)

    async def answered(self, tx: Reader) -> Note[V] | None:
        """The first answer; None if there is none, or it is forgotten. `IdempotencyConflict` if the key was used for
        another request.

        Whatever is kept counts, however old it looks: the clock may be wrong, and doing it twice is worse.
        """
        note = await self._notes.get(tx, self._owner, self._key)
        if note is None:
            return None
        if note.digest != self._digest:
            raise IdempotencyConflict(self._key)
        return note

    async def remember(self, tx: Writer, answer: V) -> None:
        """Keep the answer."""
        await self._notes.put(tx, self._owner, self._key, Note(answer, self._now, self._digest))


async def at_most_once(tx: Writer, request: Request[V] | None, work: Callable[[Writer], Awaitable[V]]) -> V:
    """What the work gives, or gave when it was requested before. Without a request it is always done."""
    if request is None:
        return await work(tx)
    if (known := await request.answered(tx)) is not None:
        return known.value
    answer = await work(tx)
    await request.remember(tx, answer)
    return answer


def expect_revision(record: Record, expected: int | None) -> None:
    """Raise if the session is not at the revision that the caller has seen."""
    if expected is not None and record.session.revision != expected:
        raise RevisionConflict(expected, record.session.revision)


class Guard(Value, frozen=True):
    """What a write depends on. With a `key`, what was `asked` of the `method` is done at most once.

    With `expected_revision` the session must still be as the caller has seen it.
    """

    method: str
    asked: Any
    key: str | None = None
    session_id: str = ""
    expected_revision: int | None = None


class Idempotency(Room, Generic[S]):
    """Writing under conditions. `over` gives the service over another core."""

    def __init__(self, core: Core, over: Callable[[Core], S]) -> None:
        super().__init__(core)
        self._over = over

    async def guarded(
        self,
        who: Principal,
        guard: Guard,
        effect: Callable[[S], Awaitable[T]],
        answer: Callable[[T], Any],
        noted: Callable[[T], Any] | None = None,
    ) -> Any:
        """What `answer` makes of the effect, or the first answer to the same request, as plain JSON values: its ids and
        numbers as they were, what its sessions are called as it is now. Only those ids and numbers are kept of it, or of what `noted`
        makes.

        `effect` is given the service and makes one call of it that writes; its first transaction also checks the
        guard and remembers the answer, so that nothing is written if `answer` raises there.
        """
        if guard.key is None and guard.expected_revision is None:
            return answer(await effect(self._over(self._core)))
        condition = _Condition(who, guard, self._now())
        store = _GuardedStore(self._store, condition, answer, noted or answer)
        try:
            # Before anything is done for it; and once more when it is written, since others may be quicker.
            await self._store.read(condition.check)
            value = await effect(self._over(self._core.over(cast("Store", store))))
        except _Known as before:
            return before.answer
        except (_Refused, HithertoError) as failed:
            # Whoever asked the same at the same time may have been quicker, and that is why.
            if (known := await self._store.read(condition.answered)) is not None:
                return known
            raise failed.error if isinstance(failed, _Refused) else failed from None
        return store.answer if store.is_written else answer(value)

    async def answered_before(self, who: Principal, guard: Guard) -> Any:
        """The first answer to the same request; None if there was none."""
        return await self._store.read(_Condition(who, guard, self._now()).answered)


class _Known(Exception):
    """It was done before. Not a `HithertoError`, so that no call of the service catches it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class _Refused(Exception):
    """It must not be done; likewise."""

    def __init__(self, error: HithertoError) -> None:
        self.error = error


class _Condition:
    """A guard of one call, at one moment."""

    def __init__(self, who: Principal, guard: Guard, now: int) -> None:
        self._who, self._guard, self._owner = who, guard, checked_owner(who)
        self._request = Request.of(answers_to(guard.method), self._owner, guard.key, guard.asked, now)

    async def check(self, tx: Reader) -> None:
        """Raise unless this is to be done now."""
        expected = self._guard.expected_revision
        try:
            known = await self.answered(tx)
            if known is None and expected is not None:
                expect_revision(await require_session(tx, self._who, self._guard.session_id), expected)
        except HithertoError as error:
            raise _Refused(error) from error
        if known is not None:
            raise _Known(known)

    async def answered(self, tx: Reader) -> Any:
        """What was answered to this before; None if nothing was."""
        note = None if self._request is None else await self._request.answered(tx)
        return None if note is None else await filled(tx, self._owner, note.value)

    async def remember(self, tx: Writer, answer: Any) -> None:
        """Keep an outline of the answer, if somebody may ask again."""
        if self._request is not None:
            await self._request.remember(tx, outlined(answer))


class _GuardedStore:
    """The store; the first thing that is written to it is written under the condition."""

    def __init__(
        self,
        store: Store,
        condition: _Condition,
        answer: Callable[[Any], Any],
        noted: Callable[[Any], Any],
    ) -> None:
        self._store, self._condition, self._shaped, self._noted = store, condition, answer, noted
        self.answer: Any = None
        self.is_written = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Callable[[Writer], Awaitable[T]], about: str | None = None) -> T:
        if self.is_written:
            return await self._store.write(work, about)

        async def guarded(tx: Writer) -> tuple[T, Any]:
            await self._condition.check(tx)
            value = await work(tx)
            answer = self._shaped(value)
            await self._condition.remember(tx, self._noted(value))
            return value, answer

        value, self.answer = await self._store.write(guarded, about)
        self.is_written = True
        return value


def _digest(asked: object) -> bytes:
    try:
        return hashlib.sha256(encode(asked)).digest()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"a request with an idempotency key must consist of JSON values: {error}"
        ) from None
