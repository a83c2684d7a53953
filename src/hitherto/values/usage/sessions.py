"""What a session and its turns have used, counted from its messages; where it only grew, counting goes on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from hitherto.model import Json, Value, decode_entry
from hitherto.values.token_count import tokens_of
from hitherto.values.usage import prices
from hitherto.values.usage.requests import (
    CountedEntry,
    Request,
    Spent,
    UsageSum,
    light,
    request_of,
    spent_by,
    sum_of,
    usage_sum,
)

FORM = 1
"""Raised when counts mean something else than before: those of an older form are counted anew."""
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
RECENT = 16
"""Of so many of the newest requests the keys are kept, so that one that comes again is noticed."""


class TurnUsage(Value, frozen=True):
    """What one turn has used. `prompt` is the id of its prompt, `duration_ms` from there to its last message."""

    prompt: str
    at: int
    duration_ms: int
    messages: int
    tool_failures: int
    failed: bool
    usage: UsageSum

    @property
    def fields(self) -> Json:
        """The same for programs."""
        return {
            "prompt": self.prompt,
            "at": self.at,
            "duration_ms": self.duration_ms,
            "messages": self.messages,
            "tool_failures": self.tool_failures,
            "failed": self.failed,
            **self.usage.fields,
        }


class SessionUsage(Value, frozen=True):
    """What a session has used, with all that was compacted or rewound.

    `messages` are those of the conversation, `context_messages` those that the model sees. `context_tokens` is the size
    of the context now, `context_estimated` if some of it is estimated; `window` what the model sees at most, which is
    assumed if `window_assumed`. `duration_ms` is the time that its turns took together. `failed` says that the last turn
    failed; `tool_failures` counts tools. Unless `current`, something was written that is not counted yet.
    """

    usage: UsageSum
    messages: int
    context_messages: int
    context_tokens: int
    context_estimated: bool
    window: int
    window_assumed: bool
    model: str | None
    duration_ms: int
    tool_failures: int
    failed: bool
    tokens: int | None
    current: bool = True
    turns: tuple[TurnUsage, ...] = ()

    @property
    def fields(self) -> Json:
        """The same for programs, without turns; tokens are null if no answer says how many."""
        known = self.usage.fields
        if not self.usage.requests:
            known |= dict.fromkeys(TOKENS)
        return {
            **known,
            "cost_status": self.usage.cost_status,
            "messages": self.messages,
            "context_messages": self.context_messages,
            "context_tokens": self.context_tokens,
            "context_estimated": self.context_estimated,
            "model": self.model,
            "window": self.window,
            "window_assumed": self.window_assumed,
            "duration_ms": self.duration_ms,
            "tool_failures": self.tool_failures,
            "failed": self.failed,
            "current": self.current,
        }


class SaidPart(msgspec.Struct):
    """As much of a part as is counted."""

    type: str = ""
    is_error: bool = False


class SaidMeta(msgspec.Struct, frozen=True):
    """As much of an entry's meta as is counted."""

    meta: Any = None
    compaction: Any = None
    compact_summary: Any = None
    episode: Any = None
    error: Any = None


class Said(CountedEntry, frozen=True):
    """As much of an entry as is counted, and whether something failed."""

    parts: tuple[SaidPart, ...] = ()
    tokens: int | None = None
    meta: SaidMeta = SaidMeta()

    @property
    def is_prompt(self) -> bool:
        """Whether it begins a turn: a program may write in the user's name too."""
        return self.role == "user" and not self.meta.meta

    @property
    def is_summary(self) -> bool:
        """Whether it stands for what was said before: a summary, or the heading of an episode."""
        return bool(self.meta.compaction or self.meta.compact_summary or self.meta.episode)

    @property
    def failures(self) -> int:
        """How many tools failed."""
        return sum(part.type == "tool_result" and part.is_error for part in self.parts)

    @property
    def context(self) -> int | None:
        """How much of the window it took, if it is an answer that says so."""
        if self.role != "assistant" or self.usage is None or self.usage.input is None:
            return None
        return self.usage.input + (self.usage.output or 0)

    def leaves_failed(self, before: bool) -> bool:
        """Whether the turn that it is part of has failed so far: an error of a tool is none of the turn."""
        if self.is_prompt:
            return False
        if self.meta.error and self.role != "tool":
            return True
        return before and self.role != "assistant"


_said = msgspec.json.Decoder(Said)


def said(payload: bytes) -> Said:
    """As much of a stored entry as is counted."""
    return light(payload, _said)


class ContextSize(NamedTuple):
    """How much of a window the context takes: what its newest answer `reported`, and an estimate of the `since` entries that
    came `after` it; of all entries if none reported any since the last summary, which was made at `summary_at`: what was
    reported before describes another context."""

    reported: int
    after: int
    since: int
    summary_at: int


class SessionCount(msgspec.Struct, frozen=True, array_like=True):
    """What was counted of a session up to the entry `head` of its log, and what is needed to go on from there.

    `shape` is a digest of what it consists of but its end; 0 if it cannot just grow. `turn_at` and `turn_end` are of the
    last turn, `ended_ms` the time that those before it took. `failed` is the state of the session, `erred` of its last turn.
    """

    form: int
    shape: int
    head: int
    spent: Spent
    recent: tuple[int, ...]
    messages: int
    context_messages: int
    tokens: int | None
    model: str | None
    window: int | None
    ended_ms: int
    turn_at: int
    turn_end: int
    tool_failures: int
    erred: bool
    failed: bool
    context: ContextSize


_count = msgspec.json.Decoder(SessionCount)


def decoded_count(body: bytes | None) -> SessionCount | None:
    """The count that was encoded; None if there is none, or it is of another form."""
    try:
        found = None if body is None else _count.decode(body)
    except msgspec.DecodeError:
        return None
    return found if found is not None and found.form == FORM else None


def usage_of(count: SessionCount, *, current: bool = True, turns: Sequence[TurnUsage] = ()) -> SessionUsage:
    """What was counted, as it is shown."""
    size = count.context
    return SessionUsage(
        usage=usage_sum(count.spent),
        messages=count.messages,
        context_messages=count.context_messages,
        context_tokens=size.reported + size.after,
        context_estimated=size.since > 0,
        window=count.window or prices.ASSUMED_WINDOW,
        window_assumed=count.window is None,
        model=count.model,
        duration_ms=count.ended_ms + count.turn_end - count.turn_at,
        tool_failures=count.tool_failures,
        failed=count.failed or count.erred,
        tokens=count.tokens,
        current=current,
        turns=tuple(turns),
    )


def counted(
    entries: Sequence[Said], once: Iterable[Request], turns: Sequence[TurnUsage], context: ContextSize
) -> SessionCount:
    """The count of a whole conversation, its requests each once and at what they cost. Shape, head, context and state are
    those of an empty session."""
    requests = list(once)
    models = [entry.model for entry in entries if entry.model]
    model = models[-1] if models else None
    last = turns[-1] if turns else None
    return SessionCount(
        form=FORM,
        shape=0,
        head=0,
        spent=spent_by(requests),
        recent=tuple(request.key for request in requests[-RECENT:]),
        messages=sum(not entry.is_summary for entry in entries),
        context_messages=0,
        tokens=_known(entry.tokens for entry in entries if not entry.is_summary),
        model=model,
        window=None if model is None else prices.window_of(model),
        ended_ms=sum(turn.duration_ms for turn in turns[:-1]),
        turn_at=0 if last is None else last.at,
        turn_end=0 if last is None else last.at + last.duration_ms,
        tool_failures=sum(turn.tool_failures for turn in turns),
        erred=False if last is None else last.failed,
        failed=False,
        context=context,
    )


def grown(
    count: SessionCount, rows: Iterable[tuple[int, bytes]], *, synced: bool, until: int
) -> SessionCount | None:
    """The count after these entries of the session's own log, which follow what was counted.

    None if that cannot be told from them alone: a summary came, or a request that was counted before, or one from before
    `until`, of which the agent says what all cost together.
    """
    for seq, payload in rows:
        entry = said(payload)
        request = request_of(entry, 0, seq, synced=synced, price=prices.estimate)
        if entry.is_summary or (request and (request.key in count.recent or request.at <= until)):
            return None
        count = _with_entry(count, entry, payload)
        if request is not None:
            recent = (*count.recent, request.key)[-RECENT:]
            count = replace(count, spent=count.spent.plus(spent_by([request])), recent=recent)
    return count


def _with_entry(count: SessionCount, entry: Said, payload: bytes) -> SessionCount:
    opens = entry.is_prompt or not count.messages
    model = entry.model or count.model
    return replace(
        count,
        messages=count.messages + 1,
        tokens=_known((count.tokens, entry.tokens)),
        model=model,
        window=prices.window_of(model) if model is not None and model != count.model else count.window,
        ended_ms=count.ended_ms + (count.turn_end - count.turn_at if opens else 0),
        turn_at=entry.at if opens else count.turn_at,
        turn_end=entry.at if opens else max(count.turn_end, entry.at),
        tool_failures=count.tool_failures + entry.failures,
        erred=entry.leaves_failed(count.erred),
        context=_with_context(count.context, entry, payload),
    )


def _with_context(size: ContextSize, entry: Said, payload: bytes) -> ContextSize:
    if entry.context is not None and entry.at >= size.summary_at:
        return size._replace(reported=entry.context, after=0, since=0)
    after = size.after + tokens_of(decode_entry(payload)).number
    return size._replace(after=after, since=size.since + 1)


def newest_report(context: Sequence[Said], summary_at: int) -> int | None:
    """The place of the newest answer that says how much of the window it took; None if none does since the last summary."""
    for place in range(len(context) - 1, -1, -1):
        if context[place].context is not None and context[place].at >= summary_at:
            return place
    return None


def turns_of(entries: Sequence[Said], requests: Mapping[int, Request]) -> Iterator[TurnUsage]:
    """A turn begins with a prompt; what comes before the first prompt is a turn of its own. Requests go by place."""
    starts = [place for place, entry in enumerate(entries) if entry.is_prompt]
    bounds = [*([0] if entries and 0 not in starts else []), *starts, len(entries)]
    for first, end in pairwise(bounds):
        turn, failed = entries[first:end], False
        for entry in turn:
            failed = entry.leaves_failed(failed)
        yield TurnUsage(
            prompt=turn[0].id,
            at=turn[0].at,
            duration_ms=max(entry.at for entry in turn) - turn[0].at,
            messages=len(turn),
            tool_failures=sum(entry.failures for entry in turn),
            failed=failed,
            usage=sum_of(requests[place] for place in range(first, end) if place in requests),
        )


def _known(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
