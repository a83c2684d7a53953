"""What a session changed: its edits by file, with what came of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hitherto.edits.edit import Edit, Hunk, compared
from hitherto.model import Value


class ChangedLines(Value, frozen=True):
    """Lines that took the place of others."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


class FileEdit(Value, frozen=True):
    """One edit of a file: the session and the message that made it, when, and what it changed.

    `kind` is `edit`, `create`, `write` (a whole file of which it is not known what was in it), `delete` or `move` (to `to`).
    Of an edit that `failed` nothing came; one that was `undone` left nothing that is still there. `hunks` is empty if it is
    only known that the file was changed.
    """

    session: str
    message: str
    at: int
    kind: str
    to: str | None = None
    failed: bool = False
    undone: bool = False
    hunks: tuple[ChangedLines, ...] = ()


class FileChange(Value, frozen=True):
    """A file that a session changed: how many lines came and went from its first edit to its last, and each edit."""

    path: str
    added: int
    removed: int
    edits: tuple[FileEdit, ...] = ()


class SessionChanges(Value, frozen=True):
    """The files that a session changed, in order of their paths. What its subagents did is part of it."""

    session: str
    added: int
    removed: int
    files: tuple[FileChange, ...] = ()


class EditCounts(Value, frozen=True):
    """How many lines the edits of a session added and removed, and in how many files; `agents` of it are counted with it."""

    added: int = 0
    removed: int = 0
    files: int = 0
    agents: int = 0


class FileTouch(Value, frozen=True):
    """A session that changed a file: when it last did, under which path, in how many edits, and how many lines these added and
    removed."""

    session: str
    at: int
    path: str
    edits: int
    added: int
    removed: int


class Made(NamedTuple):
    """An edit with where it comes from; `path` is the file as it is shown."""

    session: str
    message: str
    at: int
    path: str
    failed: bool
    edit: Edit


def shown_path(path: str, folder: str | None) -> str:
    """A path as it is shown: relative to the session's folder, if it is within."""
    plain = path.replace("\\", "/")
    base = (folder or "").replace("\\", "/").rstrip("/")
    return plain.removeprefix(f"{base}/").removeprefix("./") if base else plain.removeprefix("./")


def changes_of(session: str, made: Sequence[Made], file: str | None = None) -> SessionChanges:
    """The changes of a session, from its edits in the order in which they were made; of one file, if its path ends so."""
    by_path: dict[str, list[Made]] = {}
    for each in made:
        if file is None or ends_with(each.path, file):
            by_path.setdefault(each.path, []).append(each)
    files = tuple(_file(path, by_path[path]) for path in sorted(by_path))
    return SessionChanges(
        session=session,
        added=sum(each.added for each in files),
        removed=sum(each.removed for each in files),
        files=files,
    )


def ends_with(path: str, end: str) -> bool:
    """Whether a path is this one, or ends with it."""
    return f"/{path.replace(chr(92), '/').lstrip('/')}".endswith(f"/{end.replace(chr(92), '/').lstrip('/')}")


def _file(path: str, made: Sequence[Made]) -> FileChange:
    hunks = refined([each.edit for each in made if not each.failed])
    done = iter(hunks)
    all_hunks = [() if each.failed else next(done) for each in made]
    came, went = _net(all_hunks)
    edits = tuple(_shown(each, own, came, went) for each, own in zip(made, all_hunks, strict=True))
    return FileChange(path=path, added=came.total(), removed=went.total(), edits=edits)


def refined(edits: Iterable[Edit]) -> list[tuple[Hunk, ...]]:
    """The changes of each of the edits of one file: a whole text is compared with what the file is known to have had before."""
    known: list[str] | None = None
    found: list[tuple[Hunk, ...]] = []
    for edit in edits:
        hunks = edit.hunks
        if edit.kind in ("create", "write"):
            new = [line for hunk in edit.hunks for line in hunk.added]
            if edit.kind == "write" and known is not None:
                hunks = compared("\n".join(known), "\n".join(new))
            known = new
        elif edit.kind == "delete":
            hunks = (Hunk(tuple(known), ()),) if known else edit.hunks
            known = None
        elif known is not None:
            known = _applied(known, hunks)
        found.append(hunks)
    return found


def _applied(lines: list[str], hunks: Sequence[Hunk]) -> list[str] | None:
    """The lines after these changes; None if they do not fit."""
    for hunk in hunks:
        size = len(hunk.removed)
        place = next(
            (
                at
                for at in range(len(lines) - size + 1)
                if size and tuple(lines[at : at + size]) == hunk.removed
            ),
            None,
        )
        if place is None:
            return None
        lines = [*lines[:place], *hunk.added, *lines[place + size :]]
    return lines if hunks else None


def _net(all_hunks: Iterable[Sequence[Hunk]]) -> tuple[Counter[str], Counter[str]]:
    """The lines that came and that went, without those that came and went again."""
    came, went = Counter[str](), Counter[str]()
    for hunk in (hunk for hunks in all_hunks for hunk in hunks):
        for lines, here, there in ((hunk.removed, came, went), (hunk.added, went, came)):
            for line in lines:
                if here[line] > 0:
                    here[line] -= 1
                else:
                    there[line] += 1
    return came, went


def _shown(made: Made, hunks: Sequence[Hunk], came: Counter[str], went: Counter[str]) -> FileEdit:
    added = [line for hunk in hunks for line in hunk.added if line.strip()]
    removed = [line for hunk in hunks for line in hunk.removed if line.strip()]
    left = any(came[line] > 0 for line in added) or any(went[line] > 0 for line in removed)
    return FileEdit(
        session=made.session,
        message=made.message,
        at=made.at,
        kind=made.edit.kind,
        to=made.edit.to,
        failed=made.failed,
        undone=bool(added or removed) and not left,
        hunks=tuple(ChangedLines(removed=hunk.removed, added=hunk.added) for hunk in hunks),
    )
