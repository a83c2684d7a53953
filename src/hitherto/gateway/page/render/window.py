"""Reads the window of messages that the page shows: never a call without its result, folded where the context begins.

For the reader it also has the prompt of a turn that began before it, and the answer of one that ends behind it.
"""

from __future__ import annotations

from typing import NamedTuple

from hitherto.model import Entry, HistoryPage, Image, Principal, Text, ToolCall, ToolResult, Value
from hitherto.service import Sessions

MESSAGES, AROUND, BESIDE, BETWEEN, ANSWER = 40, 20, 12, 12, 4
PAGE_BYTES = 500_000


class WindowRequest(Value, frozen=True):
    """Which messages of a session: around a message, before or after one, the first, or else the newest.

    `find` is the text to find in the session; with `checkpoint`, the session is read as it was then. A `glance` does
    not mark it as read. With `steps`, the steps of all turns are shown, and nothing is left out in between.
    """

    session: str
    checkpoint: str | None = None
    at: str | None = None
    before: str | None = None
    after: str | None = None
    first: bool = False
    find: str = ""
    glance: bool = False
    steps: bool = False

    @property
    def is_reading(self) -> bool:
        """Whether this marks the session as read."""
        return self.checkpoint is None and not self.glance


class Placed(NamedTuple):
    """An entry, and its position in the conversation."""

    number: int
    entry: Entry


class MessageWindow(NamedTuple):
    """Consecutive entries. `start` is the position of the first, `past` that of the first entry in the context.

    `marks` are the positions of summaries among these entries; `before` and `after`: there are more entries. `opening` is the
    prompt of the turn in which it begins, and `closing` the end of the turn in which it ends, if these are farther away.
    """

    entries: tuple[Entry, ...]
    marks: frozenset[int]
    start: int
    past: int
    total: int
    before: bool
    after: bool
    opening: Placed | None = None
    closing: tuple[Placed, ...] = ()

    @property
    def is_folded(self) -> bool:
        """Whether it starts exactly where the context does, with earlier messages before it."""
        return 0 < self.past == self.start and self.opening is None

    @property
    def first(self) -> Entry | None:
        """The first entry that it shows."""
        return self.opening.entry if self.opening else next(iter(self.entries), None)

    @property
    def last(self) -> Entry | None:
        """The last entry that it shows."""
        return self.closing[-1].entry if self.closing else next(iter(self.entries[-1:]), None)

    @property
    def end(self) -> int:
        """The position behind the last entry that it shows."""
        return self.closing[-1].number + 1 if self.closing else self.start + len(self.entries)

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


async def read_turns(home: Sessions, who: Principal, request: WindowRequest) -> MessageWindow:
    """Read the requested window, with the prompt of its first turn and the answer of its last."""
    given = await read_window(home, who, request)
    if request.steps or not given.entries:
        return given
    if given.before and request.after is None and not given.is_folded and 0 not in given.marks:
        given = await _with_opening(home, who, request, given)
    if given.after and request.before is None:
        given = await _with_closing(home, who, request, given)
    return given


async def _with_opening(
    home: Sessions, who: Principal, request: WindowRequest, given: MessageWindow
) -> MessageWindow:
    first = given.entries[0]
    if is_prompt(first):
        return given
    prompt = await home.conversation.beside(who, request.session, first.id, "user", backwards=True)
    if prompt is None:
        return given
    found = await home.history(who, request.session, view="conversation", around=prompt, limit=1)
    between = given.start - found.start
    if between <= BETWEEN:
        page = await _beside(home, who, request, between, before=first.id)
        given = _prepend(given, page, len(page.entries))
        if given.start == found.start:
            return given
    return given._replace(opening=Placed(found.start, found.entries[0]), before=found.start > 0)


async def _beside(
    home: Sessions,
    who: Principal,
    request: WindowRequest,
    limit: int,
    *,
    before: str | None = None,
    after: str | None = None,
) -> HistoryPage:
    """Some entries before or after one; the last of all if neither is given."""
    return await home.history(
        who,
        request.session,
        view="conversation",
        before=before,
        after=after,
        last=before is None and after is None,
        limit=limit,
        max_bytes=PAGE_BYTES,
    )


async def _with_closing(
    home: Sessions, who: Principal, request: WindowRequest, given: MessageWindow
) -> MessageWindow:
    last = given.entries[-1].id
    following = await home.conversation.beside(who, request.session, last, "user")
    page = await _beside(home, who, request, ANSWER, before=following)
    left = page.start + len(page.entries) - given.end
    if left <= 0:
        return given
    if left <= BETWEEN:
        return _append(given, await _beside(home, who, request, left, after=last))
    ending = [Placed(*each) for each in enumerate(page.entries, page.start)]
    closing = tuple(ending[_answer_begins(page.entries) :])
    return given._replace(closing=closing, after=page.next is not None)


def _append(given: MessageWindow, page: HistoryPage) -> MessageWindow:
    marks = {mark + len(given.entries) for mark in page.marks}
    return given._replace(
        entries=given.entries + page.entries, marks=given.marks | marks, after=page.next is not None
    )


def _answer_begins(entries: tuple[Entry, ...]) -> int:
    """Where the answer begins at the end of a turn; at its last call if it has none."""
    steps = [at for at, entry in enumerate(entries) if is_step(entry)]
    if not steps or steps[-1] + 1 < len(entries):
        return steps[-1] + 1 if steps else 0
    return max((at for at in steps if _calls((entries[at],))), default=0)


def is_prompt(entry: Entry) -> bool:
    """Whether a person wrote this: a turn begins."""
    return (
        entry.role == "user"
        and not entry.meta.get("meta")
        and any(isinstance(part, Text | Image) for part in entry.parts)
    )


def is_step(entry: Entry) -> bool:
    """Whether the agent did something here, or was told what came of it."""
    return any(isinstance(part, ToolCall | ToolResult) for part in entry.parts)


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
