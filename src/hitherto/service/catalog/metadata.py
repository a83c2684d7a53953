"""What is said about a session: its titles, tags, folders and free metadata, as fields to be changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitherto.errors import InvalidInput
from hitherto.limits import EARLIER_CWDS, EARLIER_TITLES
from hitherto.model import DRAFT, Json, Principal, Session
from hitherto.ports import Store, Writer
from hitherto.service.idempotency import expect_revision
from hitherto.service.records import change_session, require_session
from hitherto.service.validation import CLAIMED, checked_meta, checked_tags
from hitherto.values.filters import normal_cwd

SETTLING = frozenset(("rename", "tag", "pin", "archive"))
"""What a user does to a session that is to be kept though nothing was said in it yet."""


async def edit_session(
    store: Store,
    who: Principal,
    session_id: str,
    kind: str,
    edit: Callable[[Session], Json],
    expected_revision: int | None = None,
) -> Session:
    """Change fields of a session; nothing is written when they are as they were."""

    async def work(tx: Writer) -> Session:
        record = await require_session(tx, who, session_id)
        expect_revision(record, expected_revision)
        fields = edit(record.session)
        if kind in SETTLING and DRAFT in record.session.meta:
            fields = {**listed_fields(record.session), **fields}
        if all(getattr(record.session, name) == value for name, value in fields.items()):
            return record.session
        return (await change_session(tx, record, kind, **fields)).session

    return await store.write(work, session_id)


def title_fields(session: Session, title: str | None, by: str | None) -> Json:
    """The fields of a new title; the one before is remembered."""
    earlier = [old for old in session.earlier_titles if old != title]
    if session.title is not None and session.title != title:
        earlier.append(session.title)
    return {"title": title, "title_by": by, "earlier_titles": tuple(earlier[-EARLIER_TITLES:])}


def tag_fields(session: Session, add: Sequence[str], remove: Sequence[str]) -> Json:
    """The fields of a session with and without these tags."""
    if isinstance(add, str) or isinstance(remove, str):
        raise InvalidInput("tags must be a list of texts")
    return {"tags": checked_tags([*(set(session.tags) - set(remove)), *add])}


def meta_fields(session: Session, changes: Json) -> Json:
    """The fields of a session with these keys in its metadata; a key with None is taken out."""
    both = {**session.meta, **changes}
    return {"meta": checked_meta({name: value for name, value in both.items() if value is not None})}


def folder_fields(session: Session, cwds: Sequence[str]) -> Json:
    """The fields of a session that has been in these folders, the last of which is the present one."""
    seen = dict.fromkeys([*session.earlier_cwds, *filter(None, [session.cwd]), *map(normal_cwd, cwds)])
    present = normal_cwd(cwds[-1]) if cwds else session.cwd
    return {"cwd": present, "earlier_cwds": tuple(cwd for cwd in seen if cwd != present)[-EARLIER_CWDS:]}


def claim_fields(who: Principal, session: Session, fields: Json) -> Json:
    """The fields of a session whose folder is named, with a note of whether that opens it: see `CLAIMED`."""
    if not who.local:
        return {**fields, "meta": {**session.meta, CLAIMED: True}}
    if CLAIMED not in session.meta:
        return fields
    meta = {name: value for name, value in session.meta.items() if name != CLAIMED}
    return {"additional_directories": (), **fields, "meta": meta}


def listed_fields(session: Session) -> Json:
    """The fields of a session that lists show."""
    return {"archived": False, "meta": {name: value for name, value in session.meta.items() if name != DRAFT}}


def folders_of(session: Session) -> tuple[str, ...]:
    """The folders of this machine that tools may touch in the session, its own first."""
    if session.cwd is None or CLAIMED in session.meta:
        return ()
    return (session.cwd, *session.additional_directories)
