"""Making, finding, naming, tagging, moving and deleting sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from hitherto.cursors import sealed, unsealed
from hitherto.errors import (
    AlreadyExists,
    AmbiguousId,
    InvalidInput,
    SessionNotFound,
)
from hitherto.filters import normal_cwd, normal_filter, passes, text_terms
from hitherto.limits import (
    EARLIER_CWDS,
    EARLIER_TITLES,
    LIST_PAGE,
    ROWS_EXAMINED,
    checked_limit,
)
from hitherto.model import (
    RECORDED_IN,
    RECORDS,
    STATUSES,
    Filter,
    Identity,
    Json,
    Page,
    Principal,
    Session,
    Status,
)
from hitherto.ports import ListKey, Reader, Record, Scan, Writer
from hitherto.service.idempotency import Request, at_most_once, expect_revision
from hitherto.service.notes import CREATED
from hitherto.service.records import Core, count_said, required
from hitherto.service.validation import (
    CLAIMED,
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
from hitherto.spans import opened

FEW_TITLES = 100
COLLECT_BATCH = 500
T = TypeVar("T")


class _Walk(msgspec.Struct, array_like=True):
    """Where a walk through a list has come to: down by (order_at, id), then up over what changed since it began."""

    since: int
    order_at: int | None = None
    id: str = ""
    upward: int | None = None


class Catalogue(Core):
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
    ) -> Session:
        """Make an empty session. The same idempotency key makes it once."""
        owner, now, named = checked_owner(who), self._now(), checked_title(title)
        session = Session(
            id=checked_name(session_id, "a session id") or self._new_id(),
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
            meta=checked_meta(foreign_keys(meta or {})),
        )
        if cwd is not None or additional_directories:
            session = replace(session, **vouched(who, session, {}))
        self._check_home(session)

        asked = replace(session, id=session_id or "", created_at=0, updated_at=0)
        request = None if idempotency_key is None else Request(CREATED, owner, idempotency_key, asked, now)

        async def add(tx: Writer) -> str:
            return (await add_session(tx, owner, session)).session.id

        async def work(tx: Writer) -> Session:
            return (await required(tx, who, await at_most_once(tx, request, add))).session

        return await self._store.write(work)

    async def get(self, who: Principal, session_id: str) -> Session:
        """One session."""

        async def work(tx: Reader) -> Session:
            return (await required(tx, who, session_id)).session

        return await self._store.read(work)

    async def get_by_key(self, who: Principal, key: str) -> Session:
        """The session with this session key."""

        async def work(tx: Reader) -> Session:
            record = await tx.by_key(checked_owner(who), key) if is_clean(key) else None
            if record is None:
                raise SessionNotFound(key)
            return record.session

        return await self._store.read(work)

    async def resolve(self, who: Principal, prefix: str) -> str:
        """The full id of the caller's only session whose id starts so."""

        async def work(tx: Reader) -> str:
            ids = await tx.with_prefix(checked_owner(who), prefix, 4) if is_clean(prefix) and prefix else []
            if prefix in ids:
                return prefix
            if not ids:
                raise SessionNotFound(prefix)
            if len(ids) > 1:
                raise AmbiguousId(prefix, ids[:3])
            return ids[0]

        return await self._store.read(work)

    async def met(self, who: Principal, ids: Sequence[str]) -> set[str]:
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
        walk = None if cursor is None else unsealed(secret, owner, ["find", given], cursor, _Walk)

        async def work(tx: Reader) -> tuple[list[Record], _Walk | None]:
            return await _walk_on(tx, owner, given, walk, limit)

        records, rest = await self._store.read(work)
        return Page(
            sessions=tuple(record.session for record in records),
            cursor=None if rest is None else sealed(secret, owner, ["find", given], rest),
        )

    async def count(self, who: Principal, given: Filter | None = None) -> int:
        """How many sessions the filter finds."""
        owner, wanted = checked_owner(who), normal_filter(given or Filter())
        return await self._store.read(lambda tx: tx.count(owner, wanted))

    async def rename(
        self, who: Principal, session_id: str, title: str | None, *, expected_revision: int | None = None
    ) -> Session:
        """Give a session the user's title, which no automatic one replaces; None takes the title away."""

        def named(session: Session) -> Json:
            checked = checked_title(title)
            return titled(session, checked, "user" if checked else None)

        return await self._edit(who, session_id, "rename", named, expected_revision)

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

        def tagged(session: Session) -> Json:
            if isinstance(add, str) or isinstance(remove, str):
                raise InvalidInput("tags must be a list of texts")
            return {"tags": checked_tags([*(set(session.tags) - set(remove)), *add])}

        return await self._edit(who, session_id, "tag", tagged, expected_revision)

    async def archive(self, who: Principal, session_id: str, *, archived: bool = True) -> Session:
        """Put a session away (lists leave it out), or take it back."""
        return await self._edit(who, session_id, "archive", lambda _: {"archived": archived})

    async def pin(self, who: Principal, session_id: str, *, pinned: bool = True) -> Session:
        """Pin a session (retention never touches it), or unpin it."""
        return await self._edit(who, session_id, "pin", lambda _: {"pinned": pinned})

    async def set_status(self, who: Principal, session_id: str, status: Status) -> Session:
        """Say what the session is doing."""

        def told(_: Session) -> Json:
            if status not in STATUSES:
                raise InvalidInput(f"status is one of {', '.join(STATUSES)}, not {status!r}")
            return {"status": status}

        return await self._edit(who, session_id, "status", told)

    async def set_meta(self, who: Principal, session_id: str, changes: Json) -> Session:
        """Merge keys into the session's free metadata; a key with None is taken out. Those that begin with
        `hitherto/` are the program's own."""
        return await self._edit(
            who, session_id, "meta", lambda session: _merged(session, foreign_keys(changes))
        )

    async def keep_own(self, who: Principal, session_id: str, changes: Json) -> Session:
        """The same for keys of the program's own, such as what a user has permitted; no door passes a caller's on."""
        return await self._edit(who, session_id, "meta", lambda session: _merged(session, changes))

    async def move(self, who: Principal, session_id: str, cwd: str) -> Session:
        """Say that the session's folder is now elsewhere. Where it was is kept; its project stays the same."""

        def moved(session: Session) -> Json:
            return vouched(who, session, moved_to(session, (cwd,)))

        return await self._edit(who, session_id, "move", moved)

    async def reroot(self, who: Principal, session_id: str, directories: Sequence[str]) -> Session:
        """Say which folders beside its own the session may use: exactly these."""

        def rerooted(session: Session) -> Json:
            fields = {"additional_directories": checked_directories(directories)}
            return fields if who.local else vouched(who, session, fields)

        return await self._edit(who, session_id, "move", rerooted)

    async def move_folder(self, who: Principal, old: str, new: str) -> int:
        """Say that a folder is now elsewhere: all its sessions move along. Returns how many."""
        old, new = normal_cwd(old), normal_cwd(new)
        moved = 0
        while old != new:
            page = await self.find(who, Filter(cwd=old, archived="include"), limit=LIST_PAGE)
            if not page.sessions:
                break
            for session in page.sessions:
                await self.move(who, session.id, new)
            moved += len(page.sessions)
        return moved

    async def delete(self, who: Principal, session_id: str) -> int:
        """Delete a session for good. It is gone at once; returns how many messages it had.

        Entries that forks still reach stay. The others are removed in batches, each a short transaction. What sync has
        read of the same session goes with a recording, and stays away.
        """

        async def work(tx: Writer) -> int:
            record = await required(tx, who, session_id)
            messages = await count_said(tx, record)
            for copy in await _copies_of(tx, record):
                await tx.bury(copy, self._now())
            await tx.bury(record, self._now())
            return messages

        messages = await self._store.write(work)
        await self.collect()
        return messages

    async def collect(self) -> int:
        """Remove entries that nothing reaches any more, batch by batch; returns how many."""
        removed = 0
        while batch := await self._store.write(lambda tx: tx.collect(COLLECT_BATCH)):
            removed += batch
        return removed

    async def stats(self, who: Principal) -> Json:
        """Numbers about the caller's sessions."""
        owner = checked_owner(who)
        return await self._store.read(lambda tx: tx.stats(owner))

    async def _edit(
        self,
        who: Principal,
        session_id: str,
        kind: str,
        edit: Callable[[Session], Json],
        expected_revision: int | None = None,
    ) -> Session:
        """Change fields of a session; nothing is written when they are as they were."""

        async def work(tx: Writer) -> Session:
            record = await required(tx, who, session_id)
            expect_revision(record, expected_revision)
            fields = edit(record.session)
            if all(getattr(record.session, name) == value for name, value in fields.items()):
                return record.session
            return (await self._change(tx, record, kind, **fields)).session

        return await self._store.write(work)


async def _copies_of(tx: Writer, record: Record) -> list[Record]:
    """What sync has read of a session that was recorded, as far as that tells nothing else."""
    found = [await tx.session(record.owner, id) for id in record.session.meta.get(RECORDS, ())]
    return [copy for copy in found if copy is not None and recording_of(copy.session) == record.session.id]


def recording_of(session: Session) -> str | None:
    """The session that stands for this one in lists and searches; None if it stands for itself."""
    return session.meta.get(RECORDED_IN) if session.archived and session.source is not None else None


async def add_session(tx: Writer, owner: str, session: Session, *, order_at: int | None = None) -> Record:
    """Insert a session whose id and key are free, with its own log open."""
    if await tx.session(owner, session.id) is not None:
        raise AlreadyExists(f"there is a session {session.id!r} already")
    if session.key is not None and await tx.by_key(owner, session.key) is not None:
        raise AlreadyExists(f"there is a session with the key {session.key!r} already")
    order = session.updated_at if order_at is None else order_at
    record = await tx.insert(Record(num=0, owner=owner, session=session, order_at=order))
    await tx.put_spans(owner, record.num, opened((), record.num, 0))
    return record


def titled(session: Session, title: str | None, by: str | None) -> Json:
    """The fields of a new title; the one before is remembered."""
    earlier = [old for old in session.earlier_titles if old != title]
    if session.title is not None and session.title != title:
        earlier.append(session.title)
    return {"title": title, "title_by": by, "earlier_titles": tuple(earlier[-EARLIER_TITLES:])}


def moved_to(session: Session, cwds: Sequence[str]) -> Json:
    """The fields of a session that has been in these folders, the last of which is the present one."""
    seen = dict.fromkeys([*session.earlier_cwds, *filter(None, [session.cwd]), *map(normal_cwd, cwds)])
    present = normal_cwd(cwds[-1]) if cwds else session.cwd
    return {"cwd": present, "earlier_cwds": tuple(cwd for cwd in seen if cwd != present)[-EARLIER_CWDS:]}


def vouched(who: Principal, session: Session, fields: Json) -> Json:
    """The fields of a session whose folder is named, with a note of whether that opens it: see `CLAIMED`."""
    if not who.local:
        return {**fields, "meta": {**session.meta, CLAIMED: True}}
    if CLAIMED not in session.meta:
        return fields
    meta = {name: value for name, value in session.meta.items() if name != CLAIMED}
    return {"additional_directories": (), **fields, "meta": meta}


def folders_of(session: Session) -> tuple[str, ...]:
    """The folders of this machine that tools may touch in the session, its own first."""
    if session.cwd is None or CLAIMED in session.meta:
        return ()
    return (session.cwd, *session.additional_directories)


def _merged(session: Session, changes: Json) -> Json:
    both = {**session.meta, **changes}
    return {"meta": checked_meta({name: value for name, value in both.items() if value is not None})}


async def _walk_on(
    tx: Reader, owner: str, given: Filter, walk: _Walk | None, limit: int
) -> tuple[list[Record], _Walk | None]:
    """The next page of a walk, and where it has come to; None when it has seen everything."""
    walk = walk or _Walk(since=await tx.newest(owner))
    records: list[Record] = []
    if walk.upward is None:
        below = None if walk.order_at is None else ListKey(walk.order_at, walk.id)
        down = await _scan(tx, owner, given, below, limit)
        records = down.records
        if not down.ended and down.last is not None:
            return records, _Walk(since=walk.since, order_at=down.last.order_at, id=down.last.id)
        if below is None or await tx.newest(owner) == walk.since:
            return records, None
        walk = _Walk(since=walk.since, upward=walk.since)
        if len(records) == limit:
            return records, walk
    up = await tx.changed(owner, given, walk.upward or 0, limit - len(records), ROWS_EXAMINED)
    records += up.records
    if up.ended or up.last is None:
        return records, None
    return records, _Walk(since=walk.since, upward=up.last.order_at)


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
