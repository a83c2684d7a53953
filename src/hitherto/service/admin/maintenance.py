"""Keeping the store itself in order: backup, doctor, facts and raw copies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from msgspec.structs import replace

from hitherto.errors import TooLarge
from hitherto.limits import FACTS_PER_CALL, RAW_BYTES, checked_size
from hitherto.model import Fact, Json, Principal
from hitherto.ports import Health, RawCopy, Reader, Writer
from hitherto.service.catalog.sessions import Catalogue
from hitherto.service.notes import forget_old
from hitherto.service.records import required
from hitherto.service.validation import checked_fact, checked_owner, checked_required

TRIMMED_AT_ONCE = 100


class Upkeep(Catalogue):
    """Care of the store."""

    @property
    def store_id(self) -> str:
        """A name for this store, the same for everyone who opens it and for nobody else's."""
        return hashlib.blake2b(self._store.secret, digest_size=8, person=b"store id").hexdigest()

    async def owners(self) -> list[str]:
        """Everyone who has sessions here: for what is done to all of them, such as retention."""
        return await self._store.owners()

    async def drop_raw(self, who: Principal, session_id: str) -> None:
        """Forget the files that a session was read from; what was read from them stays."""

        async def work(tx: Writer) -> None:
            record = await required(tx, who, session_id)
            await tx.drop_raw_copies(record.owner, record.num)

        await self._store.write(work)

    async def trim_raw(self, who: Principal, budget: int) -> int:
        """Keep at most so many bytes of the caller's raw copies: those of the sessions with the newest activity. What was
        read from the others stays. Returns how many sessions lost theirs."""
        owner = checked_owner(who)
        sizes = await self._store.read(lambda tx: tx.raw_sizes(owner))
        taken = accumulate(size for _, size in sizes)
        over = [session_id for (session_id, _), sum_ in zip(sizes, taken, strict=True) if sum_ > budget]

        async def drop(some: Sequence[str], tx: Writer) -> None:
            for session_id in some:
                if (record := await tx.session(owner, session_id)) is not None:
                    await tx.drop_raw_copies(owner, record.num)

        for start in range(0, len(over), TRIMMED_AT_ONCE):
            await self._store.write(partial(drop, over[start : start + TRIMMED_AT_ONCE]))
        return len(over)

    async def about(self) -> Json:
        """The kind of store, its versions and size."""
        return await self._store.about()

    async def backup(self, target: str) -> None:
        """Write a consistent copy of the whole store to a new file while it is in use."""
        await self._store.backup(target)

    async def doctor(self, *, repair: bool = True) -> Health:
        """Check the store; repair what is derived, remove what nothing reaches, forget old idempotency keys."""
        health = await self._store.check(repair=repair)
        if not repair:
            return health
        now = self._now()
        collected = await self.collect()
        forgotten = await self._store.write(lambda tx: forget_old(tx, now))
        done = ((collected, "unreachable entries removed"), (forgotten, "old idempotency keys forgotten"))
        return replace(health, repaired=(*health.repaired, *(f"{n} {what}" for n, what in done if n)))

    async def add_facts(self, who: Principal, facts: Sequence[Fact]) -> None:
        """Remember facts. One that names a session goes with it."""
        owner = checked_owner(who)

        async def work(tx: Writer) -> None:
            for session_id in {fact.session for fact in facts if fact.session is not None}:
                await required(tx, who, session_id)
            if len(facts) > FACTS_PER_CALL:
                raise TooLarge(f"add_facts takes at most {FACTS_PER_CALL} facts, not {len(facts)}")
            await tx.put_facts(owner, [checked_fact(fact) for fact in facts])

        await self._store.write(work)

    async def facts(self, who: Principal, session_id: str | None = None) -> list[Fact]:
        """The caller's facts, of one session or all, newest first."""

        async def work(tx: Reader) -> list[Fact]:
            if session_id is not None:
                await required(tx, who, session_id)
            return await tx.facts(checked_owner(who), session_id)

        return await self._store.read(work)

    async def keep_raw(self, who: Principal, session_id: str, name: str, data: bytes) -> None:
        """Keep the exact bytes of the file that a session was read from."""

        async def work(tx: Writer) -> None:
            record = await required(tx, who, session_id)
            checked_required(name, "a name")
            await tx.put_raw_copy(
                record.owner, record.num, RawCopy(name, checked_size(data, RAW_BYTES, "a raw copy"))
            )

        await self._store.write(work)

    async def raw(self, who: Principal, session_id: str) -> list[RawCopy]:
        """The files that a session was read from, as they were."""

        async def work(tx: Reader) -> list[RawCopy]:
            record = await required(tx, who, session_id)
            return await tx.raw_copies(record.owner, record.num)

        return await self._store.read(work)
