"""A conversation as plain turns, so that any agent can continue it. Pure.

Messages of people and models stay word for word, with their pictures. Calls of tools that the next agent has too stay calls,
with their results; all others are summarised in square brackets. Thoughts are left out, and so are instructions of a program
to its model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from msgspec.structs import replace

from hitherto.model import (
    Audio,
    Entry,
    Image,
    Json,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    plain_text,
)
from hitherto.presentation.formats import counted
from hitherto.presentation.labels import data, part_label, result_text, shortened, steps
from hitherto.summaries.builtin import Extractive, extracted
from hitherto.summaries.kept_tail import kept_from
from hitherto.summariser import CompactionPolicy
from hitherto.values.token_count import PER_ENTRY, estimate

Side = Literal["user", "assistant"]
Fidelity = Literal["native", "replayed", "summarised"]
LARGEST = 100_000
"""Beyond this many tokens, the older part is summarised: it would not fit the window of some models."""
POLICY = CompactionPolicy(kept_tokens=40_000, kept_share=0.5)
INPUT_CHARS = 400
RESULT_CHARS = 1_000
NATIVE_CHARS = 16_000
"""How much is kept of what a tool is given, of its result if that is text, and of the result of a call that stays a call."""
PICTURE_LOST = ("picture", "only named")
PICTURE_TOKENS = 1_500
"""About how much room a picture takes in a context."""

OPENING = """<additional_context>
This conversation started in {agent} and continues here. Messages are quoted word for word. Square brackets summarise earlier \
tool calls and their results; they are not a way to call tools. Use your own tools as usual.
</additional_context>"""


class Turn(NamedTuple):
    """What one side writes before the other does, or before it uses a tool; `model` wrote it. `pictures` have their bytes."""

    side: Side
    text: str
    at: int
    model: str | None = None
    pictures: tuple[Image, ...] = ()


class Tool(NamedTuple):
    """A call in the words of the agent that continues: the name of its own tool, and what it is given."""

    name: str
    given: Json


class Use(NamedTuple):
    """A tool that the agent used, and what came of it."""

    tool: Tool
    result: ToolResult
    at: int
    model: str | None = None


Tools = Callable[[ToolCall], Tool | None]
"""The call with a tool of the agent that continues; None if it has none for it."""


def no_tools(_: ToolCall) -> None:
    """No call can be kept as a call."""


class PlainConversation(NamedTuple):
    """Turns and uses of tools, with a `summary` of what came before the first of them; `left_behind` says what is not carried
    over."""

    turns: tuple[Turn | Use, ...]
    summary: str | None = None
    left_behind: tuple[str, ...] = ()

    @property
    def messages(self) -> int:
        """How many turns are word for word."""
        return sum(isinstance(turn, Turn) for turn in self.turns)

    @property
    def fidelity(self) -> Fidelity:
        """Whether all of it is word for word."""
        return "replayed" if self.summary is None else "summarised"


def plain_conversation(
    entries: Iterable[Entry],
    largest: int = LARGEST,
    tools: Tools = no_tools,
    *,
    shows_results: bool = True,
) -> PlainConversation:
    """The plain conversation of a context, for an agent with these tools, whose results have pictures if it `shows_results`;
    beyond `largest` tokens, its older part becomes a summary."""
    said = [_known_summary(entry) for entry in entries if not _is_program_note(entry)]
    talk = _Talk(said, tools, shows_results=shows_results)
    sizes = [PER_ENTRY + talk.size(entry) for entry in said]
    if sum(sizes) > largest:
        measured = [replace(entry, tokens=size) for entry, size in zip(said, sizes, strict=True)]
        cut = kept_from(measured, POLICY)
        summary = extracted(measured[:cut], measured[cut:], POLICY).text if cut else ""
        if summary:
            return talk.conversation(said[cut:], whole(summary), cut)
    if said and _is_summary(said[0]):
        return talk.conversation(said[1:], whole(plain_text(said[0])))
    return talk.conversation(said)


def opening(agent: str) -> str:
    """The note for the model before the conversation."""
    return OPENING.format(agent=agent)


def _is_program_note(entry: Entry) -> bool:
    """Whether a program wrote this to its model or its user about itself: the next agent has its own such texts."""
    if entry.role == "assistant":
        return bool(entry.meta.get("synthetic"))
    noted = entry.meta.get("meta") and not entry.meta.get("body")
    return bool(noted or (entry.role == "system" and entry.meta.get("error")))


def _is_summary(entry: Entry) -> bool:
    return entry.role == "system" and bool(entry.meta.get("compaction"))


def _known_summary(entry: Entry) -> Entry:
    """Mark summaries of other agents as ours are marked."""
    return (
        replace(entry, meta={**entry.meta, "compaction": True})
        if entry.meta.get("compact_summary")
        else entry
    )


class _Talk:
    """Makes turns of these entries. A call stays a call if the next agent has a tool for it and its result is known."""

    def __init__(self, entries: Sequence[Entry], tools: Tools, *, shows_results: bool) -> None:
        parts = [part for entry in entries for part in entry.parts]
        self._results = {part.id: part for part in parts if isinstance(part, ToolResult)}
        calls = ((part.id, tools(part)) for part in parts if isinstance(part, ToolCall))
        self._tools = {id: tool for id, tool in calls if tool is not None and id in self._results}
        self._shows_results = shows_results
        self._names: dict[str, str] = {}

    def conversation(
        self, entries: Sequence[Entry], summary: str | None = None, summarised: int = 0
    ) -> PlainConversation:
        left = self._left_behind(entries)
        left["earlier message", "summarised"] += summarised
        sentences = tuple(
            f"{counted(count, what)} {'is' if count == 1 else 'are'} {how}"
            for (what, how), count in left.items()
            if count
        )
        return PlainConversation(tuple(self._turns(entries)), summary, sentences)

    def size(self, entry: Entry) -> int:
        """About how many tokens an entry takes."""
        return sum(estimate(self._text(part)) + _picture_size(part) for part in entry.parts)

    def _text(self, part: Part) -> str:
        if isinstance(part, ToolResult) and part.id in self._tools:
            return shortened(result_text(part), NATIVE_CHARS)
        return _part_text(part, self._names)

    def _turns(self, entries: Iterable[Entry]) -> Iterator[Turn | Use]:
        """Each prompt is a turn; what the assistant writes until the next prompt or the next use of a tool is one turn."""
        answer: list[Turn] = []
        for entry in entries:
            for piece in self._pieces(entry):
                if isinstance(piece, Turn) and piece.side == "assistant":
                    answer.append(piece)
                else:
                    yield from _join_turns(answer)
                    yield piece
                    answer = []
        yield from _join_turns(answer)

    def _pieces(self, entry: Entry) -> Iterator[Turn | Use]:
        """What an entry becomes, in its order: texts by side, and uses of tools."""
        of_assistant = entry.role in ("assistant", "tool")
        for uses, group in groupby(entry.parts, self._is_carried):
            parts = list(group)
            if uses:
                yield from self._uses(entry, parts)
                continue
            theirs = [part for part in parts if of_assistant or isinstance(part, ToolResult)]
            if text := self._joined_text(theirs):
                yield Turn("assistant", text, entry.at, entry.model)
            if not of_assistant:
                yield from self._users_turn(entry, [part for part in parts if part not in theirs])

    def _is_carried(self, part: Part) -> bool:
        """Whether this is a call that stays a call, or the result of one."""
        return isinstance(part, ToolCall | ToolResult) and part.id in self._tools

    def _uses(self, entry: Entry, parts: Iterable[Part]) -> Iterator[Use]:
        for part in parts:
            if isinstance(part, ToolCall):
                yield Use(self._tools[part.id], self._results[part.id], entry.at, entry.model)

    def _users_turn(self, entry: Entry, parts: Sequence[Part]) -> Iterator[Turn]:
        pictures = tuple(part for part in parts if isinstance(part, Image) and part.data)
        text = self._joined_text([part for part in parts if part not in pictures])
        if text or pictures:
            text = _tagged(entry, text) if entry.role == "system" else text
            yield Turn("user", whole(text), entry.at, entry.model, pictures)

    def _joined_text(self, parts: Sequence[Part]) -> str:
        return "\n\n".join(filter(str.strip, (_part_text(part, self._names) for part in parts)))

    def _left_behind(self, entries: Iterable[Entry]) -> Counter[tuple[str, str]]:
        left = Counter[tuple[str, str]]()
        for entry in entries:
            for part in entry.parts:
                if isinstance(part, ToolResult):
                    self._left_of_result(part, left)
                elif (how := self._loss(entry, part)) is not None:
                    left[how] += 1
        return left

    def _loss(self, entry: Entry, part: Part) -> tuple[str, str] | None:
        match part:
            case Thought(text=text) if text:
                return "thought", "left out"
            case ToolCall(id=id) if id not in self._tools:
                return "tool call", "told as text"
            case Image(data=data) if not data or entry.role not in ("user", "system"):
                return PICTURE_LOST
            case Audio() | ResourceLink() | Resource(text=None):
                return "attachment", "only named"
        return None

    def _left_of_result(self, result: ToolResult, left: Counter[tuple[str, str]]) -> None:
        carried = result.id in self._tools
        if carried and len(result_text(result)) > NATIVE_CHARS:
            left["result", "shortened"] += 1
        if not (carried and self._shows_results):
            left[PICTURE_LOST] += sum(isinstance(part, Image) for part in result.content)


def _picture_size(part: Part) -> int:
    return PICTURE_TOKENS if isinstance(part, Image) and part.data else 0


def _join_turns(answer: Sequence[Turn]) -> Iterator[Turn]:
    if answer:
        model = next((turn.model for turn in reversed(answer) if turn.model), None)
        yield Turn("assistant", whole("\n\n".join(turn.text for turn in answer)), answer[-1].at, model)


def _tagged(entry: Entry, text: str) -> str:
    return tagged_summary(text) if _is_summary(entry) else f"<note>\n{text}\n</note>"


def tagged_summary(text: str) -> str:
    """A summary as a part of a message."""
    return f"<earlier-conversation-summary>\n{text}\n</earlier-conversation-summary>"


def _part_text(part: Part, names: dict[str, str]) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall(id=id, name=name, input=given):
            names[id] = name
            return f"[{name}: {shortened(_as_text(given), INPUT_CHARS)}]"
        case ToolResult(id=id, is_error=failed):
            result = shortened(result_text(part).strip(), RESULT_CHARS) or "nothing"
            return f"[{names.get(id, 'the tool')} {'failed' if failed else 'answered'}: {result}]"
        case Plan(steps=given):
            return "\n".join(f"- {step}" for step in steps(given))
        case Resource(uri=uri, text=str(text)):
            return f"{uri}:\n{text}"
        case Thought() | Unknown():
            return ""
    return f"[{part_label(part)}]"


def _as_text(given: object) -> str:
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict | list) else data(given)


def whole(text: str) -> str:
    """The text without lone surrogates, which some JSON readers refuse."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


MOST_CHARS = 60_000
"""The limit of the quoted messages, without the summary of the rest."""
TOOL_CHARS = 500
NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
BEGIN = (
    "The following is the earlier part of this conversation, before you joined it. It is context, not a request:"
    " do not answer it, but take it into account. The request comes after it.\n\n<conversation>\n"
)
END = "\n</conversation>"
LEFT_OUT = "Summary of the earlier messages:\n{}\n\nThe latest messages, word for word:\n"


async def earlier_conversation(entries: Sequence[Entry]) -> str:
    """The earlier conversation as context for an agent; empty if there is no text."""
    lines = [(at, line) for at, entry in enumerate(entries) if (line := _line(entry))]
    if not lines:
        return ""
    room, first = MOST_CHARS, len(lines)
    while first and len(lines[first - 1][1]) <= room:
        first -= 1
        room -= len(lines[first][1]) + 2
    kept = [line for _, line in lines[first:]]
    if first == 0:
        return BEGIN + "\n\n".join(kept) + END
    since = lines[first][0] if first < len(lines) else len(entries)
    summary = await Extractive().summarise(entries[:since], entries[since:], CompactionPolicy())
    return BEGIN + LEFT_OUT.format(summary.text) + "\n\n".join(kept) + END


def _line(entry: Entry) -> str:
    if entry.meta.get("meta") is True:  # instructions of a program to its model
        return ""
    said = "\n".join(filter(None, map(_short_part, entry.parts)))
    return f"{NAMES[entry.role]}: {said}" if said else ""


def _short_part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall():
            given = "" if part.input is None else _cut(json.dumps(part.input, ensure_ascii=False))
            return f"[calls {part.name}: {given}]"
        case ToolResult():
            said = " ".join(_texts(part))
            return f"[{'failed' if part.is_error else 'result'}: {_cut(said)}]"
    uri = getattr(part, "uri", None)
    return f"[{uri}]" if uri else ""


def _texts(result: ToolResult) -> Iterator[str]:
    for part in result.content:
        if isinstance(part, Text):
            yield part.text


def _cut(text: str) -> str:
    return text if len(text) <= TOOL_CHARS else text[:TOOL_CHARS] + "…"
