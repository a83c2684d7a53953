"""Going back to a backup."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hitherto.model import LOCAL
from hitherto.service import Sessions
from tests.cli.shell import Shell
from tests.cli.test_commands import make, said, titles


def aside(shell: Shell) -> Path:
    (found,) = (
        path
        for path in shell.folder.glob("sessions.db.replaced-*")
        if not path.name.endswith(("-wal", "-shm", "-search"))
    )
    return found


@pytest.mark.parametrize("left", ["-wal", "-wal and -shm"])
def test_a_backup_takes_the_place_of_a_store_whose_program_was_killed(shell: Shell, left: str) -> None:
    """The log of the old store must not be taken for one of the backup."""
    make(shell, "before")
    shell.ok("search", "before")
    shell.ok("backup", str(shell.folder / "backup.db"))
    crashed = shell.folder / "crashed"
    crashed.mkdir()

    async def killed(sessions: Sessions) -> None:
        for number in range(20):
            made = await sessions.create(LOCAL, title=f"after {number}")
            await sessions.append(LOCAL, made.id, said("walrus " * 500))
        for suffix in ("", *left.split(" and ")):
            shutil.copy(f"{shell.store}{suffix}", crashed / f"sessions.db{suffix}")

    shell.inside(killed)
    for suffix in ("", *left.split(" and ")):
        shutil.copy(crashed / f"sessions.db{suffix}", f"{shell.store}{suffix}")

    done = shell.ok("restore-backup", str(shell.folder / "backup.db"), "--json").json

    assert titles(shell) == ["before"]
    assert shell.ok("search", "walrus").lines == []
    assert len(shell.ok("search", "before").lines) == 1
    assert shell.ok("doctor").code == 0
    replaced = aside(shell)
    assert done == {
        "store": str(shell.store),
        "backup": str(shell.folder / "backup.db"),
        "replaced": str(replaced),
        "lost": {"deleted": 0, "erased": 0, "unread": []},
    }
    assert len(titles(shell, "--store", str(replaced))) == 21


def test_a_damaged_store_is_replaced_and_kept_as_it_was(shell: Shell) -> None:
    make(shell, "kept")
    shell.ok("backup", str(shell.folder / "backup.db"))
    shell.store.write_bytes(b"no store at all")
    assert shell.invoke("list").code == 5

    told = shell.ok("restore-backup", str(shell.folder / "backup.db")).out

    assert titles(shell) == ["kept"]
    assert aside(shell).read_bytes() == b"no store at all"
    assert str(aside(shell)) in told
    assert oct(os.stat(shell.store).st_mode & 0o777) == "0o600"


def test_a_lost_store_comes_back(shell: Shell) -> None:
    make(shell, "kept")
    shell.ok("backup", str(shell.folder / "backup.db"))
    shell.store.unlink()

    assert shell.ok("restore-backup", str(shell.folder / "backup.db"), "--json").json["replaced"] is None

    assert titles(shell) == ["kept"]


def test_nothing_is_replaced_while_somebody_has_the_store_open(shell: Shell) -> None:
    make(shell, "kept")
    shell.ok("backup", str(shell.folder / "backup.db"))
    make(shell, "later")

    async def meanwhile(_: Sessions) -> tuple[int, str]:
        done = shell.run("restore-backup", str(shell.folder / "backup.db"))
        return done.code, done.err

    code, error = shell.inside(meanwhile)

    assert code == 4
    assert "open" in error
    assert titles(shell) == ["later", "kept"]
    assert not list(shell.folder.glob("*replaced*"))
    assert not list(shell.folder.glob("*.part"))


def test_only_a_whole_backup_is_put_in_place(shell: Shell) -> None:
    make(shell, "kept")
    good = shell.folder / "backup.db"
    shell.ok("backup", str(good))
    torn = shell.folder / "torn.db"
    torn.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    (shell.folder / "empty.db").touch()

    assert shell.invoke("restore-backup", str(torn)).code == 5
    assert shell.invoke("restore-backup", str(shell.folder / "empty.db")).code == 3
    assert shell.invoke("restore-backup", str(shell.folder / "mistyped.db")).code == 3
    assert shell.invoke("restore-backup", str(shell.store)).code == 2
    assert shell.invoke("restore-backup", str(good), "--store", "memory:").code == 5

    assert titles(shell) == ["kept"]
    assert not list(shell.folder.glob("*.part"))


@pytest.mark.parametrize("include", [False, True], ids=["", "--include-deleted"])
def test_what_was_erased_or_deleted_after_the_backup_stays_away(shell: Shell, *, include: bool) -> None:
    kept, gone = make(shell, "kept", "gone")
    for session_id in (kept, gone):
        shell.ok("append", session_id, f"planted-in-{session_id}")
        shell.ok("append", session_id, f"erased-in-{session_id}")
    fork = shell.ok("fork", kept, "--json").json["id"]
    backup = shell.folder / "backup.db"
    shell.ok("backup", str(backup))
    (later,) = make(shell, "later")
    files = {each: shell.ok("export", each).out for each in (kept, gone, later)}
    for session_id in (kept, gone):
        entry = shell.ok("show", session_id, "--json").json["entries"][1]["id"]
        shell.ok("erase", session_id, entry, "--yes")
    shell.ok("delete", "--yes", gone, later)

    done = shell.ok("restore-backup", str(backup), *["--include-deleted"] * include)

    assert f"Deleted {0 if include else 1} session" in done.out
    assert str(aside(shell)) in done.err
    assert str(backup) in done.err
    here = [kept, fork, *[gone] * include]
    assert {each["id"] for each in shell.ok("list", "--json").json["sessions"]} == set(here)
    for session_id in here:
        shown = shell.ok("show", session_id, "--json").out
        assert ("planted-in-" in shown, "erased-in-" in shown) == (True, False)
    assert shell.ok("search", "erased").lines == []
    assert shell.ok("doctor").code == 0
    stored = b"".join(
        path.read_bytes() for path in shell.folder.glob("sessions.db*") if "replaced" not in path.name
    )
    assert b"erased-in-" not in stored
    assert (f"planted-in-{gone}".encode() in stored) is include
    assert str(aside(shell)) in shell.ok("delete", "--yes", fork).err
    for session_id in (later, *[gone] * (not include)):
        assert shell.invoke("import", "-", stdin=files[session_id]).code == 4
    assert not list(shell.folder.glob("*.part*"))


def test_an_unreadable_store_that_is_replaced_cannot_tell_what_was_erased(shell: Shell) -> None:
    make(shell, "kept")
    shell.ok("backup", str(shell.folder / "backup.db"))
    shell.store.write_bytes(b"no store at all")
    assert "is not known" in shell.ok("restore-backup", str(shell.folder / "backup.db")).err
