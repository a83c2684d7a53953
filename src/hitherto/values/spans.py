"""The algebra of spans: what a session's history is made of, and every way to cut and view it. Pure.

A span is a range of entries of one log. A session's *context* is its spans as they are. After a compaction the
context is `[summary] [kept …] [plain …]`: the summary names the checkpoint that holds the spans it stands for, and
what was kept of them stands beside it: behind it, or in front of it if only the end was summarised. The *conversation*
puts the checkpoint back in place of both:

    context        S  k k  p p →            S expands to checkpoint c = 1 2 3 4 5, of which k k are 4 5
    conversation   1 2 3 4 5  S  p p →      S is only a mark here

A checkpoint's spans may start with an earlier summary, so the expansion is recursive.

After a reset a new *episode* begins. Its heading stands in the conversation behind the checkpoint with all that was there;
the context has it only if it is a recap:

    context           p p →                 R expands to the earlier episode
    conversation   1 2 3  R  p p →
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

Kind = Literal["plain", "summary", "kept", "recap", "reset"]
HEADINGS = ("recap", "reset")
"""Spans of one entry with which an episode begins: one that the context has, and one that it has not."""
STANDING = ("summary", *HEADINGS)
"""Spans of one entry that stand for a checkpoint."""
CURRENT = ""
"""The name under which a session's present spans are kept; checkpoints have theirs under their id."""


class EntryPlace(NamedTuple):
    """Where an entry is. Numbers of logs never leave the program."""

    log: int
    seq: int


class Span(NamedTuple):
    """Entries `first` to `last` of a log; an open span (`last` is None) grows with its log."""

    log: int
    first: int
    last: int | None
    kind: Kind = "plain"
    expands: str | None = None

    def holds(self, place: EntryPlace) -> bool:
        """Whether the place lies within."""
        return (
            self.log == place.log
            and self.first <= place.seq
            and (self.last is None or place.seq <= self.last)
        )


class Stretch(NamedTuple):
    """A closed range of a view; `mark` says that it is a compaction's summary in a conversation, or the heading of an episode,
    and `heading` that it is the latter."""

    log: int
    first: int
    last: int
    mark: bool = False
    heading: bool = False

    @property
    def size(self) -> int:
        """How many entries it has."""
        return self.last - self.first + 1


Spans = tuple[Span, ...]
Expand = Callable[[str], Spans]


def closed(spans: Iterable[Span], log: int, head: int) -> Spans:
    """The same spans with the open one ended at the head of its log; neighbours joined, empty ones dropped."""
    ended = (span if span.last is not None else span._replace(last=_end(span, log, head)) for span in spans)
    out: list[Span] = []
    for span in ended:
        if span.last is not None and span.last < span.first:
            continue
        before = out[-1] if out else None
        if (
            before
            and before.kind == span.kind == "plain"
            and before.log == span.log
            and before.last == span.first - 1
        ):
            out[-1] = before._replace(last=span.last)
        else:
            out.append(span)
    return tuple(out)


def _end(span: Span, log: int, head: int) -> int:
    if span.log != log:
        raise ValueError("only a session's own log may be open")
    return head


def opened(spans: Iterable[Span], log: int, head: int) -> Spans:
    """Closed spans, followed by what the session's own log will bring."""
    return (*closed(spans, log, head), Span(log, head + 1, None))


def context(spans: Iterable[Span], log: int, head: int) -> list[Stretch]:
    """What the model sees."""
    seen = (span for span in closed(spans, log, head) if span.kind != "reset")
    return [Stretch(span.log, span.first, span.last or 0) for span in seen]


def conversation(spans: Iterable[Span], log: int, head: int, expand: Expand) -> list[Stretch]:
    """All that was said, with summaries as marks. However deep compactions lie in each other."""
    out: list[Stretch] = []
    waiting = [(span, False) for span in reversed(closed(spans, log, head))]
    while waiting:
        span, expanded = waiting.pop()
        if span.kind in STANDING and span.expands is not None and not expanded:
            waiting.append((span, True))
            inner = closed(expand(span.expands), log, head)
            waiting.extend((each, False) for each in reversed(inner))
        elif span.kind != "kept":
            mark, heading = span.kind in STANDING, span.kind in HEADINGS
            out.append(Stretch(span.log, span.first, span.last or 0, mark, heading))
    return out


def cut(spans: Sequence[Span], place: EntryPlace, expand: Expand) -> Spans | None:
    """The spans as they were when the entry at `place` was the newest; None if the conversation lacks it.

    An entry that a compaction retired or kept is found in the checkpoint, whose spans are then cut: so whoever
    goes back before a compaction gets the context of that time.
    """
    # Lists to look through for what was plainly said, and summaries in them, each with the list it stands in.
    waiting: list[tuple[Sequence[Span], int | None]] = [(spans, None)]
    while waiting:
        level, index = waiting.pop()
        if index is None:
            for at, span in enumerate(level):
                if span.kind == "plain" and span.holds(place):
                    return (*level[:at], span._replace(last=place.seq))
            summaries_at = [at for at, span in enumerate(level) if span.kind in STANDING]
            waiting.extend((level, at) for at in reversed(summaries_at))
        elif level[index].holds(place):
            return (*level[: index + 1], *_kept_after(level, index))
        elif (inner := level[index].expands) is not None:
            waiting.append((expand(inner), None))
    return None


def _kept_after(spans: Sequence[Span], index: int) -> Spans:
    end = index + 1
    while end < len(spans) and spans[end].kind == "kept":
        end += 1
    return tuple(spans[index + 1 : end])


def _kept_before(spans: Sequence[Span], index: int) -> int:
    return next((count for count in range(index) if spans[index - count - 1].kind != "kept"), index)


def compacted(spans: Sequence[Span], summary: EntryPlace, checkpoint: str, keep: int) -> Spans:
    """Closed spans replaced by a summary and their last `keep` entries; `checkpoint` holds the whole of them.

    An earlier summary is never kept beside the new one: it is part of what the new one stands for.
    """
    kept: list[Span] = []
    for span in reversed(spans):
        if keep <= 0 or span.last is None or span.kind in STANDING:
            break
        first = max(span.first, span.last - keep + 1)
        kept.insert(0, Span(span.log, first, span.last, "kept"))
        keep -= span.last - first + 1
    return (Span(summary.log, summary.seq, summary.seq, "summary", checkpoint), *kept)


def restarted(heading: EntryPlace, checkpoint: str, *, recap: bool) -> Spans:
    """The spans of a new episode; `checkpoint` holds the earlier ones."""
    return (Span(heading.log, heading.seq, heading.seq, "recap" if recap else "reset", checkpoint),)


def is_begun(spans: Iterable[Span]) -> bool:
    """Whether something was said in the episode of these closed spans."""
    return any(span.kind not in HEADINGS for span in spans)


def checkpoints_holding(lists: Mapping[str, Sequence[Span]], place: EntryPlace) -> frozenset[str]:
    """The checkpoints, of these by their ids, whose entries or whose summaries' entries have this place among them.

    What an earlier episode said is not among them, unless there is a recap.
    """
    known = {name for name, spans in lists.items() if any(span.holds(place) for span in spans)}
    grown = True
    while grown:
        more = {name for name, spans in lists.items() if summaries_of(spans, known)} - known
        known |= more
        grown = bool(more)
    return frozenset(known)


def summaries_of(spans: Sequence[Span], checkpoints: Collection[str]) -> list[int]:
    """Where in a list stand summaries of these checkpoints, or recaps. What was kept beside a summary is in its checkpoint too."""
    return [at for at, span in enumerate(spans) if span.expands in checkpoints and span.kind != "reset"]


def unfold_summaries(spans: Sequence[Span], checkpoints: Collection[str], expand: Expand) -> Spans:
    """The spans with each summary of these checkpoints, and what was kept beside it, as what it stands for. An episode that began
    with a recap of one begins without."""
    out: list[Span] = []
    waiting: list[Sequence[Span]] = [spans]
    while waiting:
        level = waiting.pop()
        at = next(iter(summaries_of(level, checkpoints)), None)
        if at is None:
            out.extend(level)
        elif level[at].kind == "recap":
            out.extend((*level[:at], level[at]._replace(kind="reset")))
            waiting.append(level[at + 1 :])
        else:
            out.extend(level[: at - _kept_before(level, at)])
            waiting.append(level[at + 1 + len(_kept_after(level, at)) :])
            waiting.append(expand(level[at].expands or ""))
    return tuple(out)


def said_since(now: Iterable[Stretch], then: Iterable[Stretch]) -> Spans:
    """What the conversation `now` has that the conversation `then` has not, in order, without marks."""
    known = list(then)
    left = [piece for stretch in now if not stretch.mark for piece in without(stretch, known)]
    return tuple(Span(piece.log, piece.first, piece.last) for piece in left)


def without(stretch: Stretch, known: Iterable[Stretch]) -> list[Stretch]:
    """What is left of a stretch when others are taken out."""
    pieces = [stretch]
    for other in known:
        pieces = [left for piece in pieces for left in _apart(piece, other)]
    return pieces


def _apart(piece: Stretch, other: Stretch) -> Iterator[Stretch]:
    if piece.log != other.log or other.last < piece.first or piece.last < other.first:
        yield piece
        return
    if piece.first < other.first:
        yield piece._replace(last=other.first - 1)
    if other.last < piece.last:
        yield piece._replace(first=other.last + 1)


def count_left_behind(conversation: Sequence[Stretch], context: Sequence[Stretch]) -> int:
    """How many entries stand in the conversation before the first that is still in the context."""
    passed = 0
    for stretch in conversation:
        pieces = without(stretch, context)
        if pieces != [stretch]:
            return passed + (pieces[0].size if pieces and pieces[0].first == stretch.first else 0)
        passed += stretch.size
    return 0 if context else passed  # what shares nothing with a context was not left behind by it


def shared(one: Sequence[Stretch], other: Sequence[Stretch]) -> int:
    """How many entries both views begin with."""
    mine, theirs, count = list(reversed(one)), list(reversed(other)), 0
    while mine and theirs:
        a, b = mine.pop(), theirs.pop()
        if (a.log, a.first) != (b.log, b.first):
            break
        both = min(a.size, b.size)
        count += both
        mine += [a._replace(first=a.first + both)] if a.size > both else []
        theirs += [b._replace(first=b.first + both)] if b.size > both else []
    return count


def size(stretches: Iterable[Stretch]) -> int:
    """How many entries the view has."""
    return sum(stretch.size for stretch in stretches)


def ordinal(stretches: Iterable[Stretch], place: EntryPlace) -> int | None:
    """The position of a place in the view; the last one, should it stand there twice."""
    passed, found = 0, None
    for stretch in stretches:
        if stretch.log == place.log and stretch.first <= place.seq <= stretch.last:
            found = passed + place.seq - stretch.first
        passed += stretch.size
    return found


def slice_of(stretches: Iterable[Stretch], start: int, stop: int) -> list[Stretch]:
    """The part of the view from position `start` up to, not including, `stop`."""
    out: list[Stretch] = []
    passed = 0
    for stretch in stretches:
        low, high = max(start - passed, 0), min(stop - passed, stretch.size)
        if low < high:
            out.append(stretch._replace(first=stretch.first + low, last=stretch.first + high - 1))
        passed += stretch.size
    return out


def summaries(spans: Iterable[Span]) -> list[str]:
    """The checkpoints that these spans name."""
    return [span.expands for span in spans if span.expands is not None]
