"""Hitherto as the session store of `claude-agent-sdk`.

    async with hitherto.open() as sessions:
        options = ClaudeAgentOptions(session_store=SessionStore(sessions))

Each transcript the SDK mirrors (a session's own, and one for each subagent) is a session here, so that it is listed,
searched, forked and exported like any other. Each of its entries is one entry: what was said can be read, and the
entry as the SDK gave it stands whole in `meta`. Only the SDK writes to these sessions; to others they are read-only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from hitherto.errors import AlreadyExists, InvalidInput
from hitherto.limits import CWD_CHARS, LIST_PAGE, NAME_CHARS, TITLE_CHARS, is_storable
from hitherto.model import (
    LOCAL,
    Entry,
    Filter,
    Json,
    Principal,
    Role,
    Session,
    Text,
    Value,
    decode_json,
    encode,
)
from hitherto.model import plain_text as said_in
from hitherto.ports import Reader, Record, Writer
from hitherto.service import Sessions
from hitherto.service.catalog.metadata import title_fields
from hitherto.service.catalog.sessions import add_session
from hitherto.service.history.append import append_entries
from hitherto.service.records import load_lists
from hitherto.service.validation import checked_owner
from hitherto.values.filters import normal_cwd
from hitherto.values.titles import clean_title, title_from

if TYPE_CHECKING:
    from claude_agent_sdk.types import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

PREFIX = "claude-sdk:"
SOURCE = "claude-agent-sdk"
AGENT = "claude"
META = "claude_sdk"
"""The key in `meta`: of an entry, for the SDK's entry; of a session, for the project and id it belongs to."""
SUBKEYS = 100_000
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
Fold = Callable[..., Mapping[str, Any]]
PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class TranscriptKey(Value, frozen=True):
    """A transcript: the SDK's key, and its ids here."""

    project_key: str
    session_id: str
    subpath: str | None = None

    @property
    def main(self) -> str:
        """The id of the session that the transcript belongs to; unique across projects."""
        label = self.session_id if PLAIN.fullmatch(self.session_id) else ""
        return f"{PREFIX}{label}:{_digest([self.project_key, self.session_id])[:32]}"

    @property
    def id(self) -> str:
        """The id of the transcript itself."""
        return self.main if self.subpath is None else f"{self.main}/{_short(self.subpath)}"

    @property
    def channel(self) -> str:
        """A value that all transcripts of the project share, to list them by."""
        return PREFIX + _short(self.project_key)


class SessionStore:
    """The SDK's `SessionStore` over `Sessions`, for one owner. Appends are durable when they return."""

    def __init__(self, sessions: Sessions, who: Principal = LOCAL) -> None:
        core = sessions.core
        self._store, self._now, self._new_id = core.store, core.now, core.new_id
        self._sessions = sessions
        self._who = who
        self._owner = checked_owner(who)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries in order, all or none. An entry whose `uuid` the transcript has is not added again."""
        if not entries:
            return
        # Imported here: the SDK takes seconds to import, and is loaded whenever it calls this.
        from claude_agent_sdk import fold_session_summary

        batch: dict[str, Entry] = {}
        for given in entries:
            entry = self._entry(given)
            batch.setdefault(entry.id, entry)
        fold = partial(fold_session_summary, key=key)
        try:
            await self._store.write(partial(self._add, _transcript_key(key), fold, tuple(batch.values())))
        except AlreadyExists:
            await self._store.write(partial(self._add_missing, _transcript_key(key), fold, batch))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries of a transcript in the order they were added; None if there is no such transcript."""

        async def work(tx: Reader) -> list[bytes] | None:
            record = await tx.session(self._owner, _transcript_key(key).id)
            if record is None:
                return None
            return await tx.payloads(self._owner, (await load_lists(tx, record)).conversation())

        payloads = await self._store.read(work)
        if payloads is None:
            return None
        metas = (decode_json(payload).get("meta", {}) for payload in payloads)
        # Entries that were erased here, and summaries made here, are not the SDK's.
        return [meta[META] for meta in metas if META in meta]

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project with the time of their last append."""
        found = await self._listed(project_key)
        return [
            {"session_id": _kept(session)["session_id"], "mtime": session.updated_at} for session in found
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What the SDK needs to list the sessions of a project without loading them."""
        summaries = map(_summary, await self._listed(project_key))
        return cast("list[SessionSummaryEntry]", list(filter(None, summaries)))

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript, and a session's with those of its subagents; a missing one is no error."""
        transcript = _transcript_key(key)

        async def work(tx: Writer) -> None:
            own = await tx.session(self._owner, transcript.id)
            subs = await self._subs(tx, transcript) if transcript.subpath is None else []
            for record in filter(None, [own, *subs]):
                await tx.bury(record, self._now())

        await self._store.write(work)
        await self._sessions.admin.collect()

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session's further transcripts."""
        records = await self._store.read(lambda tx: self._subs(tx, _transcript_key(key)))
        return [_kept(record.session)["subpath"] for record in records]

    async def _add(self, transcript: TranscriptKey, fold: Fold, fresh: Sequence[Entry], tx: Writer) -> None:
        record = await self._record(tx, transcript)
        grown = await append_entries(tx, record, fresh, self._now(), self._store.secret)
        session = _described(grown.session, fresh)
        if transcript.subpath is None:
            summary = fold(prev=_summary(session), entries=[entry.meta[META] for entry in fresh])
            kept = {**_kept(session), "summary": summary["data"]}
            session = replace(session, meta={**session.meta, META: kept})
        if session != grown.session:
            await tx.rewrite(replace(grown, session=session), "append")

    async def _add_missing(
        self, transcript: TranscriptKey, fold: Fold, batch: dict[str, Entry], tx: Writer
    ) -> None:
        record = await self._record(tx, transcript)
        known = {name: await tx.locate(self._owner, [record.num], name) for name in batch}
        if missing := [entry for name, entry in batch.items() if not known[name]]:
            await self._add(transcript, fold, missing, tx)

    async def _record(self, tx: Writer, transcript: TranscriptKey) -> Record:
        """The session of a transcript, created if it is new."""
        record = await tx.session(self._owner, transcript.id)
        if record is not None:
            return record
        now = self._now()
        session = Session(
            id=transcript.id,
            revision=1,
            created_at=now,
            updated_at=now,
            agent_id=AGENT,
            channel=transcript.channel,
            source=SOURCE,
            parent=None if transcript.subpath is None else transcript.main,
            meta={META: decode_json(encode(transcript))},
        )
        return await add_session(tx, self._owner, session)

    async def _subs(self, tx: Reader, transcript: TranscriptKey) -> list[Record]:
        ids = await tx.with_prefix(self._owner, f"{transcript.main}/", SUBKEYS)
        return [record for name in ids if (record := await tx.session(self._owner, name)) is not None]

    async def _listed(self, project_key: str) -> list[Session]:
        """The project's sessions, without those of subagents, each once."""
        wanted = Filter(
            channel=TranscriptKey(project_key=project_key, session_id="").channel, archived="include"
        )
        found: dict[str, Session] = {}
        cursor: str | None = None
        while True:
            page = await self._sessions.find(self._who, wanted, cursor=cursor, limit=LIST_PAGE)
            found |= {session.id: session for session in page.sessions if session.source == SOURCE}
            if (cursor := page.cursor) is None:
                return [session for session in found.values() if "subpath" not in _kept(session)]

    def _entry(self, given: SessionStoreEntry) -> Entry:
        record = cast(Json, given)
        if not isinstance(record, dict):
            raise InvalidInput("an entry must be a JSON object")
        uuid = record.get("uuid")
        return Entry(
            id=_short(uuid) if isinstance(uuid, str) and uuid else self._new_id(),
            at=self._now(),
            role=_role(record) or "system",
            parts=tuple(Text(text=text) for text in _said(record)),
            meta={META: record},
        )


def _transcript_key(key: Mapping[str, Any]) -> TranscriptKey:
    texts = (key["project_key"], key["session_id"], key.get("subpath") or "")
    if not all(isinstance(text, str) for text in texts):
        raise InvalidInput("the parts of a session key must be strings")
    return TranscriptKey(project_key=texts[0], session_id=texts[1], subpath=texts[2] or None)


def _kept(session: Session) -> Json:
    """The SDK's key of a transcript, and its summary."""
    kept: Json = session.meta[META]
    return kept


def _summary(session: Session) -> Json | None:
    kept = _kept(session)
    if "summary" not in kept:
        return None
    return {"session_id": kept["session_id"], "mtime": session.updated_at, "data": kept["summary"]}


def _role(record: Json) -> Role | None:
    """The role of a message; None for other records."""
    kind = record.get("type")
    return ROLES.get(kind) if isinstance(kind, str) else None


def _said(record: Json) -> list[str]:
    """The text of a message for people; the rest is only kept."""
    message = record.get("message")
    if _role(record) is None or record.get("isMeta") is True or not isinstance(message, dict):
        return []
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return [text for text in texts if isinstance(text, str)]


def _described(session: Session, entries: Sequence[Entry]) -> Session:
    """The session with the title and folder from new entries; a title that its owner set here stays."""
    records = [entry.meta[META] for entry in entries]
    if session.cwd is None:
        session = replace(session, cwd=next(filter(None, map(_folder, records)), None))
    given = _last(records, "custom-title", "customTitle")
    if given and session.title_by != "user":
        return replace(session, **title_fields(session, given, "source"))
    made = _last(records, "ai-title", "aiTitle")
    if made and session.title_by in (None, "auto"):
        return replace(session, **title_fields(session, made, "auto"))
    if session.title is None:
        prompts = (title_from(said_in(entry)) for entry in entries if entry.role == "user")
        if first := next(filter(None, prompts), None):
            return replace(session, **title_fields(session, first, "auto"))
    return session


def _last(records: Sequence[Json], kind: str, field: str) -> str | None:
    titles = (_text(record, field) for record in reversed(records) if record.get("type") == kind)
    return next((clean for title in titles if title and (clean := clean_title(title[:TITLE_CHARS]))), None)


def _folder(record: Json) -> str | None:
    cwd = _text(record, "cwd") or ""
    return normal_cwd(cwd) if cwd.startswith("/") and len(cwd) <= CWD_CHARS else None


def _text(record: Json, field: str) -> str | None:
    value = record.get(field)
    return value if isinstance(value, str) and is_storable(value) else None


def _short(text: str) -> str:
    """The text if it is valid in an id, else its digest; two texts never get the same."""
    return (
        text if len(text) < NAME_CHARS // 2 and is_storable(text) and text[:1] != "~" else f"~{_digest(text)}"
    )


def _digest(value: object) -> str:
    return hashlib.sha256(encode(value)).hexdigest()
