"""Hitherto as the session store of `claude-agent-sdk`.

    async with hitherto.open() as sessions:
        options = ClaudeAgentOptions(session_store=HithertoSessionStore(sessions))

What the SDK mirrors is read like the file of the same transcript, and is the same session. The records themselves are kept
beside it as they came: the SDK gets them back. Only the SDK writes to these sessions; to others they are read-only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from hitherto.claude.metadata import milliseconds
from hitherto.claude.session_stores.protocol import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)
from hitherto.claude.session_stores.summary import fold_session_summary
from hitherto.errors import AlreadyExists, InvalidInput
from hitherto.model import LOCAL, MIRRORED, Entry, Filter, Json, Principal, Session
from hitherto.ports import Reader, Writer
from hitherto.service import Sessions
from hitherto.service.history.erased import load_erased
from hitherto.service.history.mirrored import (
    SUMMARY,
    add_records,
    is_kept,
    load_records,
    mirror_entry,
    record_name,
)
from hitherto.service.validation import checked_owner
from hitherto.sources.claude.mirror_key import TranscriptKey, key_of, mirrored_as, short, transcript_key
from hitherto.sources.claude.mirror_reading import MirrorReader
from hitherto.sources.claude.mirror_session import (
    find_mirror,
    mirrors_below,
    records_in_place,
    require_mirror,
)

STORED_AT = "mtime"
"""In what a session's meta says of its mirror: when something was last added to it."""


class HithertoSessionStore(SessionStore):
    """The SDK's `SessionStore` over `Sessions`, for one owner. Appends are durable when they return."""

    def __init__(self, sessions: Sessions, who: Principal = LOCAL) -> None:
        core = sessions.core
        self._store, self._now, self._new_id = core.store, core.now, core.new_id
        self._sessions, self._who = sessions, who
        self._owner = checked_owner(who)
        self._reader = MirrorReader(sessions, who)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add records in order, all or none. A record whose `uuid` the transcript has is not added again."""
        if not entries:
            return
        batch: dict[str, Entry] = {}
        for given in entries:
            entry = self._entry(given)
            batch.setdefault(entry.id, entry)
        transcript = transcript_key(key)
        try:
            kept_in = await self._store.write(partial(self._add, transcript, batch, False))
        except AlreadyExists:
            kept_in = await self._store.write(partial(self._add, transcript, batch, True))
        await self._reader.read(kept_in)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All records of a transcript in the order they were added; None if there is no such transcript."""

        async def work(tx: Reader) -> list[Json] | None:
            record = await find_mirror(tx, self._owner, transcript_key(key))
            if record is None:
                return None
            earlier = await records_in_place(tx, record)
            return [each.record for each in earlier] if earlier else await load_records(tx, record)

        return cast("list[SessionStoreEntry] | None", await self._store.read(work))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project with the time of their last append."""
        return [
            {"session_id": key.session_id, "mtime": _stored_at(session)}
            for key, session in await self._listed(project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What the SDK needs to list the sessions of a project without loading them."""
        listed = [session for _, session in await self._listed(project_key)]
        return list(filter(None, map(_summary, listed)))

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript, and a session's with those of its subagents; a missing one is no error."""
        transcript = transcript_key(key)

        async def work(tx: Writer) -> None:
            own = await find_mirror(tx, self._owner, transcript)
            subs = await mirrors_below(tx, self._owner, transcript) if transcript.subpath is None else []
            for record in filter(None, [own, *(subs if own is not None else ())]):
                await tx.bury(record, self._now())

        await self._store.write(work)
        await self._sessions.admin.collect()

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session's further transcripts."""
        main = transcript_key(key)
        records = await self._store.read(lambda tx: mirrors_below(tx, self._owner, main))
        keys = filter(None, (key_of(record.session) for record in records))
        return list(dict.fromkeys(found.subpath for found in keys if found.subpath is not None))

    async def _add(
        self, transcript: TranscriptKey, batch: Mapping[str, Entry], look: bool, tx: Writer
    ) -> str:
        """Keep the records of a batch; with `look` those that are not kept already. Returns the session's id."""
        now = self._now()
        record = await require_mirror(tx, self._owner, transcript, now, self._store.secret)
        fresh = list(batch.values())
        if look:
            fresh = [entry for entry in fresh if not await is_kept(tx, record, entry)]
        erased = await load_erased(tx, self._store.secret, self._owner, record.session.id)
        fresh = [each for each in fresh if not erased.holds(replace(each, id=record_name(each)))]
        if not fresh:
            return record.session.id
        earlier = None if SUMMARY in mirrored_as(record.session) else await load_records(tx, record)
        grown = await add_records(tx, record, fresh, now, self._store.secret)
        added = [entry.meta[MIRRORED] for entry in fresh]
        mirrored = {**mirrored_as(grown.session), STORED_AT: now}
        if transcript.subpath is None:
            mirrored[SUMMARY] = _folded(record.session, transcript, [*(earlier or ()), *added])
        session = replace(grown.session, meta={**grown.session.meta, MIRRORED: mirrored})
        await tx.rewrite(replace(grown, session=session), "append")
        return session.id

    async def _listed(self, project_key: str) -> list[tuple[TranscriptKey, Session]]:
        """The project's sessions, without those of subagents, each once."""
        channel = TranscriptKey(project_key=project_key, session_id="").channel
        found: dict[str, tuple[TranscriptKey, Session]] = {}
        async for session in self._sessions.catalog.every(
            self._who, Filter(channel=channel, archived="include")
        ):
            key = key_of(session)
            is_whole = session.source is not None and key is not None and key.subpath is None
            if is_whole and key is not None and key.project_key == project_key:
                found[key.session_id] = key, session
        return list(found.values())

    def _entry(self, given: SessionStoreEntry) -> Entry:
        record = cast(Json, given)
        if not isinstance(record, dict):
            raise InvalidInput("an entry must be a JSON object")
        uuid, stamp = record.get("uuid"), record.get("timestamp")
        at = milliseconds(stamp) if isinstance(stamp, str) else None
        name = short(uuid) if isinstance(uuid, str) and uuid else self._new_id()
        return mirror_entry(record, name, self._now() if at is None else max(at, 0))


def _stored_at(session: Session) -> int:
    at = mirrored_as(session).get(STORED_AT)
    return at if isinstance(at, int) else session.updated_at


def _summary(session: Session) -> SessionSummaryEntry | None:
    kept = mirrored_as(session)
    if not isinstance(kept.get(SUMMARY), dict):
        return None
    return {"session_id": kept["session_id"], "mtime": _stored_at(session), "data": kept[SUMMARY]}


def _folded(session: Session, transcript: TranscriptKey, records: Sequence[Json]) -> dict[str, Any]:
    key: SessionKey = {"project_key": transcript.project_key, "session_id": transcript.session_id}
    return fold_session_summary(_summary(session), key, cast("list[SessionStoreEntry]", list(records)))[
        "data"
    ]
