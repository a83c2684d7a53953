"""Turns: a prompt, one line for what was done, and the answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hitherto.gateway.page.render.transcript import Message, Numbers, Transcript
from hitherto.gateway.page.render.window import MessageWindow, Placed, WindowRequest, is_prompt, is_step
from hitherto.presentation import formats
from hitherto.values.usage.prices import MICROS


class Gap(NamedTuple):
    """Steps that are not in the page: from the position `start` to the one before `end`, behind the entry `after`.

    `numbers` says what was done in them, as far as it is known; `more`: in some it is not.
    """

    start: int
    end: int
    after: str | None
    numbers: Numbers = Numbers()
    more: bool = False


class Work(NamedTuple):
    """What was done in a turn: its steps as messages, and those that are not in the page, before and behind them."""

    messages: list[Message]
    before: Gap | None
    behind: Gap | None
    began: int
    ended: int
    is_open: bool = False

    @property
    def numbers(self) -> Numbers:
        """What was done, as far as it is known."""
        total = Numbers()
        for numbers in (*(gap.numbers for gap in self._gaps), *(each.numbers for each in self.messages)):
            total = total.plus(numbers)
        return total

    @property
    def words(self) -> list[str]:
        """What was done: `12 steps`, `3 edits`, `1 failed`, `41 s`, `≈$0.32`; with `+` if there is more."""
        done, more = self.numbers, "+" * any(gap.more for gap in self._gaps)
        said = [f"{done.steps}{more} {formats.plural(done.steps + bool(more), 'step')}"]
        if not done.steps:
            left = sum(gap.end - gap.start for gap in self._gaps)
            return [f"{left} {formats.plural(left, 'message')}"]
        if done.edits:
            said.append(f"{done.edits}{more} {formats.plural(done.edits + bool(more), 'edit')}")
        if done.failed:
            said.append(f"{done.failed}{more} failed")
        if self.ended > self.began:
            said.append(formats.duration(self.ended - self.began))
        if done.cost:
            said.append(f"{'≈' * done.estimated}{formats.cost(done.cost / MICROS)}{more}")
        return said

    @property
    def _gaps(self) -> list[Gap]:
        return [gap for gap in (self.before, self.behind) if gap is not None]


class _Turn(NamedTuple):
    """The entries of a turn: its prompt, what follows, and the answer if it stands apart from that."""

    head: Placed | None
    rest: list[Placed]
    answer: list[Placed]
    is_last: bool

    def steps(self) -> int:
        """How many of what follows is work; the rest is the answer."""
        if self.answer:
            return len(self.rest)
        return max((at for at, each in enumerate(self.rest, 1) if is_step(each.entry)), default=0)


def feed(
    window: MessageWindow, transcript: Transcript, request: WindowRequest, *, runs: bool
) -> list[Message | Work]:
    """What the reader shows of a window. `runs`: a turn is running."""
    shown: list[Message | Work] = []
    known = request.after
    for turn in _turns(window, transcript):
        running = runs and turn.is_last and not window.after
        if turn.head is not None:
            shown += transcript.messages([turn.head])
            known = turn.head.entry.id
        work = _work(window, transcript, request, turn, known, running=running)
        shown += [] if work is None else [work]
        shown += transcript.messages([*turn.rest[turn.steps() :], *turn.answer], runs=running)
        known = turn.rest[-1].entry.id if turn.rest else known
    return shown


def _work(
    window: MessageWindow,
    transcript: Transcript,
    request: WindowRequest,
    turn: _Turn,
    known: str | None,
    *,
    running: bool,
) -> Work | None:
    steps = turn.rest[: turn.steps()]
    if not turn.rest and not turn.answer:
        return None
    behind = steps[-1].number + 1 if steps else (turn.rest or turn.answer)[0].number
    end = turn.answer[0].number if turn.answer else behind
    first = steps[0].number if steps else behind
    start = turn.head.number + 1 if turn.head else first
    if not steps and start == end:
        return None
    began, ended = (turn.head or turn.rest[0]).entry.at, (turn.answer or turn.rest)[-1].entry.at
    unanswered = turn.is_last and not window.after and 0 < len(steps) == len(turn.rest) and not turn.answer
    if not (running or unanswered or request.steps or request.at in {each.entry.id for each in steps}):
        cut = (start, end) != (first, behind)
        return Work([], Gap(start, end, known, transcript.numbers(steps), cut), None, began, ended)
    return Work(
        transcript.messages(steps, runs=running),
        Gap(start, first, known, more=True) if start < first else None,
        Gap(behind, end, steps[-1].entry.id if steps else known, more=True) if behind < end else None,
        began,
        ended,
        is_open=running or unanswered or not request.steps,
    )


def _turns(window: MessageWindow, transcript: Transcript) -> Iterator[_Turn]:
    entries = [Placed(number, entry) for number, entry in enumerate(window.entries, window.start)]
    if window.opening is not None:
        entries.insert(0, window.opening)
    begins = [
        at
        for at, each in enumerate(entries)
        if is_prompt(each.entry) or transcript.is_mark(each) or (window.opening is each)
    ]
    starts = begins if begins[:1] == [0] else [-1, *begins]
    for start, end in zip(starts, [*starts[1:], len(entries)], strict=True):
        is_last = end == len(entries)
        head = entries[start] if start >= 0 else None
        yield _Turn(head, entries[start + 1 : end], list(window.closing) if is_last else [], is_last)
