"""What is specific in a sentence: paths, addresses, ids, numbers, names. These must survive letter by letter. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

_MONTHS = (
    "(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|[Mm]ay|[Jj]une?|[Jj]uly?|[Aa]ug(?:ust)?"
    "|[Ss]ept?(?:ember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?|[Dd]ec(?:ember)?)"
)
_FILE_ENDINGS = (
    "c|cc|cfg|conf|cpp|cs|css|csv|db|env|go|h|hpp|html|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|log|lua|md|mjs|pdf|"
    "php|png|proto|py|pyi|rb|rs|rst|sh|sql|sqlite|swift|svg|tf|toml|ts|tsx|txt|vue|xml|yaml|yml|zip"
)

# The first that fits at a place is taken. Sentences are short, so nothing here can take long.
_KINDS = {
    "code": r"`[^`]{1,200}`",
    "url": r"\b[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s<>\"'`]+",
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "path": (
        r"(?<![\w/])(?:~|\.{1,2})?/[\w.@%+~-]+(?:/[\w.@%+~-]+)*/?"
        r"|\b[A-Za-z]:\\[^\s\"'<>|]+"
        r"|(?<![\w/.-])[\w.@-]+(?:/[\w.@-]+){2,}/?"
        r"|(?<![\w/.-])[\w.@-]+/[\w.-]*[\d._-][\w.-]*"
        rf"|(?<![\w/])[\w-]*\w\.(?:{_FILE_ENDINGS})\b(?!\.\w)"
    ),
    "date": (
        r"\b\d{4}-\d\d(?:-\d\d)?(?:T[\d:.]+Z?)?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
        rf"|\b{_MONTHS}\.?\s\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}})?"
        rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTHS}\b(?:\s\d{{4}})?"
        r"|\b(?:[Mm]on|[Tt]ues|[Ww]ednes|[Tt]hurs|[Ff]ri|[Ss]atur|[Ss]un)day\b"
    ),
    "time": r"\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?\b|\b\d{1,2}\s?[ap]m\b",
    "id": (
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
        r"|\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b"
        r"|(?<![\w-])[A-Za-z][A-Za-z0-9]*-\d+\b"
        r"|(?<!\w)[@#][\w-]*\w"
        r"|\b(?=[\w-]*[\d_])[A-Za-z][A-Za-z0-9]*(?:[-_:]+[A-Za-z0-9]+)+\b"
        r"|\b[A-Za-z]+\d[\w-]*\b"
    ),
    "number": r"[$€£¥]\s?\d[\d.,_]*\d?[kKmMbB]?\b|(?<![\w.])-?\d[\d.,]*\s?%|\bv?\d+(?:\.\d+)+\b|(?<![\w.])-?\d[\d.,_']*[kKmMGT]?[bB]?\b",
}
_SPECIFIC = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
# Most sentences have nothing of the kind, which is seen much faster.
_MAYBE = re.compile(r"[\d/\\@#_:`]|\.\w|day\b")

_WORD = re.compile(r"[^\W\d_](?:[\w]|['’&.-](?=\w))*")
_ACTS = re.compile(r"[a-z]+s|[a-z]+ed|will|can|said|had|from|and|of|then|it")
_ABBREVIATIONS = (
    "i i'm i'll i'd i've ok okay yes no hi hey hello thanks please btw fyi todo tbd lol haha api url http https json xml"
    " html css sql uuid id ui cpu ram ssd dns tcp udp ip tls ssl ssh pr mr ci cd qa am pm"
)
_NOT_NAMES = frozenset(_ABBREVIATIONS.split())
EXACT = frozenset({"code", "url", "email", "path", "date", "time", "id", "number"})
"""Kinds that are worth nothing unless every character is there; a name is understood without one."""


class Specific(NamedTuple):
    """Something specific, as it was written."""

    kind: str
    text: str


def specifics(sentence: str, common: Container[str] = frozenset()) -> list[Specific]:
    """What is specific in the sentence; `common` words are no names, however they are written."""
    found = list(_exact(sentence)) if _MAYBE.search(sentence) else []
    rest = _SPECIFIC.sub(" , ", sentence) if found else sentence
    return [*found, *(Specific("name", name) for name in _names(rest, common))]


def _exact(sentence: str) -> Iterator[Specific]:
    for match in _SPECIFIC.finditer(sentence):
        kind = match.lastgroup or ""
        text = match[0].strip("`").rstrip(".,;:!?")
        text = text.rstrip(")]") if "(" not in text and "[" not in text else text
        if text:
            yield Specific(kind, text)


def _names(text: str, common: Container[str]) -> Iterator[str]:
    """Runs of capitalised words. One that only begins the sentence is a name if it is not a common word and does
    something: "Priya owns it", but not "Explain it"."""
    run: list[str] = []
    end, first, opening = 0, True, False
    for match in _WORD.finditer(text):
        word = match[0]
        joined = text[end : match.start()] == " "
        if run and not (joined and _is_name(word)):
            if not opening or len(run) > 1 or (joined and _ACTS.fullmatch(word)):
                yield " ".join(run)
            run = []
        if _is_name(word) and not (first and word.lower() in common):
            opening = first if not run else opening
            run.append(word)
        end, first = match.end(), False
    if run and not (opening and len(run) == 1):
        yield " ".join(run)


def _is_name(word: str) -> bool:
    lowered = word.lower()
    if not any(map(str.isupper, word)) or lowered in _NOT_NAMES or lowered.partition("'")[0] in _NOT_NAMES:
        return False
    return len(word) > (1 if word[0].isupper() else 3)  # or camelCase
