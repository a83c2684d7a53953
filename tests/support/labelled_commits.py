"""A repository of which it is known who wrote each line: sessions of several agents, people, and bots.

The lines are those of Python's own library, so they look like what people and agents write, with all that repeats itself in it.
"""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hitherto.model import Draft, Principal, Role, Text, ToolCall, ToolResult
from hitherto.service import Sessions

MODULES = [
    "argparse",
    "configparser",
    "textwrap",
    "shutil",
    "tarfile",
    "zipfile",
    "calendar",
    "cgi",
    "imaplib",
    "mailbox",
    "nntplib",
    "optparse",
    "pdb",
    "smtplib",
    "sched",
    "statistics",
    "string",
    "difflib",
    "fractions",
    "gettext",
    "heapq",
    "fileinput",
    "filecmp",
    "ftplib",
    "plistlib",
]
SHORTEST, LONGEST = 6, 30
START = 1_790_000_000
HOUR = 3_600


class Line(NamedTuple):
    """A line of a file; `origin` is the message that wrote it, None a person's."""

    text: str
    origin: str | None = None


class Made(NamedTuple):
    """A commit, and the sessions that made it: first the one with the most lines; none for people and bots."""

    id: str
    kind: str
    sessions: tuple[str, ...]


def functions() -> list[list[str]]:
    """Functions and methods of Python's library, as lines."""
    found: list[list[str]] = []
    folder = Path(sysconfig.get_paths()["stdlib"])
    for name in MODULES:
        path = folder / f"{name}.py"
        if not path.exists():
            continue
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        made = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
        ends = [(node.lineno, node.end_lineno or 0) for node in made]
        found += [lines[first - 1 : last] for first, last in ends if SHORTEST <= last - first <= LONGEST]
    return found


def git(folder: Path, *words: str, **environment: str) -> str:
    """Run git, with no settings but the repository's own."""
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    known = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *words],  # noqa: S607 - the one that the machine has
        cwd=folder,
        env={**known, **names, **environment},
        check=True,
        capture_output=True,
    )
    return done.stdout.decode()


class World:
    """A repository with its history, and sessions that say what they did in it."""

    def __init__(self, folder: Path, sessions: Sessions, who: Principal, seed: int) -> None:
        self.folder, self.sessions, self.who = folder, sessions, who
        self.random = random.Random(seed)
        self.files: dict[str, list[Line]] = {}
        self.commits: list[Made] = []
        self._corpus = functions()
        self.random.shuffle(self._corpus)
        self._time = START
        self._calls = 0
        self._sessions: list[str] = []
        folder.mkdir(parents=True)
        git(self.folder, "init", "-q", "-b", "main")

    async def grow(self, commits: int) -> None:
        """Add so many commits, of every kind."""
        await self._begin()
        kinds: list[Callable[[], Any]] = [
            self._session, self._session, self._session, self._two_sessions, self._squash, self._rebased,
            self._formatted_first, self._person, self._person, self._bot, self._formatter, self._move,
            self._touched_up, self._in_parts,
        ]  # fmt: skip
        while len(self.commits) < commits:
            await self.random.choice(kinds)()

    # Kinds of commits

    async def _session(self) -> None:
        session = await self._somebody()
        for _ in range(self.random.randint(1, 3)):
            await self._edit(session)
        self._commit("session", (session,))

    async def _two_sessions(self) -> None:
        one, other = await self._new_session(), await self._new_session()
        path = self._some_file()
        await self._edit(one, path)
        await self._edit(other, path)
        await self._edit(one, path)
        self._commit("two sessions", (one, other))

    async def _squash(self) -> None:
        made = [await self._new_session() for _ in range(2)]
        for each in made:
            for _ in range(3):
                await self._edit(each)
        self._commit("squash", tuple(made))

    async def _rebased(self) -> None:
        session = await self._somebody()
        await self._edit(session)
        self._time += 72 * HOUR
        self._commit("rebased", (session,), authored=self._time - 72 * HOUR)

    async def _formatted_first(self) -> None:
        session = await self._somebody()
        path = self._some_file()
        await self._edit(session, path, self._function())
        self.files[path] = list(self._reformatted(self.files[path]))
        self._commit("formatted first", (session,))

    async def _touched_up(self) -> None:
        """A session writes, and a person changes some of it before it is committed."""
        session = await self._somebody()
        path = self._some_file()
        await self._edit(session, path, self._function())
        lines = self.files[path]
        for _ in range(2):
            at = self.random.randrange(len(lines))
            lines[at] = Line(f"{lines[at].text}  # {self._function()[1].strip()[:30]} seen {self._time % 97}")
        self._commit("touched up", (session,))

    async def _in_parts(self) -> None:
        """What a session did is committed in two commits."""
        session = await self._new_session()
        paths = self.random.sample(sorted(self.files), 2)
        before = {path: list(self.files[path]) for path in paths}
        for path in paths:
            await self._edit(session, path, self._function())
        after = self.files[paths[1]]
        self.files[paths[1]] = before[paths[1]]
        self._commit("in parts", (session,))
        self.files[paths[1]] = after
        self._commit("in parts", (session,))

    async def _person(self) -> None:
        path = self._some_file()
        lines, at = self.files[path], self._gap(path)
        self.files[path] = [*lines[:at], *(Line(text) for text in self._function()), *lines[at:]]
        self._commit("person", ())

    async def _bot(self) -> None:
        number = len(self.commits)
        self.files["VERSION.txt"] = [
            Line(f"version = 1.{number}.0"),
            Line(f"released by the bot on day {number}"),
        ]
        lock = [f'dependency-{n} = "{self.random.randint(0, 9)}.{number}.{n}"' for n in range(6)]
        self.files["deps.lock"] = [Line(text) for text in lock]
        self._commit("bot", ())

    async def _formatter(self) -> None:
        path = self._some_file()
        self.files[path] = list(self._reformatted(self.files[path]))
        self._commit("formatter", ())

    async def _move(self) -> None:
        path = self._some_file()
        self.files[f"moved/{len(self.commits)}_{os.path.basename(path)}"] = self.files.pop(path)
        self._commit("move", ())

    # What happens in them

    async def _begin(self) -> None:
        for number in range(6):
            self.files[f"src/part_{number}.py"] = [
                Line(text) for text in (*self._function(), "", *self._function())
            ]
        self._commit("person", ())
        other = await self.sessions.create(self.who, cwd="/elsewhere/other", title="Another repository")
        for number in range(6):
            given = {
                "file_path": f"/elsewhere/other/lib/part_{number}.py",
                "content": "\n".join(self._corpus[number]),
            }
            await self._say(other.id, "write", given, None)

    async def _somebody(self) -> str:
        """A session of before, or a new one."""
        if self._sessions and self.random.random() < 0.4:
            return self.random.choice(self._sessions[-4:])
        return await self._new_session()

    async def _new_session(self) -> str:
        made = await self.sessions.create(
            self.who, cwd=str(self.folder), title=f"Session {len(self._sessions)}"
        )
        self._sessions.append(made.id)
        await self._append(
            made.id, Draft(role="user", parts=(Text(text=f"Please do task {len(self._sessions)}"),))
        )
        return made.id

    async def _edit(self, session: str, path: str | None = None, text: list[str] | None = None) -> None:
        """An edit by a session: a new function, or other lines in the place of some."""
        path = path or self._some_file()
        lines, self._time = self.files[path], self._time + self.random.randint(20, 300)
        if text is None and self.random.random() < 0.3 and len(lines) > 8:
            at = self.random.randrange(len(lines) - 4)
            old, new = lines[at : at + 3], self._function()[1:5]
        else:
            at = self._gap(path)
            old, new = [], [*(text or self._function()), ""]
        around = [line.text for line in lines[max(at - 2, 0) : at]]
        before = [*around, *(line.text for line in old)]
        message = await self._tell(session, path, before, [*around, *new], at, old, new)
        kept = {line.text.strip(): line.origin for line in old}
        made = [Line(text, kept.get(text.strip(), message) if text.strip() else message) for text in new]
        self.files[path] = [*lines[:at], *made, *lines[at + len(old) :]]

    async def _tell(
        self,
        session: str,
        path: str,
        old: list[str],
        new: list[str],
        at: int,
        gone: list[Line],
        came: list[str],
    ) -> str:
        """Say in the session what was done, as one of several agents would."""
        full = str(self.folder / path)
        style = self.random.choice(("claude", "told", "patch", "gemini"))
        if style == "patch":
            signs = [f" {each}" for each in old[: len(old) - len(gone)]] or [" "]
            body = [*signs, *(f"-{line.text}" for line in gone), *(f"+{text}" for text in came)]
            patch = "\n".join(("*** Begin Patch", f"*** Update File: {path}", "@@", *body, "*** End Patch"))
            return await self._say(session, "apply_patch", {"input": patch}, None)
        given = {"file_path": full, "old_string": "\n".join(old), "new_string": "\n".join(new)}
        if style != "told":
            return await self._say(session, "Edit" if style == "claude" else "replace", given, None)
        lines = [*(f"-{line.text}" for line in gone), *(f"+{text}" for text in came)]
        told = {"filePath": full, "structuredPatch": [{"oldStart": at, "lines": lines}]}
        return await self._say(session, "Edit", given, told)

    async def _say(self, session: str, tool: str, given: dict[str, Any], output: Any) -> str:
        self._calls += 1
        call = ToolCall(id=f"call-{self._calls}", name=tool, input=given, kind="edit")
        result = ToolResult(id=call.id, content=(Text(text="done"),), output=output)
        drafts = [self._draft("assistant", call), self._draft("tool", result)]
        return (await self.sessions.append(self.who, session, drafts)).entries[0]

    def _draft(self, role: Role, part: ToolCall | ToolResult) -> Draft:
        return Draft(role=role, parts=(part,), at=self._time * 1_000)

    async def _append(self, session: str, draft: Draft) -> None:
        await self.sessions.append(
            self.who, session, Draft(role=draft.role, parts=draft.parts, at=self._time * 1_000)
        )

    def _function(self) -> list[str]:
        """A function that nobody has written here yet, as long as there is one."""
        found = self._corpus.pop(0)
        self._corpus.append(found)
        return list(found)

    def _some_file(self) -> str:
        return self.random.choice([path for path in self.files if path.endswith(".py")])

    def _gap(self, path: str) -> int:
        """A place between functions."""
        lines = self.files[path]
        gaps = [at for at, line in enumerate(lines) if not line.text.strip()]
        return self.random.choice([*gaps, len(lines)])

    def _reformatted(self, lines: list[Line]) -> Iterator[Line]:
        """The lines as a formatter would have them: other quotes, other white space, long calls in several lines."""
        for line in lines:
            text = line.text.replace("'", '"') if line.text.count("'") == 2 else line.text
            text = text.replace(" == ", "==") if self.random.random() < 0.3 else text
            if len(text) > 60 and text.count("(") == 1 and text.rstrip().endswith(")") and ", " in text:
                head, _, rest = text.partition("(")
                indent = " " * (len(text) - len(text.lstrip()) + 4)
                yield Line(f"{head}(", line.origin)
                for each in rest.rstrip()[:-1].split(", "):
                    yield Line(f"{indent}{each},", line.origin)
                yield Line(f"{indent[:-4]})", line.origin)
            else:
                yield Line(text, line.origin)

    def _commit(self, kind: str, sessions: tuple[str, ...], authored: int | None = None) -> None:
        self._time += self.random.randint(30, 600)
        for old in self.folder.rglob("*"):
            if old.is_file() and ".git" not in old.parts:
                old.unlink()
        for path, lines in self.files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("".join(f"{line.text}\n" for line in lines), encoding="utf-8")
        git(self.folder, "add", "-A")
        dates = {
            "GIT_AUTHOR_DATE": f"{authored or self._time} +0000",
            "GIT_COMMITTER_DATE": f"{self._time} +0000",
        }
        git(self.folder, "commit", "-q", "--allow-empty", "-m", kind, **dates)
        self.commits.append(Made(git(self.folder, "rev-parse", "HEAD").strip(), kind, sessions))
