"""What shell commands plainly do to files: here-documents, `sed -i`, `mv`, `rm`. Whatever is not plain is left alone. Pure."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterator

from hitherto.edits.edit import Edit, Hunk, lines_of

COMMAND_CHARS = 200_000
COMMANDS = 200
_HERE = re.compile(r"<<(-?)\s*(['\"]?)([A-Za-z_][\w.-]*)\2")
# Splitting a command into words takes long, and few of them change a file.
_MAY_CHANGE = re.compile(r"<<|\b(?:mv|rm)\b|\bsed\b(?=.*-i)", re.DOTALL)
_NAMED = re.compile(r"\b(?:cat|cd|mv|rm|sed|tee)\b")
_SPLIT = re.compile(r"\s*(?:&&|\|\||;)\s*")
_UNPLAIN = frozenset("$`*?{(")
"""What the shell would still have to work out."""


def edits_of(command: str) -> Iterator[Edit]:
    """The edits that a command plainly makes, in order."""
    folder, command = "", command[:COMMAND_CHARS]
    for line, body in _commands(command) if _MAY_CHANGE.search(command) else ():
        for each in filter(_NAMED.search, _SPLIT.split(line)):
            words = _words(each)
            if words[:1] == ["cd"]:
                folder = _joined(folder, words[1]) if len(words) == 2 and _is_plain(words[1]) else folder
            elif words:
                yield from (
                    _within(folder, edit)
                    for edit in _edits(words, body)
                    if _is_plain(edit.path) and _is_plain(edit.to)
                )


def _commands(text: str) -> Iterator[tuple[str, str | None]]:
    """The lines of a script, each with the here-document that follows it."""
    lines = text.split("\n")
    at = count = 0
    while at < len(lines) and count < COMMANDS:
        line, at, count = lines[at], at + 1, count + 1
        found = _HERE.search(line)
        if found is None:
            yield line, None
            continue
        end = at
        while end < len(lines) and (lines[end].lstrip("\t") if found[1] else lines[end]) != found[3]:
            end += 1
        yield line, "\n".join(lines[at:end]) + "\n"
        at = end + 1


def _words(command: str) -> list[str]:
    """The words of a simple command; none if it runs others."""
    try:
        words = shlex.split(re.sub(r"(\d?>>?)(?!&)", r" \1 ", _HERE.sub("", command)))
    except ValueError:
        return []
    if any(word in ("|", "&") or "$(" in word or "`" in word for word in words):
        return []
    while words and ("=" in words[0].split("/")[0] or words[0] == "sudo"):
        words = words[1:]
    return words


def _edits(words: list[str], body: str | None) -> Iterator[Edit]:
    if words[:2] in (["git", "mv"], ["git", "rm"]):
        words = words[1:]
    reader = _COMMANDS.get(words[0])
    if reader is not None:
        yield from reader(words[1:], body)


def _written(words: list[str], body: str | None) -> Iterator[Edit]:
    """`cat > file <<END`, with the text that follows."""
    for sign, path in itertools.pairwise(words):
        if sign in (">", ">>") and body is not None:
            yield _filled(path, body, appended=sign == ">>")


def _teed(words: list[str], body: str | None) -> Iterator[Edit]:
    plain = [word for word in words[: words.index(">")] if word != "-"] if ">" in words else words
    for path in plain if body is not None else ():
        if not path.startswith("-"):
            yield _filled(path, body or "", appended="-a" in words)


def _filled(path: str, body: str, *, appended: bool) -> Edit:
    hunks = (Hunk((), lines_of(body)),)
    return Edit(path=path, kind="edit" if appended else "write", hunks=hunks)


def _edited_in_place(words: list[str], _: str | None) -> Iterator[Edit]:
    if not any(word.startswith(("-i", "--in-place")) for word in words):
        return
    behind = {at + 1 for at, word in enumerate(words) if word in ("-e", "-f", "--expression")}
    given = [word for at, word in enumerate(words) if not word.startswith("-") and at not in behind]
    for path in given if behind else given[1:]:
        if "/" in path or "." in path:
            yield Edit(path=path, kind="edit")


def _moved(words: list[str], _: str | None) -> Iterator[Edit]:
    given = [word for word in words if not word.startswith("-")]
    if len(given) == 2:
        yield Edit(path=given[0], kind="move", to=given[1])


def _removed(words: list[str], _: str | None) -> Iterator[Edit]:
    for path in words:
        if not path.startswith("-") and not path.endswith("/"):
            yield Edit(path=path, kind="delete")


_COMMANDS: dict[str, Callable[[list[str], str | None], Iterator[Edit]]] = {
    "cat": _written,
    "tee": _teed,
    "sed": _edited_in_place,
    "mv": _moved,
    "rm": _removed,
}


def _is_plain(path: str | None) -> bool:
    return path is None or (path.isprintable() and not _UNPLAIN.intersection(path) and path != "/dev/null")


def _joined(folder: str, path: str) -> str:
    return path if path.startswith(("/", "~")) or not folder else f"{folder.rstrip('/')}/{path}"


def _within(folder: str, edit: Edit) -> Edit:
    to = None if edit.to is None else _joined(folder, edit.to)
    return Edit(path=_joined(folder, edit.path), kind=edit.kind, hunks=edit.hunks, to=to)
