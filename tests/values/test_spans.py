"""The algebra of spans, beside a model that keeps plain lists of what must be seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.values.spans import (
    EntryPlace,
    Span,
    Spans,
    Stretch,
    closed,
    compacted,
    context,
    conversation,
    cut,
    opened,
    ordinal,
    said_since,
    size,
    slice_of,
    summaries,
)

LOG = 7
OTHER = 3


class Said(NamedTuple):
    """An item of a conversation."""

    place: EntryPlace
    mark: bool = False


def items(stretches: Iterable[Stretch]) -> list[Said]:
    return [
        Said(EntryPlace(stretch.log, seq), stretch.mark)
        for stretch in stretches
        for seq in range(stretch.first, stretch.last + 1)
    ]


def places(stretches: Iterable[Stretch]) -> list[EntryPlace]:
    return [item.place for item in items(stretches)]


def seqs(stretches: Iterable[Stretch]) -> list[int]:
    return [place.seq for place in places(stretches)]


def entries(spans: Iterable[Span]) -> list[EntryPlace]:
    return [EntryPlace(span.log, seq) for span in spans for seq in range(span.first, (span.last or 0) + 1)]


def nothing(_: str) -> Spans:
    return ()


# The model: a session as lists of places, and the spans that must say the same


class Memory(NamedTuple):
    """What a model session knows: its conversation, its context, and the context after each item of the former."""

    said: tuple[Said, ...] = ()
    context: tuple[EntryPlace, ...] = ()
    contexts: tuple[tuple[EntryPlace, ...], ...] = ()

    def with_item(self, item: Said, context: tuple[EntryPlace, ...]) -> Memory:
        return Memory((*self.said, item), context, (*self.contexts, context))

    def upto(self, index: int) -> Memory:
        return Memory(self.said[: index + 1], self.contexts[index], self.contexts[: index + 1])


class Simulated:
    """A session that is kept twice: as spans, and as the lists that these must amount to."""

    def __init__(self) -> None:
        self.log, self.head = 1, 0
        self.spans: Spans = opened((), self.log, 0)
        self.checkpoints: dict[str, Spans] = {}
        self.known = Memory()
        self.known_then: dict[str, Memory] = {}

    def append(self, count: int) -> None:
        for _ in range(count):
            self.head += 1
            place = EntryPlace(self.log, self.head)
            self.known = self.known.with_item(Said(place), (*self.known.context, place))

    def compact(self, keep: int) -> None:
        retired = closed(self.spans, self.log, self.head)
        name = self.remember()
        self.head += 1
        summary = EntryPlace(self.log, self.head)
        self.spans = opened(compacted(retired, summary, name, keep), self.log, self.head)
        marks = {item.place for item in self.known.said if item.mark}
        spoken = [place for place in self.known.context if place not in marks]
        kept = spoken[-keep:] if keep else []
        self.known = self.known.with_item(Said(summary, mark=True), (summary, *kept))

    def rewind(self, choice: int) -> None:
        if self.known.said:
            index = choice % len(self.known.said)
            self.remember()
            shorter = cut(self.spans, self.known.said[index].place, self.checkpoints.__getitem__)
            assert shorter is not None
            self.spans = opened(shorter, self.log, self.head)
            self.known = self.known.upto(index)

    def restore(self, choice: int) -> None:
        if self.checkpoints:
            name = sorted(self.checkpoints)[choice % len(self.checkpoints)]
            self.remember()
            self.spans = opened(self.checkpoints[name], self.log, self.head)
            self.known = self.known_then[name]

    def restore_and_go_on(self, choice: int) -> None:
        """Restore a checkpoint, followed by what was said since; nothing ever stands there twice."""
        if self.checkpoints:
            name = sorted(self.checkpoints)[choice % len(self.checkpoints)]
            since = said_since(self.conversation(), self.conversation_then(name))
            self.restore(choice)
            assert not {item.place for item in self.known.said}.intersection(entries(since))
            self.spans = opened((*self.checkpoints[name], *since), self.log, self.head)
            for place in entries(since):
                self.known = self.known.with_item(Said(place), (*self.known.context, place))

    def fork(self, _: int) -> None:
        """Go on as a fork of oneself: the same spans, a log of its own."""
        inherited = closed(self.spans, self.log, self.head)
        self.log, self.head = self.log + 1, 0
        self.spans = opened(inherited, self.log, 0)

    def remember(self) -> str:
        name = f"c{len(self.checkpoints):03}"
        self.checkpoints[name] = closed(self.spans, self.log, self.head)
        self.known_then[name] = self.known
        return name

    def expand(self, name: str) -> Spans:
        return self.checkpoints[name]

    def conversation(self) -> list[Stretch]:
        return conversation(self.spans, self.log, self.head, self.expand)

    def conversation_then(self, name: str) -> list[Stretch]:
        return conversation(self.checkpoints[name], self.log, self.head, self.expand)


OPERATIONS = {
    "append": Simulated.append,
    "compact": Simulated.compact,
    "rewind": Simulated.rewind,
    "restore": Simulated.restore,
    "restore and go on": Simulated.restore_and_go_on,
    "fork": Simulated.fork,
}
amounts = st.integers(0, 9)
steps = st.tuples(st.sampled_from(["append", *OPERATIONS]), amounts)
histories = st.lists(steps, max_size=25)


def lived(history: Sequence[tuple[str, int]]) -> Simulated:
    session = Simulated()
    for name, amount in history:
        OPERATIONS[name](session, amount)
    return session


@given(histories)
def test_the_views_are_what_the_model_says_after_every_step(history: list[tuple[str, int]]) -> None:
    session = Simulated()
    for name, amount in history:
        OPERATIONS[name](session, amount)
        assert places(context(session.spans, session.log, session.head)) == list(session.known.context)
        assert items(session.conversation()) == list(session.known.said)


@given(histories)
def test_the_conversation_has_everything_that_was_said_once(history: list[tuple[str, int]]) -> None:
    said = places(lived(history).conversation())
    assert len(said) == len(set(said))


@given(histories)
def test_a_cut_at_any_entry_gives_the_state_in_which_it_was_the_newest(
    history: list[tuple[str, int]],
) -> None:
    session = lived(history)
    for index, item in enumerate(session.known.said):
        spans = cut(session.spans, item.place, session.expand)
        assert spans is not None
        assert places(context(spans, session.log, session.head)) == list(session.known.contexts[index])
        assert items(conversation(spans, session.log, session.head, session.expand)) == list(
            session.known.said[: index + 1]
        )
        if not item.mark:
            assert entries(spans)[-1] == item.place


@given(histories)
def test_a_cut_is_closed(history: list[tuple[str, int]]) -> None:
    session = lived(history)
    for item in session.known.said:
        spans = cut(session.spans, item.place, session.expand)
        assert spans is not None
        assert all(span.last is not None for span in spans)


@given(histories)
def test_a_cut_at_an_entry_that_a_rewind_left_behind_finds_nothing(history: list[tuple[str, int]]) -> None:
    session = lived(history)
    present = {item.place for item in session.known.said}
    once = {item.place for then in session.known_then.values() for item in then.said}
    for place in once - present:
        assert cut(session.spans, place, session.expand) is None


@given(histories)
def test_what_was_said_since_is_all_that_the_earlier_conversation_has_not(
    history: list[tuple[str, int]],
) -> None:
    session = lived(history)
    now = [item.place for item in session.known.said if not item.mark]
    for name, known in session.known_then.items():
        then = {item.place for item in known.said}
        since = said_since(session.conversation(), session.conversation_then(name))
        assert entries(since) == [place for place in now if place not in then]
        assert all(span.kind == "plain" and span.expands is None for span in since)


@given(histories, amounts, amounts)
def test_positions_and_slices_of_a_view_are_those_of_its_list(
    history: list[tuple[str, int]], start: int, length: int
) -> None:
    view = lived(history).conversation()
    listed = items(view)
    assert size(view) == len(listed)
    assert items(slice_of(view, start, start + length)) == listed[start : start + length]
    assert [ordinal(view, item.place) for item in listed] == list(range(len(listed)))


@given(histories)
def test_opening_and_closing_again_changes_nothing(history: list[tuple[str, int]]) -> None:
    session = lived(history)
    shut = closed(session.spans, session.log, session.head)
    assert closed(shut, session.log, session.head) == shut
    assert opened(shut, session.log, session.head) == opened(session.spans, session.log, session.head)
    assert closed(opened(shut, session.log, session.head), session.log, session.head) == shut


# Closing and opening


def test_closing_ends_the_open_span_at_the_head_and_joins_it_with_its_neighbour() -> None:
    assert closed([Span(LOG, 1, 4), Span(LOG, 5, None)], LOG, 9) == (Span(LOG, 1, 9),)


def test_closing_drops_an_open_span_that_brought_nothing() -> None:
    assert closed([Span(LOG, 1, 4), Span(LOG, 5, None)], LOG, 4) == (Span(LOG, 1, 4),)
    assert closed([Span(LOG, 1, None)], LOG, 0) == ()


@pytest.mark.parametrize(
    "apart",
    [
        (Span(LOG, 1, 4), Span(LOG, 6, 7)),
        (Span(LOG, 1, 4), Span(LOG, 4, 5)),
        (Span(LOG, 5, 6), Span(LOG, 1, 4)),
        (Span(OTHER, 1, 4), Span(LOG, 5, 6)),
        (Span(LOG, 1, 4, "kept"), Span(LOG, 5, 6)),
        (Span(LOG, 1, 4, "kept"), Span(LOG, 5, 6, "kept")),
        (Span(LOG, 4, 4, "summary", "c"), Span(LOG, 5, 6)),
    ],
)
def test_spans_that_do_not_continue_each_other_stay_apart(apart: Spans) -> None:
    assert closed(apart, LOG, 9) == apart


def test_only_the_sessions_own_log_may_be_open() -> None:
    with pytest.raises(ValueError, match="own log"):
        closed([Span(OTHER, 1, None)], LOG, 9)


def test_opened_spans_go_on_after_the_head_of_the_own_log() -> None:
    assert opened([Span(OTHER, 1, 4)], LOG, 0) == (Span(OTHER, 1, 4), Span(LOG, 1, None))
    assert opened([Span(LOG, 1, None)], LOG, 2) == (Span(LOG, 1, 2), Span(LOG, 3, None))


# Compaction


FIVE: Spans = (Span(LOG, 1, 5),)
ONCE: Spans = (Span(LOG, 6, 6, "summary", "a"), Span(LOG, 4, 5, "kept"), Span(LOG, 7, None))


def after_one(name: str) -> Spans:
    return {"a": FIVE}[name]


def test_a_compacted_context_is_the_summary_what_was_kept_and_what_came_after() -> None:
    assert compacted(FIVE, EntryPlace(LOG, 6), "a", 2) == ONCE[:2]
    assert seqs(context(ONCE, LOG, 8)) == [6, 4, 5, 7, 8]


def test_a_compacted_conversation_has_the_summary_as_a_mark_where_it_was_made() -> None:
    view = conversation(ONCE, LOG, 8, after_one)
    assert seqs(view) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [item.place.seq for item in items(view) if item.mark] == [6]


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (0, []),
        (1, [Span(OTHER, 6, 6, "kept")]),
        (2, [Span(OTHER, 5, 6, "kept")]),
        (3, [Span(LOG, 4, 4, "kept"), Span(OTHER, 5, 6, "kept")]),
        (99, [Span(LOG, 3, 4, "kept"), Span(OTHER, 5, 6, "kept")]),
    ],
)
def test_compaction_keeps_the_last_entries_but_no_earlier_summary(keep: int, kept: list[Span]) -> None:
    before = (Span(LOG, 2, 2, "summary", "a"), Span(LOG, 3, 4, "kept"), Span(OTHER, 5, 6))
    assert compacted(before, EntryPlace(LOG, 7), "b", keep) == (Span(LOG, 7, 7, "summary", "b"), *kept)


def test_a_second_compaction_hides_nothing_of_the_first() -> None:
    shut = closed(ONCE, LOG, 8)
    twice = opened(compacted(shut, EntryPlace(LOG, 9), "b", 3), LOG, 9)
    view = conversation(twice, LOG, 10, {"a": FIVE, "b": shut}.__getitem__)
    assert seqs(context(twice, LOG, 10)) == [9, 5, 7, 8, 10]
    assert seqs(view) == list(range(1, 11))
    assert [item.place.seq for item in items(view) if item.mark] == [6, 9]


def test_spans_name_the_checkpoints_that_their_summaries_stand_for() -> None:
    assert summaries(ONCE) == ["a"]
    assert summaries(FIVE) == []


# Cutting


def test_a_cut_before_a_compaction_gives_the_context_of_that_time() -> None:
    assert cut(ONCE, EntryPlace(LOG, 3), after_one) == (Span(LOG, 1, 3),)


def test_a_cut_at_a_kept_entry_is_one_before_the_compaction() -> None:
    assert cut(ONCE, EntryPlace(LOG, 4), after_one) == (Span(LOG, 1, 4),)


def test_a_cut_at_a_summary_leaves_it_and_what_was_kept() -> None:
    assert cut(ONCE, EntryPlace(LOG, 6), after_one) == ONCE[:2]


def test_a_cut_after_a_compaction_leaves_the_summary_in_place() -> None:
    assert cut(ONCE, EntryPlace(LOG, 7), after_one) == (*ONCE[:2], Span(LOG, 7, 7))


def test_a_cut_at_an_entry_that_the_conversation_lacks_is_none() -> None:
    assert cut(FIVE, EntryPlace(LOG, 6), nothing) is None
    assert cut(FIVE, EntryPlace(OTHER, 1), nothing) is None
    assert cut(ONCE, EntryPlace(OTHER, 1), after_one) is None


# What was said since


def test_what_was_said_since_leaves_out_summaries_and_splits_a_longer_stretch() -> None:
    now = [Stretch(LOG, 1, 5), Stretch(LOG, 6, 6, mark=True), Stretch(LOG, 7, 8)]
    assert said_since(now, [Stretch(LOG, 1, 3)]) == (Span(LOG, 4, 5), Span(LOG, 7, 8))
    assert said_since(now, []) == (Span(LOG, 1, 5), Span(LOG, 7, 8))


def test_a_beginning_in_common_may_be_divided_differently() -> None:
    whole, parts = [Stretch(LOG, 1, 5)], [Stretch(LOG, 1, 3), Stretch(LOG, 4, 6)]
    assert said_since(parts, whole) == (Span(LOG, 6, 6),)
    assert said_since([Stretch(LOG, 1, 7)], parts) == (Span(LOG, 7, 7),)


def test_nothing_was_said_since_a_conversation_that_went_further() -> None:
    assert said_since([Stretch(LOG, 1, 3)], [Stretch(LOG, 1, 5)]) == ()
    assert said_since([], [Stretch(LOG, 1, 5)]) == ()


def test_conversations_that_part_have_only_their_beginning_in_common() -> None:
    then = [Stretch(LOG, 1, 5)]
    now = [Stretch(LOG, 1, 2), Stretch(LOG, 6, 7)]
    assert said_since(now, then) == (Span(LOG, 6, 7),)
    assert said_since([Stretch(OTHER, 1, 2)], then) == (Span(OTHER, 1, 2),)


# Positions


VIEW = [Stretch(LOG, 3, 5), Stretch(OTHER, 1, 2, mark=True)]


@pytest.mark.parametrize(
    ("start", "stop", "part"),
    [
        (0, 5, VIEW),
        (0, 99, VIEW),
        (1, 2, [Stretch(LOG, 4, 4)]),
        (2, 4, [Stretch(LOG, 5, 5), Stretch(OTHER, 1, 1, mark=True)]),
        (4, 5, [Stretch(OTHER, 2, 2, mark=True)]),
        (-3, 1, [Stretch(LOG, 3, 3)]),
        (3, 3, []),
        (4, 2, []),
        (5, 9, []),
    ],
)
def test_a_slice_is_cut_by_position_and_keeps_its_marks(start: int, stop: int, part: list[Stretch]) -> None:
    assert slice_of(VIEW, start, stop) == part


def test_the_position_of_a_place_counts_entries_and_is_none_for_a_stranger() -> None:
    assert ordinal(VIEW, EntryPlace(LOG, 5)) == 2
    assert ordinal(VIEW, EntryPlace(OTHER, 1)) == 3
    assert ordinal(VIEW, EntryPlace(LOG, 6)) is None
    assert ordinal(VIEW, EntryPlace(OTHER, 3)) is None


def test_a_place_that_stands_twice_has_its_last_position() -> None:
    assert ordinal([Stretch(LOG, 1, 2), Stretch(LOG, 1, 2)], EntryPlace(LOG, 1)) == 2


def test_a_span_holds_what_lies_within_its_bounds_and_log() -> None:
    span = Span(LOG, 3, 5)
    assert [seq for seq in range(8) if span.holds(EntryPlace(LOG, seq))] == [3, 4, 5]
    assert not span.holds(EntryPlace(OTHER, 4))
    assert Span(LOG, 3, None).holds(EntryPlace(LOG, 1_000_000))
    assert not Span(LOG, 3, None).holds(EntryPlace(LOG, 2))


def test_compactions_may_lie_in_each_other_as_deep_as_they_like() -> None:
    depth = 5_000
    lists: dict[str, Spans] = {"0": (Span(1, 1, 1),)}
    for number in range(1, depth):
        lists[str(number)] = (Span(1, number + 1, number + 1, "summary", str(number - 1)),)
    top = lists[str(depth - 1)]
    everything = conversation(top, 1, depth, lists.__getitem__)
    assert [stretch.first for stretch in everything] == list(range(1, depth + 1))
    assert cut(top, EntryPlace(1, 1), lists.__getitem__) == (Span(1, 1, 1),)
    assert cut(top, EntryPlace(2, 1), lists.__getitem__) is None
