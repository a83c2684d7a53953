"""What a folder tells of its repository, from files laid out as git lays them out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitherto.projects import FILE_BYTES, Checkout, checkout_of, remote_name

ROOT = "5f" * 20
BEGUN = f"{'0' * 40} {ROOT} Ada <ada@example.org> 1700000000 +0000\tcommit (initial): Begin\n"
CLONED = f"{'0' * 40} {ROOT} Ada <ada@example.org> 1700000000 +0000\tclone: from somewhere\n"


def repository(folder: Path, *, url: str | None = None, branch: str = "main", log: str = BEGUN) -> Path:
    """A repository in this folder."""
    git = folder / ".git"
    (git / "logs").mkdir(parents=True)
    (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (git / "logs" / "HEAD").write_text(log + log)
    remote = (
        ""
        if url is None
        else f'[remote "origin"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
    )
    (git / "config").write_text(
        f'[core]\n\tbare = false\n[remote "upstream"]\n{remote}[branch "main"]\n\tremote = origin\n'
    )
    return folder


def worktree(folder: Path, of: Path, branch: str, *, gitdir: str | None = None) -> Path:
    """A further work tree of a repository."""
    own = of / ".git" / "worktrees" / folder.name
    own.mkdir(parents=True)
    (own / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (own / "commondir").write_text("../..\n")
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {gitdir or own}\n")
    return folder


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/ada/engine.git", "github.com/ada/engine"),
        ("https://ada:s3cret@GitHub.com:443/ada/engine/", "github.com/ada/engine"),
        ("git@github.com:ada/engine.git", "github.com/ada/engine"),
        ("github.com:ada/engine", "github.com/ada/engine"),
        ("ssh://git@git.example.org:2222//group/sub/engine.git", "git.example.org/group/sub/engine"),
        ("git://host/engine", "host/engine"),
        ("[2001:db8::1]:ada/engine.git", "2001:db8::1/ada/engine"),
        ("https://host/ada/engine?token=s3cret#x", "host/ada/engine"),
        ("/srv/git/engine.git", None),
        ("../engine", None),
        ("file:///srv/git/engine.git", None),
        ("https://[broken/x", None),
        ("https://host/", None),
        ("https://host/a\x1b[31m", None),
        ("", None),
    ],
)
def test_a_remote_is_named_by_host_and_path_without_credentials(url: str, name: str | None) -> None:
    assert remote_name(url) == name


def test_every_folder_of_a_repository_tells_the_same(tmp_path: Path) -> None:
    top = repository(tmp_path / "work", url="git@github.com:ada/engine.git", branch="topic/x")
    (top / "src" / "deep").mkdir(parents=True)
    checkout = Checkout("github.com/ada/engine", str(top), "topic/x", ROOT)
    assert checkout_of(str(top)) == checkout
    assert checkout_of(str(top / "src" / "deep")) == checkout
    assert checkout_of(str(top / "src" / "removed" / "long ago")) == checkout


@pytest.mark.parametrize("relative", [False, True])
def test_a_work_tree_belongs_to_its_repository_and_has_its_own_branch(tmp_path: Path, relative: bool) -> None:
    top = repository(tmp_path / "engine")
    gitdir = "../engine/.git/worktrees/aside" if relative else None
    aside = worktree(tmp_path / "aside", top, "topic", gitdir=gitdir)
    assert checkout_of(str(aside)) == Checkout("engine", str(top), "topic", ROOT)


def test_a_work_tree_may_keep_its_own_files_anywhere(tmp_path: Path) -> None:
    top = repository(tmp_path / "engine")
    own, aside = tmp_path / "own", tmp_path / "aside"
    own.mkdir()
    aside.mkdir()
    (own / "HEAD").write_text("ref: refs/heads/topic\n")
    (own / "commondir").write_text(f"{top / '.git'}\n")
    (aside / ".git").write_text("gitdir: ../own\n")
    assert checkout_of(str(aside)) == Checkout("engine", str(top), "topic", ROOT)


def test_a_work_tree_whose_repository_was_moved_still_tells_its_name(tmp_path: Path) -> None:
    top = repository(tmp_path / "engine")
    aside = worktree(tmp_path / "aside", top, "topic")
    top.rename(tmp_path / "moved")
    assert checkout_of(str(aside)) == Checkout("engine", str(top))


def test_clones_of_a_local_repository_go_by_its_name(tmp_path: Path) -> None:
    repository(tmp_path / "engine", url="https://host/ada/engine.git")
    one = repository(tmp_path / "one", url=str(tmp_path / "engine"), log=CLONED)
    two = repository(tmp_path / "two", url=f"file://{one}", log=CLONED)
    plain = repository(tmp_path / "plain")
    three = repository(tmp_path / "three", url="../plain", log=CLONED)
    gone = repository(tmp_path / "four", url="/srv/gone/engine.git", log=CLONED)
    bare = tmp_path / "store.git"
    bare.mkdir()
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    five = repository(tmp_path / "five", url=str(bare), log=CLONED)
    circle = repository(tmp_path / "circle", url=".", log=CLONED)
    found = [checkout_of(str(folder)) for folder in (one, two, plain, three, gone, five, circle)]
    names = ["host/ada/engine", "host/ada/engine", "plain", "plain", "engine", "store", "circle"]
    assert [checkout.project for checkout in found if checkout] == names
    assert [checkout.root for checkout in found if checkout] == [ROOT, ROOT, ROOT, ROOT, None, None, None]


def test_a_clone_that_was_empty_begins_with_its_own_commit(tmp_path: Path) -> None:
    repository(tmp_path / "engine", log=BEGUN.replace(ROOT, "6e" * 20))
    one = repository(tmp_path / "one", url=str(tmp_path / "engine"))
    assert checkout_of(str(one)) == Checkout("engine", str(one), "main", ROOT)


def test_two_that_are_clones_of_each_other_end_somewhere(tmp_path: Path) -> None:
    repository(tmp_path / "one", url=str(tmp_path / "two"))
    repository(tmp_path / "two", url=str(tmp_path / "one"))
    assert checkout_of(str(tmp_path / "one")) is not None


@pytest.mark.parametrize(
    "config",
    [
        '[remote "origin"]\nurl = "https://host/ada/engine" ; quoted\n',
        '[Remote "origin"] URL=https://host/ada/engine # said briefly\n',
        '[remote "a"]\nurl = https://host/other\n[remote "origin"]\nurl = https://host/ada/engine\nurl = https://host/2\n',
        '[remote "only"]\n\turl = https://host/ada/engine\n',
    ],
)
def test_the_configuration_is_read_as_git_reads_it(tmp_path: Path, config: str) -> None:
    top = repository(tmp_path / "work")
    (top / ".git" / "config").write_text(config)
    checkout = checkout_of(str(top))
    assert checkout is not None
    assert checkout.project == "host/ada/engine"


def test_no_repository_no_place(tmp_path: Path) -> None:
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text("not git's")
    for cwd in (tmp_path, tmp_path / "empty", tmp_path / "odd", "/nowhere/at all", "/"):
        assert checkout_of(str(cwd)) is None
    assert checkout_of("/a\0b") is None


def test_nothing_that_a_repository_holds_makes_it_wait_or_read_without_end(tmp_path: Path) -> None:
    top = repository(tmp_path / "engine", url="https://host/ada/engine")
    (top / ".git" / "HEAD").unlink()
    os.mkfifo(top / ".git" / "HEAD")
    (top / ".git" / "logs" / "HEAD").write_bytes(b"\xff" * (2 * FILE_BYTES))
    assert checkout_of(str(top)) == Checkout("host/ada/engine", str(top))


@pytest.mark.parametrize(
    "head", ["5f5f5f", "ref: refs/heads/\n", "ref: refs/heads/a\x1bb", "ref: refs/remotes/x"]
)
def test_a_head_that_is_no_branch_tells_none(tmp_path: Path, head: str) -> None:
    top = repository(tmp_path / "engine")
    (top / ".git" / "HEAD").write_text(head)
    checkout = checkout_of(str(top))
    assert checkout is not None
    assert checkout.branch is None
