"""How people name sessions: by eight characters, by their place in the last list, by `@last`, by words of the title."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hitherto.cli.commands.list import widths
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Imported, Sessions
from tests.cli.shell import Shell, plain

AGENT_ID = "3d2a7a53-0000-4000-8000-000000000001"
TITLES = ("Fix the parser", "Prune the parser's cache", "Rename a quince")


@pytest.fixture
def ids(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A session of Claude Code, then two of our own, with these titles; the last is the newest."""
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(shell.folder / "data"))

    async def work(sessions: Sessions) -> None:
        old = Imported(
            id=f"claude:{AGENT_ID}",
            source="claude",
            created_at=1,
            updated_at=1,
            cwd="/srv/shop",
            title=TITLES[0],
        )
        await sessions.transfer.sync(LOCAL, old, (), extends=True)
        for number, title in enumerate(TITLES[1:]):
            await sessions.create(
                LOCAL, session_id=f"01a1de9{number}-30ab-7a69-822e-6571373d1d36", title=title
            )

    shell.inside(work)
    return [
        f"claude:{AGENT_ID}",
        "01a1de90-30ab-7a69-822e-6571373d1d36",
        "01a1de91-30ab-7a69-822e-6571373d1d36",
    ]


def shown(shell: Shell, name: str) -> str:
    answer: str = shell.ok("show", name, "--json").json["session"]["id"]
    return answer


def test_a_session_is_named_by_eight_characters_a_place_the_last_or_words_of_its_title(
    shell: Shell, ids: list[str]
) -> None:
    env = {"HITHERTO_DATA_DIR": str(shell.folder / "data")}
    assert shown(shell, "3d2a7a53") == shown(shell, "claude:3d2a7a53") == ids[0]
    assert shown(shell, "@last") == ids[2]
    assert shown(shell, "quince") == shown(shell, "rename a") == ids[2]
    assert shell.invoke("show", "%1").code == 2  # nothing was listed yet
    table = plain(shell.terminal("list", env=env, columns=140).out).splitlines()
    assert [row.split()[:2] for row in table[1:]] == [["1", "01a1de91"], ["2", "01a1de90"], ["3", "3d2a7a53"]]
    assert [shown(shell, f"%{place}") for place in (1, 2, 3)] == ids[::-1]
    beyond = shell.invoke("show", "%4")
    assert (beyond.code, "the last list has 3 sessions" in beyond.err) == (2, True)


def test_bash_completes_a_session_of_an_agent_though_it_breaks_words_at_colons(
    shell: Shell, ids: list[str]
) -> None:
    program, script = shell.folder / "hitherto", shell.folder / "complete.sh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hitherto "$@"\n')
    program.chmod(0o700)
    asked = f"COMP_WORDS=(hitherto show 3d2) COMP_CWORD=2\n_hitherto_completion {program}\necho ${{COMPREPLY[@]}}\n"
    script.write_text(shell.ok("completion", "bash").out + asked)
    done = subprocess.run(
        ["/bin/bash", "--norc", str(script)],
        env=shell.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [ids[0].removeprefix("claude:")]


def test_words_that_several_titles_have_list_the_candidates(shell: Shell, ids: list[str]) -> None:
    done = shell.invoke("show", "parser")
    assert done.code == 4
    assert "ambiguous_id" in done.err
    rows = [line.split() for line in done.err.splitlines() if line.startswith("  ")]
    assert [(row[0], " ".join(row[2:])) for row in rows] == [(ids[1], TITLES[1]), (ids[0], TITLES[0])]
    assert shell.invoke("show", "no such words").code == 3


def test_words_delete_and_erase_nothing(shell: Shell, ids: list[str]) -> None:
    assert shell.invoke("delete", "--yes", "quince").code == 3
    assert shell.invoke("erase", "--yes", "quince", "an-entry").code == 3
    assert shown(shell, "quince") == ids[2]
    shell.ok("delete", "--yes", "3d2a7a53")
    assert shell.invoke("show", ids[0]).code == 3


def test_a_list_of_80_columns_leaves_40_to_the_title_and_says_how_many_there_are(
    shell: Shell, ids: list[str], tmp_path: Path
) -> None:
    env = {"HITHERTO_DATA_DIR": str(tmp_path / "data")}
    long = "A title of many words that would fill two lines of a terminal if it were shown as a whole"
    shell.ok("rename", ids[2], long)
    rows = plain(shell.terminal("list", "--limit", "2", columns=80, env=env).out).splitlines()
    assert rows[0].split() == ["#", "AGE", "AGENT", "PROJECT", "TITLE", "COST"]
    assert long[:39] in rows[1]
    assert max(map(len, rows)) <= 80
    assert rows[-1] == "2 of 3. Show all with --all."
    names = ("#", "AGE", "AGENT", "PROJECT", "TITLE", "COST")
    assert widths(names, [("999", "52w", "opencode", "p" * 60, long, "≈$1,234+")], 80)["TITLE"] >= 40


def test_an_age_has_at_most_four_characters() -> None:
    day = 86_400_000
    ages = (0, 59_999, 60_000, 3_599_999, 7_200_000, day, 13 * day, 14 * day, 364 * day, 800 * day)
    said = ["now", "now", "1m", "59m", "2h", "1d", "13d", "2w", "52w", "2y"]
    assert [formats.brief_age(0, age) for age in ages] == said
