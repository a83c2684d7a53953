"""Forks: new sessions that share the history of another up to a point. Nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hitherto.model import DRAFT, MIRROR_READ, MIRRORED, RECORDED_IN, RECORDS, Principal, Session
from hitherto.permissions import REMEMBERED
from hitherto.ports import Record, Writer
from hitherto.service.catalog.metadata import claim_fields
from hitherto.service.catalog.sessions import add_session
from hitherto.service.core import Room
from hitherto.service.history.branches import lists_with
from hitherto.service.history.grounds import grounded_titles
from hitherto.service.history.places import cut_at, load_everything
from hitherto.service.records import (
    Lists,
    load_checkpoint,
    load_expansions,
    load_lists,
    recount_session,
    require_session,
)
from hitherto.service.validation import checked_name, checked_title
from hitherto.values import spans as algebra
from hitherto.values.filters import normal_cwd
from hitherto.values.spans import Spans, Stretch

OWN_ALONE = (DRAFT, REMEMBERED, RECORDS, RECORDED_IN, MIRRORED, MIRROR_READ)
"""Metadata of a session that its forks do not inherit."""


class Forks(Room):
    """Forks and branches."""

    async def fork(
        self,
        who: Principal,
        session_id: str,
        *,
        at: str | None = None,
        before: bool = False,
        title: str | None = None,
        cwd: str | None = None,
        new_id: str | None = None,
    ) -> Session:
        """A new session that shares this one's history up to and including the entry `at` (None: all of it), or with
        `before` up to the one before it.

        Nothing is copied, so it costs the same for a long session as for a short one, and the fork stays whole when
        its source is deleted. An entry from before a compaction gives the context of that time, one of a branch what leads
        to it there. `new_id` is the id
        of the fork, if it must have a certain one.
        """
        self._core.home.check_allowed("forked")

        async def work(tx: Writer) -> Session:
            record = await require_session(tx, who, session_id)
            if at is None:
                spans = (await load_lists(tx, record)).closed()
            else:
                lists, _ = await lists_with(tx, record, at)
                spans = await cut_at(tx, lists, at, before=before)
            forked = self._forked(_in_folder(who, record.session, cwd), spans, at, title, new_id)
            return await _add_fork(tx, record, spans, forked)

        return await self._store.write(work, session_id)

    async def branch(
        self,
        who: Principal,
        session_id: str,
        checkpoint: str,
        *,
        title: str | None = None,
        cwd: str | None = None,
    ) -> Session:
        """A new session that starts from a checkpoint."""
        self._core.home.check_allowed("forked")

        async def work(tx: Writer) -> Session:
            record = await require_session(tx, who, session_id)
            spans = (await load_checkpoint(tx, record, checkpoint)).present
            forked = self._forked(_in_folder(who, record.session, cwd), spans, None, title, None)
            return await _add_fork(tx, record, spans, forked)

        return await self._store.write(work, session_id)

    def _forked(
        self, source: Session, spans: Spans, at: str | None, title: str | None, new_id: str | None
    ) -> Session:
        """The session that a fork of this one is."""
        now, given = self._now(), checked_title(title)
        return Session(
            id=checked_name(new_id, "a session id") or self._new_id(),
            revision=1,
            created_at=now,
            updated_at=now,
            cwd=source.cwd,
            additional_directories=source.additional_directories,
            project=source.project,
            branch=source.branch,
            title=given or source.title,
            title_by="user" if given else source.title_by,
            agent_id=source.agent_id,
            channel=source.channel,
            identity=source.identity,
            last_compaction=source.last_compaction if algebra.summaries(spans) else None,
            parent=source.id,
            parent_entry=at,
            meta={name: value for name, value in source.meta.items() if name not in OWN_ALONE},
        )


async def _add_fork(tx: Writer, source: Record, spans: Spans, forked: Session) -> Session:
    """Add a session over the source's entries, with the checkpoints that its summaries stand for."""
    expansions = await load_expansions(tx, source, spans)
    forked = await _with_own_title(tx, source, Lists(source, spans, expansions).conversation(), forked)
    record = await add_session(
        tx, source.owner, await recount_session(tx, source, spans, forked, forked=True)
    )
    for checkpoint in await tx.checkpoints(source.owner, source.num):
        if checkpoint.id in expansions:
            await tx.put_checkpoint(source.owner, record.num, checkpoint, expansions[checkpoint.id])
    await tx.put_spans(source.owner, record.num, algebra.opened(spans, record.num, record.head))
    return record.session


async def _with_own_title(tx: Writer, source: Record, view: Sequence[Stretch], forked: Session) -> Session:
    """The fork with a title that tells of nothing it does not reach: erasing that would not come by here."""
    if algebra.said_since(await load_everything(tx, source), view):
        return replace(forked, **await grounded_titles(tx, source.owner, view, forked))
    return forked


def _in_folder(who: Principal, source: Session, cwd: str | None) -> Session:
    """The source as it would be in the folder of its fork."""
    return source if cwd is None else replace(source, **claim_fields(who, source, {"cwd": normal_cwd(cwd)}))
