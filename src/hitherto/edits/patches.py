"""Patches: unified diffs, as git and many tools write them, and the form of `apply_patch`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hitherto.edits.edit import MOST_LINES, Edit, Hunk, Kind

BEGIN, END = "*** Begin Patch", "*** End Patch"
_FILES: dict[str, Kind] = {
    "*** Add File: ": "create",
    "*** Update File: ": "edit",
    "*** Delete File: ": "delete",
}
_MOVE = "*** Move to: "
_PLACE = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
PATCHES = 100
"""How many patches in one text are read."""


class DiffLine(NamedTuple):
    """An added line of a diff; `hunk` counts the runs of changed lines in it."""

    number: int
    text: str
    hunk: int


class FileDiff(NamedTuple):
    """What a diff says of one file: `path` after, `old_path` before it; None is a file that is not there. `kept` are the lines
    around what changed."""

    path: str | None
    old_path: str | None
    added: tuple[DiffLine, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...] = ()


def hunks_of(lines: Iterable[str]) -> tuple[Hunk, ...]:
    """The changes in the lines of hunks, each with a sign before it."""
    found: list[Hunk] = []
    old: list[str] = []
    new: list[str] = []
    for line in (*lines, " "):
        sign = line[:1]
        if sign == "-":
            old.append(line[1:].rstrip("\r"))
        elif sign == "+":
            new.append(line[1:].rstrip("\r"))
        elif sign != "\\" and (old or new):
            found.append(Hunk(tuple(old), tuple(new)))
            old, new = [], []
    return tuple(found)


def of_unified(text: str) -> tuple[Hunk, ...]:
    """The changes of a unified diff of one file."""
    body: list[str] = []
    inside = False
    for line in text.splitlines()[:MOST_LINES]:
        if line.startswith("@@"):
            inside = True
            body.append(" ")
        elif inside:
            body.append(line)
    return hunks_of(body)


def in_text(text: str) -> Iterator[Edit]:
    """The edits of every `apply_patch` patch in a text: alone, in a here-document, or in a string of a program."""
    for _ in range(PATCHES):
        _, begun, rest = text.partition(BEGIN)
        if not begun:
            return
        body, _, text = rest.partition(END)
        if "\n" not in body.strip("\n") or body.startswith("\\n"):
            body = _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), body)
        yield from _files(body)


def _files(body: str) -> Iterator[Edit]:
    path, kind, to = "", None, None
    lines: list[str] = []
    for line in [*body.splitlines()[:MOST_LINES], "*** End"]:
        if not line.startswith("*** "):
            lines.append(line)
            continue
        if line.startswith(_MOVE):
            to = line.removeprefix(_MOVE).strip()
            continue
        if kind is not None and path:
            yield Edit(path=path, kind="move" if to else kind, hunks=hunks_of(lines), to=to)
        sign = next((sign for sign in _FILES if line.startswith(sign)), None)
        path, kind, to = (line.removeprefix(sign).strip(), _FILES[sign], None) if sign else ("", None, None)
        lines = []


def of_git(text: str) -> Iterator[FileDiff]:
    """The files of a diff as git writes it, and as `diff -u` does. Binary files have no lines."""
    for part in re.split(r"^(?=diff --git )", text, flags=re.MULTILINE):
        yield from _git_files(part.split("\n"))


def _git_files(lines: Iterable[str]) -> Iterator[FileDiff]:
    reading = _Reading()
    for line in lines:
        if reading.left_old > 0 or reading.left_new > 0:
            reading.take(line)
        elif place := _PLACE.match(line):
            reading.begin(place)
        elif line.startswith("--- "):
            if reading.has_lines:
                yield reading.file()
                reading = _Reading()
            reading.old_path, reading.named = _name(line[4:]), True
        else:
            reading.name(line.rstrip("\r"))
    if reading.named:
        yield reading.file()


class _Reading:
    """A file of a diff that is being read: `left_old` and `left_new` lines of the present hunk are still to come."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.old_path: str | None = None
        self.named = False
        self.left_old = self.left_new = 0
        self._number = self._runs = 0
        self._is_changing = False
        self._added: list[DiffLine] = []
        self._removed: list[str] = []
        self._kept: list[str] = []

    @property
    def has_lines(self) -> bool:
        return bool(self._added or self._removed)

    def file(self) -> FileDiff:
        return FileDiff(self.path, self.old_path, tuple(self._added), tuple(self._removed), tuple(self._kept))

    def name(self, line: str) -> None:
        """A line before the hunks, which may name the file."""
        if line.startswith("+++ "):
            self.path, self.named = _name(line[4:]), True
        elif line.startswith("rename from "):
            self.old_path, self.named = unquoted(line[12:]), True
        elif line.startswith("rename to "):
            self.path, self.named = unquoted(line[10:]), True

    def begin(self, place: re.Match[str]) -> None:
        """A hunk begins."""
        old, number, new = place.groups()
        self.left_old, self.left_new = int(old or 1), int(new or 1)
        self._number, self._is_changing = int(number), False

    def take(self, line: str) -> None:
        """A line of a hunk."""
        sign, text = line[:1], line[1:].rstrip("\r")
        if sign == "\\":
            return
        changes = sign in ("+", "-")
        self._runs += changes and not self._is_changing
        self._is_changing = changes
        if sign == "+":
            self._added.append(DiffLine(self._number, text, self._runs))
        elif sign == "-":
            self._removed.append(text)
        else:
            self._kept.append(text)
        self._number += sign != "-"
        self.left_new -= sign != "-"
        self.left_old -= sign != "+"


def _name(given: str) -> str | None:
    name = unquoted(given.rstrip("\r").partition("\t")[0])
    if name == "/dev/null":
        return None
    return name[2:] if name[:2] in ("a/", "b/", "i/", "w/", "c/", "o/") else name


def unquoted(name: str) -> str:
    """A path as git writes it: one with unusual characters is in quotes."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    try:
        return (
            name[1:-1]
            .encode("latin-1", "backslashreplace")
            .decode("unicode_escape")
            .encode("latin-1")
            .decode("utf-8", "replace")
        )
    except (UnicodeDecodeError, UnicodeEncodeError):
        return name[1:-1]
