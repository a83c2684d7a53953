"""Paths that a model gives, opened within the roots of a session and nowhere else.

No path is handed to the kernel whole. A path is walked from a root's descriptor, one name at a time, each opened
relative to the folder before it and without following links. A link, like a step up, begins the walk anew at where it
says to go, if that is within a root. So whatever is swapped in between the steps, a step leads to a name inside of a
folder inside of a root, or fails; and files are read and replaced relative to the folder that was reached.

Not covered: somebody who moves a folder out of the roots while it is in use could have written there anyway. A hard
link is a file like any other; since writing replaces a name, what else has that file keeps what it had.
"""

from __future__ import annotations

import errno
import os
import posixpath
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple

PATH_CHARS = 4_096
RESTARTS = 64
"""The most links and steps up in one path."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO that was swapped in would wait for a writer for ever.
FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Missing = Literal["fail", "make", "leave"]
"""What to do about a folder on the way that is not there; `leave` ends the walk, for the sake of the path alone."""


class OutsideRoots(PermissionError):
    """The path leads out of the roots, whether or not something is there."""


class Root(NamedTuple):
    """A folder under the name it was given, and under the one without links. Neither ends with a slash."""

    given: str
    real: str


class Spot(NamedTuple):
    """A name in an opened folder, no link when it was found; `path` names it for people and editors."""

    folder: int
    name: str
    path: str


class Roots:
    """The folders that a session may touch; the first is where relative paths begin. There is at least one."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._named = tuple(
            Root(os.path.abspath(path).rstrip("/"), os.path.realpath(path).rstrip("/")) for path in paths
        )
        # A root inside another is reached from the outer one: whoever may write there could swap the inner one.
        self._outer = tuple(
            root
            for root in self._named
            if not any(root.real != other.real and _within(root.real, other.real) for other in self._named)
        )
        self.cwd = self._named[0].given or "/"

    def absolute(self, path: str) -> str:
        """Where a path points to by its letters alone; it may be anywhere, and the disk is not touched."""
        return os.path.normpath(os.path.join(self.cwd, path))

    def resolve(self, path: str) -> str:
        """The absolute path, without links below its root, of something that may be there or not."""
        with self.spot(path, missing="leave") as spot:
            return spot.path

    @contextmanager
    def spot(self, path: str, *, missing: Missing = "fail") -> Iterator[Spot]:
        """The place of a path, with its folder opened. Raises `OutsideRoots`, another `OSError`, `ValueError`."""
        target = os.path.join(self.cwd, _checked(path))
        for _ in range(RESTARTS):
            found = self._walk(target, missing)
            if isinstance(found, Spot):
                try:
                    yield found
                finally:
                    os.close(found.folder)
                return
            target = found
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def read(self, path: str, most: int) -> bytes:
        """What is in a regular file of at most so many bytes."""
        with self.spot(path) as spot:
            return read_at(spot.folder, spot.name, most)

    def replace(self, path: str, data: bytes) -> None:
        """Put a regular file in place at once, with the folders it needs; its mode and owner are kept."""
        with self.spot(path, missing="make") as spot:
            before = _replaceable(spot)
            fresh = f".hitherto-{secrets.token_hex(8)}"
            descriptor = os.open(fresh, FRESH, 0o600 if before else 0o666, dir_fd=spot.folder)
            try:
                with open(descriptor, "wb") as file:
                    if before:
                        _keep(descriptor, before)
                    file.write(data)
                os.rename(fresh, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=spot.folder)
                raise

    def _walk(self, path: str, missing: Missing) -> Spot | str:
        """The place of an absolute path, or the path at which to begin anew."""
        root, names = self._anchored(path)
        here = os.open(root.real or "/", FOLDER)
        done: list[str] = []
        try:
            while names:
                name = names.pop(0)
                if name in ("", "."):
                    continue
                onward = _onward(here, "/".join((root.real, *done)), name)
                if onward is not None:
                    os.close(here)
                    return "/".join((onward, *names))
                if not names:
                    return Spot(here, name, "/".join((root.given, *done, name)))
                inner = _entered(here, name, missing)
                if inner is None:
                    return Spot(here, name, _unmade("/".join((root.given, *done, name)), names))
                os.close(here)
                here = inner
                done.append(name)
        except BaseException:
            os.close(here)
            raise
        return Spot(here, ".", "/".join((root.given, *done)) or "/")

    def _anchored(self, path: str) -> tuple[Root, list[str]]:
        """The outermost root of an absolute path, and the names below it. What a path says outside is only read."""
        for spelled in (path, "/" + os.path.normpath(path).lstrip("/")):
            for name, real in ((name, root.real) for root in self._named for name in root):
                if _within(spelled, name):
                    whole = real + spelled[len(name) :]
                    root = next(root for root in self._outer if _within(whole, root.real))
                    return root, whole[len(root.real) :].split("/")
        allowed = ", ".join(root.given or "/" for root in self._named)
        raise OutsideRoots(errno.EACCES, f"outside the allowed folders: {allowed}")


class ClientRoots:
    """The folders of a client on another machine. Paths are judged by their letters alone: that machine follows its links."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._named = tuple(posixpath.normpath(path) for path in paths)
        self.cwd = self._named[0]

    def absolute(self, path: str) -> str:
        """Where a path points to."""
        return posixpath.normpath(posixpath.join(self.cwd, path))

    def resolve(self, path: str) -> str:
        """The absolute path. Raises `OutsideRoots`, `ValueError`."""
        found = self.absolute(_checked(path))
        if not any(_within(found, "" if root == "/" else root) for root in self._named):
            raise OutsideRoots(errno.EACCES, f"outside the allowed folders: {', '.join(self._named)}")
        return found

    def read(self, path: str, most: int) -> bytes:  # noqa: ARG002 - nothing is read here
        """No bytes can be read there: clients give texts only."""
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def read_at(folder: int, name: str, most: int) -> bytes:
    """What is in a regular file of an opened folder, if it has at most so many bytes."""
    with open(_opened(folder, name, os.O_RDONLY), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most} bytes")
    return data


def _checked(path: str) -> str:
    if not path or "\0" in path or len(path) > PATH_CHARS:
        raise ValueError(f"a path must have 1 to {PATH_CHARS} characters, and no NUL")
    if path.split("/", 1)[0] == "~":
        raise OutsideRoots(errno.EACCES, "~ is not supported; give an absolute path")
    return path


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")


def _onward(folder: int, path: str, name: str) -> str | None:
    """Where a step up or a link leads; None for any other name."""
    if name == "..":
        return os.path.dirname(path)
    try:
        return os.path.join(path, os.readlink(name, dir_fd=folder))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return None


def _entered(folder: int, name: str, missing: Missing) -> int | None:
    """A folder in a folder; None if it is not there and shall be left so."""
    try:
        return os.open(name, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if missing == "fail":
            raise
    if missing == "leave":
        return None
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, FOLDER, dir_fd=folder)


def _unmade(path: str, names: list[str]) -> str:
    """The path of something in folders that are not there yet; there is no going up from those."""
    if ".." in names:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return os.path.normpath("/".join((path, *names)))


def _opened(folder: int, name: str, flags: int) -> int:
    """A regular file of a folder. It is looked at before, since to open a device can do something, and after."""
    _regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
    descriptor = os.open(name, flags | FILE, dir_fd=folder)
    try:
        _regular(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _regular(state: os.stat_result) -> None:
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "neither a file nor a folder")


def _replaceable(spot: Spot) -> os.stat_result | None:
    """What is there and may be written; None if nothing is. A file that is read-only is not replaced."""
    try:
        descriptor = _opened(spot.folder, spot.name, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _keep(descriptor: int, before: os.stat_result) -> None:
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    # As the kernel does when a file is written: its new content does not run as somebody else.
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
