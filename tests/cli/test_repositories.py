"""`blame`, `why` and `trace` in repositories of every kind: clear answers, and lines that are found again."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.support import repositories
from tests.support.labelled_commits import git
from tests.support.repositories import AGENT, PERSON, PROMPT, Wrote, cloned, commit, repository, write


def edited(shell: Shell, folder: Path, path: str = "src/shop.py", *, placed: bool = False) -> Wrote:
    return shell.inside(lambda sessions: repositories.edited(sessions, folder, path, placed=placed))


def blamed(shell: Shell, folder: Path, file: str) -> list[tuple[str | None, str | None]]:
    """The commit and the session of each line."""
    rows = shell.ok("blame", file, "-C", str(folder), "--json").json["lines"]
    assert [row["line"] for row in rows] == list(range(1, len(rows) + 1))
    return [(row["commit"], row["session"]) for row in rows]


def test_lines_that_are_not_committed_yet_are_traced_too(shell: Shell, tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    first = git(folder, "rev-parse", "HEAD").strip()
    made = edited(shell, folder)
    mixed = (PERSON[0], *AGENT, "    print('a line that nobody is known to have written')", PERSON[1])
    write(folder / "src/shop.py", mixed)
    assert blamed(shell, folder, "src/shop.py") == [
        (first, None),
        *[(None, made.session)] * len(AGENT),
        (None, None),
        (first, None),
    ]
    write(folder / "src" / "new.py", AGENT[:2])
    assert {session for _, session in blamed(shell, folder, "src/new.py")} == {None}, (
        "another file, and little"
    )
    (folder / "src/shop.py").unlink()
    assert blamed(shell, folder, "src/shop.py") == [(first, None)] * 2, "as HEAD has it"
    fresh = repository(tmp_path / "fresh", lines=())
    own = edited(shell, fresh)
    write(fresh / "src/shop.py", AGENT)
    assert set(blamed(shell, fresh, "src/shop.py")) == {(None, own.session)}, "before the first commit"


def test_trace_tells_other_programs_which_lines_were_written_in_which_conversation(
    shell: Shell, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "shop")
    made = edited(shell, folder)
    write(folder / "src/shop.py", (*PERSON, *AGENT))
    revision = commit(folder)
    where = ("-C", str(folder))
    told = shell.ok("trace", *where).out
    record = json.loads(told)
    assert list(record) == ["version", "id", "timestamp", "vcs", "tool", "files", "metadata"]
    assert (record["version"], record["vcs"]) == ("0.1.0", {"type": "git", "revision": revision})
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["timestamp"])
    (file,) = record["files"]
    (conversation,) = file["conversations"]
    assert file["path"] == "src/shop.py"
    assert conversation["url"] == f"http://127.0.0.1:8787/s/{made.session}"
    assert conversation["contributor"] == {"type": "ai", "model_id": "anthropic/claude-opus-4-5"}
    assert conversation["related"] == [{"type": "message", "url": f"{conversation['url']}?at={made.message}"}]
    (lines,) = conversation["ranges"]
    assert (lines["start_line"], lines["end_line"]) == (3, 5)
    assert lines["content_hash"].startswith("sha256:")
    assert PROMPT not in told
    assert AGENT[0] not in told
    assert json.loads(shell.ok("trace", *where).out)["id"] == record["id"], "the same lines, the same record"
    write(folder / "src/shop.py", ("# not committed", *PERSON, *AGENT))
    whole = json.loads(shell.ok("trace", "--file", "src/shop.py", *where).out)
    assert whole["files"] == record["files"], "as HEAD has it"
    git(folder, "commit", "-qam", "by a person")
    both = [json.loads(line) for line in shell.ok("trace", "HEAD~2..HEAD", *where).lines]
    assert [(each["id"] == record["id"], bool(each["files"])) for each in both] == [
        (True, True),
        (False, False),
    ]
    assert shell.invoke("trace", "HEAD", "--file", "src/shop.py", *where).code not in (0, 1)


def test_a_shallow_clone_says_what_it_lacks(shell: Shell, tmp_path: Path) -> None:
    origin = repository(tmp_path / "shop")
    made = edited(shell, origin)
    write(origin / "src/shop.py", (*PERSON, *AGENT))
    last = commit(origin)
    clone = cloned(origin, tmp_path / "clones" / "shop", "--depth", "1")
    refused = shell.invoke("why", "HEAD", "-C", str(clone), "--json")
    assert refused.code not in (0, 1)
    assert "git fetch --deepen=1" in refused.err
    assert blamed(shell, clone, "src/shop.py") == [(last, None)] * 2 + [(last, made.session)] * 3


def test_a_partial_clone_fetches_nothing_and_still_traces_lines(shell: Shell, tmp_path: Path) -> None:
    origin = repository(tmp_path / "shop")
    made = edited(shell, origin)
    write(origin / "src/shop.py", (*PERSON, *AGENT))
    commit(origin)
    git(origin, "config", "uploadpack.allowFilter", "true")
    clone = cloned(origin, tmp_path / "clones" / "shop", "--filter=blob:none")
    objects = {path.name for path in (clone / ".git" / "objects").rglob("*")}
    done = shell.ok("blame", "src/shop.py", "-C", str(clone), "--json")
    assert "commits of these lines are not known" in done.err
    assert [row["session"] for row in done.json["lines"]] == [None] * 2 + [made.session] * 3
    assert shell.invoke("why", "HEAD", "-C", str(clone)).code not in (0, 1)
    assert {path.name for path in (clone / ".git" / "objects").rglob("*")} == objects


def test_a_file_of_a_submodule_is_one_of_its_own_repository(shell: Shell, tmp_path: Path) -> None:
    inner, outer = repository(tmp_path / "inner"), repository(tmp_path / "outer", "README.md")
    git(
        outer,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        f"file://{inner}",
        "vendor/inner",
    )
    commit(outer)
    module = outer / "vendor" / "inner"
    made = edited(shell, module)
    write(module / "src/shop.py", (*PERSON, *AGENT))
    last = commit(module)
    found = blamed(shell, outer, "vendor/inner/src/shop.py")
    assert found[2:] == [(last, made.session)] * 3
    assert shell.ok("why", "HEAD", "-C", str(module), "--json").json["sessions"][0]["session"] == made.session
    commit(outer)
    assert shell.ok("why", "HEAD", "-C", str(outer), "--json").json == {"sessions": []}, (
        "only a pointer moved"
    )
    refused = shell.invoke("blame", "vendor/inner", "-C", str(outer))
    assert refused.code not in (0, 1)
    assert "Traceback" not in refused.err


def test_a_repository_is_known_again_by_its_first_commit_after_it_was_renamed(
    shell: Shell, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "shop", "shop.py")
    made = edited(shell, folder, "shop.py", placed=True)
    write(folder / "shop.py", (*PERSON, *AGENT))
    last = commit(folder)
    renamed = folder.rename(tmp_path / "market")
    assert blamed(shell, renamed, "shop.py")[2:] == [(last, made.session)] * 3
    shell.ok("project", "shop", "--rename", "bazaar")
    assert blamed(shell, renamed, "shop.py")[2:] == [(last, made.session)] * 3
    elsewhere = cloned(renamed, tmp_path / "clones" / "shop")
    told = shell.ok("why", "HEAD", "-C", str(elsewhere), "--json").json
    assert [each["session"] for each in told["sessions"]] == [made.session]


def test_lines_are_traced_where_the_repository_is_not_there_any_more(shell: Shell, tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    made = edited(shell, folder)
    write(folder / "src/shop.py", (*PERSON, *AGENT))
    commit(folder)
    diff = git(folder, "show")
    shutil.rmtree(folder / ".git")
    assert blamed(shell, folder, "src/shop.py")[2:] == [(None, made.session)] * 3
    told = shell.ok("why", "-", "-C", str(folder), "--json", stdin=diff).json
    assert [each["session"] for each in told["sessions"]] == [made.session]


@pytest.mark.parametrize("ends", ["\r\n", "\n"])
def test_lines_are_known_whatever_ends_them(shell: Shell, tmp_path: Path, ends: str) -> None:
    folder = repository(tmp_path / "shop")
    made = edited(shell, folder)
    write(folder / "src/shop.py", (*PERSON, *AGENT), ends)
    with (folder / "src/shop.py").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - len(ends))
    last = commit(folder)
    assert [session for _, session in blamed(shell, folder, "src/shop.py")[2:]] == [made.session] * 3
    assert blamed(shell, folder, "src/shop.py")[-1] == (last, made.session)
    assert shell.ok("why", "HEAD", "-C", str(folder), "--json").json["sessions"][0]["session"] == made.session


def test_what_is_no_text_file_gets_a_plain_answer(shell: Shell, tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    edited(shell, folder)
    (folder / "logo.png").write_bytes(bytes(range(256)) * 4)
    (folder / "link.py").symlink_to("/etc/hostname")
    last = commit(folder)
    os.mkfifo(folder / "pipe")
    assert blamed(shell, folder, "logo.png") == []
    (folder / "logo.png").unlink()
    assert blamed(shell, folder, "logo.png") == []
    assert shell.ok("why", "HEAD", "-C", str(folder), "--json").json == {"sessions": []}
    assert blamed(shell, folder, "link.py") == [(last, None)], "where it leads to, not what is there"
    for name in ("pipe", "src", "src/missing.py", "../shop", "\0", "-p", "--contents=x"):
        done = shell.invoke("blame", "-C", str(folder), "--", name)
        assert done.code not in (0, 1), name
        assert "Traceback" not in done.err


def test_a_commit_that_brings_lines_back_is_not_of_the_session_that_once_wrote_them(
    shell: Shell, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "shop")
    made = edited(shell, folder)
    write(folder / "src/shop.py", (*PERSON, *AGENT))
    commit(folder)
    later = {f"GIT_{who}_DATE": f"{int(time.time()) + 60} +0000" for who in ("AUTHOR", "COMMITTER")}
    git(folder, "revert", "--no-edit", "HEAD", **later)
    git(folder, "revert", "--no-edit", "HEAD", **later)
    where = ("-C", str(folder), "--json")
    assert shell.ok("why", "HEAD", *where).json == {"sessions": []}
    assert shell.ok("why", "HEAD~1", *where).json == {"sessions": []}
    assert shell.ok("why", "HEAD~2", *where).json["sessions"][0]["session"] == made.session
    assert [session for _, session in blamed(shell, folder, "src/shop.py")[2:]] == [made.session] * 3
