"""What was made under the program's first name, `recollect`: its stores and exports are read, its defaults only mentioned."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cli.shell import Shell


def moved_to_the_earlier_default(shell: Shell) -> Path:
    left = shell.folder / "home" / ".local" / "share" / "recollect" / "recollect.db"
    left.parent.mkdir(parents=True)
    shutil.copy(shell.store, left)
    return left


def test_the_first_start_says_once_where_the_earlier_store_is_and_how_to_use_it(shell: Shell) -> None:
    session = shell.ok("new", "--title", "From before").out.strip()
    left = moved_to_the_earlier_default(shell)
    default = {"HITHERTO_STORE": "", "XDG_DATA_HOME": str(left.parents[1])}
    first = shell.run("list", env=default)
    command = f"export HITHERTO_STORE=sqlite:///{left}"
    assert f"Found the store of an earlier version: {left}. To use it, run: {command}\n" in first.err
    assert "From before" not in first.out
    assert shell.run("new", env=default).code == 0
    assert "earlier version" not in shell.run("list", env=default).err
    used = shell.run("list", "--json", env={**default, "HITHERTO_STORE": command.partition("=")[2]})
    assert [each["id"] for each in json.loads(used.out)["sessions"]] == [session]
    assert used.err == ""


def test_a_named_store_is_used_without_a_word(shell: Shell) -> None:
    shell.ok("new")
    moved_to_the_earlier_default(shell)
    assert shell.run("list").err == ""


def test_exports_that_carry_the_first_name_are_imported(shell: Shell) -> None:
    session = shell.ok("new", "--title", "Exported before").out.strip()
    lines = shell.ok("export", session).out.replace("hitherto-session", "recollect-session")
    document = shell.ok("export", session, "--format", "json").out.replace('"hitherto":', '"recollect":')
    for number, export in enumerate((lines, document)):
        other = Shell(shell.folder / str(number))
        other.folder.mkdir()
        assert other.ok("import", "-", stdin=export).code == 0
        assert "Exported before" in other.ok("list").out
