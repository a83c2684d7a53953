"""Lines as evidence: how they look without their format, how much they tell, and marks that stand for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, chain

_QUOTES = ("'", "`", "\u201c", "\u201d", "\u2018", "\u2019")
_WORD = re.compile(r"\w+")
_CELL = re.compile(r'\s*"(.*?)(?:\\n)?",?\s*')
_COMMON = re.compile(
    r"\s*(?:import\s|from\s+\S+\s+import\b|#\s*include\b|using\s|use\s|package\s|require\s*\(|export\s+\*|@\w+\s*$"
    r"|else\b|try\b|finally\b|except\b|catch\b|break\b|continue\b|pass\b|return\s*\w*;?\s*$|end\b|fi\b|done\b"
    r"|if\s+__name__\b|#!/|(?://|#|\*|/\*+|--|<!--)\s*\W*$|self\.\w+\s*=\s*\w+;?\s*$|def\s+__init__\b|\"\"\"\s*$)"
)
WORDS = 5
"""So many words in a row are one piece of evidence where lines were broken anew."""
SAMPLED = 4
"""One of so many such pieces is kept."""
MARKED_LINES = 5_000
MARK_BYTES = 4
SHORT, LONG = 10, 22
"""So many letters and digits make a line tell something, and much."""


def plain(line: str, *, notebook: bool = False) -> str:
    """A line without what a formatter changes: white space, kinds of quotes, a comma or semicolon at its end."""
    if notebook and (cell := _CELL.fullmatch(line)):
        line = re.sub(r"\\(.)", r"\1", cell[1])
    line = "".join(line.split())
    for quote in _QUOTES:
        line = line.replace(quote, '"')
    return line.rstrip(",;")


def weight(line: str) -> int:
    """How much a line tells of who wrote it: 0 nothing, 1 a little, 2 something, 3 much."""
    return _weight(line, _WORD.findall(line))


def _weight(line: str, words: Sequence[str]) -> int:
    size = sum(map(len, words))
    if not size:
        return 0
    if size < SHORT or len(words) < 2 or _COMMON.match(line):
        return 1
    return 3 if size >= LONG and len(set(words)) > WORDS - 2 else 2


def added_marks(key: bytes, lines: Sequence[str], *, notebook: bool = False) -> list[int]:
    """Marks of the lines that tell something, and of some of the runs of words in all of them."""
    words = [_WORD.findall(line) for line in lines]
    told = (line for line, said in zip(lines, words, strict=True) if _weight(line, said) > 1)
    marks = [mark(key, "line", plain(line, notebook=notebook)) for line in told]
    return [*marks, *shingle_marks(key, list(chain.from_iterable(words)))]


def words_of(lines: Iterable[str]) -> list[str]:
    """The words of lines, in order, as if they were one."""
    return [word for line in lines for word in _WORD.findall(line)]


def mark(key: bytes, kind: str, text: str) -> int:
    """A number that stands for a text, for whoever has the key."""
    state = _begun(key, kind).copy()
    state.update(text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(state.digest(), "little")


@lru_cache(maxsize=64)
def _begun(key: bytes, kind: str) -> blake2b:
    """What all marks of a kind begin with: to go on from there takes half as long."""
    return blake2b(f"{kind}\0".encode(), digest_size=MARK_BYTES, key=key)


def line_marks(key: bytes, lines: Iterable[str], *, notebook: bool = False) -> Iterator[int]:
    """Marks of the lines that tell something."""
    for line in lines:
        if weight(line) > 1:
            yield mark(key, "line", plain(line, notebook=notebook))


def shingle_marks(key: bytes, words: Sequence[str]) -> Iterator[int]:
    """Marks of some of the runs of words: the same of them wherever the run stands."""
    begun = _begun(key, "words").copy
    pieces = [word.encode("utf-8", "surrogatepass") for word in words]
    text, starts = b" ".join(pieces), [0, *accumulate(len(piece) + 1 for piece in pieces)]
    for start, end in zip(starts, starts[WORDS:], strict=False):
        state = begun()
        state.update(text[start : end - 1])
        # The lowest bits of the mark stand in its first byte.
        if not (digest := state.digest())[0] % SAMPLED:
            yield int.from_bytes(digest, "little")


def name_mark(key: bytes, path: str) -> int:
    """The mark of a file's name."""
    return mark(key, "name", file_name(path).casefold())


def call_mark(key: bytes, call: str) -> int:
    """The mark of a tool call."""
    return mark(key, "call", call)


def file_name(path: str) -> str:
    """The last part of a path, of any system."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
