"""Secrets in text: keys, tokens and passwords are found and replaced by `[redacted: KIND]`. Pure.

It finds the forms of known providers, values under a name that says so, what stands in base64, and strings that are
random beyond doubt. Not found is what looks like anything else: a password of words, said in a sentence.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hitherto.model import encode
from hitherto.secrets.kinds import EDGE, KINDS
from hitherto.secrets.rules import is_high_entropy, is_random, is_secret_value

NAMED = "named secret"
ENCODED = "encoded secret"
RANDOM = "random string"
DEEPEST = 64
PIECE = 1024 * 1024
AROUND = 96 * 1024
"""How much before and behind a piece is looked at too: what is longer than that is no secret."""

# Names of secrets, and what must stand before the last of them, which alone would mean too much.
_NAMES = ("password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "auth", "key")
_KINDS_OF_KEY = re.compile(
    r"(?:api|access|private|secret|signing|encryption|auth|client|account|master|storage|service|deploy|license)[_.\- ]?$",
    re.IGNORECASE,
)
_OPTION = re.compile(r"--(?:[a-z]{1,12}-){0,3}$", re.IGNORECASE)
_VALUE = r"""(?P<quote>\\?["'`])?(?P<secret>[^\s"'`,;<>(){}\[\]\\]{6,512})"""
_GIVEN = re.compile(
    r"(?P<behind>[\w.-]{0,40}?)"
    r"""(?:(?:\\?["'\]]){0,2}\s{0,4}(?::=|=>|[:=])\s{0,4}|["']?\s(?:is|was)\s{1,2}|>)""" + _VALUE
)
_GIVEN_TO_OPTION = re.compile(r"(?P<behind>)\s{1,3}(?!-)" + _VALUE)
_VARIABLE = re.compile(
    r"""_(?:KEY|PASS|PAT|DSN|CREDS)["']?\s{0,4}[:=]\s{0,4}["']?(?P<secret>[^\s"'`,;<>(){}\[\]\\]{16,512})"""
)
_RUN = re.compile(
    # Not a part of a path or a number, not what a data: address, a fingerprint or a sum of a module consists of.
    r"(?:(?<![A-Za-z0-9+/=_.%\\-])|(?<=\\[nrt])|(?<=[A-Za-z0-9]=))(?<!base64,)(?<!256:)(?<!h1:)"
    r"[A-Za-z0-9][A-Za-z0-9+/_-]{31,127}={0,2}(?![A-Za-z0-9+/=_%-]|\.[A-Za-z0-9])"
)
_ENCODED = re.compile(EDGE + r"[A-Za-z0-9+/_-]{40,65536}={0,2}")
_MARK = re.compile(
    r"(\[redacted: (?:{})\])".format(
        "|".join(sorted({kind.name for kind in KINDS} | {NAMED, ENCODED, RANDOM}))
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
    lowered = _lowered(text)
    for name, hints, pattern in KINDS:
        searched = lowered if pattern.flags & re.IGNORECASE else text
        if any(hint in searched for hint in hints):
            for match in pattern.finditer(text):
                yield _found(match, name)


def _named(text: str) -> Iterator[FoundSecret]:
    lowered = _lowered(text)
    for name in _NAMES:
        at = lowered.find(name)
        while at >= 0:
            match = _given(text, at, name)
            at += len(name)
            if match is not None and _is_secret(name, match):
                yield _found(match, NAMED)
                at = match.end()
            at = lowered.find(name, at)
    yield from _judged(_VARIABLE, text, is_random, NAMED)


def _given(text: str, at: int, name: str) -> re.Match[str] | None:
    """What is given for the name that stands here."""
    before = text[max(at - 40, 0) : at]
    if name == "key" and not _KINDS_OF_KEY.search(before):
        return None
    after = at + len(name)
    return _GIVEN.match(text, after) or (
        _GIVEN_TO_OPTION.match(text, after) if _OPTION.search(before) else None
    )


def _is_secret(name: str, match: re.Match[str]) -> bool:
    ended = match.string[match.end() : match.end() + 2].lstrip("\\")[:1]
    quoted = bool(match["quote"]) and ended in ('"', "'", "`")
    return is_secret_value(name, match["behind"], match["secret"], quoted=quoted)


def _lowered(text: str) -> str:
    """In small letters, each where it was."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower() if c.isascii() else c for c in text)


def _random(text: str) -> Iterator[FoundSecret]:
    for match in _RUN.finditer(text):
        # A long line of nothing else is a part of something encoded: a certificate, a picture.
        alone = text[match.start() - 1 : match.start()] in ("", "\n") and text[
            match.end() : match.end() + 1
        ] in ("", "\n")
        if not (alone and len(match[0]) >= 60) and is_high_entropy(match[0]):
            yield _found(match, RANDOM)


def _encoded(text: str) -> Iterator[FoundSecret]:
    return _judged(_ENCODED, text, _holds_secret, ENCODED)


def _holds_secret(run: str) -> bool:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(bare + "=" * (-len(bare) % 4)).decode()
    except ValueError:
        return False
    return any(_of_known_form(decoded)) or any(_named(decoded))


def _judged(
    pattern: re.Pattern[str], text: str, judge: Callable[[str], bool], kind: str
) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        found = _found(match, kind)
        if judge(text[found.start : found.end]):
            yield found


def _found(match: re.Match[str], kind: str) -> FoundSecret:
    start, end = match.span("secret") if "secret" in match.re.groupindex else match.span()
    return FoundSecret(start, end, kind)
