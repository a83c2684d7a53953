"""Secrets in text: keys, tokens and passwords are found and replaced by `[redacted: KIND]`. Pure.

It finds the forms of known providers, values under a name that says so, what stands in base64 or in an address, and
strings that are random beyond doubt. Not found is what looks like anything else: a password of words, said in a sentence.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from hitherto.model import encode
from hitherto.secrets.kinds import KINDS
from hitherto.secrets.named import named
from hitherto.secrets.rules import is_high_entropy
from hitherto.secrets.services import SERVICES, service_tokens

NAMED = "named secret"
ENCODED = "encoded secret"
RANDOM = "random string"
DEEPEST = 64
PIECE = 1024 * 1024
BEYOND = 24_000
"""Who shows only a part of a text searches this far beyond it for secrets: as a rule none is longer."""
CUT = "…"
AROUND = 96 * 1024
"""How much before and behind a piece is looked at too: what is longer than that is no secret."""

_LONG = re.compile("[A-Za-z0-9+/_-]{32,}")
_RUN = re.compile(
    # Not a part of a path or a number, not what a data: address, a fingerprint or a sum of a module consists of.
    r"(?:(?<![A-Za-z0-9+/=_.%\\-])|(?<=\\[nrt])|(?<=[A-Za-z0-9]=))(?<!base64,)(?<!256:)(?<!h1:)"
    r"[A-Za-z0-9][A-Za-z0-9+/_-]{31,127}={0,2}(?![A-Za-z0-9+/=_%-]|\.[A-Za-z0-9])"
)
_PERCENT = re.compile("%[2-7][0-9A-Fa-f]")
_ESCAPED = re.compile(r"""[^\s"'<>&?=]{12,8192}""")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{40,65536}={0,2}")
_CUT_WORD = re.compile(rf"\S{{12,}}{CUT}$")
_MARK = re.compile(
    r"(\[redacted: (?:{})\])".format(
        "|".join(
            map(re.escape, sorted({kind.name for kind in (*KINDS, *SERVICES)} | {NAMED, ENCODED, RANDOM}))
        )
    )
)


class FoundSecret(NamedTuple):
    """Where a secret stands in a text, and of what kind it is."""

    start: int
    end: int
    kind: str


def redact(text: str, seen: Counter[str]) -> str:
    """The text with its secrets replaced; each is counted in `seen` by its kind. Doing it again changes nothing."""
    while True:
        pieces = _MARK.split(text)
        changed = False
        for index in range(0, len(pieces), 2):
            if found := find(pieces[index]):
                pieces[index] = _replaced(pieces[index], found)
                seen.update(each.kind for each in found)
                changed = True
        if not changed:
            return text
        # Where one was taken out, another may have come to stand alone.
        text = "".join(pieces)


def without_half_a_word(title: str) -> str:
    """A title; if it was cut within a long word, without that word: half a secret cannot be recognised."""
    return _CUT_WORD.sub(CUT, title)


def redact_value(value: Any, seen: Counter[str], depth: int = 0) -> Any:
    """The same for all texts within a JSON value, names of members included."""
    if isinstance(value, str):
        return redact(value, seen)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth >= DEEPEST:
        return redact(encode(value).decode(), seen)
    if isinstance(value, dict):
        named = ((redact(name, seen), item) for name, item in value.items())
        return {name: _member(_MARK.sub("", name), item, seen, depth) for name, item in named}
    return [redact_value(item, seen, depth + 1) for item in value]


def find(text: str) -> list[FoundSecret]:
    """The secrets in a text, in order, none overlapping another."""
    out: list[FoundSecret] = []
    for each in sorted(_everywhere(text), key=lambda found: (found.start, -found.end)):
        if out and each.start < out[-1].end:
            out[-1] = out[-1]._replace(end=max(out[-1].end, each.end))
        else:
            out.append(each)
    return out


def _replaced(text: str, found: list[FoundSecret]) -> str:
    pieces, at = [], 0
    for start, end, kind in found:
        pieces += [text[at:start], f"[redacted: {kind}]"]
        at = end
    return "".join((*pieces, text[at:]))


def _member(name: str, value: Any, seen: Counter[str], depth: int) -> Any:
    """A member of an object, whose name may say what the value is."""
    if isinstance(value, str) and len(value) <= 512 and not _MARK.search(value):
        pair = f"{name}='{value}'"
        if any(found.end == len(pair) - 1 for found in _named(pair)):
            seen[NAMED] += 1
            return f"[redacted: {NAMED}]"
    return redact_value(value, seen, depth + 1)


def _everywhere(text: str) -> Iterator[FoundSecret]:
    """Those of a long text piece by piece, so that other threads get their turn: a pattern is not interrupted."""
    for start in range(0, max(len(text), 1), PIECE):
        first = max(start - AROUND, 0)
        for found in _all(text[first : start + PIECE + AROUND]):
            if start <= first + found.start < start + PIECE:
                yield FoundSecret(first + found.start, first + found.end, found.kind)


def _all(text: str) -> Iterator[FoundSecret]:
    yield from _of_known_form(text)
    for search in (_named, _encoded, _random):
        yield from search(text)


def _of_known_form(text: str) -> Iterator[FoundSecret]:
    for found in service_tokens(text):
        yield FoundSecret(*found)
    lowered = _lowered(text)
    for name, hints, pattern in KINDS:
        searched = lowered if pattern.flags & re.IGNORECASE else text
        if any(hint in searched for hint in hints):
            for match in pattern.finditer(text):
                yield _found(match, name)


def _named(text: str) -> Iterator[FoundSecret]:
    for start, end in named(text, _lowered(text)):
        yield FoundSecret(start, end, NAMED)


def _lowered(text: str) -> str:
    """In small letters, each where it was."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower() if c.isascii() else c for c in text)


def _random(text: str) -> Iterator[FoundSecret]:
    for start in _starts_of_runs(text):
        match = _RUN.match(text, start)
        if match is None:
            continue
        # A long line of nothing else is a part of something encoded: a certificate, a picture.
        alone = text[start - 1 : start] in ("", "\n") and text[match.end() : match.end() + 1] in ("", "\n")
        if not (alone and len(match[0]) >= 60) and is_high_entropy(match[0]):
            yield _found(match, RANDOM)


def _starts_of_runs(text: str) -> Iterator[int]:
    """Where long runs begin. In JSON inside a text, the n of \\n is no part of the one behind it."""
    for run in _LONG.finditer(text):
        start = run.start()
        yield start + 1 if text[start - 1 : start] == "\\" and text[start] in "nrt" else start


def _encoded(text: str) -> Iterator[FoundSecret]:
    for start in _starts_of_runs(text):
        if (match := _ENCODED.match(text, start)) and _holds_secret(match[0]):
            yield _found(match, ENCODED)
    done = 0
    for percent in _PERCENT.finditer(text):
        if percent.start() >= done:
            start = text.rfind("\n", done, percent.start()) + 1 or done
            done = text.find("\n", percent.end()) + 1 or len(text)
            for match in _ESCAPED.finditer(text, start, done):
                if _holds_escaped(match[0]):
                    yield _found(match, ENCODED)


def _holds_escaped(run: str) -> bool:
    """Whether a part of an address has a secret in it once its %20 are spaces again."""
    if "%" not in run or (decoded := unquote(run)) == run:
        return False
    return any(_of_known_form(decoded)) or any(_named(decoded))


def _holds_secret(run: str) -> bool:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(bare + "=" * (-len(bare) % 4)).decode()
    except ValueError:
        return False
    return any(_of_known_form(decoded)) or any(_named(decoded))


def _found(match: re.Match[str], kind: str) -> FoundSecret:
    start, end = match.span("secret") if "secret" in match.re.groupindex else match.span()
    return FoundSecret(start, end, kind)
