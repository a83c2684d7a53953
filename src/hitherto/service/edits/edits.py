"""What sessions changed in files."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.edits.changes import EditCounts, FileTouch, SessionChanges, changes_of
from hitherto.edits.origins import Cause, LineOrigin, Repository, SourceLine, causes, lines_of_diff
from hitherto.edits.patches import of_git
from hitherto.errors import InvalidInput, StoreUnavailable, TooLarge
from hitherto.model import Principal
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.edits.load import counted, made_in, remake_edits, session_records, with_subagents
from hitherto.service.edits.tracing import touches, trace_lines
from hitherto.service.records import require_session
from hitherto.service.validation import checked_owner

LOGS_AT_ONCE = 20
TRACED_LINES = 200_000


class Edits(Room):
    """The edits of sessions."""

    async def refresh(self, who: Principal) -> int:
        """Read again the edits of which the store lacks some: those of sessions that were stored before it kept edits, and of
        sessions in which something was erased. Returns of how many logs."""
        owner, key, done = checked_owner(who), self._store.secret, 0

        async def some(tx: Writer) -> int:
            logs = await tx.edits_due(owner, LOGS_AT_ONCE)
            for log in logs:
                await remake_edits(tx, key, owner, log)
            return len(logs)

        async def is_due(tx: Reader) -> bool:
            return bool(await tx.edits_due(owner, 1))

        while await self._store.read(is_due):
            try:
                done += await self._store.write(some)
            except StoreUnavailable:
                break  # it may be read only: what it has is what there is
        return done

    async def rebuild(self, who: Principal) -> int:
        """Drop all edits and read them again from the sessions. Returns of how many logs."""
        owner = checked_owner(who)
        await self._store.write(lambda tx: tx.forget_edits(owner))
        return await self.refresh(who)

    async def changes(self, who: Principal, session_id: str, *, file: str | None = None) -> SessionChanges:
        """The files that a session and its subagents changed, of which the path ends with `file` if that is given."""
        await self.refresh(who)

        async def work(tx: Reader) -> SessionChanges:
            record = await require_session(tx, who, session_id)
            return changes_of(record.session.id, await made_in(tx, record), file)

        return await self._store.read(work)

    async def touched(self, who: Principal, file: str, *, limit: int = 100) -> list[FileTouch]:
        """The sessions that changed a file whose path ends with `file`, the one that did last first."""
        if not file.strip("/ "):
            raise InvalidInput("the name of the file is empty")
        await self.refresh(who)
        owner, key = checked_owner(who), self._store.secret
        return (await self._store.read(lambda tx: touches(tx, key, owner, file)))[:limit]

    async def trace(
        self, who: Principal, lines: Sequence[SourceLine], repository: Repository
    ) -> list[LineOrigin | None]:
        """Which message of which session wrote each of these lines of a repository; None where it is not known."""
        if len(lines) > TRACED_LINES:
            raise TooLarge(f"at most {TRACED_LINES} lines can be traced at once, not {len(lines)}")
        await self.refresh(who)
        owner, key = checked_owner(who), self._store.secret
        return await self._store.read(lambda tx: trace_lines(tx, key, owner, lines, repository))

    async def why(
        self,
        who: Principal,
        diff: str,
        repository: Repository,
        *,
        until: int | None = None,
        since: int | None = None,
    ) -> tuple[Cause, ...]:
        """The sessions that made a change, given as a diff, the one with the largest share of its lines first.

        Edits later than `until` are not looked at; what is moved within the diff counts only for edits after `since`.
        """
        lines = lines_of_diff(of_git(diff), until, since)
        return causes(lines, await self.trace(who, lines, repository))

    async def counts(self, who: Principal, session_ids: Sequence[str]) -> dict[str, EditCounts]:
        """How much each of these sessions changed, its subagents included; a session that is not there is left out."""
        owner = checked_owner(who)

        async def work(tx: Reader) -> dict[str, EditCounts]:
            found: dict[str, EditCounts] = {}
            for session_id in session_ids:
                record = await tx.session(owner, session_id)
                if record is not None:
                    family = await with_subagents(tx, record)
                    found[session_id] = counted(
                        [pair for each in family for pair in await session_records(tx, each)]
                    )
            return found

        return await self._store.read(work)
