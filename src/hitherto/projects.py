"""The repository that a folder is in. Reads a few small files of git and runs nothing.

Only for folders of the person whose machine this is: a name that somebody else gives must never make us read there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from hitherto.limits import NAME_CHARS, is_storable

FILE_BYTES = 256 * 1024
"""As much is read of a file of git; a longer configuration is read up to there."""
HOPS = 4
"""So many clones of clones of local folders are followed to the repository they come from."""
_SECTION = re.compile(r'\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_SETTING = re.compile(r"([A-Za-z][\w-]*)\s*=\s*(.*)")
_SCP = re.compile(r"(?:[^/@:]+@)?(\[[0-9a-fA-F:.]+\]|[^/:\[\]@]+):(?!//)(.+)", re.DOTALL)
_COMMIT = re.compile(r"0{40,64} ([0-9a-f]{40,64}) [^\t]*\tcommit \(initial\)")
_BRANCH = "ref: refs/heads/"


class Checkout(NamedTuple):
    """A repository as one of its folders shows it.

    `project` is its remote as `host/owner/repository`, or the name of its folder. `top` is the folder that it lies in,
    `branch` the one that is checked out, `root` its first commit, where that is easy to find.
    """

    project: str
    top: str
    branch: str | None = None
    root: str | None = None


class _Git(NamedTuple):
    """Where git keeps what belongs to one work tree (`own`) and what to all of them (`common`)."""

    top: str
    own: str
    common: str


def checkout_of(cwd: str) -> Checkout | None:
    """The repository that a folder is in, or was in before it was removed; None if there is none."""
    git = _find(cwd)
    return None if git is None else _place(git)


def remote_name(url: str) -> str | None:
    """The host and path of a remote: no user, password, port, protocol or `.git`; None for a local path."""
    url = url.strip()
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname, parts.path
        except ValueError:
            return None
        if parts.scheme == "file":
            return None
    elif found := _SCP.fullmatch(url):
        host, path = found[1].strip("[]"), found[2]
    else:
        return None
    path = re.sub(r"/+", "/", path).strip("/").removesuffix(".git").rstrip("/")
    return _clean(f"{host.lower()}/{path}") if host and path else None


def _place(git: _Git) -> Checkout:
    name, begun = _named(git, HOPS)
    return Checkout(
        project=name or _folder_name(git),
        top=git.top,
        branch=_branch(git.own),
        root=_root(git.common) or _root(begun.common),
    )


def _find(cwd: str) -> _Git | None:
    """The nearest repository at or above the folder."""
    folder = os.path.normpath(cwd)
    while True:
        found = _git_of(folder)
        if found is not None:
            return found
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _git_of(folder: str) -> _Git | None:
    """The repository whose work tree begins here."""
    marked = os.path.join(folder, ".git")
    try:
        kind = os.stat(marked).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(kind):
        return _Git(folder, marked, marked) if os.path.lexists(os.path.join(marked, "HEAD")) else None
    line = _line(marked)
    if line is None or not line.startswith("gitdir:"):
        return None
    own = os.path.normpath(os.path.join(folder, line.removeprefix("gitdir:").strip()))
    shared = _line(os.path.join(own, "commondir"))
    if shared is not None:
        common = os.path.normpath(os.path.join(own, shared))
    else:
        # The repository of a work tree may have been moved: its path still has its name.
        common = own.partition("/worktrees/")[0]
    top = os.path.dirname(common) if os.path.basename(common) == ".git" else folder
    return _Git(top, own, common)


def _remote(common: str) -> str | None:
    """The address of the remote that is called origin, or else of the first."""
    found = dict(reversed(list(_remotes(_text(os.path.join(common, "config")) or ""))))
    return found.get("origin") or next(reversed(found.values()), None)


def _remotes(config: str) -> Iterator[tuple[str, str]]:
    section, name = "", ""
    for raw in config.splitlines():
        line = raw.strip()
        if begun := _SECTION.match(line):
            section, name = begun[1].lower(), begun[2] or ""
            line = begun[3]
        setting = _SETTING.match(line) if section == "remote" else None
        if setting is not None and setting[1].lower() == "url" and (value := _value(setting[2])):
            yield name, value


def _value(text: str) -> str:
    """A value of a configuration, without quotes and without the comment behind it."""
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:].partition('"')[0])
    return re.split(r"\s[#;]", text, maxsplit=1)[0].strip()


def _named(git: _Git, hops: int) -> tuple[str | None, _Git]:
    """The name of a repository, and where it comes from: itself, or the local one that it was cloned from."""
    url = _remote(git.common)
    if url is None:
        return _folder_name(git), git
    if (name := remote_name(url)) is not None:
        return name, git
    path = os.path.normpath(os.path.join(git.top, url.removeprefix("file://")))
    source = _git_of(path) or (_Git(path, path, path) if _line(os.path.join(path, "HEAD")) else None)
    if source is None or source.common == git.common:
        return _clean(os.path.basename(path).removesuffix(".git")), git
    return _named(source, hops - 1) if hops else (None, git)


def _folder_name(git: _Git) -> str:
    folder = git.top if os.path.basename(git.common) in (".git", "") else git.common
    return _clean(os.path.basename(folder).removesuffix(".git")) or "repository"


def _branch(own: str) -> str | None:
    head = _line(os.path.join(own, "HEAD"))
    if head is None or not head.startswith(_BRANCH):
        return None
    return _clean(head.removeprefix(_BRANCH))


def _root(common: str) -> str | None:
    """The first commit, from the log of a repository that was created here."""
    first = _COMMIT.match(_line(os.path.join(common, "logs", "HEAD")) or "")
    return None if first is None else first[1]


def _line(path: str) -> str | None:
    """The first line of a file."""
    text = _text(path)
    return None if text is None else text.partition("\n")[0].rstrip("\r")


def _text(path: str) -> str | None:
    """The beginning of a plain file; None if there is none. Whatever else has that name is never waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _clean(name: str) -> str | None:
    """A name that every store can keep; None if it is none."""
    name = name[:NAME_CHARS].strip()
    return name if name and name.isprintable() and is_storable(name) else None
