"""The message that an engine is writing, as far as its deltas go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from hitherto.engine import Context, Delta, ToolProgress
from hitherto.limits import ENTRY_BYTES, LIVE_BYTES
from hitherto.model import Draft, Entry, Live, LiveTool, Part, Text, Thought, ToolCall, encode

SHOWN_CHARS = LIVE_BYTES // 12
"""How much of a text fits a live row, however its characters are encoded."""
KEPT_CHARS = ENTRY_BYTES // 12
"""The same for an entry."""


class PartialMessage:
    """Pieces of text and thought, joined only when somebody wants to see them."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self._pieces: list[tuple[bool, list[str]]] = []

    def __bool__(self) -> bool:
        """Whether anything has been said."""
        return bool(self._pieces)

    def add(self, delta: Delta) -> None:
        """Some more; a text after a thought, or the other way round, begins a new part."""
        if not self._pieces or self._pieces[-1][0] != delta.thought:
            self._pieces.append((delta.thought, []))
        self._pieces[-1][1].append(delta.text)

    def live(self, tools: Iterable[ToolProgress] = (), context: Context | None = None) -> bytes:
        """What every process is shown: the newest part, and its end if it is long; what came before it, and the output of
        the tools that run, as far as there is room; and how full the context is."""
        *before, (thought, texts) = self._pieces or [(False, [])]
        newest, whole = "".join(texts)[-SHOWN_CHARS:], sum(map(len, texts))
        start, starts = 0, list[int]()
        for _, said in before:
            starts.append(start)
            start += sum(map(len, said))
        earlier = tuple(_parts(before, SHOWN_CHARS - len(newest)))
        room = SHOWN_CHARS - len(newest) - sum(len(text) for _, said in before for text in said)
        live = Live(
            entry=self.entry,
            parts=(_part(thought, newest),),  # one always: whoever follows looks at the last
            earlier=earlier,
            starts=(*starts[: len(earlier)], start + whole - len(newest)),
            tools=tuple(_fitting(tools, room)),
            used=None if context is None else context.used,
            size=None if context is None else context.size,
        )
        return encode(live)

    def partial(self, meta: dict[str, object]) -> Draft:
        """The message as it would be stored now, unfinished."""
        return Draft(
            role="assistant", parts=tuple(_parts(self._pieces, KEPT_CHARS)), id=self.entry, meta=meta
        )


def _parts(pieces: Iterable[tuple[bool, list[str]]], room: int) -> Iterator[Part]:
    """The pieces as parts, up to so many characters."""
    for thought, texts in pieces:
        text = "".join(texts)[:room]
        room -= len(text)
        if text:
            yield _part(thought, text)


def _fitting(tools: Iterable[ToolProgress], room: int) -> Iterator[LiveTool]:
    """The tools that run; without output if that is too long."""
    for tool in tools:
        room -= len(encode(tool.content)) if tool.content else 0
        yield LiveTool(id=tool.id, content=tool.content if room >= 0 else ())


def _part(thought: bool, text: str) -> Part:
    return Thought(text=text) if thought else Text(text=text)


class CallIds:
    """The ids of one turn's calls: as the engine says them, and as they are stored."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._stored: dict[str, str] = {}

    def taken(self, parts: Sequence[Part], history: Iterable[Entry]) -> tuple[Part, ...]:
        """The parts of a message, each call with an id that neither the history nor an earlier message has."""
        if not any(isinstance(part, ToolCall) for part in parts):
            return tuple(parts)
        if not self._used:
            self._used = {part.id for entry in history for part in entry.parts if isinstance(part, ToolCall)}
        kept = tuple(self._renamed(part) if isinstance(part, ToolCall) else part for part in parts)
        self._used.update(part.id for part in kept if isinstance(part, ToolCall))
        return kept

    def stored(self, said: str) -> str:
        """The id under which the newest call that the engine means by this one is stored."""
        return self._stored.get(said, said)

    def _renamed(self, call: ToolCall) -> ToolCall:
        fresh, count = call.id, 1
        while fresh in self._used:
            count += 1
            fresh = f"{call.id}-{count}"
        self._stored[call.id] = fresh
        return call if fresh == call.id else replace(call, id=fresh)
