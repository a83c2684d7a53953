"""`diff`, `why` and `blame`: what changed, and why a line is there."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from hitherto.cli.source_lines import read_changes, read_file
from hitherto.edits.origins import causes
from hitherto.model import LOCAL
from hitherto.service import Sessions
from tests.cli.shell import Shell
from tests.support.labelled_commits import Made, World, git


class Truth:
    """What was found in a repository of which the truth is known."""

    def __init__(self) -> None:
        self.right = self.made = self.blamed = self.written = self.given = self.people = 0
        self.wrong: list[tuple[Made, Any]] = []

    async def ask_why(self, world: World) -> None:
        for commit in world.commits:
            (change,), repository = read_changes(commit.id, str(world.folder))
            lines = change.lines
            found = causes(lines, await world.sessions.edits.trace(LOCAL, lines, repository))
            self.made += bool(commit.sessions)
            if commit.sessions and found and found[0].session in commit.sessions:
                self.right += 1
            elif commit.sessions or found:
                self.wrong.append((commit, found))

    async def ask_blame(self, world: World) -> None:
        for path, truth in world.files.items():
            read = read_file(str(world.folder), path)
            found = await world.sessions.edits.trace(LOCAL, read.lines, read.repository)
            for line, origin in zip(truth, found, strict=True):
                if line.text.strip() and line.origin is None:
                    self.people += 1
                    self.given += origin is not None
                elif line.text.strip():
                    self.written += 1
                    self.blamed += origin is not None and origin.message == line.origin


def grown(shell: Shell, commits: int, seed: int) -> tuple[World, Truth]:
    async def work(sessions: Sessions) -> tuple[World, Truth]:
        world, truth = World(shell.folder / "engine", sessions, LOCAL, seed), Truth()
        await world.grow(commits)
        await truth.ask_why(world)
        await truth.ask_blame(world)
        return world, truth

    return shell.inside(work)


def test_sessions_are_named_for_what_they_made_and_for_nothing_else(shell: Shell) -> None:
    world, truth = grown(shell, 40, 11)
    kinds = {commit.kind for commit in world.commits}
    assert {"session", "person", "move"} <= kinds, kinds
    assert not truth.wrong, truth.wrong[:3]
    assert truth.blamed >= 0.9 * truth.written > 0, (truth.blamed, truth.written)
    assert truth.given <= 0.01 * truth.people, (truth.given, truth.people)

    made = next(commit for commit in reversed(world.commits) if commit.kind == "session")
    told = shell.invoke("why", made.id, "-C", str(world.folder), "--json").json
    assert list(told) == ["sessions"]
    assert list(told["sessions"][0]) == ["session", "share", "confidence", "prompts"]
    assert told["sessions"][0]["session"] in made.sessions
    assert told["sessions"][0]["prompts"][0].startswith("Please do task")
    person = next(commit for commit in world.commits if commit.kind == "person")
    assert shell.invoke("why", person.id, "-C", str(world.folder), "--json").json == {"sessions": []}
    pasted = shell.invoke("why", made.id, "-C", str(world.folder), "--markdown").out
    assert "> Please do task" in pasted
    diff = git(world.folder, "show", made.id)
    stdin = shell.invoke("why", "-", "-C", str(world.folder), "--json", stdin=diff).json
    assert stdin["sessions"][0]["session"] in made.sessions

    path = next(path for path, lines in world.files.items() if any(line.origin for line in lines))
    number = next(at for at, line in enumerate(world.files[path], 1) if line.origin and len(line.text) > 30)
    (row,) = shell.invoke("blame", f"{path}:{number}", "-C", str(world.folder), "--json").json["lines"]
    assert list(row) == ["line", "commit", "session", "message", "confidence"]
    assert row["line"] == number


def hostile(folder: Path, sign: Path) -> None:
    """A repository whose configuration would run a program wherever git can be made to."""
    program = folder / "evil.sh"
    program.write_text(f"#!/bin/sh\necho ran >> {sign}\ncat 2>/dev/null\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    settings = {
        "core.fsmonitor": program, "core.pager": program, "core.hooksPath": folder / "hooks", "diff.external": program,
        "diff.evil.textconv": program, "diff.evil.command": program, "filter.evil.clean": program,
        "filter.evil.smudge": program, "gpg.program": program, "log.showSignature": "true", "core.editor": program,
        "core.sshCommand": program, "alias.blame": f"!{program}", "alias.log": f"!{program}", "pager.log": program,
        "remote.origin.url": f"ext::{program}", "remote.origin.promisor": "true", "core.askPass": program,
        "extensions.partialClone": "origin", "remote.origin.uploadpack": program, "core.alternateRefsCommand": program,
        "log.diffMerges": "separate", "diff.orderFile": folder / "evil.sh",
        "credential.helper": f"!{program}", "core.attributesFile": folder / ".gitattributes",
    }  # fmt: skip
    for name, value in settings.items():
        git(folder, "config", name, str(value))
    (folder / ".git" / "info" / "attributes").write_text("* diff=evil filter=evil\n")


def test_nothing_of_a_hostile_repository_is_executed(shell: Shell, tmp_path: Path) -> None:
    folder, sign = tmp_path / "engine", tmp_path / "sign"
    folder.mkdir()
    git(folder, "init", "-q")
    for text in ("total = price * amount_in_basket\n", "total = price * amount_on_shelf\n"):
        (folder / "a.py").write_text(text)
        (folder / ".gitattributes").write_text("* diff=evil filter=evil ident\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "one")
    (folder / "a.py").write_text("total = price * amount_that_nobody_has_committed\n")
    hostile(folder, sign)
    shell.inside(lambda sessions: sessions.create(LOCAL))
    asked = (
        ("why", "HEAD"),
        ("why", "HEAD~1..HEAD"),
        ("blame", "a.py"),
        ("trace",),
        ("trace", "--file", "a.py"),
    )
    for words in asked:
        done = shell.invoke(*words, "-C", str(folder), "--json")
        assert done.code == 0, done
    assert not sign.exists(), sign.read_text()


@pytest.mark.parametrize("named", ["--upload-pack=x", "nothing", "-p", "HEAD:a.py", ""])
def test_what_is_no_commit_is_refused(shell: Shell, tmp_path: Path, named: str) -> None:
    git(tmp_path, "init", "-q", "engine")
    shell.inside(lambda sessions: sessions.create(LOCAL))
    done = shell.invoke("why", "-C", str(tmp_path / "engine"), "--", named)
    assert done.code not in (0, 1)
    assert "Traceback" not in done.err


def test_odd_files_get_a_plain_answer(shell: Shell, tmp_path: Path) -> None:
    shell.inside(lambda sessions: sessions.create(LOCAL))
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "no_end.txt").write_bytes(b"one\r\ntwo")
    (tmp_path / "bare" / "binary.bin").write_bytes(bytes(range(256)))
    where = ("-C", str(tmp_path / "bare"), "--json")
    rows = shell.invoke("blame", "no_end.txt", *where).json["lines"]
    assert [(row["line"], row["commit"], row["session"]) for row in rows] == [
        (1, None, None),
        (2, None, None),
    ]
    assert shell.invoke("blame", "binary.bin", *where).json == {"lines": []}
    for words in (
        ("blame", "missing.py"),
        ("blame", "no_end.txt:0"),
        ("blame", "no_end.txt:3-2"),
        ("why", "HEAD"),
    ):
        done = shell.invoke(*words, *where)
        assert done.code not in (0, 1), done
        assert "Traceback" not in done.err
    assert shell.invoke("why", "-", *where, stdin="no diff at all\n\0\n").json == {"sessions": []}


def test_diff_shows_the_files_of_a_session_with_its_messages(shell: Shell, tmp_path: Path) -> None:
    async def work(sessions: Sessions) -> str:
        world = World(tmp_path / "engine", sessions, LOCAL, 3)
        await world.grow(4)
        return next(each for made in world.commits for each in made.sessions)

    session = shell.inside(work)
    found = shell.invoke("diff", session, "--json").json
    assert found["session"] == session
    assert found["added"] > 0
    rows = shell.invoke("diff", session).lines
    assert len(rows) == len(found["files"])
    patch = shell.invoke("diff", session, "--patch").lines
    assert patch[0].startswith("diff ")
    assert any(line.startswith("+") for line in patch)
    assert f"@@ {found['files'][0]['edits'][0]['message']} " in "\n".join(patch)
    (listed,) = (each for each in shell.ok("list", "--json").json["sessions"] if each["id"] == session)
    assert listed["changes"]["files"] == len(found["files"])
    assert listed["changes"]["added"] >= found["added"]
    (row,) = (line.split("\t") for line in shell.ok("list").lines if line.startswith(session))
    assert row[6:9] == [str(listed["changes"][name]) for name in ("added", "removed", "files")]
    touched = shell.invoke("log", found["files"][0]["path"], "--json").json["sessions"]
    assert session in [each["session"] for each in touched]
    assert [each["at"] for each in touched] == sorted((each["at"] for each in touched), reverse=True)
    assert shell.invoke("log", "no/such_file.py", "--json").json == {"sessions": []}
    recent = shell.invoke("log", "--json").json["sessions"]
    assert [each["at"] for each in recent] == sorted((each["at"] for each in recent), reverse=True)
    assert {"session": session, "path": found["files"][0]["path"]}.items() <= next(
        each for each in recent if (each["session"], each["path"]) == (session, found["files"][0]["path"])
    ).items()
    assert shell.invoke("log", "--limit", "1", "--json").json["sessions"] == recent[:1]
