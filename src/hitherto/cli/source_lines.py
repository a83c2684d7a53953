"""Lines of files and of changes on this machine, as lines whose origin is wanted."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.cli.git import BlamedLine, Commit, Git
from hitherto.edits.edit import all_lines, differences
from hitherto.edits.lines import plain
from hitherto.edits.origins import Repository, SourceLine, lines_of_diff
from hitherto.edits.patches import of_git
from hitherto.errors import InvalidInput
from hitherto.projects import checkout_of

FILE_BYTES = 16 * 1024 * 1024
DIFF_BYTES = 64 * 1024 * 1024
COMPARED_LINES = 20_000
"""So many lines of a file are compared with HEAD, beside those that are the same at its beginning and its end."""


RESTORED_FILES = 500
"""In a commit of more files, lines that it brings back are not looked for."""


class FileLines(NamedTuple):
    """The lines of a file with their commits (None: not committed, or not known), and its repository. `revision` is the commit that
    is checked out; `unknown` says why git cannot tell the commits."""

    lines: list[SourceLine]
    commits: list[str | None]
    repository: Repository
    revision: str | None = None
    unknown: str | None = None


class Change(NamedTuple):
    """The lines that a commit added; that of a diff has no revision."""

    lines: list[SourceLine]
    revision: str | None


def read_file(folder: str, name: str, *, committed: bool = False) -> FileLines:
    """A file as it is now, or as HEAD has it if it was removed, or if what is `committed` is wanted. It is read whole: the neighbours
    of a line tell too."""
    where = os.path.join(folder, os.path.dirname(name))
    if checkout_of(os.path.realpath(where)) is None:
        return _lonely_file(folder, name)
    git = Git(where or ".")
    path = git.path_of(os.path.basename(name))
    texts, head = _texts(os.path.join(git.top, path)), git.head()
    in_head = head is not None and git.has(path)
    if in_head and committed:
        texts = None
    if texts is None and not in_head:
        raise InvalidInput(f"{name!r} is not a file")
    blamed, unknown = _blamed(git, path, texts) if in_head else ([], None)
    found = _told(path, blamed) if texts is None else _as_it_is(path, blamed, texts, head)
    copies = Counter(plain(line.text) for line, _ in found)
    lines = [replace(line, is_copy=copies[plain(line.text)] > 1) for line, _ in found]
    revision = None if head is None else head.id
    return FileLines(lines, [commit for _, commit in found], git.repository(), revision, unknown)


def read_changes(named: str, folder: str) -> tuple[list[Change], Repository]:
    """The changes that a commit, a range or a diff on standard input (`-`) stands for, oldest first, and their repository."""
    if named == "-":
        diff = sys.stdin.buffer.read(DIFF_BYTES + 1)
        if len(diff) > DIFF_BYTES:
            raise InvalidInput(f"a diff may have at most {DIFF_BYTES} bytes")
        return [Change(lines_of_diff(of_git(diff.decode("utf-8", "replace"))), None)], _repository(folder)
    git = Git(folder)
    changes = []
    for commit in git.commits(named):
        added = lines_of_diff(of_git(git.diff(commit)), commit.until, commit.since)
        changes.append(Change(_without_restored(git, commit, added), commit.id))
    return changes, git.repository()


def _without_restored(git: Git, commit: Commit, lines: list[SourceLine]) -> list[SourceLine]:
    """The lines of a commit, where those that an earlier commit had removed from the file can only have been written since."""
    paths = list(dict.fromkeys(line.path for line in lines))
    if not 0 < len(paths) <= RESTORED_FILES:
        return lines
    removed: dict[tuple[str | None, str], int] = {}
    for at, diff in git.earlier(commit, paths):
        for file in of_git(diff):
            for text in file.removed:
                removed.setdefault((file.old_path, plain(text)), at)
    return [
        line if at is None else replace(line, since=at, is_moved=True)
        for line in lines
        for at in [removed.get((line.path, plain(line.text)))]
    ]


def _repository(folder: str) -> Repository:
    """The repository here; a diff may also be of one that is not there any more."""
    try:
        return Git(folder).repository()
    except InvalidInput:
        return _named_by_folder(folder)


def _named_by_folder(folder: str) -> Repository:
    return Repository(names=(os.path.basename(os.path.realpath(folder)),))


def _lonely_file(folder: str, name: str) -> FileLines:
    """A file outside of any repository."""
    path = os.path.join(folder, name)
    texts = _texts(os.path.realpath(path))
    if texts is None:
        raise InvalidInput(f"{name!r} is not a file")
    shown = os.path.basename(os.path.realpath(path)) if "/" not in name else name.lstrip("./")
    copies = Counter(map(plain, texts))
    lines = [
        SourceLine(path=shown, number=number, text=text, is_copy=copies[plain(text)] > 1)
        for number, text in enumerate(texts, 1)
    ]
    return FileLines(lines, [None] * len(lines), _named_by_folder(folder))


def _texts(path: str) -> list[str] | None:
    """The lines of a file; none of a binary one; None if it is no plain file. Never waits for a pipe, and follows no link."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                return None
            data = file.read(FILE_BYTES + 1)
    except (OSError, ValueError):
        return None
    if len(data) > FILE_BYTES:
        raise InvalidInput(f"{os.path.basename(path)!r} has more than {FILE_BYTES} bytes")
    return [] if b"\0" in data else all_lines(data.decode("utf-8", "replace"))


def _blamed(git: Git, path: str, texts: list[str] | None) -> tuple[list[BlamedLine], str | None]:
    """What git blames; nothing, and why, if it cannot: a partial clone may lack the file's past."""
    try:
        return git.blame(os.path.join(git.top, path)), None
    except InvalidInput as error:
        if texts is None:
            raise
        return [], str(error)


def _told(path: str, blamed: list[BlamedLine]) -> list[tuple[SourceLine, str | None]]:
    """The lines as HEAD has them, with their commits."""
    if any("\0" in line.text for line in blamed):
        return []
    return [(_committed(path, line.number, line), line.commit) for line in blamed]


def _as_it_is(
    path: str, blamed: list[BlamedLine], texts: list[str], head: Commit | None
) -> list[tuple[SourceLine, str | None]]:
    """The lines of the file as it is: with their commits if HEAD has them, else without."""
    since = None if head is None else head.until
    found: list[tuple[SourceLine, str | None]] = []
    done = 0
    for first, last, start, end in [
        *differences([line.text for line in blamed], texts, COMPARED_LINES),
        (len(blamed), len(blamed), len(texts), len(texts)),
    ]:
        found += [
            (_committed(path, len(found) + at, line), line.commit)
            for at, line in enumerate(blamed[done:first], 1)
        ]
        found += [
            (SourceLine(path=path, number=at, text=text, since=since), None)
            for at, text in enumerate(texts[start:end], start + 1)
        ]
        done = last
    return found


def _committed(path: str, number: int, line: BlamedLine) -> SourceLine:
    former = line.path if line.path != path else None
    return SourceLine(path=path, number=number, text=line.text, until=line.until, former_path=former)
