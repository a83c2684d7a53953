"""A conversation as plain turns, so that any agent can continue it. Pure.

Messages of people and models stay word for word. Tool calls and their results are summarised in square brackets. Thoughts
are left out, and so are instructions of a program to its model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from hitherto.model import (
    Entry,
    Part,
    Plan,
    Resource,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    plain_text,
)
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

OPENING = """<additional_context>
This conversation started in {agent} and continues here. Messages are quoted word for word. Square brackets summarise earlier \
tool calls and their results; they are not a way to call tools. Use your own tools as usual.
</additional_context>"""


class Turn(NamedTuple):
    """Everything that one side writes before the other does; `model` wrote it."""

    side: Side
    text: str
    at: int
    model: str | None = None


class PlainConversation(NamedTuple):
    """Turns, with a `summary` of what came before the first of them."""

    turns: tuple[Turn, ...]
    summary: str | None = None

    @property
    def fidelity(self) -> Fidelity:
        """Whether all of it is word for word."""
        return "replayed" if self.summary is None else "summarised"


def plain_conversation(entries: Iterable[Entry], largest: int = LARGEST) -> PlainConversation:
    """The plain conversation of a context; beyond `largest` tokens, its older part becomes a summary."""
    said = [_known_summary(entry) for entry in entries if not _is_program_note(entry)]
    sizes = [PER_ENTRY + sum(estimate(text) for _, text in _pieces(entry, {})) for entry in said]
    if sum(sizes) > largest:
        measured = [replace(entry, tokens=size) for entry, size in zip(said, sizes, strict=True)]
        cut = kept_from(measured, POLICY)
        summary = extracted(measured[:cut], measured[cut:], POLICY).text if cut else ""
        if summary:
            return PlainConversation(tuple(_turns(said[cut:])), _whole(summary))
    if said and _is_summary(said[0]):
        return PlainConversation(tuple(_turns(said[1:])), _whole(plain_text(said[0])))
    return PlainConversation(tuple(_turns(said)))


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


def _turns(entries: Sequence[Entry]) -> Iterator[Turn]:
    """Each prompt is a turn; everything the assistant does until the next prompt is one turn."""
    names: dict[str, str] = {}
    answer: list[Turn] = []
    for entry in entries:
        for side, text in _pieces(entry, names):
            turn = Turn(side, _whole(text), entry.at, entry.model)
            if side == "assistant":
                answer.append(turn)
            else:
                yield from _join_turns(answer)
                yield turn
                answer = []
    yield from _join_turns(answer)


def _join_turns(answer: Sequence[Turn]) -> Iterator[Turn]:
    if answer:
        model = next((turn.model for turn in reversed(answer) if turn.model), None)
        yield Turn("assistant", "\n\n".join(turn.text for turn in answer), answer[-1].at, model)


def _pieces(entry: Entry, names: dict[str, str]) -> Iterator[tuple[Side, str]]:
    """The text of an entry, by side; `names` collects the names of called tools by the id of the call."""
    of_assistant = entry.role in ("assistant", "tool")
    results = [part for part in entry.parts if of_assistant or isinstance(part, ToolResult)]
    if text := _joined_text(results, names):
        yield "assistant", text
    if not of_assistant and (
        text := _joined_text([part for part in entry.parts if part not in results], names)
    ):
        yield "user", _tagged(entry, text) if entry.role == "system" else text


def _joined_text(parts: Sequence[Part], names: dict[str, str]) -> str:
    return "\n\n".join(filter(str.strip, (_part_text(part, names) for part in parts)))


def _tagged(entry: Entry, text: str) -> str:
    tag = "earlier-conversation-summary" if _is_summary(entry) else "note"
    return f"<{tag}>\n{text}\n</{tag}>"


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


def _whole(text: str) -> str:
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
