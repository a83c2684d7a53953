"""Turns a window of entries into messages for a template: each part as a block, a tool's result with its call. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from markupsafe import Markup

from hitherto.clean_text import clean_lines
from hitherto.gateway.page.render.code import markdown, picture
from hitherto.gateway.page.render.json_tree import tree
from hitherto.gateway.page.render.rows import Row
from hitherto.gateway.page.render.tool_card import Output, card, output_of
from hitherto.gateway.page.render.window import MessageWindow
from hitherto.model import (
    Entry,
    Image,
    Json,
    Part,
    Plan,
    Resource,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    is_error,
)
from hitherto.presentation import labels

SHOWN_CHARS = 50_000
SPEAKERS = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tool"}


class Block(NamedTuple):
    """A part of a message, by the kind that the template renders."""

    kind: str
    value: Any
    more: int = 0


class Message(NamedTuple):
    """A message. `mark`: the summary of a compaction; `same`: the same speaker as before.

    `until` is the last entry that it shows: for a message with calls, the last of their results. `number` is its
    position in the conversation; `past`: it is no longer in the context; `begins`: it is the first in the context.
    """

    entry: Entry
    speaker: str
    blocks: tuple[Block, ...]
    until: str
    number: int = 0
    mark: bool = False
    same: bool = False
    past: bool = False
    begins: bool = False

    @property
    def label(self) -> str:
        """Who speaks, or what begins here."""
        return "Compacted here" if self.mark and not labels.episode(self.entry) else self.speaker

    @property
    def waits(self) -> bool:
        """Whether a tool call has no result yet."""
        return any(block.kind == "card" and block.value.output is None for block in self.blocks)

    @property
    def is_prompt(self) -> bool:
        """Whether a person wrote this."""
        return self.entry.role == "user" and any(block.kind in ("said", "picture") for block in self.blocks)

    @property
    def failed(self) -> bool:
        return is_error(self.entry) or any(
            block.kind == "card" and block.value.failed for block in self.blocks
        )


def messages_of(given: MessageWindow, children: Mapping[str, Row], *, runs: bool = False) -> list[Message]:
    """The messages of a window, with the sessions that its calls started. `runs`: a turn is running."""
    made = messages(given.entries, given.marks, children)
    asked = max((at for at, each in enumerate(made) if each.is_prompt), default=0)
    last = len(made) if given.after or not runs else asked
    return [
        (_running(each) if at > last else each)._replace(
            number=given.start + each.number,
            past=given.start + each.number < given.past,
            begins=0 < given.past == given.start + each.number,
        )
        for at, each in enumerate(made)
    ]


def _running(given: Message) -> Message:
    """Mark the calls of a message as running, since its turn still runs."""
    blocks = (
        each._replace(value=each.value._replace(runs=True)) if each.kind == "card" else each
        for each in given.blocks
    )
    return given._replace(blocks=tuple(blocks))


def messages(
    entries: Sequence[Entry], marks: Iterable[int] = (), children: Mapping[str, Row] = MappingProxyType({})
) -> list[Message]:
    """The messages of some entries; `marks` are the positions of summaries among them."""
    marked, outputs = frozenset(marks), _Outputs(entries)
    made: list[Message] = []
    for at, entry in enumerate(entries):
        blocks = tuple(_blocks(entry, outputs, children))
        if not blocks and made and outputs.took(entry):  # it is all in the cards of its calls
            made[-1] = made[-1]._replace(until=entry.id)
            continue
        episode = labels.episode(entry) if at in marked else ""
        speaker = episode or labels.sender_name(entry) or SPEAKERS[entry.role]
        same = bool(made) and entry.role == "assistant" == made[-1].entry.role and not made[-1].mark
        made.append(
            Message(entry, speaker, blocks, entry.id, at, mark=at in marked, same=same and at not in marked)
        )
    return made


class _Outputs:
    """Matches results with calls: each result belongs to the first earlier call with its id."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._results: dict[str, tuple[Entry, ToolResult]] = {}
        for entry in entries:
            for part in entry.parts:
                if isinstance(part, ToolCall):
                    self._calls.setdefault(part.id, part)
                elif isinstance(part, ToolResult) and part.id in self._calls:
                    self._results.setdefault(part.id, (entry, part))

    def of(self, call: ToolCall) -> Output | None:
        if self._calls.get(call.id) is not call or call.id not in self._results:
            return None
        entry, result = self._results[call.id]
        return output_of(result, entry.id, call)

    def has(self, result: ToolResult) -> bool:
        return result.id in self._results and self._results[result.id][1] is result

    def took(self, entry: Entry) -> bool:
        """Whether the cards of calls show everything in this entry."""
        return bool(entry.parts) and all(
            isinstance(part, ToolResult) and self.has(part) for part in entry.parts
        )


def _blocks(entry: Entry, outputs: _Outputs, children: Mapping[str, Row]) -> Iterator[Block]:
    if entry.meta.get("erased"):
        yield Block("note", "erased")
    for part in entry.parts:
        match part:
            case ToolCall():
                yield Block("card", card(part, outputs.of(part), children.get(part.id)))
            case ToolResult() if not outputs.has(part):
                yield Block("output", output_of(part, ""))
            case ToolResult():
                pass
            case _:
                yield _block(part)


def _block(part: Part) -> Block:
    match part:
        case Text(text=text):
            return Block("said", _rendered(text), max(0, len(text) - SHOWN_CHARS))
        case Thought(text=text):
            return Block("thought", _rendered(text), max(0, len(text) - SHOWN_CHARS))
        case Image():
            return Block("picture", picture(part))
        case Plan(steps=steps):
            return Block("plan", [_step(step) for step in steps])
        case Resource(text=str(text)):
            shown = (labels.part_label(part), clean_lines(text[:SHOWN_CHARS]))
            return Block("attached", shown, max(0, len(text) - SHOWN_CHARS))
        case Unknown(raw=raw):
            return Block("unknown", tree(raw))
    return Block("note", labels.part_label(part))


def _step(step: Json) -> tuple[str, str]:
    """The status and the text of a step of a plan."""
    status, text = step.get("status"), str(step.get("content", ""))[:2_000]
    return status if status in ("completed", "in_progress") else "pending", text


def _rendered(text: str) -> Markup:
    return Markup(markdown(clean_lines(text[:SHOWN_CHARS])))  # noqa: S704 - rendered without HTML, and filtered
