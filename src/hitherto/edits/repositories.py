"""Whether the file of an edit is a file of a repository, which may be another clone on another machine. Pure."""

from __future__ import annotations

import posixpath

from hitherto.edits.changes import ends_with
from hitherto.edits.origins import Repository

SAME, MOVED, ALIKE = 3, 2, 1
FOLDERS = 2
"""A path of so many parts may be known again in a repository of another name."""


def full_path(path: str, folder: str | None) -> str:
    """The path of an edit, from the folder that its session was in."""
    plain = path.replace("\\", "/")
    if plain.startswith(("/", "~")) or plain[1:3] == ":/" or not folder:
        return posixpath.normpath(plain)
    return posixpath.normpath(posixpath.join(folder.replace("\\", "/"), plain))


def short_name(project: str) -> str:
    """The last part of a project's name: what clones and forks of a repository have in common."""
    return project.rstrip("/").rpartition("/")[2].partition("@")[0].casefold()


def is_same_repository(project: str | None, folder: str | None, repository: Repository) -> bool:
    """Whether a session of this project and folder was in the repository, as far as names tell."""
    names = {short_name(name) for name in repository.names}
    if project is not None:
        return project in repository.names or short_name(project) in names
    parts = (folder or "").replace("\\", "/").casefold().split("/")
    return not names.isdisjoint(parts)


def closeness(path: str, *, same: bool, file: str) -> int:
    """How close a file of an edit (its full path) is to a file of the repository; 0 if they have nothing to do with each other."""
    if ends_with(path, file) or (same and not path.startswith("/") and ends_with(file, path)):
        return SAME if same else ALIKE if file.count("/") + 1 >= FOLDERS else 0
    return MOVED if same else 0
