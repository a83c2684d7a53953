"""`sources`: which agents are read, and what lies in their folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.claude import transcripts
from tests.cli.shell import Shell
from tests.sources.goose.goose_files import GooseWriter
from tests.sources.pi.pi_files import PiWriter


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "PI_CODING_AGENT_DIR": str(tmp_path / "pi"),
        "HITHERTO_DATA_DIR": str(tmp_path / "data"),
    }


def transcript(folder: Path, number: int = 1) -> Path:
    writer = transcripts.Writer(transcripts.session_id(number), "/srv/orchard")
    writer.user("How do I prune a quince tree?")
    return writer.save(folder / "projects")


def told(shell: Shell, env: dict[str, str]) -> dict[str, dict[str, object]]:
    rows = shell.run("sources", "--json", env=env).json["sources"]
    return {row["source"]: row for row in rows}


def test_what_lies_in_each_folder_is_told_before_and_after_a_sync(
    shell: Shell, env: dict[str, str], tmp_path: Path
) -> None:
    path = transcript(tmp_path / "claude")
    with path.open("ab") as file:
        file.write(b"{torn\n")
    made = PiWriter()
    made.user("Hello")
    made.add("hologram")
    made.save(tmp_path / "pi" / "sessions")
    before = told(shell, env)
    assert (before["claude"]["sessions"], before["claude"]["waiting"]) == (1, 1)
    assert before["pi"]["folders"] == [str(tmp_path / "pi" / "sessions")]
    shell.run("sync", env=env)
    after = told(shell, env)
    assert (after["claude"]["sessions"], after["claude"]["waiting"]) == (1, 0)
    assert after["claude"]["damaged_records"] == after["pi"]["unknown_records"] == 1
    assert (after["pi"]["shown_records"], after["pi"]["left_out_records"]) == (2, 1)
    assert after["pi"]["left_out"] == {"session": 1}
    assert after["claude"]["changed_at"] == path.stat().st_mtime_ns // 1_000_000
    lines = [line.split("\t") for line in shell.run("sources", env=env).lines]
    assert [(line[0], line[1], *line[5:]) for line in lines if int(line[1])] == [
        ("claude", "1", "1 damaged record", "1", "0"),
        ("pi", "1", "1 unknown record", "2", "1"),
    ]


def test_a_time_that_cannot_be_one_is_not_told(shell: Shell, env: dict[str, str], tmp_path: Path) -> None:
    os.utime(transcript(tmp_path / "claude"), (5, 5))
    assert told(shell, env)["claude"].get("changed_at") is None


def test_a_database_that_cannot_be_read_is_told_of(shell: Shell, env: dict[str, str], tmp_path: Path) -> None:
    env["GOOSE_PATH_ROOT"] = str(tmp_path)
    made = GooseWriter(tmp_path / "data")
    made.session()
    made.user("Hello")
    made.close()
    assert told(shell, env)["goose"]["sessions"] == 1
    made.path.write_bytes(b"no database" * 1000)
    after = told(shell, env)["goose"]
    assert (after.get("sessions", 0), after["unreadable"]) == (0, 1)
    (line,) = (line for line in shell.run("sources", env=env).lines if line.startswith("goose"))
    assert line.split("\t")[5] == "1 database not readable"


def test_an_agent_that_is_not_here_is_told_as_such(shell: Shell, env: dict[str, str]) -> None:
    assert not told(shell, env)["pi"]["there"]
    assert shell.run("sources", env=env).lines[0].split("\t")[5] == "not found"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("claude", {"claude": 1}),
        ("-claude", {}),
        ("claude=OTHER", {"claude": 2}),
        ("claude, claude=OTHER", {"claude": 2}),
        ("-pi", {"claude": 1}),
    ],
)
def test_settings_leave_agents_out_and_add_folders(
    shell: Shell, env: dict[str, str], tmp_path: Path, chosen: str, expected: dict[str, int]
) -> None:
    transcript(tmp_path / "claude", 1)
    transcript(tmp_path / "other", 2)
    env["HITHERTO_SOURCES"] = chosen.replace("OTHER", str(tmp_path / "other"))
    shell.run("sync", env=env)
    found = shell.run("stats", "--json", env=env).json["by_source"]
    assert {source: count for source, count in found.items() if source} == expected
    assert shell.run("sync", "--json", env=env).json["kept"] == 0


def test_a_session_in_two_folders_is_the_fuller_one(
    shell: Shell, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (env | {"HITHERTO_SOURCES": f"pi={tmp_path / 'backup'}"}).items():
        monkeypatch.setenv(name, value)
    made = PiWriter()
    made.user("One")
    copy = made.save(tmp_path / "backup")
    made.say("Two")
    made.save(tmp_path / "pi" / "sessions")
    for _ in range(2):
        shell.ok("sync")
        (session,) = shell.ok("list", "--json").json["sessions"]
        assert session["message_count"] == 2
        os.utime(copy)
    rows = [row for row in shell.ok("sources", "--json").json["sources"] if row["source"] == "pi"]
    assert [(row["sessions"], row["waiting"]) for row in rows] == [(1, 0), (0, 0)]
    monkeypatch.setenv("HITHERTO_SOURCES", "pi=")
    assert "has no folder for pi" in shell.invoke("sync").err


def test_an_agent_that_nobody_knows_is_an_error_that_names_those_that_are_known(
    shell: Shell, env: dict[str, str]
) -> None:
    done = shell.run("sync", env={**env, "HITHERTO_SOURCES": "hal9000"})
    assert done.code != 0
    assert "HITHERTO_SOURCES names an unknown agent 'hal9000'; use: claude, " in done.err
