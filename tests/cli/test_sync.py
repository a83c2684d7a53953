"""`sync`, `resume` and `restore` over Claude Code's own files."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hitherto.cli.commands.sync import report_sentence
from hitherto.cli.terminal.input import bare_interrupts
from hitherto.sources.sync.sync import Report
from tests.claude import transcripts
from tests.cli.shell import Shell
from tests.support.waits import line_of, output

UUID = transcripts.session_id(1)
SESSION = f"claude:{UUID}"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "HITHERTO_DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    (tmp_path / "a project").mkdir()
    writer = transcripts.Writer(UUID, str(tmp_path / "a project"))
    writer.user("How do I prune a quince tree?")
    writer.say("In late winter.")
    return writer.save(tmp_path / "claude" / "projects")


def test_transcripts_are_listed_searched_and_shown_like_any_session(
    shell: Shell, env: dict[str, str], transcript: Path
) -> None:
    assert transcript.exists()
    done = shell.run("sync", env=env)
    assert (done.code, done.out, done.err) == (0, "1 transcript: 1 new, 0 updated, 0 unchanged.\n", "")
    assert shell.run("sync", "--json", env=env).json["unchanged"] == 1
    assert SESSION in shell.run("list", env=env).out
    assert SESSION in shell.run("search", "quince", env=env).out
    assert "In late winter." in shell.run("show", SESSION, env=env).out


def test_other_branches_are_announced_shown_found_and_forked_from(
    shell: Shell, env: dict[str, str], tmp_path: Path
) -> None:
    writer = transcripts.Writer(UUID, str(tmp_path))
    first = writer.user("How do I prune a quince tree?")
    writer.say("In late winter.")
    lost = writer.user("And a medlar?")
    writer.user("And a mulberry?", parentUuid=first["uuid"])
    writer.save(tmp_path / "claude" / "projects")
    shell.run("sync", env=env)
    shown = shell.run("show", SESSION, env=env)
    assert "medlar" not in shown.out
    assert "This session has another branch. To see it, use --branch 1." in shown.err
    branch = shell.run("show", SESSION, "--branch", "1", env=env)
    assert "medlar" in branch.out
    assert "mulberry" not in branch.out
    assert "This is branch 1." in branch.err
    whole = shell.run("show", SESSION, "--branch", "all", env=env)
    assert f"── branch 1, after {first['uuid']} ──" in whole.out
    assert whole.out.count("quince") == 2  # in the title and in the prompt
    assert whole.out.index("mulberry") < whole.out.index("medlar")
    tree = shell.run("show", SESSION, "--branch", "all", "--json", env=env).json
    assert [len(each["entries"]) for each in tree["branches"]] == [2]
    hit = shell.run("search", "medlar", "--json", env=env).json["hits"][0]
    assert (hit["entry"], hit["branch"]) == (lost["uuid"], tree["branches"][0]["id"])
    around = shell.run("show", SESSION, "--around", lost["uuid"], "--json", env=env).json
    assert around["branch"] == hit["branch"]
    forked = shell.run("fork", SESSION, "--at", lost["uuid"], "--json", env=env).json
    assert "medlar" in shell.run("show", forked["id"], env=env).out
    assert shell.run("show", SESSION, "--branch", "2", env=env).code == 3


def test_a_session_is_restored_with_its_subagents_which_no_list_shows(
    shell: Shell, env: dict[str, str], transcript: Path
) -> None:
    child = transcript.with_suffix("") / "subagents" / "agent-a1.jsonl"
    child.parent.mkdir(parents=True)
    writer = transcripts.Writer(UUID)
    writer.user("Look it up", isSidechain=True, agentId="a1")
    child.write_bytes(writer.data())
    (child.parent / "agent-a1.meta.json").write_text("{}")
    there = {path: path.read_bytes() for path in (transcript, child, child.parent / "agent-a1.meta.json")}
    shell.run("sync", env=env)
    assert "agent-a1" not in shell.run("list", env=env).out
    assert "agent-a1" in shell.run("list", "--subagents", env=env).out
    for path in there:
        path.unlink()
    shell.run("sync", env=env)
    done = shell.run("restore", SESSION[:-3], "--with-subagents", "--json", env=env)
    assert done.json["files"] == [str(path) for path in there]
    assert {path: path.read_bytes() for path in there} == there


def test_resume_prints_the_agents_own_command(
    shell: Shell, env: dict[str, str], transcript: Path, tmp_path: Path
) -> None:
    assert transcript.exists()
    shell.run("sync", env=env)
    done = shell.run("resume", SESSION, env=env)
    assert done.out == f"cd '{tmp_path / 'a project'}' && claude --resume {UUID}\n"
    assert shell.run("resume", SESSION, "--json", env=env).json["command"] == ["claude", "--resume", UUID]


def test_resume_exec_runs_it_in_the_sessions_folder(
    shell: Shell, env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    writer = transcripts.Writer(UUID, str(folder))
    writer.user("go on")
    writer.save(tmp_path / "claude" / "projects")
    shell.run("sync", env=env)
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PWD: $*"\n')
    program.chmod(0o755)
    done = shell.run("resume", SESSION, "--exec", env={**env, "PATH": f"{program.parent}:/usr/bin:/bin"})
    assert (done.code, done.out) == (0, f"{folder}: --resume {UUID}\n")


def test_a_folder_that_cannot_be_read_is_told_of(shell: Shell, env: dict[str, str], transcript: Path) -> None:
    shell.run("sync", env=env)
    projects = transcript.parent.parent
    projects.rename(projects.with_name("aside"))
    projects.symlink_to(projects)  # a way that leads nowhere, not even to "there is none"
    done = shell.run("sync", env=env)
    assert (done.code, done.err) == (1, "")
    told, counts = done.lines
    assert told.startswith("cannot read projects: ")
    assert counts == "1 transcript: 0 new, 0 updated, 0 unchanged, 1 could not be read."
    assert SESSION in shell.run("list", env=env).out


def test_only_a_session_of_another_agent_can_be_resumed(shell: Shell, env: dict[str, str]) -> None:
    own = shell.run("new", env=env).out.strip()
    done = shell.run("resume", own, env=env)
    assert (done.code, done.out) == (2, "")
    assert "hitherto chat" in done.err


def test_a_vanished_transcript_is_kept_and_brought_back(
    shell: Shell, env: dict[str, str], transcript: Path
) -> None:
    before = transcript.read_bytes()
    shell.run("sync", env=env)
    transcript.unlink()
    assert "1 kept after the agent deleted the file" in shell.run("sync", env=env).out
    done = shell.run("restore", SESSION, env=env)
    assert (done.code, done.out) == (0, f"{transcript}\n")
    assert transcript.read_bytes() == before
    assert transcript.stat().st_mode & 0o077 == 0
    again = shell.run("restore", SESSION, env=env)
    assert again.code == 4
    assert transcript.read_bytes() == before


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "1 damaged record skipped, 1 unknown record kept unchanged"),
        (2, "2 damaged records skipped, 2 unknown records kept unchanged"),
    ],
)
def test_a_report_distinguishes_one_and_many(number: int, said: str) -> None:
    assert said in report_sentence(Report(damaged_records=number, unknown_records=number))
    assert f"{number} kept after the agent deleted the file" in report_sentence(Report(kept=number))


def test_restore_without_a_checkpoint_needs_a_transcript(shell: Shell, env: dict[str, str]) -> None:
    own = shell.run("new", env=env).out.strip()
    assert shell.run("restore", own, env=env).code == 2


def test_watch_takes_in_what_changes_until_it_is_interrupted(
    shell: Shell, env: dict[str, str], transcript: Path, tmp_path: Path
) -> None:
    assert transcript.exists()
    with shell.start("sync", "--watch", env=env) as process:
        assert b"1 new" in line_of(process, "the first report")
        writer = transcripts.Writer(transcripts.session_id(2), "/home/ann/a project")
        writer.user("And a medlar?")
        writer.save(tmp_path / "claude" / "projects")
        assert b"1 new" in line_of(process, "the next report")
        process.send_signal(signal.SIGINT)
        _, err = output(process, "the command to end")
        assert process.returncode == 130, err
    assert "medlar" in shell.run("search", "medlar", env=env).out


def test_an_interrupt_inside_a_group_of_tasks_is_still_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), bare_interrupts():
        raise BaseExceptionGroup("tasks", [BaseExceptionGroup("inner", [KeyboardInterrupt()])])
    with pytest.raises(ExceptionGroup), bare_interrupts():
        raise ExceptionGroup("tasks", [ValueError()])


def stop_badly() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise RuntimeError("failed while stopping")


def test_what_fails_while_an_interrupt_stops_everything_is_still_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), bare_interrupts():
        stop_badly()
    with pytest.raises(RuntimeError), bare_interrupts():
        raise RuntimeError("on its own")
