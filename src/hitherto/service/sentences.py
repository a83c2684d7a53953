"""The sentences of what somebody wrote: no code, no quotations, nothing that a program put there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST_CHARS = 64_000
"""No more of one text is looked at."""
SENTENCE_CHARS = 500
"""Longer sentences are cut: nothing that reads them takes more than linear time, and this bounds the rest."""
WRAPPED = 50
"""A line of at least so many characters without an end may go on in the next."""
MOST_BLOCKS = 100

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_CODE = re.compile(r"(?: {4}|\t).*[=(){}\[\];<>]")
_MARK = re.compile(r"\s*(?:#{1,6}|[-*+•‣◦]|\d{1,3}[.)]|\[[ xX]\])\s+")
_EMPHASIS = re.compile(r"\*\*|__(?=\W|$)|(?<!\S)__")
# Programs write `<like_this>` or `<like-this>` around what they put into a prompt.
_INJECTED = re.compile(r"<([a-z]+[-_][a-z_-]+)>")
# Behind a full stop; and before a word that begins sentences, where somebody in a hurry has left it out.
_BEGINNING = (
    "And|But|So|Also|Then|Now|Let['’]s|What|How|Why|When|Where|Can|Could|Would|Should|Does|Did|Are|Please|Thanks|This"
    "|That|These|There|It|We|You|They|She|My|Our|If|Hm+|Okay|Yes|Great"
)
_END = re.compile(rf"""(?<=[.!?…])["'”’)\]]*\s+|(?<=[。！？])|(?<=[a-z0-9])\s+(?=(?:{_BEGINNING})[,\s])""")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|No|vs|e\.g|i\.e|a\.m|p\.m|etc|incl|resp|approx|ca|cf|Inc|Ltd)\.$"
)


def sentences(text: str) -> list[str]:
    """The sentences, each as one line."""
    found = (
        sentence for line in _paragraphs(_lines(_written(text[:MOST_CHARS]))) for sentence in _split(line)
    )
    return [_shortened(sentence) for sentence in found]


def _written(text: str) -> str:
    """The text without the blocks that programs put into it."""
    for _ in range(MOST_BLOCKS):
        tag = _INJECTED.search(text)
        close = f"</{tag[1]}>" if tag else ""
        end = text.find(close, tag.end()) if tag else -1
        if tag is None or end < 0:
            return text
        text = text[: tag.start()] + "\n" + text[end + len(close) :]
    return text


def _lines(text: str) -> Iterator[str]:
    """The lines of prose, without marks of lists and headings; an empty one where a paragraph ends."""
    fence = ""
    for line in text.splitlines():
        if opened := _FENCE.match(line):
            fence = "" if fence == opened[1] else fence or opened[1]
            yield ""
        elif not fence:
            yield from _line(line)


def _line(line: str) -> Iterator[str]:
    bare = line.strip()
    if not bare or bare[0] in "|>" or bare.startswith(("---", "===")) or _CODE.match(line):
        yield ""
        return
    if marked := _MARK.match(line):
        yield ""
        bare = line[marked.end() :].strip()
    yield _EMPHASIS.sub("", bare)


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Lines joined with those that go on from them."""
    whole = ""
    for line in lines:
        goes_on = len(whole) >= WRAPPED and line[:1].islower() and whole[-1:] not in ".!?:;。！？"
        if goes_on:
            whole = f"{whole} {line}"
            continue
        if whole:
            yield whole
        whole = line
    if whole:
        yield whole


def _split(line: str) -> Iterator[str]:
    waiting = ""
    for piece in _END.split(line):
        waiting = f"{waiting} {piece}".strip()
        if not _ABBREVIATED.search(waiting[-12:]) or len(waiting) > SENTENCE_CHARS:
            if waiting:
                yield " ".join(waiting.split())
            waiting = ""
    if waiting:
        yield " ".join(waiting.split())


def _shortened(sentence: str) -> str:
    if len(sentence) <= SENTENCE_CHARS:
        return sentence
    cut = sentence[: SENTENCE_CHARS - 1]
    gap = cut.rfind(" ")
    return cut[: gap if gap > SENTENCE_CHARS // 2 else None] + "…"
