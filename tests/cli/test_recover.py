"""What can be read of a damaged store is copied into a new one."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.cli.shell import Shell
from tests.cli.test_commands import make, titles


def talk(shell: Shell, title: str) -> str:
    (session,) = make(shell, title)
    for number in range(5):
        shell.ok("append", session, f"{title} {number}")
    return session


def altered(store: Path, statement: str, *values: object) -> None:
    database = apsw.Connection(str(store))
    database.execute(statement, values)
    database.close()


def test_a_whole_store_is_recovered_whole(shell: Shell) -> None:
    source = talk(shell, "one")
    fork = shell.ok("fork", source).out.split()[-1]
    shell.ok("tag", source, "work")
    shell.ok("delete", "--yes", talk(shell, "gone"))
    new = str(shell.folder / "new.db")

    done = shell.ok("recover", str(shell.store), new, "--json").json

    assert done == {"sessions": 2, "messages": 5, "missing": []}
    for session in (source, fork):
        assert shell.ok("export", session, "--store", new).out == shell.ok("export", session).out
    assert titles(shell, "--tag", "work", "--store", new) == ["one"]
    assert len(shell.ok("search", "one", "--store", new).lines) >= 1
    assert shell.ok("doctor", "--store", new).code == 0
    assert shell.invoke("recover", str(shell.store), new).code == 4


def test_what_is_altered_is_left_out_and_told(shell: Shell) -> None:
    torn, renamed, whole = talk(shell, "torn"), talk(shell, "renamed"), talk(shell, "whole")
    altered(
        shell.store,
        "UPDATE entry SET payload = x'00' WHERE pos = (SELECT num FROM session WHERE id = ?) << 24 | 3",
        torn,
    )
    altered(shell.store, "UPDATE session SET title = CAST('forged' AS BLOB) WHERE id = ?", renamed)
    before = shell.store.read_bytes()
    new = str(shell.folder / "new.db")

    done = shell.invoke("recover", str(shell.store), new)

    assert done.code == 1
    assert f"missing\tsession {torn}: 1 messages are missing" in done.lines
    assert any(line.startswith(f"missing\tsession {renamed}: ") for line in done.lines)
    assert whole not in done.out
    shown = shell.ok("show", torn, "--store", new).out
    assert [f"torn {number}" in shown for number in range(5)] == [True, True, False, True, True]
    assert shell.ok("doctor", "--store", new).code == 0
    shell.ok("append", torn, "goes on", "--store", new)
    assert "goes on" in shell.ok("show", torn, "--store", new).out
    assert shell.store.read_bytes() == before


ALTERED = {
    "its lease": """lease_holder = 'eve', lease_fence = 1, lease_acquired = 1, lease_expires = 2,
        lease_crc = (1 << 15 | 1) << 32 | 3""",
    "when it was read": "read_at = 1, read_crc = 2",
}


@pytest.mark.parametrize("what", ALTERED)
def test_a_session_is_saved_though_something_beside_its_messages_was_altered(shell: Shell, what: str) -> None:
    session = talk(shell, "kept")
    altered(shell.store, f"UPDATE session SET {ALTERED[what]} WHERE id = ?", session)
    assert shell.invoke("show", session).code != 0
    new = str(shell.folder / "new.db")

    shell.invoke("recover", str(shell.store), new)

    shown = shell.ok("show", session, "--store", new).out
    assert all(f"kept {number}" in shown for number in range(5))
    assert shell.ok("doctor", "--store", new).code == 0


def test_pages_that_cannot_be_read_cost_only_what_is_in_them(shell: Shell) -> None:
    for number in range(8):
        session = make(shell, f"talk {number}")[0]
        shell.ok("append", session, f"walrus{number} " * 900)
    database = apsw.Connection(str(shell.store))
    leaves = database.execute(
        "SELECT pageno FROM dbstat WHERE name = 'entry' AND pagetype = 'leaf' ORDER BY pageno"
    ).fetchall()
    database.close()
    page = int(str(leaves[len(leaves) // 2][0]))
    with shell.store.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 100)

    done = shell.invoke("recover", str(shell.store), str(shell.folder / "new.db"))

    assert len(leaves) > 1
    assert done.code == 1
    assert "missing\ttable entry: rows in 1 places cannot be read" in done.out
    assert len(titles(shell, "--store", str(shell.folder / "new.db"))) == 8
    assert "walrus0" in shell.ok("export", "--all", "--store", str(shell.folder / "new.db")).out
    assert shell.ok("doctor", "--store", str(shell.folder / "new.db")).code == 0


def test_what_is_no_store_is_told_truthfully(shell: Shell) -> None:
    (shell.folder / "other.db").write_bytes(b"no store at all" * 1_000)

    for command in (
        ("recover", "other.db", "new.db"),
        ("doctor", "--store", "other.db"),
        ("list", "--store", "other.db"),
    ):
        done = shell.run(*command)
        assert done.code == 5
        assert "run `hitherto doctor`" not in done.err
        assert "hitherto restore-backup" in done.err
    assert not (shell.folder / "new.db").exists()
    assert shell.run("recover", "mistyped.db", "new.db").code == 3
