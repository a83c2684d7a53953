"""What is left of the edits of a file, from its first to its last: what a later edit took back is not there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hitherto.edits.changes import ChangedLines, FileChange, FileEdit


class NetHunk(NamedTuple):
    """Lines that took the place of others in the end; `edits` are those that made it, the first first."""

    removed: tuple[str, ...]
    added: tuple[str, ...]
    edits: tuple[FileEdit, ...]


class _Piece:
    """A hunk while later edits may still change what it added."""

    def __init__(self, hunk: ChangedLines, edit: FileEdit) -> None:
        self.removed, self.added, self.edits = list(hunk.removed), list(hunk.added), [edit]

    def takes(self, hunk: ChangedLines, edit: FileEdit) -> bool:
        """Whether the hunk only changes what was added here; then it does."""
        at = _place(self.added, hunk.removed)
        if at is None:
            return False
        self.added[at : at + len(hunk.removed)] = hunk.added
        if edit is not self.edits[-1]:
            self.edits.append(edit)
        return True

    @property
    def is_left(self) -> bool:
        return self.removed != self.added


def net_hunks(file: FileChange) -> list[NetHunk]:
    """The hunks that separate a file after the last edit from what it was before the first, in the order of their first edits."""
    pieces: list[_Piece] = []
    for edit in file.edits:
        for hunk in () if edit.failed else edit.hunks:
            if not any(piece.takes(hunk, edit) for piece in reversed(pieces)):
                pieces.append(_Piece(hunk, edit))
    return [
        NetHunk(tuple(each.removed), tuple(each.added), tuple(each.edits)) for each in pieces if each.is_left
    ]


def _place(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where these lines stand among others; None if they do not, or if there are none."""
    size = len(wanted)
    if not size:
        return None
    return next(
        (at for at in range(len(lines) - size + 1) if list(lines[at : at + size]) == list(wanted)), None
    )
