"""Keeping the store itself in order: backup, checks, retention."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from functools import partial

from msgspec.structs import replace

from hitherto.holders import is_gone
from hitherto.model import Json, Principal, Session
from hitherto.ports import Health, Writer
from hitherto.service.admin.quarantine import Quarantine, Quarantined
from hitherto.service.admin.retention import Policy, PrunedSession, Retention
from hitherto.service.catalog.deletion import collect
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Room
from hitherto.service.notes import forget_old
from hitherto.service.turns.leases import Leases


class Admin(Room):
    """Care of the store."""

    def __init__(self, core: Core, catalog: Catalog, leases: Leases) -> None:
        super().__init__(core)
        self._retention = Retention(core, catalog, leases)
        self._quarantine = Quarantine(core)

    @property
    def store_id(self) -> str:
        """A name for this store, the same for everyone who opens it and for nobody else's."""
        return hashlib.blake2b(self._store.secret, digest_size=8, person=b"store id").hexdigest()

    async def owners(self) -> list[str]:
        """Everyone who has sessions here: for what is done to all of them, such as retention."""
        return await self._store.owners()

    async def about(self) -> Json:
        """The kind of store, its versions and size."""
        return await self._store.about()

    async def unordered(self) -> int:
        """How many messages and titles are not in the order of search yet; 0 but for a while after an upgrade."""
        return await self._store.unordered()

    async def backup(self, target: str) -> None:
        """Write a consistent copy of the whole store to a new file while it is in use."""
        await self._store.backup(target)

    async def distribute(self) -> tuple[str, ...]:
        """Spread the store, which is empty, over the nodes of its database, all of an owner on one of them; returns the tables."""
        return await self._store.distribute()

    async def check(self, *, repair: bool = False) -> Health:
        """Check the store. With `repair`, mend what is derived, and move what nothing explains to the quarantine.

        If no problem remains, `repair` also has edits read again when they are next asked for, removes what nothing reaches, forgets old idempotency keys, and leaves nothing of what was erased in
        logs, free space and statistics.
        """
        health = await self._store.check(repair=repair)
        if not repair or health.problems:
            return health
        for owner in await self._store.owners():
            await self._store.write(partial(_read_edits_again, owner))
        collected = await self.collect()
        forgotten = await self.forget_notes()
        await self._store.clean(thoroughly=True)
        done = ((collected, "unreachable entries removed"), (forgotten, "old idempotency keys removed"))
        return replace(health, repaired=(*health.repaired, *(f"{n} {what}" for n, what in done if n)))

    async def forget_notes(self, now: int | None = None) -> int:
        """Forget idempotency keys and other notes that are older than they need to be at `now`, by default the clock's;
        returns how many."""
        at = self._now() if now is None else now
        return await self._store.write(lambda tx: forget_old(tx, at))

    async def take_duty(self, name: str, holder: str, ms: int) -> bool:
        """Whether the holder has the duty of this name, which one of several servers has at a time, now and for so long.

        Who asks again before that keeps it. It passes on at once if the process that had it is known to run no more.
        """

        async def work(tx: Writer) -> bool:
            now, before = await tx.now(), await tx.duty(name)
            heir_of = before if before is not None and is_gone(before) else None
            return await tx.take_duty(name, holder, now, now + ms, heir_of)

        return await self._store.write(work)

    async def collect(self) -> int:
        """Remove entries that nothing reaches any more, batch by batch; returns how many. It waits while the store is damaged."""
        return await collect(self._store)

    async def quarantined(self) -> list[Quarantined]:
        """What `check` has moved to the quarantine, of every owner."""
        return await self._quarantine.all()

    def quarantined_messages(self, number: int) -> AsyncIterator[bytes]:
        """The messages in quarantine under this number, as their exact bytes; those that are damaged are left out."""
        return self._quarantine.messages(number)

    async def put_back(self, number: int) -> Session | None:
        """Take out of quarantine what is there under this number. A new session shows it, if no other does."""
        return await self._quarantine.put_back(number)

    async def prune(
        self, who: Principal, policy: Policy, *, dry_run: bool = True, now: int | None = None
    ) -> list[PrunedSession]:
        """Archive, or delete if the policy says so, the sessions beyond its limits; with `dry_run` only list them.

        Pinned, leased and recently read sessions are never touched, though they count. Ages are computed at `now`,
        by default the clock's.
        """
        return await self._retention.prune(who, policy, dry_run=dry_run, now=now)


async def _read_edits_again(owner: str, tx: Writer) -> None:
    await tx.forget_edits(owner)
