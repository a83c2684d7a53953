"""The words of a text, and how they are looked for, the same for every store. Pure.

A text is folded (case, accents, compatibility forms) to tokens: runs of ASCII letters and digits and of characters
from U+0080 on, which is how SQLite's `ascii` tokenizer sees them. Characters of scripts that are written without
spaces are tokens of their own. The parts of each camelCase word follow behind the whole text, so that `file` finds
`parseFile` while a phrase finds its words in any case: `"the github page"` finds "the GitHub page".
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from hitherto.values.titles import clean_title

MAX_CHARS = 64_000
TOKEN_CHARS = 64
QUERY_CHARS = 1_000
QUERY_TERMS = 32
QUERY_BEGINNINGS = 8
QUERY_LETTERS = 1
"""Each beginning may stand for thousands of words, whose messages are all collected before lists are compared; most of all a
single letter or digit."""
PHRASE_TOKENS = 24
QUERY_PHRASES_TOKENS = 48
"""Of one phrase, and of all together: PostgreSQL compares the places of every word of a phrase with those of the next."""
SNIPPET_WIDTH = 160

LAST_MOMENT = (1 << 43) - 1
"""Milliseconds since 1970, in the year 2248: what is said later, or before 1970, counts as said at this end of time."""

# PostgreSQL keeps no position behind this one, and no more than so many of one word.
LAST_POSITION = 16_383
POSITIONS = 255

# A snippet's place is looked for in stretches of so many characters. They overlap by more than a word: one that lies
# across their border was seen in the stretch before.
_STRETCH = 1_024
_OVERLAP = 256


@dataclass(frozen=True, slots=True)
class Term:
    """Tokens that stand side by side, at least one; with `prefix` the last is only the beginning of a token."""

    tokens: tuple[str, ...]
    prefix: bool = False


def is_word(term: Term) -> bool:
    """Whether it is one whole word."""
    return len(term.tokens) == 1 and not term.prefix


def searchable(text: str) -> str:
    """The tokens of the first `MAX_CHARS` characters, separated by spaces: what a store indexes."""
    plain = _folded(text[:MAX_CHARS])
    parts = " ".join(_camel_parts(plain))
    return f"{_lowered(plain)} {_lowered(parts)}" if parts else _lowered(plain)


def said_at(at: int) -> int:
    """The moment by which a document is put in order, for one that was said then."""
    return min(max(at, 0), LAST_MOMENT)


def tokens(normalised: str) -> list[str]:
    """The tokens, in order, of a text that `searchable` has made."""
    return normalised.split()


_WORD = re.compile("[0-9A-Za-z\x80-\U0010ffff]+")
# Bounded, because putting the marks of one endless cluster in order takes quadratic time.
_NOT_ASCII = re.compile("[\x80-\U0010ffff]{1,256}")
_SHORT_RUN = re.compile("[0-9A-Za-z\x80-\U0010ffff]{1,256}")
_OVERLONG = re.compile(rf"(?<!\S)(\S{{{TOKEN_CHARS}}})\S+")
_OVERLONG_SHAPE = b"w" * (TOKEN_CHARS + 1)
_CASE_BOUNDARY = re.compile(
    "(?<=[a-z])(?=[A-Z])"
    "|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![0-9A-Za-z]))"  # HTTP|Server, but not UR|Ls
    "|(?<=[0-9])(?=[A-Z][a-z])"
)


def _byte_table(meaning: Callable[[str], str]) -> bytes:
    """Bytes from 0x80 on, which UTF-8 uses for all else, stay as they are."""
    return bytes(ord(meaning(chr(byte))) if byte < 0x80 else byte for byte in range(256))


def _shape(character: str) -> str:
    if not character.isalnum():
        return " "
    return "0" if character.isdigit() else "a" if character.islower() else "A"


# Over UTF-8, bytes.translate does in one pass what takes a regular expression many times as long.
_LOWER = _byte_table(lambda character: character.lower() if character.isalnum() else " ")
_SHAPES = _byte_table(_shape)
_RUNS = bytes(ord("w" if byte >= 0x80 or chr(byte).isalnum() else " ") for byte in range(256))

# What `_CASE_BOUNDARY` asks for, as shapes.
_CAMEL_SHAPES = (b"aA", b"AAa", b"0Aa")

# Han, Kana, Bopomofo, Hangul; Thai, Lao, Myanmar, Khmer.
_ALONE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b"
    "\u3041-\u30ff\u3105-\u318e\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
# Marks of the class 0 are vowels and stay, but these only choose a glyph.
_GLYPH_CHOICE = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


class _Folds(dict[int, str]):
    """What each character that is not ASCII becomes; filled as they are met, up to a bound."""

    def __missing__(self, point: int) -> str:
        folded = "".join(map(_fold, unicodedata.normalize("NFKC", chr(point))))
        if len(self) < 20_000:
            self[point] = folded
        return folded


_FOLDS = _Folds()


def _folded(text: str) -> str:
    """ASCII with its case, everything else folded; separators are still there."""
    if text.isascii():
        return text
    # A character of its own takes three with its spaces; some ligatures become whole sentences.
    return _NOT_ASCII.sub(_folded_run, text)[: 3 * MAX_CHARS]


def _folded_run(run: re.Match[str]) -> str:
    # Composed first, so that Hangul and Kana which came in pieces become whole characters.
    return unicodedata.normalize("NFKC", run[0]).translate(_FOLDS)


def _fold(character: str) -> str:
    kept = _letters(character)
    if kept == character and _ALONE.match(character):
        return f" {character} "
    base = _letters(unicodedata.normalize("NFKD", character))
    return base if base.isascii() else _letters(unicodedata.normalize("NFKD", base.casefold()))


def _letters(text: str) -> str:
    """Letters, digits and vowel signs stay, accents and format characters vanish, all else is a space."""
    return "".join(map(_letter, text))


def _letter(character: str) -> str:
    kind = unicodedata.category(character)
    if character == "\u200b":
        return " "
    if unicodedata.combining(character) or kind in ("Cf", "Me") or _GLYPH_CHOICE.match(character):
        return ""
    return character if kind[0] in "LNM" else " "


def _lowered(plain: str) -> str:
    raw = plain.encode()
    lowered = raw.translate(_LOWER).decode()
    return _OVERLONG.sub(r"\1", lowered) if _OVERLONG_SHAPE in raw.translate(_RUNS) else lowered


def camel_parts(text: str) -> list[str]:
    """The parts of the camelCase words of a query, folded, each once."""
    found = (part for words in _camel_parts(_folded(text[:QUERY_CHARS])) for part in words.split())
    return list(dict.fromkeys(map(_lowered, found)))


def _camel_parts(plain: str) -> Iterable[str]:
    """The parts of each different camelCase word, as many words in one string."""
    words = dict.fromkeys(_camel_words(plain.encode()))
    return dict.fromkeys(parts for word in words if (parts := _joined_parts(word)))


@lru_cache(maxsize=1 << 14)
def _joined_parts(word: bytes) -> str:
    """The parts of a word. The same names come again and again in what tools answer."""
    return " ".join(_parts(word.decode()))


def _camel_words(raw: bytes) -> list[bytes]:
    """The words within which the case changes, in order. To look at each word would take as long as all the rest."""
    shape = raw.translate(_SHAPES)
    found: dict[int, bytes] = {}
    for boundary in _CAMEL_SHAPES if b"A" in shape else ():
        at = shape.find(boundary)
        while at >= 0:
            start, end = shape.rfind(b" ", 0, at) + 1, shape.find(b" ", at)
            end = len(shape) if end < 0 else end
            found[start] = raw[start:end]
            at = shape.find(boundary, end)
    return [found[start] for start in sorted(found)]


def _parts(word: str) -> list[str]:
    """The parts of a camelCase word; none if it is not one, or too long to be an identifier."""
    if word[1:].islower() or len(word) > TOKEN_CHARS:
        return []
    parts = _CASE_BOUNDARY.split(word)
    return parts if len(parts) > 1 else []


_ITEM = re.compile(r'(?:\w+:)?(?:"[^"]*"?\*?|[^\s"]+)')
_TYPOGRAPHIC_QUOTES = str.maketrans("“”„‟«»", '""""""')


def plain_quotes(text: str) -> str:
    """The text with the one kind of quotes that queries know."""
    return text.translate(_TYPOGRAPHIC_QUOTES)


def parse_words(text: str) -> tuple[Term, ...]:
    """The words and phrases of a text in which nothing is an operator."""
    items = _ITEM.finditer(plain_quotes(text[:QUERY_CHARS]))
    return bounded(term for item in items if (term := term_of(item[0])) is not None)


def bounded(terms: Iterable[Term]) -> tuple[Term, ...]:
    """What of these is looked for, each once."""
    beginnings, letters = itertools.count(1), itertools.count(1)
    once = tuple(dict.fromkeys(terms))
    placed = itertools.accumulate(len(term.tokens) if len(term.tokens) > 1 else 0 for term in once)
    kept = (
        term
        for term, places in zip(once, placed, strict=True)
        if not (_is_letter(term) and next(letters) > QUERY_LETTERS)
        and not (term.prefix and next(beginnings) > QUERY_BEGINNINGS)
        and not (len(term.tokens) > 1 and places > QUERY_PHRASES_TOKENS)
    )
    return tuple(itertools.islice(kept, QUERY_TERMS))


def _is_letter(term: Term) -> bool:
    """Whether it is the beginning of as many words as can be."""
    return term.prefix and len(term.tokens) == 1 and len(term.tokens[0]) == 1


def term_of(text: str) -> Term | None:
    """The tokens that a word or a phrase is looked for by; None if it has none."""
    body = text.rstrip('*"')
    lowered = _lowered(_folded(body))
    found = tuple(lowered.split())
    # `foo.*` asks for the word foo: it has ended before the star. So does a phrase that is cut.
    is_begun = "*" in text[len(body) :] and not lowered.endswith(" ") and len(found) <= PHRASE_TOKENS
    return Term(found[:PHRASE_TOKENS], is_begun) if found else None


def matches(terms: Iterable[Term], doc_tokens: Sequence[str]) -> bool:
    """Whether each term occurs in the document: what every store's search must equal."""
    return all(_occurs(term, doc_tokens) for term in terms)


def _occurs(term: Term, doc_tokens: Sequence[str]) -> bool:
    last = len(term.tokens) - 1
    if not last and not term.prefix:
        return term.tokens[0] in doc_tokens
    return any(
        _fits(term, doc_tokens[at]) and tuple(doc_tokens[at - last : at]) == term.tokens[:-1]
        for at in range(last, len(doc_tokens))
    )


def _fits(term: Term, token: str) -> bool:
    """Whether the token can be the term's last."""
    return token.startswith(term.tokens[-1]) if term.prefix else token == term.tokens[-1]


def fts_match(terms: Iterable[Term]) -> str:
    """The terms as an FTS5 query over the column `text`; '' if there are none."""
    phrases = [f'"{" ".join(term.tokens)}"{"*" if term.prefix else ""}' for term in terms]
    return f"text:({' AND '.join(phrases)})" if phrases else ""


def ts_query(terms: Iterable[Term]) -> str:
    """The terms as the text of a PostgreSQL `tsquery`; '' if there are none."""
    return " & ".join(
        "(" + " <-> ".join(map(_lexeme, term.tokens)) + (":*)" if term.prefix else ")") for term in terms
    )


def ts_vector(doc_tokens: Iterable[str]) -> str:
    """The tokens as the text of a PostgreSQL `tsvector`.

    Positions that PostgreSQL cannot hold are left out (it would move them all to the last one): there every word is
    still found, but a phrase is not.
    """
    given = list(doc_tokens)
    if len(given) <= POSITIONS:
        return _short_vector(given)
    positions: defaultdict[str, list[str]] = defaultdict(list)
    for position, token in enumerate(given, 1):
        of_token = positions[token]
        if position <= LAST_POSITION and len(of_token) < POSITIONS:
            of_token.append(str(position))
    return " ".join(
        f"{_lexeme(token)}:{','.join(at)}" if at else _lexeme(token) for token, at in positions.items()
    )


def _short_vector(doc_tokens: Sequence[str]) -> str:
    """The same for few tokens, all of whose positions are kept: most messages, in half the time."""
    positions: dict[str, str] = {}
    for position, token in enumerate(doc_tokens, 1):
        if token in positions:
            positions[token] += f",{position}"
        else:
            positions[token] = str(position)
    if "".join(positions).isalnum():
        return " ".join([f"'{token}':{at}" for token, at in positions.items()])
    return " ".join([f"{_lexeme(token)}:{at}" for token, at in positions.items()])


def _lexeme(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


class _TokenPlace(NamedTuple):
    """A token and the characters of the original text that it came from."""

    token: str
    start: int
    end: int


def snippet(text: str, terms: Sequence[Term], width: int = SNIPPET_WIDTH) -> str:
    """At most `width` characters of the text around the first place where a term occurs, on one line.

    Without such a place it is the beginning. An ellipsis shows where it was cut.
    """
    start, _ = next(_hits(text[:MAX_CHARS], terms), (0, 0))
    reach = 4 * width
    # The mark keeps a space before the hit from being stripped.
    left = clean_title(text[max(0, start - reach) : start] + "|")[:-1]
    line = left + clean_title(text[start : start + reach])
    room = max(1, width - 2)
    begin = max(0, min(len(left) - width // 3, len(line) - room))
    end = begin + room
    if begin:
        begin = line.find(" ", begin, len(left)) + 1 or begin
    if end < len(line):
        gap = line.rfind(" ", max(end - 20, len(left) + 1), end + 1)
        end = gap if gap > 0 else end
    before = "…" if begin > 0 or start > reach else ""
    behind = "…" if end < len(line) or start + reach < len(text) else ""
    return (before + line[begin:end].strip() + behind)[:width]


def marks(excerpt: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """The ranges of characters of a snippet that match a term, in order and without overlaps."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(_hits(excerpt, terms)):
        if merged and start <= merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


def _hits(text: str, terms: Sequence[Term]) -> Iterator[tuple[int, int]]:
    """Where terms occur, by the end of the place."""
    seen: list[_TokenPlace] = []
    single = frozenset(term.tokens[0] for term in terms if is_word(term))
    others = [term for term in terms if not is_word(term)]
    for place in _places(text, _first_chance(text, terms)):
        seen.append(place)
        yield from _ending(seen, single, others)
        parts = _part_places(text[place.start : place.end], place.start)
        for count in range(1, len(parts) + 1):
            yield from _ending(parts[:count], single, others)


def _first_chance(text: str, terms: Sequence[Term]) -> int:
    """A place before which no term occurs, found by looking at whole stretches: much faster than at each word."""
    for start in range(0, len(text) if terms else 0, _STRETCH):
        stretch = _lowered(_folded(text[start : start + _STRETCH + _OVERLAP]))
        if any(term.tokens[0] in stretch for term in terms):
            return start
    return len(text)


def _ending(
    seen: Sequence[_TokenPlace], single: frozenset[str], others: Sequence[Term]
) -> Iterator[tuple[int, int]]:
    if seen[-1].token in single:
        yield seen[-1].start, seen[-1].end
    for term in others:
        if not _fits(term, seen[-1].token):
            continue
        run = seen[-len(term.tokens) :]
        if tuple(place.token for place in run[:-1]) == term.tokens[:-1]:
            yield run[0].start, run[-1].end


def _places(text: str, start: int) -> Iterator[_TokenPlace]:
    for run in _SHORT_RUN.finditer(text, start):
        if run[0].isascii():
            yield _TokenPlace(run[0].lower()[:TOKEN_CHARS], run.start(), run.end())
        else:
            yield from _places_in_run(run[0], run.start())


def _places_in_run(run: str, start: int) -> Iterator[_TokenPlace]:
    pieces = [_FOLDS[ord(character)] if not character.isascii() else character for character in run]
    folded = "".join(pieces)
    if folded != _folded(run):
        # Characters came in pieces, so that there is no place for each.
        yield from (_TokenPlace(token, start, start + len(run)) for token in _lowered(_folded(run)).split())
        return
    origin = [index for index, piece in enumerate(pieces) for _ in piece]
    for word in _WORD.finditer(folded):
        end = origin[word.end() - 1] + 1
        while end < len(run) and not pieces[end]:
            end += 1
        yield _TokenPlace(_lowered(word[0]), start + origin[word.start()], start + end)


def _part_places(word: str, start: int) -> list[_TokenPlace]:
    places: list[_TokenPlace] = []
    for part in _parts(word) if word.isascii() else ():
        places.append(_TokenPlace(part.lower(), start, start + len(part)))
        start += len(part)
    return places
