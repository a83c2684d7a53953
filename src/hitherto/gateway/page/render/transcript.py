"""Turns a window of entries into messages for a template: each part as a block, a tool's result with its call. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from hitherto.clean_text import clean, clean_lines
from hitherto.gateway.page.render.code import markdown, picture
from hitherto.gateway.page.render.json_tree import tree
from hitherto.gateway.page.render.rows import Row
from hitherto.gateway.page.render.tool_card import Output, card, output_of
from hitherto.gateway.page.render.window import MessageWindow, Placed, is_prompt, is_step
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
    plain_text,
)
from hitherto.presentation import labels
from hitherto.presentation.diffs import is_edit
from hitherto.values.usage.prices import MICROS, estimate

SHOWN_CHARS = 50_000
ASIDE_CHARS = 100
SPEAKERS = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tool"}


class Block(NamedTuple):
    """A part of a message, by the kind that the template renders."""

    kind: str
    value: Any
    more: int = 0


class Numbers(NamedTuple):
    """What was done: how many calls, how many of them changed a file, how many failed, and the cost, in millionths of a dollar.

    `estimated`: some of the cost is an estimate.
    """

    steps: int = 0
    edits: int = 0
    failed: int = 0
    cost: int = 0
    estimated: bool = False

    def plus(self, other: Numbers) -> Numbers:
        """Their sum."""
        return Numbers(
            self.steps + other.steps,
            self.edits + other.edits,
            self.failed + other.failed,
            self.cost + other.cost,
            self.estimated or other.estimated,
        )


class Message(NamedTuple):
    """A message. `mark`: the summary of a compaction; `same`: the same speaker as before.

    `until` is the last entry that it shows: for a message with calls, the last of their results. `number` is its
    position in the conversation; `past`: it is no longer in the context; `begins`: it is the first in the context.
    `other`: another model than that of the message before wrote it.
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
    other: bool = True
    numbers: Numbers = Numbers()

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
        return is_prompt(self.entry)

    @property
    def is_step(self) -> bool:
        """Whether the agent did something here."""
        return is_step(self.entry)

    @property
    def aside(self) -> str:
        """What a message is about that neither a person nor the model wrote, such as what a hook said; else empty."""
        if self.mark or self.entry.role not in ("user", "system"):
            return ""
        if not self.entry.meta.get("meta"):
            return "Instructions" if self.entry.role == "system" else ""
        first = clean(plain_text(self.entry)[:ASIDE_CHARS]).strip().partition("\n")[0]
        return first or "Context"

    @property
    def failed(self) -> bool:
        return is_error(self.entry) or any(
            block.kind == "card" and block.value.failed for block in self.blocks
        )


def messages_of(given: MessageWindow, children: Mapping[str, Row], *, runs: bool = False) -> list[Message]:
    """The messages of a window, with the sessions that its calls started. `runs`: a turn is running."""
    placed = [Placed(number, entry) for number, entry in enumerate(given.entries, given.start)]
    return Transcript(given, children).messages(placed, runs=runs)


def messages(entries: Sequence[Entry]) -> list[Message]:
    """The messages of some entries."""
    window = MessageWindow(tuple(entries), frozenset(), 0, 0, len(entries), before=False, after=False)
    return messages_of(window, {})


class Transcript:
    """The entries of a window as messages: what stands in one of them may come from another.

    Paths are shown relative to `folder`.
    """

    def __init__(self, given: MessageWindow, children: Mapping[str, Row], folder: str | None = None) -> None:
        entries = [*([given.opening.entry] if given.opening else ()), *given.entries]
        entries += [each.entry for each in given.closing]
        self._marks = frozenset(given.start + mark for mark in given.marks)
        self._past, self._children, self._folder = given.past, children, folder
        self._outputs = _Outputs(entries)
        self._other = _changed_models(entries)
        requests = set[str]()
        self._numbers = {entry.id: self._counted(entry, requests) for entry in entries}

    def numbers(self, entries: Iterable[Placed]) -> Numbers:
        """What was done in these."""
        total = Numbers()
        for each in entries:
            total = total.plus(self._numbers[each.entry.id])
        return total

    def is_mark(self, given: Placed) -> bool:
        """Whether it is the summary of a compaction."""
        return given.number in self._marks

    def messages(self, entries: Iterable[Placed], *, runs: bool = False) -> list[Message]:
        """These entries as messages. `runs`: a turn is running, so that calls behind the last prompt are."""
        made: list[Message] = []
        for number, entry in entries:
            blocks = tuple(self._blocks(entry))
            if not blocks and made and self._outputs.took(entry):  # it is all in the cards of its calls
                made[-1] = made[-1]._replace(until=entry.id)
                continue
            mark = number in self._marks
            same = bool(made) and entry.role == "assistant" == made[-1].entry.role and not made[-1].mark
            made.append(
                Message(
                    entry,
                    (labels.episode(entry) if mark else "") or labels.sender_name(entry) or SPEAKERS[entry.role],
                    blocks,
                    entry.id,
                    number,
                    mark=mark,
                    same=same and not mark,
                    past=number < self._past,
                    begins=0 < self._past == number,
                    other=entry.id in self._other,
                    numbers=self._numbers[entry.id],
                )
            )  # fmt: skip
        asked = max((at for at, each in enumerate(made) if each.is_prompt), default=-1)
        return [_running(each) if runs and at > asked else each for at, each in enumerate(made)]

    def _counted(self, entry: Entry, requests: set[str]) -> Numbers:
        calls = [part for part in entry.parts if isinstance(part, ToolCall)]
        results = [self._outputs.result(call) for call in calls]
        alone = (part for part in entry.parts if isinstance(part, ToolResult) and not self._outputs.has(part))
        failed = [result is not None and result.is_error for result in results]
        edits = sum(_changes_file(call) and not bad for call, bad in zip(calls, failed, strict=True))
        cost, estimated = _cost(entry, requests)
        return Numbers(
            len(calls),
            edits,
            sum(failed) + sum(result.is_error for result in alone) + bool(entry.meta.get("error")),
            cost,
            estimated,
        )

    def _blocks(self, entry: Entry) -> Iterator[Block]:
        if entry.meta.get("erased"):
            yield Block("note", "erased")
        for part in entry.parts:
            match part:
                case ToolCall():
                    child = self._children.get(part.id)
                    yield Block("card", card(part, self._outputs.of(part), child, self._folder))
                case ToolResult() if not self._outputs.has(part):
                    yield Block("output", output_of(part, ""))
                case ToolResult():
                    pass
                case _:
                    yield _block(part)


def _changes_file(call: ToolCall) -> bool:
    return call.kind in ("edit", "delete", "move") or is_edit(call.input)


def _cost(entry: Entry, requests: set[str]) -> tuple[int, bool]:
    """What a message cost, and whether that is an estimate; nothing if its request was counted already."""
    used = entry.usage
    if used is None or (used.request is not None and used.request in requests):
        return 0, False
    if used.request is not None:
        requests.add(used.request)
    if used.cost is not None:
        return round(used.cost * MICROS), False
    return estimate(entry.model, used, entry.at) or 0, True


def _changed_models(entries: Iterable[Entry]) -> set[str]:
    """The entries that another model wrote than the one before."""
    found, known = set[str](), None
    for entry in entries:
        if entry.model and entry.model != known:
            found.add(entry.id)
            known = entry.model
    return found


def _running(given: Message) -> Message:
    """Mark the calls of a message as running, since its turn still runs."""
    blocks = (
        each._replace(value=each.value._replace(runs=True)) if each.kind == "card" else each
        for each in given.blocks
    )
    return given._replace(blocks=tuple(blocks))


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
        result = self.result(call)
        return None if result is None else output_of(result, self._results[call.id][0].id, call)

    def result(self, call: ToolCall) -> ToolResult | None:
        if self._calls.get(call.id) is not call or call.id not in self._results:
            return None
        return self._results[call.id][1]

    def has(self, result: ToolResult) -> bool:
        return result.id in self._results and self._results[result.id][1] is result

    def took(self, entry: Entry) -> bool:
        """Whether the cards of calls show everything in this entry."""
        return bool(entry.parts) and all(
            isinstance(part, ToolResult) and self.has(part) for part in entry.parts
        )


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
