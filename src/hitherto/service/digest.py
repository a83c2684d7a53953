"""A summary made of what was said, line by line, the most important lines first. Pure, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hitherto.model import Entry, plain_text
from hitherto.service.essentials import IDENTIFIERS, QUESTIONS
from hitherto.service.estimating import estimate
from hitherto.service.extracting import Statement
from hitherto.service.tail import is_prompt
from hitherto.service.tool_outcomes import tool_outcomes
from hitherto.titles import clean_title

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
_UNCARRIED = ("A record of ", "[Compacted ", IDENTIFIERS)
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
    lines = [*_carried(retired), *_requests(retired), *_told(found), *_tools(retired), *_answered(retired)]
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


def _told(found: Sequence[Statement]) -> Iterator[_Line]:
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
