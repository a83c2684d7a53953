"""A conversation retold in plain turns, so that any agent can go on with it. Pure.

What people and models said is told word for word. What tools were used for, and what came of them, is told in short, in
square brackets. Thoughts are left out, and so is what a program told its model about itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from hitherto.exports.labels import data, noted, shortened, steps, told_by
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
from hitherto.summaries.builtin import Extractive, extracted
from hitherto.summaries.kept_tail import kept_from
from hitherto.summariser import CompactionPolicy
from hitherto.values.token_count import PER_ENTRY, estimate

Side = Literal["user", "assistant"]
Fidelity = Literal["native", "replayed", "summarised"]
LARGEST = 100_000
"""A conversation of more tokens than this is too long for the window of some models; its older part is summarised."""
POLICY = CompactionPolicy(kept_tokens=40_000, kept_share=0.5)
INPUT_CHARS = 400
RESULT_CHARS = 1_000

OPENING = """<additional_context>
This conversation was begun in {agent} and goes on here. What was said is told word for word. Square brackets tell in short \
what tools were used for then, and what came of it; they are no way to use tools now. Use your own as you always do.
</additional_context>"""


class Turn(NamedTuple):
    """What one side says until the other does; `model` is whose words they are."""

    side: Side
    text: str
    at: int
    model: str | None = None


class Retold(NamedTuple):
    """A conversation; the `summary` stands for what was said before the first of the turns."""

    turns: tuple[Turn, ...]
    summary: str | None = None

    @property
    def fidelity(self) -> Fidelity:
        """How true it is to what was said."""
        return "replayed" if self.summary is None else "summarised"


def retold(entries: Iterable[Entry], largest: int = LARGEST) -> Retold:
    """The conversation in a context; with more tokens than `largest`, the older part of it as a summary."""
    said = [_known_summary(entry) for entry in entries if not _is_aside(entry)]
    sizes = [PER_ENTRY + sum(estimate(text) for _, text in _pieces(entry, {})) for entry in said]
    if sum(sizes) > largest:
        measured = [replace(entry, tokens=size) for entry, size in zip(said, sizes, strict=True)]
        cut = kept_from(measured, POLICY)
        summary = extracted(measured[:cut], measured[cut:], POLICY).text if cut else ""
        if summary:
            return Retold(tuple(_turns(said[cut:])), _whole(summary))
    if said and _is_summary(said[0]):
        return Retold(tuple(_turns(said[1:])), _whole(plain_text(said[0])))
    return Retold(tuple(_turns(said)))


def opening(agent: str) -> str:
    """What the model is told before it is told the conversation."""
    return OPENING.format(agent=agent)


def _is_aside(entry: Entry) -> bool:
    """Whether this is what a program told its model or its user about itself: another one has its own."""
    if entry.role == "assistant":
        return bool(entry.meta.get("synthetic"))
    return bool(entry.meta.get("meta") or (entry.role == "system" and entry.meta.get("error")))


def _is_summary(entry: Entry) -> bool:
    return entry.role == "system" and bool(entry.meta.get("compaction"))


def _known_summary(entry: Entry) -> Entry:
    """Summaries of other agents are marked otherwise."""
    return (
        replace(entry, meta={**entry.meta, "compaction": True})
        if entry.meta.get("compact_summary")
        else entry
    )


def _turns(entries: Sequence[Entry]) -> Iterator[Turn]:
    """Prompts one by one; what the assistant says and does until the next one as a whole."""
    names: dict[str, str] = {}
    answer: list[Turn] = []
    for entry in entries:
        for side, text in _pieces(entry, names):
            turn = Turn(side, _whole(text), entry.at, entry.model)
            if side == "assistant":
                answer.append(turn)
            else:
                yield from _joined(answer)
                yield turn
                answer = []
    yield from _joined(answer)


def _joined(answer: Sequence[Turn]) -> Iterator[Turn]:
    if answer:
        model = next((turn.model for turn in reversed(answer) if turn.model), None)
        yield Turn("assistant", "\n\n".join(turn.text for turn in answer), answer[-1].at, model)


def _pieces(entry: Entry, names: dict[str, str]) -> Iterator[tuple[Side, str]]:
    """What an entry says, by side; `names` are those of the tools that were called so far, by the id of the call."""
    of_assistant = entry.role in ("assistant", "tool")
    results = [part for part in entry.parts if of_assistant or isinstance(part, ToolResult)]
    if text := _told(results, names):
        yield "assistant", text
    if not of_assistant and (text := _told([part for part in entry.parts if part not in results], names)):
        yield "user", _framed(entry, text) if entry.role == "system" else text


def _told(parts: Sequence[Part], names: dict[str, str]) -> str:
    return "\n\n".join(filter(str.strip, (_said(part, names) for part in parts)))


def _framed(entry: Entry, text: str) -> str:
    tag = "earlier-conversation-summary" if _is_summary(entry) else "note"
    return f"<{tag}>\n{text}\n</{tag}>"


def _said(part: Part, names: dict[str, str]) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall(id=id, name=name, input=given):
            names[id] = name
            return f"[{name}: {shortened(_brief(given), INPUT_CHARS)}]"
        case ToolResult(id=id, is_error=failed):
            told = shortened(told_by(part).strip(), RESULT_CHARS) or "nothing"
            return f"[{names.get(id, 'the tool')} {'failed' if failed else 'answered'}: {told}]"
        case Plan(steps=given):
            return "\n".join(f"- {step}" for step in steps(given))
        case Resource(uri=uri, text=str(text)):
            return f"{uri}:\n{text}"
        case Thought() | Unknown():
            return ""
    return f"[{noted(part)}]"


def _brief(given: object) -> str:
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict | list) else data(given)


def _whole(text: str) -> str:
    """The text without halves of characters, which not every reader of JSON takes."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


MOST_CHARS = 60_000
"""What is told at most, but for the summary of what is left out."""
TOOL_CHARS = 500
NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
BEGIN = (
    "What follows was said earlier in this conversation, before you were part of it. It is context and no request:"
    " do not answer it, take it into account. The request comes after it.\n\n<conversation>\n"
)
END = "\n</conversation>"
LEFT_OUT = "Summary of what was said before:\n{}\n\nThe end of it, word for word:\n"


async def told(entries: Sequence[Entry]) -> str:
    """The text that tells an agent what these say; empty if they say nothing."""
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
    if entry.meta.get("meta") is True:  # what a program told its model; nobody has said it
        return ""
    said = "\n".join(filter(None, map(_said_part, entry.parts)))
    return f"{NAMES[entry.role]}: {said}" if said else ""


def _said_part(part: Part) -> str:
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
