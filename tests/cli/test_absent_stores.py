"""Commands that only read: they make no store, and read one that cannot be written to."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

import hitherto
from hitherto.errors import StoreNotFound
from hitherto.model import LOCAL
from hitherto.ports import Mode
from hitherto.service import Sessions
from tests.cli.shell import Shell
from tests.cli.test_commands import said
from tests.support.privileges import without_privileges

READING = (
    ("list",),
    ("show", "0"),
    ("search", "word"),
    ("checkpoints", "0"),
    ("episodes", "0"),
    ("export", "--all"),
    ("stats",),
    ("backup", "copy.db"),
    ("doctor",),
    ("watch", "--after", "0"),
    ("token", "list"),
    ("sources",),
    ("mcp",),
)
CHANGING = (
    ("rename", "0", "title"),
    ("tag", "0", "one"),
    ("archive", "0"),
    ("pin", "0"),
    ("fork", "0"),
    ("rewind", "0", "1"),
    ("restore", "0", "1"),
    ("erase", "0", "1", "--yes"),
    ("delete", "0", "--yes"),
    ("move", "0", "/home"),
    ("append", "0", "word"),
    ("prune", "--keep", "1"),
    ("resume", "0"),
    ("page",),
    ("open", "0"),
)


@pytest.mark.parametrize("command", [*READING, *CHANGING], ids=" ".join)
def test_a_command_that_starts_nothing_makes_no_store(shell: Shell, command: tuple[str, ...]) -> None:
    done = shell.invoke(*command, "--store", str(shell.folder / "mistyped" / "sessions.db"))

    assert done.code == 3, done
    assert "mistyped/sessions.db" in done.err
    assert done.err.rstrip().endswith("[store_not_found]")
    assert not (shell.folder / "mistyped").exists()
    assert not Path("copy.db").exists()


@pytest.mark.parametrize("content", [b"", b"other"], ids=["empty", "of another program"])
def test_a_file_without_a_store_in_it_is_left_as_it_is(shell: Shell, content: bytes) -> None:
    if content:
        other = apsw.Connection(str(shell.store))
        other.execute("CREATE TABLE letters (text TEXT)")
        other.close()
    else:
        shell.store.touch()
    before = shell.store.read_bytes()

    done = shell.invoke("list")

    assert (done.code, done.err.rstrip()[-17:]) == (3, "[store_not_found]")
    assert shell.store.read_bytes() == before
    assert [path.name for path in shell.folder.iterdir()] == ["sessions.db"]


def test_before_the_first_store_sources_still_tells_what_there_is_to_import(shell: Shell) -> None:
    fresh = {"HITHERTO_STORE": "", "XDG_DATA_HOME": str(shell.folder / "data")}

    assert shell.run("sources", env=fresh).code == 0
    absent = shell.run("list", env=fresh)
    assert absent.code == 3
    assert "hitherto sync" in absent.err
    assert not list(shell.folder.rglob("hitherto.db*"))


@pytest.mark.parametrize("mode", ["read", "change"])
async def test_a_program_that_starts_nothing_makes_no_store(shell: Shell, mode: Mode) -> None:
    with pytest.raises(StoreNotFound):
        async with hitherto.open(shell.url, mode=mode):
            pass
    assert not shell.store.exists()

    async with hitherto.open(shell.url) as sessions:
        made = await sessions.create(LOCAL)
    async with hitherto.open(shell.url, mode=mode) as sessions:
        assert (await sessions.get(LOCAL, made.id)).id == made.id


# A folder that cannot be written to


@pytest.mark.parametrize("left", ["closed", "with a log", "with a log and its memory", "backup"])
def test_a_store_in_a_folder_that_cannot_be_written_to_is_read(shell: Shell, left: str) -> None:
    """The log beside a file holds what was acknowledged last."""
    folder = _read_only_copy(shell, left)

    with without_privileges():
        before = _bytes_of(folder)
        try:
            folder.chmod(0o555)
            copy = str(folder / "sessions.db")
            listed = shell.ok("list", "--store", copy)
            assert [line.split("\t")[4] for line in listed.lines] == ["Second", "First"]
            found = shell.ok("search", "walrus", "--store", copy)
            assert len(found.lines) == (0 if left == "backup" else 1)
            unfound = shell.ok("search", "narwhal", "--store", copy)
            assert unfound.lines == []
            assert "cannot be written" in unfound.err
            assert ("4 of them" if left == "backup" else "2 of them") in unfound.err
            exported = shell.ok("export", "--all", "--store", copy).out
            assert "walrus" in exported
            assert "narwhal" in exported
            session = listed.lines[0].split("\t")[0]
            assert "narwhal" in shell.ok("show", session, "--store", copy).out
            shell.ok("stats", "--store", copy)
            shell.ok("doctor", "--store", copy)
            refused = shell.invoke("rename", session, "Third", "--store", copy)
            assert refused.code == 5, refused
            assert refused.err.rstrip().endswith("[store_unavailable]")
        finally:
            folder.chmod(0o755)
        assert _bytes_of(folder) == before


def test_a_backup_can_be_made_of_a_store_that_cannot_be_written_to(shell: Shell) -> None:
    folder = _read_only_copy(shell, "with a log")
    (target := shell.folder / "copies").mkdir(mode=0o777)
    target.chmod(0o777)

    with without_privileges():
        folder.chmod(0o555)
        try:
            shell.ok("backup", str(target / "copy.db"), "--store", str(folder / "sessions.db"))
        finally:
            folder.chmod(0o755)

    assert "narwhal" in shell.ok("export", "--all", "--store", str(target / "copy.db")).out


def test_an_index_that_knows_everything_is_searched_without_a_warning(shell: Shell) -> None:
    shell.ok("new", "--title", "First")
    assert len(shell.ok("search", "first").lines) == 1
    folder = shell.folder / "frozen"
    folder.mkdir()
    for name in ("sessions.db", "sessions.db-search"):
        shutil.copy(shell.folder / name, folder / name)

    with without_privileges():
        folder.chmod(0o555)
        try:
            found = shell.ok("search", "first", "--store", str(folder / "sessions.db"))
        finally:
            folder.chmod(0o755)

    assert (len(found.lines), found.err) == (1, "1 hit in 1 session.\n")


def _read_only_copy(shell: Shell, left: str) -> Path:
    """A copy of a store of which the index knows the first session and not the second."""
    shell.ok("append", shell.ok("new", "--title", "First").out.strip(), "walrus")
    shell.ok("search", "walrus")
    index = (shell.folder / "sessions.db-search").read_bytes()
    folder = shell.folder / "frozen"
    folder.mkdir()

    async def add(sessions: Sessions) -> None:
        made = await sessions.create(LOCAL, title="Second")
        await sessions.append(LOCAL, made.id, said("narwhal"))
        for suffix in {"with a log": ("", "-wal"), "with a log and its memory": ("", "-wal", "-shm")}.get(
            left, ()
        ):
            shutil.copy(f"{shell.store}{suffix}", folder / f"sessions.db{suffix}")

    shell.inside(add)
    if left == "closed":
        shutil.copy(shell.store, folder / "sessions.db")
    if left == "backup":
        shell.ok("backup", str(folder / "sessions.db"))
    else:
        (folder / "sessions.db-search").write_bytes(index)
    for file in folder.iterdir():
        file.chmod(0o444)
    return folder


def _bytes_of(folder: Path) -> dict[str, bytes]:
    """The files of a store, but for what its readers share of the log in memory."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
