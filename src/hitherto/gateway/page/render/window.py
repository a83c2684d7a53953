"""A stretch of a conversation as the page shows it: no call without its result, and folded where the context begins."""

from __future__ import annotations

from typing import NamedTuple

from hitherto.model import Entry, HistoryPage, Principal, ToolCall, ToolResult, Value
from hitherto.service import Sessions

MESSAGES, AROUND, BESIDE = 40, 30, 12
PAGE_BYTES = 500_000


class Place(Value, frozen=True):
    """Which stretch of a session: around a message, before or after one, the first, or else the newest.

    `find` is what somebody looks for in the session; with `checkpoint`, the session is read as it was then. Who has a
    `glance` at it has not read it.
    """

    session: str
    checkpoint: str | None = None
    at: str | None = None
    before: str | None = None
    after: str | None = None
    first: bool = False
    find: str = ""
    glance: bool = False

    @property
    def is_reading(self) -> bool:
        """Whether whoever looks has read the session then."""
        return self.checkpoint is None and not self.glance


class Stretch(NamedTuple):
    """Entries that follow each other. `start` is the position of the first, `past` that of the first in the context.

    `marks` are the positions, among these, of summaries; `before` and `after`: there is more.
    """

    entries: tuple[Entry, ...]
    marks: frozenset[int]
    start: int
    past: int
    total: int
    before: bool
    after: bool

    @property
    def is_folded(self) -> bool:
        """Whether what comes before it has left the context, and nothing here has."""
        return 0 < self.past == self.start

    def without_first(self, number: int) -> Stretch:
        """The rest, of which something is before."""
        return self._replace(
            entries=self.entries[number:],
            marks=frozenset(mark - number for mark in self.marks if mark >= number),
            start=self.start + number,
            before=True,
        )


async def stretch_of(home: Sessions, who: Principal, place: Place) -> Stretch:
    """What is shown at a place, however long the session is."""
    return folded(await _whole(home, who, place, _stretch(await _read(home, who, place))), place)


def folded(given: Stretch, place: Place) -> Stretch:
    """Without what has left the context, unless one is among it already."""
    left = given.past - given.start
    here = len(given.entries) - 1
    if place.at is not None:
        here = next((at for at, entry in enumerate(given.entries) if entry.id == place.at), 0)
    elif place.before is None and (place.after is not None or place.first):
        here = 0
    return given.without_first(left) if 0 < left <= here else given


async def _read(home: Sessions, who: Principal, place: Place) -> HistoryPage:
    if place.at is not None:
        return await home.history(
            who,
            place.session,
            view="conversation",
            checkpoint=place.checkpoint,
            around=place.at,
            limit=AROUND,
            max_bytes=PAGE_BYTES,
            seen=place.is_reading,
        )
    return await home.history(
        who,
        place.session,
        view="conversation",
        checkpoint=place.checkpoint,
        before=place.before,
        after=None if place.before is not None else place.after,
        last=place.before is None and place.after is None and not place.first,
        limit=MESSAGES,
        max_bytes=PAGE_BYTES,
        seen=place.is_reading,
    )


def _stretch(page: HistoryPage) -> Stretch:
    return Stretch(
        entries=page.entries,
        marks=frozenset(page.marks),
        start=page.start,
        past=page.past,
        total=page.total,
        before=page.previous is not None,
        after=page.next is not None,
    )


async def _whole(home: Sessions, who: Principal, place: Place, given: Stretch) -> Stretch:
    """With the calls that its first results belong to, and the results of its last calls, if they are near."""
    if given.before and (orphans := _results(given.entries) - _calls(given.entries)):
        page = await home.history(
            who,
            place.session,
            view="conversation",
            checkpoint=place.checkpoint,
            before=given.entries[0].id,
            limit=BESIDE,
            max_bytes=PAGE_BYTES,
        )
        number = _reaching(page.entries, orphans)
        given = _prepended(given, page, number) if number else given
    if given.after and _calls(given.entries[-BESIDE:]) - _results(given.entries):
        page = await home.history(
            who,
            place.session,
            view="conversation",
            checkpoint=place.checkpoint,
            after=given.entries[-1].id,
            limit=BESIDE,
            max_bytes=PAGE_BYTES,
        )
        number = next(
            (at for at, entry in enumerate(page.entries) if entry.role != "tool"), len(page.entries)
        )
        given = given._replace(
            entries=given.entries + page.entries[:number],
            after=page.next is not None or number < len(page.entries),
        )
    return given


def _prepended(given: Stretch, page: HistoryPage, number: int) -> Stretch:
    skipped = len(page.entries) - number
    marks = {mark - skipped for mark in page.marks if mark >= skipped}
    return given._replace(
        entries=page.entries[skipped:] + given.entries,
        marks=frozenset({*marks, *(mark + number for mark in given.marks)}),
        start=given.start - number,
        before=page.previous is not None or skipped > 0,
    )


def _reaching(entries: tuple[Entry, ...], orphans: set[str]) -> int:
    """How many of the last of these entries have to be shown for the calls of these results."""
    return next(
        (number for number in range(1, len(entries) + 1) if orphans & _calls(entries[-number:][:1])), 0
    )


def _calls(entries: tuple[Entry, ...]) -> set[str]:
    return {part.id for entry in entries for part in entry.parts if isinstance(part, ToolCall)}


def _results(entries: tuple[Entry, ...]) -> set[str]:
    return {part.id for entry in entries for part in entry.parts if isinstance(part, ToolResult)}
