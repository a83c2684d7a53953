"""The published limits. Going beyond one is a `TooLarge` or `InvalidLimit`, and nothing is done."""

from __future__ import annotations

from hitherto.errors import InvalidInput, InvalidLimit, TooLarge

ENTRY_BYTES = 16 * 1024 * 1024
ENTRIES_PER_APPEND = 10_000
LIST_PAGE = 500
HISTORY_PAGE = 10_000
HISTORY_BYTES = 32 * 1024 * 1024
"""A page of history has no more than this, or one message."""
SEARCH_PAGE = 100
FOUND_WITHIN = 10_000
CHANGES_PAGE = 1_000
EPISODES_PAGE = 200
ROWS_EXAMINED = 5_000
HITS_EXAMINED = 5_000
SEARCH_WALK = 1_000
MORE_CAP = 99
CONDITIONS = 100
"""So many values may a condition of a filter have, and so many conditions a filter."""
COUNTED = 1_000
"""Up to so many hits, and sessions, a search is counted exactly."""

TITLE_CHARS = 500
EARLIER_TITLES = 20
EARLIER_CWDS = 32
TAGS = 64
TAG_CHARS = 100
CWD_CHARS = 4_096
DIRECTORIES = 64
NAME_CHARS = 500
META_BYTES = 1024 * 1024
LIVE_BYTES = 1024 * 1024
RAW_BYTES = 64 * 1024 * 1024
IMPORT_BYTES = 64 * 1024 * 1024
PERSON_BYTES = 64 * 1024 * 1024
FACT_CHARS = 10_000
NESTED_PARTS = 20
FACTS_PER_CALL = 1_000
FACTS_PAGE = 200
FACTS_EXAMINED = 1_000
KEY_CHARS = 500
REACH_NAMES = 100
TOKENS_PAGE = 500
INBOX_ROWS = 200
INBOX_BYTES = 32 * 1024 * 1024
LOG_ENTRIES = (1 << 24) - 1
LARGEST_NUMBER = (1 << 53) - 1
ENTRY_SUM = 100_000_000_000
"""The most tokens, and the most millionths of a dollar, of one entry: a full log's sum still fits 64 bits."""


def checked_limit(value: int, most: int) -> int:
    """`value` if it is between 1 and `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidLimit(f"a limit must be between 1 and {most}, not {value!r}")
    return value


def checked_size(data: bytes, most: int, what: str) -> bytes:
    """`data` if it has at most `most` bytes."""
    if len(data) > most:
        raise TooLarge(f"{what} may have at most {most} bytes, this one has {len(data)}")
    return data


def checked_length(text: str, most: int, what: str) -> str:
    """`text` if it has at most `most` characters."""
    if len(text) > most:
        raise TooLarge(f"{what} may have at most {most} characters, this one has {len(text)}")
    return text


def is_storable(text: object) -> bool:
    """Whether this is a text that every store can keep and compare: no NUL, no lone surrogates."""
    if not isinstance(text, str) or "\0" in text:
        return False
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def checked_number(value: int, what: str) -> int:
    """`value` if it is a whole number that every store and every JSON reader can hold."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST_NUMBER:
        raise InvalidInput(f"{what} must be a whole number of at most {LARGEST_NUMBER}, not {value!r:.40}")
    return value
