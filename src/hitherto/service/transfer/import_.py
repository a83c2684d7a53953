"""Imports: a session is checked completely before anything is written, and written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import AlreadyExists, SessionDeleted
from hitherto.exports.lines import spans_of
from hitherto.exports.read import Foreign, unfolded
from hitherto.model import Address, Principal, Session
from hitherto.ports import Record, Writer
from hitherto.service.catalog.sessions import add_session
from hitherto.service.core import Core
from hitherto.service.history.erased import adopt_erased, load_erased, lost_titles
from hitherto.service.history.erasure import erase_entries
from hitherto.service.history.grounds import titles_of, titles_of_prompt
from hitherto.service.records import is_erased
from hitherto.service.transfer.migrated import (
    COPIED_FROM,
    Migration,
    migration_of,
    placed,
    under_id,
)
from hitherto.service.transfer.parcel import Parcel, read_parcel
from hitherto.service.transfer.untrusted import check_import_size, parcel_of_messages, sanitize_untrusted
from hitherto.service.validation import checked_owner
from hitherto.values import spans as algebra


class Unpacked(NamedTuple):
    """What an import is to write, and whether that is a session restored as it was."""

    parcel: Parcel
    restores: bool


def unpack(lines: Sequence[bytes], first_line: int, trusted: bool, now: int) -> Unpacked:
    """The session of these lines, checked: all of it if it is trusted, else only what was said."""
    if not trusted:
        check_import_size(lines)
    given = unfolded(lines, first_line)
    if isinstance(given, Foreign):
        return Unpacked(parcel_of_messages(given, now), restores=False)
    parcel = read_parcel(given, first_line)
    return (
        Unpacked(parcel, restores=True)
        if trusted
        else Unpacked(sanitize_untrusted(parcel, now), restores=False)
    )


def unpack_migration(lines: Sequence[bytes], now: int) -> Migration:
    """The session of these lines, checked, with all that a file may set."""
    check_import_size(lines)
    given = unfolded(lines)
    if isinstance(given, Foreign):
        made = parcel_of_messages(given, now, with_roles=True)
        return Migration(made, "", made.session.id, ())
    return migration_of(read_parcel(given), given, now)


def with_new_id(parcel: Parcel, key: str | None, new_id: Callable[[], str]) -> Parcel:
    """The same under a new id; the original keeps its key and its facts."""
    ids: dict[str | None, str] = {fact.id: new_id() for fact in parcel.facts}
    facts = (
        replace(fact, id=ids[fact.id], invalidated_by=ids.get(fact.invalidated_by, fact.invalidated_by))
        for fact in parcel.facts
    )
    return replace(parcel, session=replace(parcel.session, id=new_id(), key=key), facts=tuple(facts))


async def put_parcel(
    owner: str, parcel: Parcel, now: int, key: bytes, include_deleted: bool, tx: Writer
) -> Session:
    """Write a session whole, without what was erased here, under whichever name. `AlreadyExists` if one of its id is there,
    `SessionDeleted` if it was deleted here, unless it is to `include_deleted`."""
    session = await _without_lost_titles(owner, parcel, key, tx)
    for name in () if include_deleted else parcel.known_as:
        if await tx.buried(owner, name.session):
            raise SessionDeleted(name.session)
    if await tx.session(owner, session.id) is not None:
        raise AlreadyExists(f"a session {session.id!r} already exists: import it under a new id (--new-id)")
    # The title comes last, as in an append: it is the newest document of the session.
    bare = replace(session, title=None, title_by=None, earlier_titles=())
    record = await add_session(tx, owner, bare, order_at=min(session.updated_at, now))
    if parcel.rows:
        record = replace(record, head=len(parcel.rows), totals=parcel.rows[-1].totals)
        record = await tx.extend(record, parcel.rows)
    record = await tx.rewrite(replace(record, session=session), "import")
    await _put_beside(record, parcel, tx)
    return await _erase_again(record, parcel, key, tx)


class Migrated(NamedTuple):
    """The session that was made, or that was there already, and what its file may not set."""

    session: Session
    left_out: tuple[str, ...]


async def put_migration(
    who: Principal, given: Migration, there: Address, core: Core, include_deleted: bool, tx: Writer
) -> Migrated:
    """Write a session under the id of its file, or under another if that is taken: by the key that is asked for, it is a new
    one, else the one that the file's content gives it. What was made from the same file is not made again."""
    owner, parcel, left = checked_owner(who), given.parcel, set(given.left_out)
    for session_id in (parcel.session.id, given.other_id):
        known = await tx.session(owner, session_id)
        if known is None:
            break
        same = known.session.meta.get(COPIED_FROM) == given.digest if given.digest else True
        if same and there.key in (None, known.session.key):
            return Migrated(known.session, tuple(sorted(left)))
    else:
        session_id = core.new_id()
    if session_id != parcel.session.id:
        left.add("id")
        parcel = under_id(parcel, session_id)
    parent = parcel.session.parent
    if parent is not None and await tx.session(owner, parent) is None:
        left.add("parent")
        parcel = replace(parcel, session=replace(parcel.session, parent=None, parent_entry=None))
    parcel = placed(parcel, there, core.new_id)
    core.home.check_session(parcel.session)
    made = await put_parcel(owner, parcel, core.now(), core.store.secret, include_deleted, tx)
    return Migrated(made, tuple(sorted(left)))


async def _without_lost_titles(owner: str, parcel: Parcel, key: bytes, tx: Writer) -> Session:
    """The session without titles that were made from what was erased here, unless its own prompts give them too."""
    session = parcel.session
    if lost := await lost_titles(tx, key, owner, titles_of(session)):
        lost -= {title for row in parcel.rows for title in titles_of_prompt(row.entry)}
    kept = tuple(title for title in session.earlier_titles if title not in lost)
    if session.title in lost:
        return replace(session, title=None, title_by=None, earlier_titles=kept)
    return replace(session, earlier_titles=kept)


async def _erase_again(record: Record, parcel: Parcel, key: bytes, tx: Writer) -> Session:
    """Erase in a session what was erased here before; returns it."""
    owner, gone = record.owner, set[str]()
    for name, entries in parcel.known_as:
        await adopt_erased(tx, key, owner, name, entries)
        erased = await load_erased(tx, key, owner, name)
        gone |= {row.entry.id for row, each in zip(parcel.rows, entries, strict=True) if erased.holds(each)}
    again = [row.entry.id for row in parcel.rows if row.entry.id in gone and not is_erased(row.entry)]
    return (await erase_entries(tx, key, record, again)).session


async def _put_beside(record: Record, parcel: Parcel, tx: Writer) -> None:
    owner, num = record.owner, record.num
    for checkpoint, ranges in parcel.checkpoints:
        await tx.put_checkpoint(owner, num, checkpoint, spans_of(ranges, num))
    for copy in parcel.copies:
        await tx.put_raw_copy(owner, num, copy)
    await tx.put_spans(owner, num, algebra.opened(spans_of(parcel.spans, num), num, record.head))
    await tx.put_facts(owner, [replace(fact, session=record.session.id) for fact in parcel.facts])
