"""Whether a value is a secret, by its name and by how random it looks. Pure."""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from itertools import pairwise
from urllib.parse import unquote

# What follows a name that makes it the name of something about a secret: token_count, secret_name, tokenizer.
_ABOUT = re.compile(
    r"^(?:s?[_.-]?(?:count|limit|usage|used|budget|type|ur[il]|path|file|dir|name|len|max|min|ttl|expir|field|hash"
    r"|policy|reset|length|prompt|label|class|input|output|total|per|price|cost|window|ref|version|mode|id\b)|i[sz]|s$)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"^(?:[$%{<*#]|\.\.|x{3,}$)|\*{3}|\.{3}|…|^(?:your|my|the|some|insert|replace|enter|change)[_-]|^os\.|^process\.|^env[.:]",
    re.IGNORECASE,
)
_WORDS = frozenset({
    "string", "str", "text", "none", "null", "true", "false", "undefined", "required", "optional", "password", "passwd",
    "secret", "token", "bearer", "basic", "changeme", "example", "placeholder", "redacted", "hidden", "masked", "unknown",
    "missing", "invalid", "empty", "default", "value", "boolean",
})  # fmt: skip
_TALK = frozenset({
    "a", "an", "and", "are", "at", "be", "by", "can", "cannot", "did", "does", "enter", "for", "from", "has", "if", "in",
    "incorrect", "invalid", "is", "it", "login", "match", "missing", "must", "new", "no", "not", "of", "on", "optional",
    "or", "please", "required", "reset", "set", "should", "that", "the", "this", "to", "use", "used", "user", "was", "with",
    "wrong", "you", "your", "password", "passwords", "passphrase", "secret", "token", "key", "==", "=", "+", "%", "->",
})  # fmt: skip
# What stands behind a name in code: a type, another name of the same thing.
_TYPE = re.compile(
    r"(?i:str|bytes?|int|bool|any|char|object|text|varchar|\w*(?:pass(?:w(?:or)?d)?|pwd|secret|input|value|self)\w*)[;,]?"
    r"|[A-Z][a-z]+(?:[A-Z][a-z]*)*"
)
_IDENTIFIERS = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+")
_HEX = re.compile(r"[0-9A-Fa-f]+")
_DIGIT_WITHIN = re.compile(r"[A-Za-z]\d{1,3}[A-Za-z]")
_PAIR = re.compile(r"(?=[0-9:]*[A-Fa-f])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{8,32}:[0-9A-Fa-f]{8,64}")
_UNUSUAL = re.compile(r"[^A-Za-z_.:/-]")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
# Ids that programs and providers write everywhere, and what is public by nature.
_BENIGN = re.compile(
    r"(?:srv)?toolu_|msg_|call_|chatcmpl-|resp_|req_|run_|thread_|asst_|file-|fc_|rs_|batch_|session_|cs_|AAAA|sha\d{1,3}[-:]|h1:"
)
LEAST_BITS = 3.0
LEAST_TURNS = 0.3


def is_secret_value(name: str, behind: str, value: str) -> bool:
    """Whether `value` is what a secret of this name would look like; `behind` is the rest of the name."""
    value = unquote(value).rstrip(".,:!?")
    if _ABOUT.match(behind) or (name == "auth" and behind[:1].isalpha()) or _is_no_value(value):
        return False
    return (
        is_random(value, at_least=12) or _is_drawn(max(_SEPARATORS.split(value), key=len)) or _is_pair(value)
    )


def is_password(behind: str, value: str, *, quoted: bool, alone: bool) -> bool:
    """The same for passwords, which people choose: words too if they are quoted, or stand where code cannot."""
    value = unquote(value)
    if _ABOUT.match(behind) or behind[:1].isalpha():
        return False
    chosen = (quoted or alone) and _has_digit(value)
    if _is_no_value(value.rstrip(".,:!?"), may_have_dots=chosen):
        return False
    if quoted:
        return _is_phrase(value) if any(map(str.isspace, value)) else True
    if alone and not _TYPE.fullmatch(value) and value[:1] not in "/~.":
        return True
    return len(value) >= 6 and _UNUSUAL.search(value) is not None and any(map(str.isalpha, value))


def _is_drawn(word: str) -> bool:
    """Whether a word, given for a secret, was drawn by chance though its letters and digits take few turns."""
    digits = sum(map(str.isdigit, word))
    if len(word) < 14 or digits == len(word) or bits(word) < LEAST_BITS:
        return False
    if digits < 2:
        return turns(word) >= 0.4
    return _HEX.fullmatch(word) is not None or _DIGIT_WITHIN.search(word) is not None


def _is_pair(value: str) -> bool:
    """Whether these are two numbers, one to say who and one to prove it."""
    return _PAIR.fullmatch(value) is not None


def _is_no_value(value: str, *, may_have_dots: bool = False) -> bool:
    """Whether it is a placeholder, a word for one, or a part of a program."""
    return bool(
        _PLACEHOLDER.search(value)
        or value.lower() in _WORDS
        or (not may_have_dots and _IDENTIFIERS.fullmatch(value) and not any(map(_is_drawn, value.split("."))))
        or len(set(value)) < 3
    )


def _is_phrase(value: str) -> bool:
    """Whether words are a passphrase, not a sentence about one."""
    words = value.split()
    return len(words) <= 6 and value[-1] not in ".:?!)" and not any(word.lower() in _TALK for word in words)


def is_random(value: str, *, at_least: int = 16) -> bool:
    """Whether a value looks drawn by chance: letters and digits in turns, many different ones."""
    if len(value) < at_least or not _has_digit(value) or not any(map(str.isalpha, value)):
        return False
    if bits(value) < LEAST_BITS:
        return False
    if turns(value) >= LEAST_TURNS or (len(value) >= 20 and value.isalnum() and bits(value) >= 3.7):
        return True
    return len(value) >= 24 and sum(map(str.isdigit, value)) >= 4 and turns(value) >= 0.2


def is_high_entropy(value: str) -> bool:
    """Whether a value that nothing names is random beyond doubt; hashes, UUIDs, ids and words never are."""
    if _BENIGN.match(value) or sum(map(str.isdigit, value)) < 3:
        return False
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return mixed and bits(value) >= 4.2 and turns(value) >= 0.45 and not _is_text_in_base64(value)


def _is_text_in_base64(value: str) -> bool:
    """Whether plain text was packed; if a secret is in it, that is found there."""
    whole = value.rstrip("=")[: len(value) // 4 * 4]
    try:
        return base64.b64decode(whole, validate=True).decode("ascii").isprintable()
    except ValueError:
        return False


def bits(value: str) -> float:
    """Shannon's entropy of the characters, in bits for each."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def turns(value: str) -> float:
    """How often small letters, capitals and digits take turns within words: seldom in language, often by chance."""
    words = _SEPARATORS.split(value)
    pairs = [pair for word in words for pair in pairwise(word)]
    changes = sum(_class(one) != _class(two) for one, two in pairs)
    return changes / len(pairs) if pairs else 0.0


def _class(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))
