"""What sessions changed in files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hitherto.edits.changes import EditCounts, FileTouch, SessionChanges, changes_of
from hitherto.edits.origins import Cause, LineOrigin, Repository, SourceLine, causes, lines_of_diff
from hitherto.edits.patches import of_git
from hitherto.errors import InvalidInput, StoreUnavailable, TooLarge
from hitherto.limits import LIST_PAGE, checked_limit
from hitherto.model import Principal
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.edits.load import made_in, remake_edits
from hitherto.service.edits.tracing import recent_touches, suspect_edits, touches, with_prompts
from hitherto.service.records import require_session
from hitherto.service.validation import checked_name, checked_owner, is_clean

LOGS_AT_ONCE = 20
TRACED_LINES = 200_000
NAMES = 20
"""A repository may go by so many names."""


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
        found = await self._store.read(lambda tx: touches(tx, key, owner, file))
        return found[: checked_limit(limit, LIST_PAGE)]

    async def trace(
        self, who: Principal, lines: Sequence[SourceLine], repository: Repository
    ) -> list[LineOrigin | None]:
        """Which message of which session wrote each of these lines of a repository; None where it is not known."""
        if len(lines) > TRACED_LINES:
            raise TooLarge(f"at most {TRACED_LINES} lines can be traced at once, not {len(lines)}")
        root = checked_name(repository.root, "a commit")
        repository = Repository(names=tuple(filter(is_clean, repository.names))[:NAMES], root=root)
        await self.refresh(who)
        owner, key = checked_owner(who), self._store.secret
        suspicion = await self._store.read(lambda tx: suspect_edits(tx, key, owner, lines, repository))
        # Beside the event loop: thousands of lines take a moment.
        traced = await asyncio.to_thread(suspicion.origins, lines)
        return await self._store.read(lambda tx: with_prompts(tx, owner, traced, suspicion))

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

    async def recent(self, who: Principal, *, limit: int = 100) -> list[FileTouch]:
        """The files that sessions changed last, the newest edit first: each with its session, once."""
        await self.refresh(who)
        owner, most = checked_owner(who), checked_limit(limit, LIST_PAGE)
        return await self._store.read(lambda tx: recent_touches(tx, owner, most))

    async def counts(self, who: Principal, session_ids: Sequence[str]) -> dict[str, EditCounts]:
        """How much each of these sessions changed, its subagents included; a session that is not there is left out.

        Lines that an edit added and a later one removed count in both. What is not read yet is not counted: see `refresh`.
        """
        owner, found = checked_owner(who), dict[str, EditCounts]()
        ids = [each for each in session_ids if is_clean(each)]
        for start in range(0, len(ids), LIST_PAGE):
            some = ids[start : start + LIST_PAGE]
            reached = await self._store.read(lambda tx, part=some: tx.edits_reached(owner, part))  # type: ignore[misc]
            found |= reached.counts()
        return found
