"""Sync: sessions that other agents keep in their own files. What you deleted here stays deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.limits import NAME_CHARS, is_storable
from hitherto.model import (
    MIRROR_READ,
    MIRRORED,
    Entry,
    Json,
    Principal,
    Session,
    TitleBy,
    Value,
    decode_entry,
    plain_text,
)
from hitherto.ports import PackedCopy, RawCopy, Reader, Record, Writer
from hitherto.service.catalog.metadata import claim_fields, folder_fields, title_fields
from hitherto.service.catalog.sessions import add_session
from hitherto.service.compaction.imported import (
    Branch,
    Retired,
    Summarised,
    build_spans,
    forms_of,
    put_retired,
)
from hitherto.service.core import Core
from hitherto.service.history.append import EncodedEntry, append_encoded, encode_entry
from hitherto.service.history.branches import branch_id, load_branches, put_branches
from hitherto.service.history.checkpoints import add_checkpoint
from hitherto.service.history.erased import NUMBERED, Erased, adopt_erased, load_erased
from hitherto.service.history.grounds import grounded_titles
from hitherto.service.records import Lists, change_session, is_erased, load_lists, recount_session
from hitherto.service.validation import (
    checked_entry,
    checked_meta,
    checked_owner,
    checked_required,
    checked_tags,
    checked_title,
)
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace, Span, Spans, Stretch
from hitherto.values.titles import stand_in

BATCH = 1_000
BEGINNING = 50
"""Of how many entries a title is looked for that no prompt gives."""
FROM_SOURCE = "source_tags"
UNFINISHED = "unfinished"
"""The span list that holds entries while a long session is synced in batches; no checkpoint has such an id."""


class MirrorMark(Value, frozen=True):
    """Up to where the mirror of a session was read before, and with this."""

    before: tuple[int, ...] | None
    after: tuple[int, ...]


class Imported(Value, frozen=True):
    """A session as its agent's own files have it. `id` has the source's name in front: `claude:…`. `cwds` are the folders
    that it has been in, in order. `mirror` is given if the records that a program mirrors here were read too."""

    id: str
    source: str
    created_at: int
    updated_at: int
    cwd: str | None = None
    cwds: tuple[str, ...] = ()
    project: str | None = None
    branch: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    agent_id: str | None = None
    parent: str | None = None
    parent_entry: str | None = None
    archived: bool = False
    mirror: MirrorMark | None = None
    meta: Json = {}  # noqa: RUF012 - frozen, and msgspec copies a default that is empty


class SyncResult(Value, frozen=True):
    """What a sync of one session did. `refused`: its owner deleted it here, so it was not imported. `mirrored`: it was not
    imported since what a program mirrors of it here was not read with it, or has been read further meanwhile."""

    created: bool = False
    appended: int = 0
    reshaped: bool = False
    refused: bool = False
    mirrored: bool = False


class SyncInput(NamedTuple):
    """Everything a sync of one session is given; an amended entry is the first of the entries."""

    imported: Imported
    entries: Sequence[EncodedEntry]
    extends: bool
    amended: Entry | None
    compactions: Sequence[Summarised]
    branches: Sequence[Branch]
    raw: Sequence[RawCopy] | Sequence[PackedCopy]
    revive: bool
    who: Principal


class SyncImport:
    """Syncs one session."""

    def __init__(self, core: Core) -> None:
        self._core, self._store, self._now = core, core.store, core.now

    async def take(self, source: SyncInput) -> SyncResult:
        """Make the session in the store what its source says. See `Transfer.sync`."""
        owner = checked_owner(source.who)
        checked_required(source.imported.id, "a session id")
        checked_required(source.imported.source, "a source")
        if source.amended is not None:
            source = source._replace(entries=[encode_entry(checked_entry(source.amended)), *source.entries])
        taken = await self._store.write(partial(self._at_once, owner, source))
        return taken if isinstance(taken, SyncResult) else await self._in_batches(*taken)

    async def _at_once(
        self, owner: str, source: SyncInput, tx: Writer
    ) -> SyncResult | tuple[SyncInput, Record, bool]:
        """Everything in one transaction; of a long session only the record, the entries follow in batches."""
        record = await tx.session(owner, source.imported.id)
        if record is None and source.revive:
            said = [each.entry for each in source.entries]
            await adopt_erased(tx, self._store.secret, owner, source.imported.id, said)
        erased = await load_erased(tx, self._store.secret, owner, source.imported.id)
        source = _without_erased(source, erased)
        created = record is None
        if record is None:
            if not source.revive and await tx.buried(owner, source.imported.id):
                return SyncResult(refused=True)
            if _is_plain(source) and not erased:
                return await self._make(tx, owner, source)
            record = await self._begin(tx, owner, source.imported)
        _check_source(record, source.imported)
        if not _reads_mirror(record, source.imported):
            return SyncResult(mirrored=True)
        if len(source.entries) > BATCH:
            return source, record, created
        ids, seqs, fresh = await _locate_entries(record, source.entries, tx)
        if fresh:
            seqs |= await self._add(record, fresh, tx)
        reshaped = await self._finish(record, source, [seqs[name] for name in ids], tx)
        return SyncResult(created=created, appended=len(fresh), reshaped=reshaped)

    async def _in_batches(self, source: SyncInput, record: Record, created: bool) -> SyncResult:
        ids, seqs, fresh = await self._store.read(partial(_locate_entries, record, source.entries))
        for start in range(0, len(fresh), BATCH):
            seqs |= await self._store.write(partial(self._add_held, record, fresh[start : start + BATCH]))
        numbers = [seqs[name] for name in ids]
        reshaped = await self._store.write(partial(self._finish_batches, record, source, numbers))
        if reshaped is None:
            return SyncResult(mirrored=True)
        return SyncResult(created=created, appended=len(fresh), reshaped=reshaped)

    async def _finish_batches(
        self, old: Record, source: SyncInput, seqs: Sequence[int], tx: Writer
    ) -> bool | None:
        """`_finish`; None if the mirror was read further since the first batch."""
        if not _reads_mirror(await required_source(tx, old), source.imported):
            return None
        return await self._finish(old, source, seqs, tx)

    async def _make(self, tx: Writer, owner: str, source: SyncInput) -> SyncResult:
        """A new session with all of its entries, as most are: nothing is looked up that cannot be there."""
        now, count = self._now(), len(source.entries)
        session = _with_source_metadata(_blank(source.imported), source)
        order_at = max(min(session.updated_at, now), 0)
        record = await tx.insert(Record(num=0, owner=owner, session=session, order_at=order_at))
        await append_encoded(tx, record, source.entries, now, self._store.secret)
        await tx.put_spans(owner, record.num, [Span(record.num, 1, count)])
        for copy in source.raw:
            await tx.put_raw_copy(owner, record.num, copy)
        return SyncResult(created=True, appended=count)

    async def _begin(self, tx: Writer, owner: str, imported: Imported) -> Record:
        order_at = min(imported.updated_at, self._now())
        record = await add_session(tx, owner, _blank(imported), order_at=order_at)
        await tx.put_spans(owner, record.num, ())
        return record

    async def _add(self, old: Record, entries: Sequence[EncodedEntry], tx: Writer) -> dict[str, int]:
        """Store entries in the session's log and say where; no span reaches them yet, so nobody sees them."""
        record = await required_source(tx, old)
        # Once more: it may have been erased since the first batch.
        entries = (await load_erased(tx, self._store.secret, old.owner, old.session.id)).without(entries)
        grown = await append_encoded(tx, record, entries, self._now(), self._store.secret)
        kept = replace(record.session, revision=grown.session.revision)
        await tx.rewrite(replace(grown, session=kept, order_at=record.order_at), "sync")
        return {each.entry.id: seq for seq, each in enumerate(entries, record.head + 1)}

    async def _add_held(self, old: Record, entries: Sequence[EncodedEntry], tx: Writer) -> dict[str, int]:
        """The same, and a span list of its own holds them, so that nobody collects what is not reached yet."""
        seqs = await self._add(old, entries, tx)
        await tx.put_spans(old.owner, old.num, [Span(old.num, 1, max(seqs.values()))], UNFINISHED)
        return seqs

    async def _finish(self, old: Record, source: SyncInput, seqs: Sequence[int], tx: Writer) -> bool:
        """Write the spans over the entries and the metadata; True if entries that were there are gone."""
        record = await required_source(tx, old)
        known = await load_lists(tx, record)
        before = known.present
        placed = [(each.entry, seq) for each, seq in zip(source.entries, seqs, strict=True)]
        if source.amended is not None and source.extends:
            known, placed = await _apply_amendment(tx, known, source.amended.id, seqs[0]), placed[1:]
        behind = known.present if source.extends else ()
        aside = sum(branch.size for branch in source.branches)
        said, beside = placed[: len(placed) - aside], placed[len(placed) - aside :]
        spans, retired = await build_spans(tx, record, behind, said, source.compactions)
        spans = algebra.closed(spans, record.num, record.head)
        held = known.expansions | {each.checkpoint: each.spans for each in retired}
        lists = Lists(record, spans, held)
        now = lists.conversation()
        tree = await _build_branches(tx, lists, dict(_seqs(placed)), beside, source.branches)
        covered = [*now, *tree.stretches]
        if source.extends and not source.branches:
            covered += [each for branch in await load_branches(tx, record) for each in branch.own(now)]
        lost = bool(algebra.said_since(known.conversation(), covered))
        if lost:
            await add_checkpoint(self._core, tx, record, "sync")
        retired += tree.retired
        await put_retired(tx, record, retired)
        if source.branches or not source.extends:
            await put_branches(tx, record, tree.branches, covered)
        erased = await load_erased(tx, self._store.secret, record.owner, record.session.id)
        if erased:
            source = (await _with_grounded_title(tx, record, now, source))._replace(raw=())
        await _put_raw(tx, record, source)
        described = _with_source_metadata(record.session, source)
        compacted = retired[-1].summary.at if retired else described.last_compaction
        described = replace(described, last_compaction=compacted if algebra.summaries(spans) else None)
        session = await recount_session(tx, record, spans, described)
        if session == record.session and spans == before:
            return False
        await tx.put_spans(record.owner, record.num, spans)
        await tx.put_spans(record.owner, record.num, (), UNFINISHED)
        order_at = max(min(session.updated_at, self._now()), 0)
        await change_session(tx, replace(record, session=session, order_at=order_at), "sync")
        return lost


class _Tree(NamedTuple):
    """The branches of a session: the spans of each and when it ended, by id; what their summaries stand for; all they say."""

    branches: dict[str, tuple[Spans, int]]
    retired: list[Retired]
    stretches: list[Stretch]


async def _build_branches(
    tx: Reader,
    lists: Lists,
    seqs: dict[str, int],
    entries: Sequence[tuple[Entry, int]],
    branches: Sequence[Branch],
) -> _Tree:
    """Spans over the entries of each branch, behind where it leaves the conversation or a branch before it."""
    record, tree = lists.record, _Tree({}, [], [])
    left = [lists.present]
    held = dict(lists.expansions)
    for branch in branches:
        own, entries = entries[: branch.size], entries[branch.size :]
        behind = _behind(left, None if branch.after is None else seqs.get(branch.after), record.num, held)
        spans, retired = await build_spans(tx, record, behind, own, branch.compactions)
        spans = algebra.closed(spans, record.num, record.head)
        held |= {each.checkpoint: each.spans for each in retired}
        left.append(spans)
        ended = max(entry.at for entry, _ in own)
        tree.branches[branch_id(record.session.id, own[0][0].id)] = (spans, ended)
        tree.retired.extend(retired)
        tree.stretches.extend(Lists(record, spans, held).conversation())
    return tree


def _behind(lists: Sequence[Spans], seq: int | None, log: int, held: dict[str, Spans]) -> Spans:
    """The beginning of the first of these lists that has the entry at this place, up to and including it."""
    if seq is None:
        return ()
    cuts = (algebra.cut(spans, EntryPlace(log, seq), lambda name: held.get(name, ())) for spans in lists)
    return next((cut for cut in cuts if cut is not None), ())


def _seqs(placed: Sequence[tuple[Entry, int]]) -> Iterator[tuple[str, int]]:
    return ((entry.id, seq) for entry, seq in placed)


def _without_erased(source: SyncInput, erased: Erased) -> SyncInput:
    """What is given, without what was erased here. A summary that its agent made may tell of it, so none is taken."""
    if not erased:
        return source
    summaries = [each.summary for each in source.compactions]
    branches = [branch._replace(compactions=()) for branch in source.branches]
    summaries += [each.summary for branch in source.branches for each in branch.compactions]
    entries = erased.without(source.entries, summaries)
    return source._replace(entries=entries, compactions=(), branches=branches)


async def _with_grounded_title(
    tx: Reader, record: Record, view: Sequence[Stretch], source: SyncInput
) -> SyncInput:
    """What is given, with the title of the first prompt in place of one that may tell of what was erased here."""
    title = checked_title(source.imported.title)
    named = replace(record.session, title=title, title_by="source", earlier_titles=())
    fields = await grounded_titles(tx, record.owner, view, named)
    return source._replace(imported=replace(source.imported, title=fields.get("title", title)))


def _check_source(record: Record, imported: Imported) -> None:
    if record.session.source != imported.source:
        raise InvalidInput(
            f"session {imported.id!r} exists already and was not synced from {imported.source}"
        )


def _reads_mirror(record: Record, imported: Imported) -> bool:
    """Whether what was read has all that a program mirrors of the session, and nobody has read more of that."""
    meta, mark = record.session.meta, imported.mirror
    if mark is None:
        return MIRRORED not in meta
    known = meta.get(MIRROR_READ)
    return (None if known is None else tuple(known)) == mark.before


def _is_plain(source: SyncInput) -> bool:
    """Whether a new session can be written down as it comes: not too long, each entry once and none too late."""
    entries = source.entries
    return (
        not source.extends
        and source.imported.mirror is None
        and not source.compactions
        and not source.branches
        and 0 < len(entries) <= BATCH
        and len({each.entry.id for each in entries}) == len(entries)
        and max(each.entry.at for each in entries) <= source.imported.updated_at
    )


def _blank(imported: Imported) -> Session:
    return Session(
        id=imported.id,
        revision=1,
        created_at=imported.created_at,
        updated_at=imported.updated_at,
        source=imported.source,
        parent=imported.parent,
        parent_entry=_kept_name(imported.parent_entry),
    )


async def _put_raw(tx: Writer, record: Record, source: SyncInput) -> None:
    if source.raw and not source.extends:
        await tx.drop_raw_copies(record.owner, record.num)
    for copy in source.raw:
        await tx.put_raw_copy(record.owner, record.num, copy)


async def _apply_amendment(tx: Writer, lists: Lists, entry_id: str, new: int) -> Lists:
    """The lists with the entry at `new` in the place of the form that the entry of this id had before."""
    record = lists.record
    forms = [place async for place in forms_of(tx, record, entry_id)]
    expansions = dict(lists.expansions)
    for name, spans in lists.expansions.items():
        if (changed := _with_entry_replaced(spans, forms, new)) != spans:
            await tx.put_spans(record.owner, record.num, changed, name)
            expansions[name] = changed
    return Lists(record, _with_entry_replaced(lists.present, forms, new), expansions)


def _with_entry_replaced(spans: Spans, forms: Sequence[EntryPlace], new: int) -> Spans:
    """The spans with an entry in the place of the last of its forms that they hold."""
    found = next((form for form in reversed(forms) if any(span.holds(form) for span in spans)), None)
    if found is None or found.seq == new:
        return spans
    out: list[Span] = []
    for span in spans:
        if not span.holds(found):
            out.append(span)
            continue
        pieces = (
            span._replace(last=found.seq - 1),
            span._replace(first=new, last=new),
            span._replace(first=found.seq + 1),
        )
        out += [piece for piece in pieces if piece.last is not None and piece.first <= piece.last]
    return tuple(out)


async def required_source(tx: Reader, old: Record) -> Record:
    """The session as it is now; it may have been deleted meanwhile."""
    record = await tx.session(old.owner, old.session.id)
    if record is None or record.num != old.num:
        raise SessionNotFound(old.session.id)
    return record


async def _locate_entries(
    record: Record, entries: Sequence[EncodedEntry], tx: Reader
) -> tuple[list[str], dict[str, int], list[EncodedEntry]]:
    """The ids under which the entries are kept, in order; where those are that are stored; and those that are not.

    An id whose entry has changed gets a number behind it.
    """
    ids: list[str] = []
    seqs: dict[str, int] = {}
    fresh: dict[str, EncodedEntry] = {}
    for given in entries:
        name, number, named = given.entry.id, 1, given
        while (kept := fresh.get(name) or await _stored(tx, record, name, seqs)) is not None and not _is_same(
            kept.entry, named.entry
        ):
            number += 1
            name = f"{given.entry.id}~{number}"
            named = encode_entry(replace(given.entry, id=name))
        if kept is None:
            fresh[name] = named
        ids.append(name)
    return ids, seqs, list(fresh.values())


def _is_same(kept: Entry, given: Entry) -> bool:
    """Whether an entry of this id is the one that is kept: of one that was erased only its place is."""
    if kept == given or (is_erased(kept) and (is_erased(given) or not NUMBERED.match(given.id))):
        return True
    # What was read before a provider's name for the request was kept has none.
    if kept.usage is None or given.usage is None or kept.usage.request == given.usage.request:
        return False
    return kept == replace(given, usage=replace(given.usage, request=kept.usage.request))


async def _stored(tx: Reader, record: Record, entry_id: str, seqs: dict[str, int]) -> EncodedEntry | None:
    places = await tx.locate(record.owner, [record.num], entry_id) if record.head else []
    if not places:
        return None
    seqs[entry_id] = places[0].seq
    (payload,) = await tx.payloads(record.owner, [Stretch(record.num, places[0].seq, places[0].seq)])
    return EncodedEntry(decode_entry(payload), payload)


def _with_source_metadata(session: Session, source: SyncInput) -> Session:
    """The session with what its source says of it; what its owner said here wins."""
    imported = source.imported
    if imported.cwd is not None or imported.cwds:
        session = replace(session, **claim_fields(source.who, session, {}))
    title = checked_title(imported.title) or (_stand_in(source) if session.title is None else None)
    fields: Json = {}
    if session.title_by != "user" and title is not None and title != session.title:
        by: TitleBy = "source"
        fields = title_fields(session, title, by)
    given = checked_tags(imported.tags)
    was = set(session.meta.get(FROM_SOURCE, ()))
    tags = (set(session.tags) - (was - set(given))) | (set(given) - was)
    meta = {**session.meta, **checked_meta(imported.meta)}
    meta.pop("source_gone", None)
    meta.pop(FROM_SOURCE, None)
    if given:
        meta[FROM_SOURCE] = list(given)
    if imported.mirror is not None:
        meta[MIRROR_READ] = list(imported.mirror.after)
    return replace(
        session,
        created_at=imported.created_at,
        updated_at=imported.updated_at,
        project=_kept_name(imported.project) or session.project,
        branch=_kept_name(imported.branch) or session.branch,
        agent_id=imported.agent_id or session.agent_id,
        parent=session.parent or imported.parent,
        parent_entry=session.parent_entry or _kept_name(imported.parent_entry),
        archived=session.archived or imported.archived,
        tags=tuple(sorted(tags)),
        meta=meta,
        **folder_fields(session, (*imported.cwds, *filter(None, [imported.cwd]))),
        **fields,
    )


def _stand_in(source: SyncInput) -> str | None:
    """A title for a session whose source and prompts give none, from how it begins."""
    first = [each.entry for each in source.entries[:BEGINNING]]
    begun = [entry for entry in first if not entry.meta.get("meta")]
    prompts, answers = (
        [plain_text(entry) for entry in begun if entry.role == role] for role in ("user", "assistant")
    )
    return checked_title(stand_in(prompts, answers))


def _kept_name(text: str | None) -> str | None:
    """A name that somebody else's program has written, if it is one that every store can keep."""
    return text[:NAME_CHARS] if text and is_storable(text) else None
