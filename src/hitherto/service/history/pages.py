"""A page of a view of a session: which entries it has, and how many of them fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.limits import HISTORY_PAGE, checked_limit
from hitherto.model import HistoryPage, View, decode_entry
from hitherto.ports import Ahead, LogEnd, Reader, Record
from hitherto.service.history.branches import lists_with
from hitherto.service.history.places import find_ordinal
from hitherto.service.records import load_checkpoint, load_context, load_lists
from hitherto.service.validation import is_clean
from hitherto.values import spans as algebra
from hitherto.values.spans import Stretch


class PageWanted(NamedTuple):
    """Which page to load. See `Entries.history`."""

    view: View
    checkpoint: str | None
    after: str | None
    before: str | None
    around: str | None
    last: bool
    limit: int
    max_bytes: int

    def check(self) -> None:
        """Raise `InvalidInput` if no session has such a page."""
        checked_limit(self.limit, HISTORY_PAGE)
        if sum(anchor is not None for anchor in (self.after, self.before, self.around)) + self.last > 1:
            raise InvalidInput("give only one of after, before, around and last")
        if self.view not in ("context", "conversation"):
            raise InvalidInput(f"a view is context or conversation, not {self.view!r}")

    def ahead(self, owner: str, session_id: str) -> Ahead | None:
        """What loading the page will ask of a store; None if that cannot be told."""
        if not self.last or self.origin[1] is not None or self.checkpoint is not None:
            return None
        is_usable = is_clean(owner) and is_clean(session_id) and isinstance(self.limit, int)
        return LogEnd(owner, session_id, self.limit, self.max_bytes) if is_usable else None

    @property
    def origin(self) -> tuple[str, str | None]:
        """From where the page is counted: on which side of an entry, and which; or from an end, and none."""
        if self.after is not None:
            return "after", self.after
        if self.before is not None:
            return "before", self.before
        if self.around is not None:
            return "around", self.around
        return "last" if self.last else "start", None


async def load_page(tx: Reader, record: Record, wanted: PageWanted) -> HistoryPage:
    """The page. Raises `CheckpointNotFound` and `EntryNotFound`."""
    branch = None
    if (wanted.view, wanted.checkpoint, wanted.origin[1]) == ("context", None, None):
        seen = await load_context(tx, record)
        return await _page(tx, record, seen, *await _range(tx, record, seen, wanted), 0)
    if wanted.checkpoint is not None:
        lists = await load_checkpoint(tx, record, wanted.checkpoint)
    elif (anchor := wanted.origin[1]) is not None:
        lists, branch = await lists_with(tx, record, anchor)
    else:
        lists = await load_lists(tx, record)
    is_context = wanted.view == "context"
    stretches = lists.context() if is_context else lists.conversation()
    start, stop = await _range(tx, record, stretches, wanted)
    past = 0 if is_context else algebra.count_left_behind(stretches, lists.context())
    return replace(await _page(tx, record, stretches, start, stop, past), branch=branch)


async def _range(
    tx: Reader, record: Record, stretches: Sequence[Stretch], wanted: PageWanted
) -> tuple[int, int]:
    """The numbers of the first entry of the page, and of the first behind it."""
    total, limit = algebra.size(stretches), wanted.limit
    mode, anchor = wanted.origin
    place = 0 if anchor is None else await find_ordinal(tx, record, stretches, anchor)
    start = {
        "after": place + 1,
        "before": place - limit,
        "around": place - limit // 2,
        "last": total - limit,
        "start": 0,
    }[mode]
    stop = place if mode == "before" else max(start, 0) + limit
    start, stop = max(start, 0), min(stop, total)
    if mode == "around":
        return await _fitting_around(tx, record.owner, stretches, start, stop, place, wanted.max_bytes)
    backwards = mode in ("before", "last")
    return await fitting(tx, record.owner, stretches, start, stop, wanted.max_bytes, backwards=backwards)


async def _fitting_around(
    tx: Reader, owner: str, stretches: Sequence[Stretch], start: int, stop: int, place: int, most: int
) -> tuple[int, int]:
    """As much of `start` to `stop` as has at most so many bytes, half of them on each side of a place."""
    _, stop = await fitting(tx, owner, stretches, place, stop, most // 2, backwards=False)
    if start < place:
        start, _ = await fitting(tx, owner, stretches, start, place, most // 2, backwards=True)
    return start, stop


async def fitting(
    tx: Reader, owner: str, stretches: Sequence[Stretch], start: int, stop: int, most: int, *, backwards: bool
) -> tuple[int, int]:
    """As much of `start` to `stop` as has at most so many bytes, or one entry: from its end if `backwards`."""
    few, many = 1, stop - start
    if many < 2 or await _bytes(tx, owner, algebra.slice_of(stretches, start, stop)) <= most:
        return start, stop
    while many - few > 1:
        half = (few + many) // 2
        part = (stop - half, stop) if backwards else (start, start + half)
        if await _bytes(tx, owner, algebra.slice_of(stretches, *part)) <= most:
            few = half
        else:
            many = half
    return (stop - few, stop) if backwards else (start, start + few)


async def _bytes(tx: Reader, owner: str, stretches: Sequence[Stretch]) -> int:
    """How many bytes the entries have, from the running sums beside them."""
    size = 0
    for each in stretches:
        until, before = (
            await tx.totals(owner, each.log, each.last),
            await tx.totals(owner, each.log, each.first - 1),
        )
        size += until.bytes - before.bytes
    return size


async def _page(
    tx: Reader, record: Record, stretches: Sequence[Stretch], start: int, stop: int, past: int
) -> HistoryPage:
    part = algebra.slice_of(stretches, start, stop)
    raw = await tx.payloads(record.owner, part)
    total = algebra.size(stretches)
    return HistoryPage(
        raw=tuple(raw),
        total=total,
        token_count=record.session.token_count,
        marks=_marks(part),
        previous=decode_entry(raw[0]).id if raw and start > 0 else None,
        next=decode_entry(raw[-1]).id if raw and stop < total else None,
        start=start,
        past=past,
    )


def _marks(part: Sequence[Stretch]) -> tuple[int, ...]:
    marks, passed = [], 0
    for stretch in part:
        if stretch.mark:
            marks.append(passed)
        passed += stretch.size
    return tuple(marks)
