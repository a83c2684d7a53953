"""A real repository's history told anew: its commits, made by sessions of several agents, by people and by both.

`python -m tests.support.replayed_history REPOSITORY --seed 1` says how many of the commits and lines are given to whom they are of.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import hitherto
from hitherto.cli.source_lines import read_changes, read_file
from hitherto.edits.lines import plain
from hitherto.edits.origins import causes
from hitherto.model import LOCAL, Draft, Text, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.support.labelled_commits import Made, git

START, HOUR = 1_790_000_000, 3_600
MOST_LINES = 1_500
"""Commits that change more are left out."""
BLAMED_FILES = 40
KINDS = ("session",) * 6 + ("two sessions", "squashed", "touched up", "late") + ("person",) * 4
REVERTED = 0.15
"""So many commits of sessions are undone by a person, and brought back."""
AFAR = "/home/ann/src/engine"
"""Where a clone on another machine lies."""


class Line(NamedTuple):
    """A line and the messages that may be named for it; None is nobody's."""

    text: str
    by: frozenset[str | None]


class Step(NamedTuple):
    """What a commit did to a file: its lines before and after."""

    path: str
    before: list[str]
    after: list[str]


class Hunk(NamedTuple):
    """Lines from `first` on of a file that others took the place of."""

    first: int
    old: list[str]
    new: list[str]


def steps(source: Path, commit: str) -> list[Step]:
    """The text files that a commit changed."""
    found: list[Step] = []
    for row in git(
        source, "diff-tree", "-r", "--no-renames", "--name-status", "--no-commit-id", commit
    ).splitlines():
        kind, path = row.split("\t", 1)
        sides = ("", path) if kind == "A" else (path, "") if kind == "D" else (path, path)
        texts = [
            _text(source, f"{ref}:{name}") if name else ""
            for ref, name in zip((f"{commit}~1", commit), sides, strict=True)
        ]
        if all("\0" not in text and not path.startswith('"') for text in texts):
            found.append(Step(path, texts[0].splitlines(), texts[1].splitlines()))
    return found


def _text(source: Path, name: str) -> str:
    done = subprocess.run(["git", "show", name], cwd=source, check=True, capture_output=True)  # noqa: S607
    return done.stdout.decode("utf-8", "replace").replace("\r", "").replace("\x0c", " ")


def hunks(step: Step) -> list[Hunk]:
    matcher = SequenceMatcher(None, step.before, step.after, autojunk=False)
    return [
        Hunk(a, step.before[a:b], step.after[c:d])
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]


class Replay:
    """The repository as it is told."""

    def __init__(self, source: Path, folder: Path, sessions: Sessions, seed: int) -> None:
        self.source, self.folder, self.sessions = source, folder, sessions
        self.random = random.Random(seed)
        self.files: dict[str, list[Line]] = {}
        self.commits: list[Made] = []
        self._time, self._calls, self._begun = START, 0, 0
        self._open: list[str] = []
        self._homes: dict[str, str] = {}
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")

    async def grow(self, commits: int) -> None:
        """Tell so many of the commits, from somewhere on."""
        listed = git(self.source, "log", "--first-parent", "--no-merges", "--reverse", "--format=%H").split()
        start = self.random.randrange(1, max(len(listed) - commits * 2, 2))
        for path in git(self.source, "ls-tree", "-r", "--name-only", listed[start - 1]).splitlines():
            text = "" if path.startswith('"') else _text(self.source, f"{listed[start - 1]}:{path}")
            if text and "\0" not in text:
                self.files[path] = [Line(line, frozenset([None])) for line in text.splitlines()]
        self._commit("beginning", Counter())
        waiting = iter(listed[start:])
        while len(self.commits) <= commits and (commit := next(waiting, None)) is not None:
            await self._tell(commit, waiting)

    async def _tell(self, commit: str, waiting: Iterator[str]) -> None:
        kind = self.random.choice(KINDS)
        parts = [self._steps(commit)]
        if kind == "squashed":
            parts += [self._steps(each) for each, _ in zip(waiting, range(2), strict=False)]
        if sum(len(step.before) != 0 or len(step.after) != 0 for part in parts for step in part) == 0:
            return
        wrote, before = Counter[str](), dict(self.files)
        for part in parts:
            authors = [] if kind == "person" else [await self._somebody(new=kind != "session")]
            authors += [await self._somebody(new=True)] if kind == "two sessions" else []
            for step in part:
                await self._change(step, self.random.choice(authors) if authors else None, wrote)
        if kind == "touched up":
            self._touch_up([step.path for part in parts for step in part])
        self._time += 96 * HOUR if kind == "late" else 0
        self._commit(kind, wrote)
        if kind == "session" and self.random.random() < REVERTED:
            after, self.files = self.files, before
            self._commit("reverted", Counter())
            self.files = after
            self._commit("restored", Counter())

    def _steps(self, commit: str) -> list[Step]:
        """What a commit changes here, in files as they are told."""
        found = [step for step in steps(self.source, commit) if step.before or step.path not in self.files]
        changed = sum(len(hunk.old) + len(hunk.new) for step in found for hunk in hunks(step))
        told = [
            step for step in found if [line.text for line in self.files.get(step.path, [])] == step.before
        ]
        return told if changed <= MOST_LINES else []

    async def _change(self, step: Step, session: str | None, wrote: Counter[str]) -> None:
        found = hunks(step)
        messages: Sequence[str | None] = [None] * len(found)
        if session is not None:
            messages = await self._say_edits(session, step, found)
            wrote[session] += sum(len([line for line in hunk.new if line.strip()]) for hunk in found)
        lines, shift = list(self.files.get(step.path, [])), 0
        gone: defaultdict[str, set[str | None]] = defaultdict(set)
        for hunk in found:
            for line in lines[hunk.first + shift : hunk.first + shift + len(hunk.old)]:
                gone[plain(line.text)] |= line.by
        for hunk, message in zip(found, messages, strict=True):
            new = [Line(text, frozenset([message, *gone.get(plain(text), ())])) for text in hunk.new]
            lines[hunk.first + shift : hunk.first + shift + len(hunk.old)] = new
            shift += len(hunk.new) - len(hunk.old)
        self.files[step.path] = lines
        if not step.after:
            del self.files[step.path]

    async def _say_edits(self, session: str, step: Step, found: list[Hunk]) -> list[str]:
        """Say in a session what it changed, as one of several agents would; the message of each hunk."""
        path = f"{self._homes[session]}/{step.path}"
        if not step.after:
            return [await self._say(session, "Bash", {"command": f"rm {step.path}"})] * len(found)
        if not step.before:
            return [await self._say_new(session, step, path)] * len(found)
        style = self.random.choice(("edits", "edits", "multi", "patch", "draft"))
        pieces = [self._piece(step, hunk) for hunk in found]
        if style == "multi":
            edits = [{"old_string": old, "new_string": new} for old, new in pieces]
            return [await self._say(session, "MultiEdit", {"file_path": path, "edits": edits})] * len(found)
        if style == "patch":
            body = [
                line
                for hunk in found
                for line in ("@@", *(f"-{old}" for old in hunk.old), *(f"+{new}" for new in hunk.new))
            ]
            patch = "\n".join(("*** Begin Patch", f"*** Update File: {step.path}", *body, "*** End Patch"))
            return [await self._say(session, "apply_patch", {"input": patch})] * len(found)
        messages = []
        for old, new in pieces:
            given = {"file_path": path, "old_string": old, "new_string": new}
            if style == "draft" and self.random.random() < 0.3:
                await self._say(session, "Edit", {**given, "new_string": f"{new} # wrong"}, failed=True)
            messages.append(await self._say(session, "Edit", given))
        return messages

    async def _say_new(self, session: str, step: Step, path: str) -> str:
        text = "\n".join(step.after) + "\n"
        if self.random.random() < 0.3:
            return await self._say(
                session, "Bash", {"command": f"cat > {step.path} <<'END_OF_IT'\n{text}END_OF_IT\n"}
            )
        told = {"type": "create", "filePath": path, "content": text, "structuredPatch": []}
        return await self._say(session, "Write", {"file_path": path, "content": text}, output=told)

    def _piece(self, step: Step, hunk: Hunk) -> tuple[str, str]:
        """A hunk with some of the lines around it."""
        last = hunk.first + len(hunk.old)
        above = step.before[max(hunk.first - self.random.randint(0, 3), 0) : hunk.first]
        below = step.before[last : last + self.random.randint(0, 2)]
        return "\n".join((*above, *hunk.old, *below)), "\n".join((*above, *hunk.new, *below))

    def _touch_up(self, paths: Iterable[str]) -> None:
        """A person changes a little of it before it is committed."""
        for path in paths:
            lines = self.files.get(path, [])
            for _ in range(2 if len(lines) > 20 else 0):
                at = self.random.randrange(len(lines))
                if lines[at].text.strip():
                    lines[at] = Line(
                        f"{lines[at].text}  # reviewed on day {self._time % 89}", frozenset([None])
                    )

    async def _somebody(self, *, new: bool) -> str:
        if self._open and not new and self.random.random() < 0.5:
            return self.random.choice(self._open[-5:])
        self._begun += 1
        home = AFAR if self.random.random() < 0.3 else str(self.folder)
        made = await self.sessions.create(LOCAL, cwd=home)
        self._open.append(made.id)
        self._homes[made.id] = home
        ask = Draft(role="user", parts=(Text(text=f"Please do task {self._begun}"),), at=self._time * 1_000)
        await self.sessions.append(LOCAL, made.id, ask)
        return made.id

    async def _say(
        self, session: str, tool: str, given: dict[str, Any], *, output: Any = None, failed: bool = False
    ) -> str:
        self._calls += 1
        self._time += self.random.randint(5, 200)
        call = ToolCall(
            id=f"call-{self._calls}", name=tool, input=given, kind="execute" if tool == "Bash" else "edit"
        )
        result = ToolResult(id=call.id, content=(Text(text="done"),), output=output, is_error=failed)
        drafts = [
            Draft(role="assistant", parts=(call,), at=self._time * 1_000),
            Draft(role="tool", parts=(result,), at=self._time * 1_000),
        ]
        return (await self.sessions.append(LOCAL, session, drafts)).entries[0]

    def _commit(self, kind: str, wrote: Counter[str]) -> None:
        self._time += self.random.randint(30, 600)
        known = set(git(self.folder, "ls-files").splitlines())
        for path in known - self.files.keys():
            (self.folder / path).unlink()
        for path, lines in self.files.items():
            target, text = self.folder / path, "".join(f"{line.text}\n" for line in lines)
            if path not in known or target.read_text(encoding="utf-8") != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        git(self.folder, "add", "-A", "-f")
        dates = {f"GIT_{who}_DATE": f"{self._time} +0000" for who in ("AUTHOR", "COMMITTER")}
        git(self.folder, "commit", "-q", "--allow-empty", "-m", kind, **dates)
        made = tuple(session for session, lines in wrote.most_common() if lines)
        self.commits.append(Made(git(self.folder, "rev-parse", "HEAD").strip(), kind, made))


class Score:
    """How many commits and lines were given to whom they are of."""

    def __init__(self) -> None:
        self.commits = self.right = self.others = self.named = 0
        self.lines = self.known = self.wrong = self.people = self.given = 0
        self.missed: list[tuple[Any, ...]] = []

    async def ask(self, replay: Replay) -> None:
        """Ask for each commit and each line of some files that changed."""
        changed: set[str] = set()
        for commit in replay.commits[1:]:
            (change,), repository = read_changes(commit.id, str(replay.folder))
            found = causes(change.lines, await replay.sessions.edits.trace(LOCAL, change.lines, repository))
            changed |= {line.path for line in change.lines}
            self._judge(commit, [cause.session for cause in found])
        paths = sorted(changed & replay.files.keys())
        for path in replay.random.sample(paths, min(len(paths), BLAMED_FILES)):
            read = read_file(str(replay.folder), path)
            origins = await replay.sessions.edits.trace(LOCAL, read.lines, read.repository)
            for line, origin in zip(replay.files[path], origins, strict=True):
                if line.text.strip():
                    self._judge_line(line, None if origin is None else origin.message)

    def _judge(self, commit: Made, found: list[str]) -> None:
        if commit.sessions:
            self.commits += 1
            self.right += bool(found) and found[0] in commit.sessions
        else:
            self.others += 1
            self.named += bool(found)
        first = found[0] if found else None
        if first not in (commit.sessions or (None,)):
            self.missed.append((commit.kind, commit.id[:10], found[:2], commit.sessions[:2]))

    def _judge_line(self, line: Line, found: str | None) -> None:
        if line.by == {None}:
            self.people += 1
            self.given += found is not None
        elif None not in line.by:
            self.lines += 1
            self.known += found in line.by
            self.wrong += found is not None and found not in line.by

    def __str__(self) -> str:
        return (
            f"why: {self.right} of {self.commits} right, {self.named} of {self.others} others named; "
            f"blame: {self.known} of {self.lines} lines right, {self.wrong} wrong, {self.given} of {self.people} people's lines given"
        )


async def main() -> None:
    """Replay and say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        async with hitherto.open(f"sqlite:///{name}/sessions.db") as sessions:
            replay, score = Replay(chosen.repository, Path(name) / "engine", sessions, chosen.seed), Score()
            await replay.grow(chosen.commits)
            await score.ask(replay)
    for missed in score.missed:
        print(*missed)  # noqa: T201 - a program
    print(f"seed {chosen.seed}: {score}")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
