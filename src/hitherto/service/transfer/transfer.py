"""Sessions that come and go: exported, imported, synced from other agents, with the files that they were read from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import accumulate

from hitherto.errors import SessionNotFound, TooLarge
from hitherto.exports.lines import at_line, head_of
from hitherto.exports.read import Foreign, unfolded
from hitherto.limits import ENTRY_BYTES, RAW_BYTES, checked_size
from hitherto.model import Address, Entry, Principal, Session, decode_entry
from hitherto.ports import PackedCopy, RawCopy, Reader, Writer
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.compaction.imported import Branch, Summarised
from hitherto.service.core import Core, Room
from hitherto.service.history.append import EncodedEntry, encode_entry
from hitherto.service.records import change_session, require_session
from hitherto.service.transfer.export import (
    Beside,
    ExportReview,
    export_file,
    export_lines,
    in_export_thread,
    new_redactor,
)
from hitherto.service.transfer.import_ import (
    Migrated,
    put_migration,
    put_parcel,
    unpack,
    unpack_migration,
    with_new_id,
)
from hitherto.service.transfer.synced import Imported, SyncImport, SyncInput, SyncResult
from hitherto.service.validation import (
    checked_entry,
    checked_name,
    checked_owner,
    checked_required,
    is_clean,
)

TRIMMED_AT_ONCE = 100


class Transfer(Room):
    """Taking sessions along, and bringing them in."""

    def __init__(self, core: Core, catalog: Catalog) -> None:
        super().__init__(core)
        self._catalog = catalog

    async def export(self, who: Principal, session_id: str) -> AsyncIterator[bytes]:
        """The lossless lines of one session, each without its newline."""
        async for line in export_lines(self._core, who, session_id):
            yield line

    async def export_file(
        self,
        who: Principal,
        session_id: str,
        format: str = "json",
        *,
        raw: bool = False,
        beside: Beside = in_export_thread,
    ) -> AsyncIterator[bytes]:
        """One session as a file of this format, piece by piece, its pages made `beside` what else is done.

        Secrets are replaced and listed in the file, unless it is to be `raw`.
        """
        redactor = None if raw else new_redactor()
        async for piece in export_file(self._core, who, session_id, format, redactor, beside):
            yield piece

    async def review(
        self,
        who: Principal,
        session_id: str,
        format: str = "json",
        *,
        limit: int = 200,
        beside: Beside = in_export_thread,
    ) -> ExportReview:
        """What would be replaced in such a file. Nothing is kept of it."""
        redactor, size = new_redactor(limit), 0
        async for piece in export_file(self._core, who, session_id, format, redactor, beside):
            size += len(piece)
        return ExportReview(replaced=redactor.replaced, entries=tuple(redactor.entries.values()), size=size)

    async def import_(
        self,
        who: Principal,
        lines: Sequence[bytes],
        *,
        new_id: bool = False,
        trusted: bool = True,
        key: str | None = None,
        first_line: int = 1,
        include_deleted: bool = False,
    ) -> Session:
        """A session from the lines of its export, or from the lines of a document that holds it.

        Trusted is a copy that its owner has made: all of it is restored, under its own id (`AlreadyExists` if it is
        there) or a new one. Of anything else only what was said is taken, under an id that its content gives it; if it
        is there already, that session is returned and nothing is written. `key` is the session key that the caller, not
        the file, gives it. What is wrong is said with its line, counted from `first_line`. A session that was
        deleted here, under the id in the file too, is `SessionDeleted`, unless it is to `include_deleted`; what was erased
        here stays erased.
        """
        owner = checked_owner(who)
        checked_name(key, "a session key")
        parcel, restores = await asyncio.to_thread(unpack, lines, first_line, trusted, self._now())
        fresh = new_id or key is not None
        if fresh:
            parcel = with_new_id(parcel, key, self._new_id)
        if not restores and not fresh and (known := await self._known(who, parcel.session.id)):
            return known
        self._core.home.check_session(parcel.session)
        secret = self._store.secret
        return await self._store.write(
            partial(put_parcel, owner, parcel, self._now(), secret, include_deleted)
        )

    async def migrate(
        self, who: Principal, lines: Sequence[bytes], there: Address, *, include_deleted: bool = False
    ) -> Migrated:
        """A session equal to the one that was exported, at the caller's address: roles, senders, checkpoints, episodes, facts,
        tags and metadata. What waited in the inbox stands at its end. The answer names what a file may not set.

        It keeps its id unless that is taken; the same file twice is one session. Of another program's messages all that was
        said is taken. What was deleted is `SessionDeleted`, unless it is to `include_deleted`; what was erased here stays erased.
        """
        checked_owner(who)
        given = await asyncio.to_thread(unpack_migration, lines, self._now())
        return await self._store.write(partial(put_migration, who, given, there, self._core, include_deleted))

    async def already_there(
        self, who: Principal, lines: Sequence[bytes], *, trusted: bool = True, first_line: int = 1
    ) -> Session | None:
        """The session that an import of these lines would only repeat: it is there, exactly so."""
        checked_owner(who)
        given = unfolded(lines, first_line)
        if not trusted or isinstance(given, Foreign):
            parcel, _ = await asyncio.to_thread(unpack, lines, first_line, trusted, self._now())
            return await self._known(who, parcel.session.id)
        with at_line(first_line):
            head = head_of(given[0] if given else b"")
        known = await self._known(who, head.session.id)
        return known if known and await self._equals(who, known.id, given) else None

    async def sync(
        self,
        who: Principal,
        imported: Imported,
        entries: Sequence[Entry],
        *,
        extends: bool = False,
        amended: Entry | None = None,
        compactions: Sequence[Summarised] = (),
        branches: Sequence[Branch] = (),
        raw: Sequence[RawCopy] = (),
        revive: bool = False,
    ) -> SyncResult:
        """Make the session in the store what its source says: these entries, in this order.

        With `extends` they come behind what is there, of which `amended` replaces the one of the same id. Entries that
        are there already are not stored again; one that changed is stored beside its earlier form. Doing it twice, or
        again after a crash in the middle, is doing it once. When the source has lost something, what was there before
        becomes a checkpoint. `compactions` say which of the entries stand for what was said before them. The last of the
        entries are those of the `branches`, which stand beside the conversation; if none are given with what `extends`
        something, those that are there stay.
        `raw` are the bytes that this was read from; those kept before go, unless it `extends` them. What its owner has
        deleted here stays away, unless it is to `revive`.
        """
        self._core.home.check_allowed("synced")
        for copy in raw:
            checked_size(copy.data, RAW_BYTES, "a raw copy")
        given = [*map(encode_entry, map(checked_entry, entries))]
        return await SyncImport(self._core).take(
            SyncInput(imported, given, extends, amended, compactions, branches, raw, revive, who)
        )

    async def sync_packed(
        self,
        who: Principal,
        imported: Imported,
        payloads: Sequence[bytes],
        *,
        extends: bool = False,
        amended: Entry | None = None,
        compactions: Sequence[Summarised] = (),
        branches: Sequence[Branch] = (),
        raw: Sequence[PackedCopy] = (),
        revive: bool = False,
        words: Sequence[str] = (),
    ) -> SyncResult:
        """`sync` of what another process has made ready: entries as `encode` writes them, raw copies packed. `words` are those
        that each entry is found by, if it has looked."""
        self._core.home.check_allowed("synced")
        for copy in raw:
            if copy.size > RAW_BYTES:
                raise TooLarge(f"a raw copy may have at most {RAW_BYTES} bytes, this one has {copy.size}")
        for payload in payloads:
            checked_size(payload, ENTRY_BYTES, "an entry")
        known = words if len(words) == len(payloads) else [None] * len(payloads)
        given = [
            EncodedEntry(checked_entry(decode_entry(payload)), payload, each)
            for payload, each in zip(payloads, known, strict=True)
        ]
        return await SyncImport(self._core).take(
            SyncInput(imported, given, extends, amended, compactions, branches, raw, revive, who)
        )

    async def mark_source(self, who: Principal, session_id: str, *, gone: bool) -> bool:
        """Note that a session's source has vanished, or is there again; whether that is news."""
        owner = checked_owner(who)

        async def work(tx: Writer) -> bool:
            record = await tx.session(owner, session_id) if is_clean(session_id) else None
            if record is None or bool(record.session.meta.get("source_gone")) == gone:
                return False
            meta = {name: value for name, value in record.session.meta.items() if name != "source_gone"}
            await change_session(tx, record, "source", meta={**meta, "source_gone": True} if gone else meta)
            return True

        return await self._store.write(work)

    async def bereft(self, who: Principal) -> set[str]:
        """The ids of the caller's sessions that were deleted, or in which something was erased: whoever keeps what was
        read of their files forgets it."""
        return await self._store.read(lambda tx: tx.bereft(checked_owner(who)))

    async def keep_raw(self, who: Principal, session_id: str, name: str, data: bytes) -> None:
        """Keep the exact bytes of the file that a session was read from."""

        async def work(tx: Writer) -> None:
            record = await require_session(tx, who, session_id)
            checked_required(name, "a name")
            if await tx.erasures(record.owner, session_id):
                return  # the file has what was erased
            await tx.put_raw_copy(
                record.owner, record.num, RawCopy(name, checked_size(data, RAW_BYTES, "a raw copy"))
            )

        await self._store.write(work)

    async def raw(self, who: Principal, session_id: str) -> list[RawCopy]:
        """The files that a session was read from, as they were."""

        async def work(tx: Reader) -> list[RawCopy]:
            record = await require_session(tx, who, session_id)
            return await tx.raw_copies(record.owner, record.num)

        return await self._store.read(work)

    async def drop_raw(self, who: Principal, session_id: str) -> None:
        """Forget the files that a session was read from; what was read from them stays."""

        async def work(tx: Writer) -> None:
            record = await require_session(tx, who, session_id)
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

    async def _equals(self, who: Principal, session_id: str, lines: Sequence[bytes]) -> bool:
        given = (bare for line in lines if (bare := line.strip()))
        async for line in export_lines(self._core, who, session_id):
            if next(given, None) != line:
                return False
        return next(given, None) is None

    async def _known(self, who: Principal, session_id: str) -> Session | None:
        try:
            return await self._catalog.get(who, session_id)
        except SessionNotFound:
            return None
