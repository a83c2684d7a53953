"""Reading from git: commits, their changes, and who last changed a line.

The repository may be a stranger's. Git is run so that nothing in its configuration or attributes can execute: no hook, filter,
text conversion, external diff, monitor, signature check, pager, and nothing is fetched. Nothing is written.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hitherto.edits.origins import Repository
from hitherto.edits.patches import unquoted
from hitherto.errors import InvalidInput, TooLarge
from hitherto.projects import checkout_of

SECONDS = 120
OUTPUT_BYTES = 256 * 1024 * 1024
CONTEXT_LINES = 400
COMMITS = 1_000
"""So many commits of a range are looked at."""
EARLIER_COMMITS = 50
EARLIER_SECONDS = 90 * 86_400
"""So many commits before another, and no older ones, are looked through for lines that it brings back."""
HARMLESS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.untrackedCache=false",
    "core.alternateRefsCommand=false",
    "diff.external=",
    "diff.submodule=short",
    "diff.ignoreSubmodules=all",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.renames=true",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "blame.ignoreRevsFile=",
    "blame.blankBoundary=false",
    "credential.helper=",
    "uploadpack.packObjectsHook=false",
    "color.ui=false",
)
"""Settings that take the place of those of the repository."""
UNCOMMITTED = "0" * 40


class Commit(NamedTuple):
    """A commit: when it was made (ms), and when the one before it was written."""

    id: str
    until: int
    since: int | None
    parent: str | None


class BlamedLine(NamedTuple):
    """A line of a file in HEAD: the commit that last changed it, when that was made (ms, at its end), and what the file was called
    then."""

    number: int
    commit: str
    until: int
    text: str
    path: str


class Git:
    """The repository that a folder is in. Raises `InvalidInput` if there is none, or if it cannot be read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.top = self._text("rev-parse", "--show-toplevel").rstrip("\n")

    def repository(self) -> Repository:
        """By what it can be known again elsewhere."""
        found = checkout_of(self._folder)
        names = (found.project, os.path.basename(found.top)) if found else (os.path.basename(self.top),)
        root = found.root if found else None
        return Repository(names=tuple(dict.fromkeys(filter(None, names))), root=root or self._root())

    def commits(self, named: str) -> list[Commit]:
        """The commits that a name or a range stands for, oldest first."""
        if named.startswith("-"):
            raise InvalidInput(f"{named!r} is not a commit")
        # A single commit is not walked from, and `--reverse` would have git walk.
        walk = ["--reverse", f"--max-count={COMMITS}"] if ".." in named else ["--max-count=1"]
        listed = self._text(
            "rev-list", *walk, "--no-commit-header", "--format=%H %ct %P", "--end-of-options", named, "--"
        )
        return [self._commit(*line.split(" ", 2)) for line in listed.splitlines()]

    def head(self) -> Commit | None:
        """The commit that is checked out; None before the first."""
        if self._run("rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}").returncode:
            return None
        return self.commits("HEAD")[0]

    def has(self, path: str) -> bool:
        """Whether HEAD has a file of this path within the repository."""
        return bool(self._text("ls-tree", "--full-tree", "-z", "HEAD", "--", path))

    def diff(self, commit: Commit) -> str:
        """What a commit changed, beside its first parent. Raises `InvalidInput` if a shallow clone lacks that."""
        head = self._text("cat-file", "commit", commit.id).partition("\n\n")[0]
        if commit.parent is None and "\nparent " in head:
            raise InvalidInput(
                f"this clone does not have the parent of {commit.id[:12]}: get it with git fetch --deepen=1"
            )
        between = [commit.parent, commit.id] if commit.parent else ["--root", commit.id]
        return self._text(
            "diff-tree", "-p", "-r", "-M", "--no-commit-id", "--no-ext-diff", "--no-textconv", "--no-color",
            "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/", f"-U{CONTEXT_LINES}", *between, "--",
        )  # fmt: skip

    def earlier(self, commit: Commit, paths: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Commits before this one that changed any of these files: when each was written (ms), and what it changed; the newest first.
        None in a clone that lacks some of that."""
        if commit.parent is None:
            return
        done = self._run(
            "log", f"--max-count={EARLIER_COMMITS}", f"--max-age={commit.until // 1_000 - EARLIER_SECONDS}",
            "--format=%x00%at", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
            "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", commit.parent, "--", *paths,
        )  # fmt: skip
        if done.returncode:
            return
        for part in done.stdout.decode("utf-8", "replace").split("\0")[1:]:
            written, _, diff = part.partition("\n")
            if written.isdigit():  # a file may have this character too
                yield int(written) * 1_000, diff

    def blame(self, path: str) -> list[BlamedLine]:
        """The lines of a file in HEAD."""
        told = self._text(
            "blame", "--porcelain", "-w", "-M", "-C", "--no-ext-diff", "--no-textconv", "HEAD", "--", path
        )
        return list(_blamed(told))

    def path_of(self, file: str) -> str:
        """A file's path within the repository."""
        real = os.path.realpath(self.top)
        path = os.path.join(
            os.path.realpath(os.path.dirname(os.path.join(self._folder, file))), os.path.basename(file)
        )
        if not path.startswith(f"{real}/"):
            raise InvalidInput(f"{file!r} is outside of the repository {self.top}")
        return os.path.relpath(path, real)

    def _commit(self, id: str, made: str, parents: str = "") -> Commit:
        parent = parents.split(" ")[0] or None
        since = None
        if parent is not None:
            told = self._run("log", "-1", "--format=%at %ct", "--end-of-options", parent, "--")
            times = [int(each) for each in told.stdout.split()] if told.returncode == 0 else []
            since = min(times) * 1_000 if times else None
            parent = parent if times else None
        return Commit(id, (int(made) + 1) * 1_000, since, parent)

    def _root(self) -> str | None:
        """The first commit; None in a clone that does not have it."""
        if self._text("rev-parse", "--is-shallow-repository").strip() == "true":
            return None
        told = self._run("rev-list", "--max-parents=0", "HEAD", "--")
        lines = told.stdout.decode("ascii", "replace").split() if told.returncode == 0 else []
        return lines[-1] if lines else None

    def _text(self, *words: str) -> str:
        done = self._run(*words)
        if done.returncode:
            told = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise InvalidInput(f"git: {told[0] if told else 'cannot read this'}"[:500])
        return done.stdout.decode("utf-8", "replace")

    def _run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        settings = [word for each in HARMLESS for word in ("-c", each)]
        command = ["git", "--no-pager", "--no-optional-locks", "--literal-pathspecs", *settings, *words]
        try:
            done = subprocess.run(  # noqa: S603 - the words are ours; what was given stands behind --end-of-options or --
                command,
                cwd=self._folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except FileNotFoundError:
            what = "git is not installed" if os.path.isdir(self._folder) else f"no folder {self._folder!r}"
            raise InvalidInput(what) from None
        except ValueError:
            raise InvalidInput("a name may not contain a NUL character") from None
        except NotADirectoryError:
            raise InvalidInput(f"{self._folder!r} is not a folder") from None
        except subprocess.TimeoutExpired:
            raise InvalidInput(f"git took more than {SECONDS} seconds") from None
        if len(done.stdout) > OUTPUT_BYTES:
            raise TooLarge(f"git answered with more than {OUTPUT_BYTES} bytes")
        return done


def _environment() -> dict[str, str]:
    """An environment without anything that git would take a setting or a program from."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_PAGER": "cat",
        "GIT_FLUSH": "0",
    }


def _blamed(told: str) -> Iterator[BlamedLine]:
    times: dict[str, int] = {}
    paths: dict[str, str] = {}
    commit, number = "", 0
    for line in told.split("\n"):
        if line.startswith("\t"):
            until = (times.get(commit, 0) + 1) * 1_000
            yield BlamedLine(number, commit, until, line[1:].rstrip("\r"), paths.get(commit, ""))
        elif line.startswith("committer-time "):
            times[commit] = int(line.split()[1])
        elif line.startswith("filename "):
            paths[commit] = unquoted(line.removeprefix("filename "))
        elif (
            line[:1] in "0123456789abcdef"
            and len(words := line.split(" ")) in (3, 4)
            and len(words[0]) >= len(UNCOMMITTED)
        ):
            commit, number = words[0], int(words[2])
