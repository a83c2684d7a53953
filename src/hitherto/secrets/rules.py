"""Whether a value is a secret, by its name and by how random it looks. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

_PASSWORD = re.compile(r"pass(?:w|phrase)|pwd|_pass", re.IGNORECASE)
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
_IDENTIFIERS = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+")
_UNUSUAL = re.compile(r"[^A-Za-z_.:/-]")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
# Ids that programs and providers write everywhere, and what is public by nature.
_BENIGN = re.compile(
    r"(?:srv)?toolu_|msg_|call_|chatcmpl-|resp_|req_|run_|thread_|asst_|file-|fc_|rs_|batch_|session_|cs_|AAAA|sha\d{1,3}[-:]|h1:"
)
LEAST_BITS = 3.0
LEAST_TURNS = 0.3


def is_secret_value(name: str, behind: str, value: str, *, quoted: bool) -> bool:
    """Whether `value` is what a secret of this name would look like; `behind` is the rest of the name."""
    value = value.rstrip(".,:!?")
    if _ABOUT.match(behind) or (name == "auth" and behind[:1].isalpha()):
        return False
    if _PLACEHOLDER.search(value) or value.lower() in _WORDS:
        return False
    if _IDENTIFIERS.fullmatch(value) or len(set(value)) < 3:
        return False
    if not _PASSWORD.search(name):
        return is_random(value, at_least=12)
    return quoted or (_UNUSUAL.search(value) is not None and any(map(str.isalpha, value)))


def is_random(value: str, *, at_least: int = 16) -> bool:
    """Whether a value looks drawn by chance: letters and digits in turns, many different ones."""
    if len(value) < at_least or not _has_digit(value) or not any(map(str.isalpha, value)):
        return False
    if bits(value) < LEAST_BITS:
        return False
    return turns(value) >= LEAST_TURNS or (len(value) >= 20 and value.isalnum() and bits(value) >= 3.7)


def is_high_entropy(value: str) -> bool:
    """Whether a value that nothing names is random beyond doubt; hashes, UUIDs, ids and words never are."""
    if _BENIGN.match(value) or sum(map(str.isdigit, value)) < 3:
        return False
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return mixed and bits(value) >= 4.2 and turns(value) >= 0.45


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
