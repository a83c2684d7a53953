"""A summary made of what was said, line by line, the most important lines first. Pure, without a model."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hitherto.model import Entry, Text, ToolCall, ToolResult, plain_text
from hitherto.summaries.extraction import Statement, statements
from hitherto.summaries.identifiers import specifics
from hitherto.summaries.kept_tail import is_prompt
from hitherto.summaries.required_content import IDENTIFIERS, QUESTIONS
from hitherto.summariser import CompactionPolicy, Finding, Summary
from hitherto.values.titles import clean_title
from hitherto.values.token_count import estimate, total

LINE_CHARS = 300
REQUEST_CHARS = 160
ANSWER_CHARS = 600
REQUESTS = 30
LATEST = 3
EARLIER = "Earlier:"

SECTIONS = {
    "request": "The user asked, in this order:",
    "decision": "Decisions:",
    "preference": "Preferences and rules:",
    "identity": "People and names:",
    "fact": "Facts:",
    "task": "To be done:",
    "question": QUESTIONS,
    "tool": "Tools:",
    "earlier": EARLIER,
    "answer": "The last answer before this point:",
}
"""The headings, in the order in which they stand in the summary."""
_KINDS = {heading: kind for kind, heading in SECTIONS.items()}
_WORTHLESS = re.compile(r"\W*\w*\W*\w*\W*")  # two words at most: ok, go on, thank you


# Made anew each time.
_UNCARRIED = ("A record of ", "[Compacted ", "[Recap ", IDENTIFIERS)
_CARRIED_RANKS = {"question": 0.05, "answer": 0.7, "tool": 0.7}


class _Line(NamedTuple):
    """A line of a section; the lower `rank`, the more it matters."""

    rank: float
    kind: str
    text: str


def digest(retired: Sequence[Entry], found: Sequence[Statement], tokens: int) -> str:
    """What these entries came to, in at most about so many tokens; '' if that is not enough for anything."""
    count = sum(not entry.meta.get("compaction") for entry in retired)
    opening = f"A record of {count} earlier messages. It tells what was said; it is no instruction."
    lines = [
        *_carried(retired),
        *_requests(retired),
        *_statement_lines(found),
        *_tools(retired),
        *_answered(retired),
    ]
    room = tokens - estimate(opening)
    chosen: dict[tuple[str, str], _Line] = {}
    for line in sorted(lines, key=lambda line: line.rank):
        cost = estimate(line.text) + 1 + (0 if any(kind == line.kind for kind, _ in chosen) else 8)
        if cost <= room and (line.kind, line.text) not in chosen:
            room -= cost
            chosen[line.kind, line.text] = line
    in_order = [line for line in lines if chosen.get((line.kind, line.text)) is line]
    return "\n".join([opening, *_rendered(in_order)]) if in_order else ""


def _rendered(lines: Sequence[_Line]) -> Iterator[str]:
    for kind, heading in SECTIONS.items():
        section = [line.text for line in lines if line.kind == kind]
        if section:
            yield heading
            yield from (f"- {text}" for text in section)


def _carried(retired: Sequence[Entry]) -> Iterator[_Line]:
    """The lines of earlier summaries, under the headings that they had."""
    for entry in retired:
        if entry.meta.get("compaction"):
            kind = "earlier"
            for text in plain_text(entry).splitlines():
                if text in _KINDS:
                    kind = _KINDS[text]
                elif text.strip() and not text.startswith(_UNCARRIED):
                    bare = text.removeprefix("- ").strip()
                    yield _Line(_CARRIED_RANKS.get(kind, 0.3), kind, bare[:ANSWER_CHARS])


def _requests(retired: Sequence[Entry]) -> list[_Line]:
    prompts = [clean_title(plain_text(entry)[: 4 * REQUEST_CHARS]) for entry in retired if is_prompt(entry)]
    asked = list(dict.fromkeys(text for text in prompts if not _WORTHLESS.fullmatch(text)))
    latest = len(asked) - LATEST
    lines = [
        _Line(0.1 if at == 0 or at >= latest else 0.6, "request", _cut(text, REQUEST_CHARS))
        for at, text in enumerate(asked)
    ]
    return lines[:1] + lines[1:][-REQUESTS:]


def _statement_lines(found: Sequence[Statement]) -> Iterator[_Line]:
    for statement in found:
        kind = statement.kind if statement.kind in SECTIONS else "fact"
        rank = 0.0 if kind == "question" else 1 - statement.confidence
        yield _Line(rank, kind, _cut(statement.text, LINE_CHARS))


def _tools(retired: Sequence[Entry]) -> Iterator[_Line]:
    return (_Line(0.4, "tool", text) for text in tool_outcomes(retired))


def _answered(retired: Sequence[Entry]) -> Iterator[_Line]:
    answers = (plain_text(entry) for entry in reversed(retired) if entry.role == "assistant")
    last = clean_title(next(filter(None, answers), "")[: 4 * ANSWER_CHARS])
    if last:
        yield _Line(0.2, "answer", _cut(last, ANSWER_CHARS))


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    gap = text.rfind(" ", 0, most)
    return text[: gap if gap > most // 2 else most - 1] + "…"


class Extractive:
    """Summarises by choosing: each line of the summary, and each fact, is a sentence that somebody said.

    What was found worth keeping is not looked for again.
    """

    def __init__(self, found: Sequence[Statement] | None = None) -> None:
        self._found = found

    async def summarise(
        self, retired: Sequence[Entry], kept: Sequence[Entry], policy: CompactionPolicy
    ) -> Summary:
        """Done in a thread: a long conversation takes a while, and others are to be served meanwhile."""
        return await asyncio.to_thread(extracted, retired, kept, policy, self._found)


def extracted(
    retired: Sequence[Entry],
    kept: Sequence[Entry],
    policy: CompactionPolicy,
    found: Sequence[Statement] | None = None,
) -> Summary:
    """The summary of what is retired, and the facts of all."""
    found = statements([*retired, *kept]) if found is None else found
    text = digest(retired, [each for each in found if each.at < len(retired)], room_for(retired, policy))
    return Summary(text=text, facts=findings(found, policy))


def room_for(retired: Sequence[Entry], policy: CompactionPolicy) -> int:
    """How many tokens a summary of these may take."""
    return min(policy.summary_tokens, int(policy.summary_share * total(retired).number))


def findings(found: Sequence[Statement], policy: CompactionPolicy) -> tuple[Finding, ...]:
    """The surest of what was found, as facts, in the order in which it was said."""
    surest = sorted(found, key=lambda each: -each.confidence)[: policy.facts]
    return tuple(
        Finding(
            text=each.text,
            kind=each.kind,
            confidence=each.confidence,
            subject=each.subject,
            entries=(each.entry,),
        )
        for each in sorted(surest, key=lambda each: each.at)
    )


FAILURES = 5
FILES = 20
SHOWN_CHARS = 160
INPUT_CHARS = 500
_PLACES = ("path", "file_path", "filePath", "filename", "file", "notebook_path", "uri", "target_file")


def tool_outcomes(entries: Sequence[Entry]) -> list[str]:
    """How often each tool ran, which files they were given, and the last failures."""
    calls = {part.id: part for entry in entries for part in entry.parts if isinstance(part, ToolCall)}
    if not calls:
        return []
    failed = [result for result in _results(entries) if result.is_error and result.id in calls]
    counts = Counter(part.name for entry in entries for part in entry.parts if isinstance(part, ToolCall))
    failures = Counter(calls[result.id].name for result in failed)
    used = ", ".join(_count(name, count, failures[name]) for name, count in counts.most_common(12))
    files = list(dict.fromkeys(place for call in reversed(calls.values()) for place in _places(call)))[:FILES]
    lines = [f"Tools that ran: {used}."]
    lines += [f"Files they were given: {', '.join(reversed(files))}."] if files else []
    return lines + [_failure(calls[result.id], result) for result in failed[-FAILURES:]]


def _count(name: str, count: int, failures: int) -> str:
    return f"{name} {count}×" + (f" ({failures} failed)" if failures else "")


def _failure(call: ToolCall, result: ToolResult) -> str:
    """What failed, and the end of what it said: that is where programs say why."""
    said = " ".join(part.text[-INPUT_CHARS:] for part in result.content if isinstance(part, Text))
    given = " ".join(_texts(call.input))
    return clean_title(f"Failed: {call.name} {given[:SHOWN_CHARS]}: {clean_title(said)[-SHOWN_CHARS:]}")


def _results(entries: Sequence[Entry]) -> Iterator[ToolResult]:
    return (part for entry in entries for part in entry.parts if isinstance(part, ToolResult))


def _places(call: ToolCall) -> Iterator[str]:
    """The files that a call names: by the name of the argument, else whatever looks like one in a command."""
    given: dict[str, Any] = call.input if isinstance(call.input, dict) else {}
    named = [value for name in _PLACES if isinstance(value := given.get(name), str)]
    if named:
        yield from named
        return
    for text in _texts(call.input):
        yield from (found.text for found in specifics(text) if found.kind == "path")


def _texts(given: Any) -> Iterator[str]:
    values = given.values() if isinstance(given, dict) else [given]
    return (value[:INPUT_CHARS] for value in values if isinstance(value, str))
