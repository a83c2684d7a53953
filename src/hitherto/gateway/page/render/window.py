"""Reads the window of messages that the page shows: never a call without its result, folded where the context begins."""

from __future__ import annotations

from typing import NamedTuple

from hitherto.model import Entry, HistoryPage, Principal, ToolCall, ToolResult, Value
from hitherto.service import Sessions

MESSAGES, AROUND, BESIDE = 40, 30, 12
PAGE_BYTES = 500_000


class WindowRequest(Value, frozen=True):
    """Which messages of a session: around a message, before or after one, the first, or else the newest.

    `find` is the text to find in the session; with `checkpoint`, the session is read as it was then. A `glance` does
    not mark it as read.
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
        """Whether this marks the session as read."""
        return self.checkpoint is None and not self.glance


class MessageWindow(NamedTuple):
    """Consecutive entries. `start` is the position of the first, `past` that of the first entry in the context.

    `marks` are the positions of summaries among these entries; `before` and `after`: there are more entries.
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
        """Whether it starts exactly where the context does, with earlier messages before it."""
        return 0 < self.past == self.start

    def without_first(self, number: int) -> MessageWindow:
        """The window without its first entries."""
        return self._replace(
            entries=self.entries[number:],
            marks=frozenset(mark - number for mark in self.marks if mark >= number),
            start=self.start + number,
            before=True,
        )


async def read_window(home: Sessions, who: Principal, request: WindowRequest) -> MessageWindow:
    """Read the requested window; the cost does not depend on the length of the session."""
    return fold_past(
        await _with_whole_calls(home, who, request, _window_of(await _read(home, who, request))), request
    )


def fold_past(given: MessageWindow, request: WindowRequest) -> MessageWindow:
    """Cut off messages that are not in the context, unless the requested message is among them."""
    left = given.past - given.start
    here = len(given.entries) - 1
    if request.at is not None:
        here = next((at for at, entry in enumerate(given.entries) if entry.id == request.at), 0)
    elif request.before is None and (request.after is not None or request.first):
        here = 0
    return given.without_first(left) if 0 < left <= here else given


async def _read(home: Sessions, who: Principal, request: WindowRequest) -> HistoryPage:
    if request.at is not None:
        return await home.history(
            who,
            request.session,
            view="conversation",
            checkpoint=request.checkpoint,
            around=request.at,
            limit=AROUND,
            max_bytes=PAGE_BYTES,
            seen=request.is_reading,
        )
    return await home.history(
        who,
        request.session,
        view="conversation",
        checkpoint=request.checkpoint,
        before=request.before,
        after=None if request.before is not None else request.after,
        last=request.before is None and request.after is None and not request.first,
        limit=MESSAGES,
        max_bytes=PAGE_BYTES,
        seen=request.is_reading,
    )


def _window_of(page: HistoryPage) -> MessageWindow:
    return MessageWindow(
        entries=page.entries,
        marks=frozenset(page.marks),
        start=page.start,
        past=page.past,
        total=page.total,
        before=page.previous is not None,
        after=page.next is not None,
    )


async def _with_whole_calls(
    home: Sessions, who: Principal, request: WindowRequest, given: MessageWindow
) -> MessageWindow:
    """Add the calls of its first results and the results of its last calls, if they are near."""
    if given.before and (orphans := _results(given.entries) - _calls(given.entries)):
        page = await home.history(
            who,
            request.session,
            view="conversation",
            checkpoint=request.checkpoint,
            before=given.entries[0].id,
            limit=BESIDE,
            max_bytes=PAGE_BYTES,
        )
        number = _entries_needed(page.entries, orphans)
        given = _prepend(given, page, number) if number else given
    if given.after and _calls(given.entries[-BESIDE:]) - _results(given.entries):
        page = await home.history(
            who,
            request.session,
            view="conversation",
            checkpoint=request.checkpoint,
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


def _prepend(given: MessageWindow, page: HistoryPage, number: int) -> MessageWindow:
    skipped = len(page.entries) - number
    marks = {mark - skipped for mark in page.marks if mark >= skipped}
    return given._replace(
        entries=page.entries[skipped:] + given.entries,
        marks=frozenset({*marks, *(mark + number for mark in given.marks)}),
        start=given.start - number,
        before=page.previous is not None or skipped > 0,
    )


def _entries_needed(entries: tuple[Entry, ...], orphans: set[str]) -> int:
    """How many of the last of these entries include the calls of these results."""
    return next(
        (number for number in range(1, len(entries) + 1) if orphans & _calls(entries[-number:][:1])), 0
    )


def _calls(entries: tuple[Entry, ...]) -> set[str]:
    return {part.id for entry in entries for part in entry.parts if isinstance(part, ToolCall)}


def _results(entries: tuple[Entry, ...]) -> set[str]:
    return {part.id for entry in entries for part in entry.parts if isinstance(part, ToolResult)}
