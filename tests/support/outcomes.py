"""What a call came to, as plain values that can be compared between stores and between runs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from hitherto.errors import HithertoError
from hitherto.model import HistoryPage, Page, SearchPage


async def outcome(call: Awaitable[Any]) -> Any:
    """The answer, or the error with all that it says."""
    try:
        return plain(await call)
    except HithertoError as error:
        return (type(error).__name__, error.code, error.message)


def plain(value: Any) -> Any:
    """An answer as it compares; of a cursor only whether there is one, since each store has its own key."""
    if isinstance(value, HistoryPage):
        return (value.raw, value.total, value.token_count, value.marks, value.previous, value.next)
    if isinstance(value, Page):
        return ("page", value.sessions, value.cursor is not None)
    if isinstance(value, SearchPage):
        return ("hits", value.hits, value.cursor is not None)
    return value
