"""The catalogue: making, finding, describing and deleting sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from hitherto.errors import AlreadyExists, AmbiguousId, InvalidInput, SessionNotFound
from hitherto.limits import LIST_PAGE, ROWS_EXAMINED, checked_limit
from hitherto.model import (
    DRAFT,
    STATUSES,
    Filter,
    Identity,
    Json,
    Page,
    Principal,
    Session,
    Status,
    is_subagent,
)
from hitherto.ports import FirstPage, ListKey, Reader, Record, Scan, Writer
from hitherto.service.catalog.deletion import bury_session, collect
from hitherto.service.catalog.metadata import (
    claim_fields,
    edit_session,
    folder_fields,
    meta_fields,
    tag_fields,
    title_fields,
)
from hitherto.service.core import Room, clean_afterwards
from hitherto.service.idempotency import Request, at_most_once
from hitherto.service.notes import CREATED, FOR_EVER, MOVED_TO, Note
from hitherto.service.records import RUNNING, active_lease, require_session
from hitherto.service.validation import (
    checked_directories,
    checked_identity,
    checked_meta,
    checked_name,
    checked_owner,
    checked_tags,
    checked_title,
    foreign_keys,
    is_clean,
)
from hitherto.values.cursors import open_cursor, seal_cursor
from hitherto.values.filters import holds, normal_cwd, normal_filter, passes, text_terms
from hitherto.values.spans import opened
from hitherto.values.usage.sessions import SessionUsage, decoded_count, usage_of

BEGINNING_ALIKE = 1_000
"""How many ids that begin alike are looked at, subagents included."""
MOVES = 20
"""How often in a row a folder can have been moved."""
SCANS = 20
"""How often a page is filled up, at most."""


class Catalog(Room):
    """Sessions as a list: everything about them but what was said."""

    async def create(
        self,
        who: Principal,
        *,
        cwd: str | None = None,
        project: str | None = None,
        branch: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        additional_directories: Sequence[str] = (),
        key: str | None = None,
        agent_id: str | None = None,
        channel: str | None = None,
        identity: Identity | None = None,
        meta: Json | None = None,
        session_id: str | None = None,
        idempotency_key: str | None = None,
        draft: bool = False,
    ) -> Session:
        """Make an empty session. The same idempotency key makes it once. A `draft` is not listed until it has a message, a
        title or a tag."""
        owner, now, named = checked_owner(who), self._now(), checked_title(title)
        own_id = self._core.home.id_for(key) if session_id is None else session_id
        session = Session(
            id=checked_name(own_id, "a session id") or self._new_id(),
            revision=1,
            created_at=now,
            updated_at=now,
            cwd=None if cwd is None else normal_cwd(cwd),
            additional_directories=checked_directories(additional_directories),
            project=checked_name(project, "a project"),
            branch=checked_name(branch, "a branch"),
            title=named,
            title_by="user" if named else None,
            tags=checked_tags(tags),
            key=checked_name(key, "a session key"),
            agent_id=checked_name(agent_id, "an agent id"),
            channel=checked_name(channel, "a channel"),
            identity=checked_identity(identity),
            archived=draft,
            meta=checked_meta({**foreign_keys(meta or {}), **({DRAFT: True} if draft else {})}),
        )
        if cwd is not None or additional_directories:
            session = replace(session, **claim_fields(who, session, {}))
        self._core.home.check_session(session)
        asked = replace(session, id=own_id or "", created_at=0, updated_at=0)
        request = Request.of(CREATED, owner, idempotency_key, asked, now)

        async def add(tx: Writer) -> str:
            return (await add_session(tx, owner, session)).session.id

        async def work(tx: Writer) -> Session:
            return (await require_session(tx, who, await at_most_once(tx, request, add))).session

        made = await self._store.write(work)
        await self._core.home.created(self._core, who)
        return made

    async def get(self, who: Principal, session_id: str) -> Session:
        """One session."""

        async def work(tx: Reader) -> Session:
            return await _shown(tx, await require_session(tx, who, session_id))

        return await self._store.read(work)

    async def get_by_key(self, who: Principal, key: str) -> Session:
        """The session with this session key."""

        async def work(tx: Reader) -> Session:
            record = await tx.by_key(checked_owner(who), key) if is_clean(key) else None
            if record is None:
                raise SessionNotFound(key)
            return await _shown(tx, record)

        return await self._store.read(work)

    async def resolve(self, who: Principal, prefix: str) -> str:
        """The full id of the caller's only session whose id starts so; subagents of it do not count."""

        async def work(tx: Reader) -> str:
            usable = is_clean(prefix) and prefix
            ids = await tx.with_prefix(checked_owner(who), prefix, BEGINNING_ALIKE) if usable else []
            if prefix in ids:
                return prefix
            # The ids of subagents begin with that of their session, which is the one that is meant.
            ids = [each for each in ids if each == ids[0] or not each.startswith(f"{ids[0]}:")]
            if not ids:
                return (await require_session(tx, who, prefix)).session.id
            if len(ids) > 1:
                raise AmbiguousId(prefix, ids[:3])
            return ids[0]

        return await self._store.read(work)

    async def known(self, who: Principal, ids: Sequence[str]) -> set[str]:
        """Those of these ids that are the caller's sessions, or were until they were deleted."""
        owner = checked_owner(who)

        async def work(tx: Reader) -> set[str]:
            clean = filter(is_clean, ids)
            return {id for id in clean if await tx.session(owner, id) or await tx.buried(owner, id)}

        return await self._store.read(work)

    async def find(
        self, who: Principal, given: Filter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page:
        """A page of sessions, newest activity first.

        A walk from page to page misses no session, whatever is written meanwhile; one that changed may come again.
        A page may be shorter than `limit`, even empty, and still have a cursor.
        """
        owner = checked_owner(who)
        given = normal_filter(given or Filter())
        checked_limit(limit, LIST_PAGE)
        secret = self._store.secret
        walk = None if cursor is None else open_cursor(secret, owner, ["find", given], cursor, ListWalk)

        async def work(tx: Reader) -> tuple[list[Session], ListWalk | None]:
            records, rest = await next_page(tx, owner, given, walk, limit)
            return [await _shown(tx, record) for record in records], rest

        ahead = FirstPage(owner, given, limit, ROWS_EXAMINED) if walk is None and not given.where else None
        sessions, rest = await self._store.read(work, ahead)
        return Page(
            sessions=tuple(sessions),
            cursor=None if rest is None else seal_cursor(secret, owner, ["find", given], rest),
        )

    async def every(self, who: Principal, given: Filter) -> AsyncIterator[Session]:
        """All sessions that a filter finds, newest activity first; one that becomes active meanwhile may come twice."""
        cursor: str | None = None
        while True:
            page = await self.find(who, given, cursor=cursor, limit=LIST_PAGE)
            for session in page.sessions:
                yield session
            if (cursor := page.cursor) is None:
                return

    async def count(self, who: Principal, given: Filter | None = None) -> int:
        """How many sessions the filter finds."""
        owner, wanted = checked_owner(who), normal_filter(given or Filter())
        if wanted.where:
            return len({session.id async for session in self.every(who, wanted)})
        return await self._store.read(lambda tx: tx.count(owner, wanted))

    async def used(self, who: Principal, session_ids: Sequence[str]) -> dict[str, SessionUsage]:
        """What each of these sessions has used, as far as it was counted; see `Spending.numbers`, which also counts."""
        owner, wanted = checked_owner(who), [each for each in session_ids if is_clean(each)]
        kept = await self._store.read(lambda tx: tx.session_usage(owner, wanted))
        counts = {name: decoded_count(each.body) for name, each in kept.items()}
        return {
            name: usage_of(count, current=kept[name].counted == kept[name].revision)
            for name, count in counts.items()
            if count is not None
        }

    async def rename(
        self, who: Principal, session_id: str, title: str | None, *, expected_revision: int | None = None
    ) -> Session:
        """Give a session the user's title, which no automatic one replaces; None takes the title away."""

        def named(session: Session) -> Json:
            checked = checked_title(title)
            return title_fields(session, checked, "user" if checked else None)

        return await edit_session(self._store, who, session_id, "rename", named, expected_revision)

    async def tag(
        self,
        who: Principal,
        session_id: str,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        expected_revision: int | None = None,
    ) -> Session:
        """Add and remove tags."""

        def changed(session: Session) -> Json:
            return tag_fields(session, add, remove)

        return await edit_session(self._store, who, session_id, "tag", changed, expected_revision)

    async def archive(self, who: Principal, session_id: str, *, archived: bool = True) -> Session:
        """Archive a session (lists leave it out), or unarchive it."""
        return await edit_session(self._store, who, session_id, "archive", lambda _: {"archived": archived})

    async def pin(self, who: Principal, session_id: str, *, pinned: bool = True) -> Session:
        """Pin a session (retention never touches it), or unpin it."""
        return await edit_session(self._store, who, session_id, "pin", lambda _: {"pinned": pinned})

    async def set_status(self, who: Principal, session_id: str, status: Status) -> Session:
        """Say what the session is doing."""

        def changed(_: Session) -> Json:
            if status not in STATUSES:
                raise InvalidInput(f"status is one of {', '.join(STATUSES)}, not {status!r}")
            return {"status": status}

        return await edit_session(self._store, who, session_id, "status", changed)

    async def set_meta(self, who: Principal, session_id: str, changes: Json) -> Session:
        """Merge keys into the session's free metadata; a key with None is taken out. Those that begin with
        `hitherto/` are the program's own."""

        def changed(session: Session) -> Json:
            return meta_fields(session, foreign_keys(changes))

        return await edit_session(self._store, who, session_id, "meta", changed)

    async def set_own_meta(self, who: Principal, session_id: str, changes: Json) -> Session:
        """The same for keys of the program's own, such as what a user has permitted; no door passes a caller's on."""

        def changed(session: Session) -> Json:
            return meta_fields(session, changes)

        return await edit_session(self._store, who, session_id, "meta", changed)

    async def move(self, who: Principal, session_id: str, cwd: str) -> Session:
        """Say that the session's folder is now elsewhere. Where it was is kept; its project stays the same."""

        def moved(session: Session) -> Json:
            return claim_fields(who, session, folder_fields(session, (cwd,)))

        return await edit_session(self._store, who, session_id, "move", moved)

    async def set_directories(self, who: Principal, session_id: str, directories: Sequence[str]) -> Session:
        """Say which folders beside its own the session may use: exactly these."""

        def changed(session: Session) -> Json:
            fields = {"additional_directories": checked_directories(directories)}
            return fields if who.local else claim_fields(who, session, fields)

        return await edit_session(self._store, who, session_id, "move", changed)

    async def move_folder(self, who: Principal, old: str, new: str, *, is_gone: bool = True) -> int:
        """Say that a folder is now elsewhere: all its sessions move along. Returns how many. If nothing is left at the old
        place (`is_gone`), its name leads to the new one."""
        owner, old, new = checked_owner(who), normal_cwd(old), normal_cwd(new)
        moved = 0

        async def note(tx: Writer) -> None:
            await MOVED_TO.put(tx, owner, old, Note(new, FOR_EVER))

        if is_gone and old != new:
            await self._store.write(note)
        while old != new:
            page = await self.find(who, Filter(cwd=old, archived="include"), limit=LIST_PAGE)
            if not page.sessions:
                break
            for session in page.sessions:
                await self.move(who, session.id, new)
            moved += len(page.sessions)
        return moved

    async def moved_to(self, who: Principal, folder: str) -> str:
        """Where a folder is now, as far as somebody has said that it was moved."""
        owner, place = checked_owner(who), normal_cwd(folder)

        async def work(tx: Reader) -> str:
            now = place
            for _ in range(MOVES):
                note = await MOVED_TO.get(tx, owner, now)
                if note is None or note.value == place:
                    break
                now = note.value
            return now

        return await self._store.read(work)

    async def delete(self, who: Principal, session_id: str) -> int:
        """Delete a session for good. It is gone at once; returns how many messages it had.

        Entries that forks still reach stay. The others are removed in batches, each a short transaction. What sync has
        read of the same session goes with a recording, and stays away.
        """

        async def work(tx: Writer) -> int:
            return await bury_session(tx, await require_session(tx, who, session_id), self._now())

        messages = await self._store.write(work, session_id)
        await clean_afterwards(collect(self._store))
        return messages


async def _shown(tx: Reader, record: Record) -> Session:
    """The session as callers see it: one that a dead process has left running is interrupted, before anybody closes its
    turn."""
    session = record.session
    if session.status not in RUNNING or record.lease is None:
        return session
    held = active_lease(record.lease, await tx.now())
    return session if held is not None else replace(session, status="interrupted")


async def add_session(tx: Writer, owner: str, session: Session, *, order_at: int | None = None) -> Record:
    """Insert a session whose id and key are free, with its own log open."""
    if await tx.session(owner, session.id) is not None:
        raise AlreadyExists(f"a session {session.id!r} already exists")
    if session.key is not None and await tx.by_key(owner, session.key) is not None:
        raise AlreadyExists(f"a session with the key {session.key!r} already exists")
    order = session.updated_at if order_at is None else order_at
    record = await tx.insert(Record(num=0, owner=owner, session=session, order_at=order))
    await tx.put_spans(owner, record.num, opened((), record.num, 0))
    return record


FEW_TITLES = 100


class ListWalk(msgspec.Struct, array_like=True):
    """Where a walk through a list has come to: down by (order_at, id), then up over what changed since it began."""

    since: str
    order_at: int | None = None
    id: str = ""
    upward: str | None = None


async def next_page(
    tx: Reader, owner: str, given: Filter, walk: ListWalk | None, limit: int
) -> tuple[list[Record], ListWalk | None]:
    """The next page of a walk, and where it has come to; None when it has seen everything."""
    walk = walk or ListWalk(since=await tx.newest(owner))
    records: list[Record] = []
    if walk.upward is None:
        below = None if walk.order_at is None else ListKey(walk.order_at, walk.id)
        down = await _scan_listed(tx, owner, given, below, limit)
        records = down.records
        if not down.ended and down.last is not None:
            return records, ListWalk(since=walk.since, order_at=down.last.order_at, id=down.last.id)
        if below is None or await tx.newest(owner) == walk.since:
            return records, None
        walk = ListWalk(since=walk.since, upward=walk.since)
        if len(records) == limit:
            return records, walk
    up = await tx.changed(owner, given, walk.upward or walk.since, limit - len(records), ROWS_EXAMINED)
    records += filter(partial(_is_listed, given), up.records)
    return records, None if up.ended else ListWalk(since=walk.since, upward=up.position)


async def _scan_listed(tx: Reader, owner: str, given: Filter, below: ListKey | None, limit: int) -> Scan:
    """A scan without the sessions that are not listed; several, since few may be left of one."""
    records: list[Record] = []
    for _ in range(SCANS):
        # Of what only this module looks at, few may pass.
        most = LIST_PAGE if given.where else limit - len(records)
        scan = await _scan(tx, owner, given, below, most)
        passed = list(filter(partial(_is_listed, given), scan.records))
        room = limit - len(records)
        records += passed[:room]
        if len(passed) > room:
            return Scan(records, ListKey(records[-1].order_at, records[-1].session.id), ended=False)
        below = scan.last or below
        if scan.ended or len(records) == limit or len(scan.records) == 0:
            break
    return Scan(records, below, scan.ended)


def _is_listed(given: Filter, record: Record) -> bool:
    if DRAFT in record.session.meta:
        return False
    if not given.subagents and is_subagent(record.session):
        return False
    return all(holds(each, record.session) for each in given.where)


async def _scan(tx: Reader, owner: str, given: Filter, below: ListKey | None, limit: int) -> Scan:
    """A scan, by way of the title index when the words asked for are rare."""
    terms = text_terms(given)
    few = await tx.titled(owner, terms, FEW_TITLES) if terms else None
    if few is None:
        return await tx.scan(owner, given, below, limit, ROWS_EXAMINED)
    few = [record for record in few if passes(record.session, given)]
    if given.day is not None:
        there = await tx.spoken(owner, given.day, [record.num for record in few])
        few = [record for record in few if record.num in there]
    keyed = sorted(((ListKey(r.order_at, r.session.id), r) for r in few), reverse=True)
    rest = [(key, record) for key, record in keyed if below is None or key < below]
    page = rest[:limit]
    return Scan([record for _, record in page], page[-1][0] if page else None, len(rest) <= limit)
