"""Where Claude Code keeps its transcripts: folders, their names, and the one file that belongs to a session."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hitherto.claude import lines

TRANSCRIPT = ".jsonl"
NAME_LIMIT = 200
"""A longer folder name is cut here, followed by a hash of the whole path."""
WORKTREE_SECONDS = 5
# Where a record that names its folder is looked for, to distinguish long paths that begin alike.
HEAD = 65_536

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_STRANGE = re.compile(r"[^a-zA-Z0-9]")
_GIVEN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEVICE_NAME = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]", re.IGNORECASE)
_CWD = re.compile(rb'"cwd":\s*("(?:[^"\\]|\\.)*")')
# Without a mark, in the order in which this machine reads numbers of two bytes.
_UTF_16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_BASE_36 = "0123456789abcdefghijklmnopqrstuvwxyz"


def is_session_id(text: str) -> bool:
    """Whether `text` has the form of a session's id; nothing else ever becomes part of a path."""
    return _ID.fullmatch(text) is not None


def whole_number(name: str, value: float | None) -> int:
    """A limit or an offset; None is 0. `TypeError` if it is no whole number."""
    if value is None or (isinstance(value, int | float) and value == value // 1):
        return int(value or 0)
    raise TypeError(f"{name} must be a whole number, not {value!r:.100}")


def one_of(
    directory: str | os.PathLike[str] | None, other: str | os.PathLike[str] | None
) -> str | os.PathLike[str] | None:
    """The directory that was given by either of its two names; None if none was, or an empty one."""
    if directory and other and directory != other:
        raise TypeError("give either `directory` or `dir`")
    return directory or other or None


def config_home() -> Path:
    """Claude Code's folder: `CLAUDE_CONFIG_DIR`, else `.claude` in the home folder."""
    given = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(unicodedata.normalize("NFC", given or str(Path.home() / ".claude")))


def projects_folder() -> Path:
    """The folder that holds a folder of transcripts for each project."""
    return config_home() / "projects"


def canonical(directory: str | os.PathLike[str]) -> str:
    """The path by which Claude Code knows a directory."""
    resolved = os.path.realpath(directory)
    # As the program itself does: only on macOS, where file systems take names apart.
    return unicodedata.normalize("NFC", resolved) if sys.platform == "darwin" else resolved


def folder_name(path: str) -> str:
    """The name of the project folder for a canonical path.

    Counted in UTF-16 code units, as Claude Code does: a character beyond the basic plane becomes two hyphens.
    """
    units = path.encode(_UTF_16, "surrogatepass")
    codes = memoryview(units).cast("H")
    name = _STRANGE.sub("-", "".join(map(chr, codes)))
    return name if len(name) <= NAME_LIMIT else f"{name[:NAME_LIMIT]}-{_hash(codes)}"


def _hash(codes: memoryview) -> str:
    """The 32-bit hash of the path, without its sign, to the base of 36."""
    value = 0
    for code in codes:
        value = (value * 31 + code) & 0xFFFFFFFF
    value = abs(value - 0x1_0000_0000 if value & 0x8000_0000 else value)
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = _BASE_36[digit] + digits
    return digits or "0"


def project_key_for_directory(directory: str | os.PathLike[str] | None = None) -> str:
    """The name under which sessions of `directory` (by default the current one) are kept."""
    return folder_name(canonical("." if directory is None else directory))


def project_folder(path: str) -> Path | None:
    """The existing folder of transcripts for a canonical path."""
    projects = projects_folder()
    name = _given_name() or folder_name(path)
    exact = projects / name
    if exact.is_dir():
        return exact
    if len(name) <= NAME_LIMIT:
        return None
    # Other versions hashed differently. What begins alike belongs here only if a transcript in it says so.
    alike = [folder for folder in project_folders() if folder.name.startswith(name[: NAME_LIMIT + 1])]
    return next((folder for folder in alike if _ran_in(folder, name)), None)


def place_for(directory: str | os.PathLike[str]) -> Path:
    """The folder for transcripts of a directory, whether it is there yet or not."""
    path = canonical(directory)
    return project_folder(path) or projects_folder() / (_given_name() or folder_name(path))


def _given_name() -> str | None:
    """The folder name that the environment fixes for all projects of a config folder of its own."""
    name = os.environ.get("CLAUDE_CODE_PROJECT_DIR_NAME", "")
    usable = _GIVEN_NAME.fullmatch(name) and not _DEVICE_NAME.fullmatch(name)
    return name if usable and os.environ.get("CLAUDE_CONFIG_DIR") else None


def project_folders() -> list[Path]:
    """All folders of transcripts; none if there is no such place."""
    return [Path(path) for path in _project_folder_paths()]


def _project_folder_paths() -> list[str]:
    # As texts: making a Path takes longer than asking the system about it.
    try:
        with os.scandir(projects_folder()) as found:
            return [entry.path for entry in found if entry.is_dir()]
    except OSError:
        return []


def _ran_in(folder: Path, name: str) -> bool:
    """Whether a transcript in `folder` ran in a directory whose project folder would be called `name`."""
    return any(folder_name(cwd) == name for path in transcripts(folder) for cwd in _cwds(path))


def _cwds(path: Path) -> Iterator[str]:
    try:
        descriptor = open_transcript(path, os.O_RDONLY)
    except OSError:
        return
    try:
        head = os.pread(descriptor, HEAD, 0)
    finally:
        os.close(descriptor)
    for quoted in set(_CWD.findall(head)):
        yield _unquoted(quoted)


def _unquoted(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted.decode("utf-8", "replace")))
    except ValueError:
        return ""


def transcripts(folder: Path) -> list[Path]:
    """The transcripts of sessions in a project folder, in no order."""
    try:
        with os.scandir(folder) as found:
            return [
                Path(entry.path)
                for entry in found
                if entry.name.endswith(TRANSCRIPT)
                and is_session_id(entry.name.removesuffix(TRANSCRIPT))
                and entry.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []


def worktrees(path: str) -> list[str]:
    """The directories of all worktrees of the git repository around `path`; none if there is no repository or no git."""
    try:
        listed = subprocess.run(
            ["git", "worktree", "list", "--porcelain"],  # noqa: S607  whichever git the user works with
            cwd=path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WORKTREE_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    if listed.returncode != 0:
        return []
    lines = listed.stdout.split(b"\n")
    return [os.fsdecode(line.removeprefix(b"worktree ")) for line in lines if line.startswith(b"worktree ")]


def folders_of(
    directory: str | os.PathLike[str], *, include_worktrees: bool = True
) -> Iterator[tuple[Path, str]]:
    """The project folders for `directory` and for its repository's other worktrees, each once, with its path.

    The directory's own comes first; worktrees are asked for only when somebody wants to know.
    """
    own = canonical(directory)
    paths = [own]
    seen = set()
    while paths:
        path = paths.pop(0)
        folder = project_folder(path)
        if folder is not None and folder.name not in seen:
            seen.add(folder.name)
            yield folder, path
        if path is own and include_worktrees:
            paths = [other for other in worktrees(own) if other != own]


def find_session(session_id: str, directory: str | os.PathLike[str] | None = None) -> Path | None:
    """The transcript of a session, or None.

    It is looked for in the folder of `directory`, then in those of its worktrees. Without a directory, in all
    projects; if several have it, the one changed last is meant, as in lists. Links, devices and empty files are no
    transcripts. Something that is not a session's id finds nothing.
    """
    if not is_session_id(session_id):
        return None
    name = session_id + TRANSCRIPT
    if directory:
        candidates = (folder / name for folder, _ in folders_of(directory))
        return next((path for path in candidates if _age(path)), None)
    paths = [f"{folder}{os.sep}{name}" for folder in _project_folder_paths()]
    stamped = [(age, path) for path in paths if (age := _age(path))]
    return Path(max(stamped)[1]) if stamped else None


def _age(path: str | os.PathLike[str]) -> int:
    """When a file with something in it was changed last; 0 for all else."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0
    return max(found.st_mtime_ns, 1) if stat.S_ISREG(found.st_mode) and found.st_size else 0


def open_transcript(path: str | os.PathLike[str], flags: int) -> int:
    """A descriptor of the regular file at `path`; OSError for a link, a pipe, a device or anything else.

    `flags` as for `os.open`; never waits, not even for a pipe's other end.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    except BaseException:
        os.close(descriptor)
        raise


TITLE = "custom-title.json"
ARCHIVED = "archived.json"
SIZE_LIMIT = 1 << 20


def session_folder(transcript: Path) -> Path:
    """The folder for all that belongs to a session beside its transcript; it need not exist."""
    return transcript.with_suffix("")


def read_sidecar(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in a file; empty if there is no such file, or something else in it."""
    try:
        descriptor = open_transcript(path, os.O_RDONLY)
    except OSError:
        return {}
    try:
        found = lines.decode(os.pread(descriptor, SIZE_LIMIT, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(descriptor)
    return found if isinstance(found, dict) else {}
