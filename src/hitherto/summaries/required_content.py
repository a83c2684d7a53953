"""What no summary may lose, whoever wrote it: open questions, and identifiers letter by letter. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from hitherto.summaries.extraction import Statement
from hitherto.summaries.identifiers import EXACT, specifics
from hitherto.summaries.sentences import STOPWORDS
from hitherto.summariser import CompactionPolicy

QUESTIONS = "Open questions:"
IDENTIFIERS = "Also named: "
LINE_CHARS = 1_000
KEPT_WORDS = 0.6
"""A question is in a summary if this share of its words is, in whatever order."""

_WORD = re.compile(r"\w+")


class Essentials(NamedTuple):
    """What must be kept, the most important first."""

    questions: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


def essentials(
    found: Sequence[Statement], policy: CompactionPolicy, earlier: Sequence[str] = ()
) -> Essentials:
    """The newest open questions, and the identifiers of what was said with most certainty.

    Behind them come those of earlier summaries, which nobody says any more.
    """
    questions = [each.text for each in reversed(found) if each.kind == "question"]
    surest = sorted(found, key=lambda each: (-each.confidence, -each.at))
    named = [specific for each in surest for specific in each.specifics]
    lines = [line for text in earlier for line in text.splitlines()[1:]]
    named += [specific for line in lines for specific in specifics(line[:LINE_CHARS])]
    exact = dict.fromkeys(specific.text for specific in named if specific.kind in EXACT)
    asked = dict.fromkeys([*questions, *(line for text in earlier for line in _asked(text))])
    return Essentials(tuple(asked)[: policy.questions], tuple(exact)[: policy.identifiers])


def _asked(summary: str) -> list[str]:
    """The open questions of a summary that was completed, or made, here."""
    lines = summary.splitlines()
    starts = [at for at, line in enumerate(lines) if line == QUESTIONS]
    return [
        line.removeprefix("- ")
        for start in starts
        for line in takewhile(lambda line: line.startswith("- "), lines[start + 1 :])
    ]


def completed(summary: str, needed: Essentials) -> str:
    """The summary, followed by what it lacks."""
    words = set(_WORD.findall(summary.lower()))
    questions = [each for each in needed.questions if each not in summary and not _is_mentioned(each, words)]
    asked = [QUESTIONS, *(f"- {each}" for each in reversed(questions))] if questions else []
    whole = "\n".join([summary, *asked])
    lacking = [each for each in needed.identifiers if not _is_named(each, whole)]
    return "\n".join([whole, IDENTIFIERS + ", ".join(lacking)]) if lacking else whole


def _is_mentioned(question: str, words: Iterable[str]) -> bool:
    asked = {word for word in _WORD.findall(question.lower()) if word not in STOPWORDS}
    return len(asked & set(words)) >= KEPT_WORDS * len(asked) if asked else False


def _is_named(identifier: str, text: str) -> bool:
    """Whether it stands there by itself: 80 is not named by 8080."""
    at = text.find(identifier)
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + len(identifier) : at + len(identifier) + 1]
        if not (before.isalnum() and identifier[0].isalnum()) and not (
            behind.isalnum() and identifier[-1].isalnum()
        ):
            return True
        at = text.find(identifier, at + 1)
    return False
