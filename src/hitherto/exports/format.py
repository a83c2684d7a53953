"""What every format is: a file in the making, written piece by piece. Pure.

First comes `begin`; then, as the format wants, each entry of the conversation, each lossless line, or both; then `end`.
"""

from __future__ import annotations

from typing import ClassVar

from hitherto.exports.lines import Replaced
from hitherto.model import Entry, Session, Value


class About(Value, frozen=True):
    """What is known before the first entry. `message_count` and `token_count` are those of the conversation."""

    session: Session
    message_count: int
    token_count: int | None
    exported_at: int
    redacted: bool


class Writer:
    """A format. `shows` asks for the conversation, `keeps` for the lossless lines."""

    shows: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __init__(self, about: About) -> None:
        self.about = about

    def begin(self) -> str:
        """What stands before everything."""
        return ""

    def entry(self, entry: Entry, *, mark: bool) -> str:
        """One entry of the conversation; a `mark` is the summary of a compaction."""
        raise NotImplementedError

    def line(self, line: bytes) -> bytes:
        """One of the lossless lines."""
        raise NotImplementedError

    def end(self, replaced: tuple[Replaced, ...]) -> str:  # noqa: ARG002 - for those who list it
        """What stands after everything, such as what was replaced."""
        return ""
