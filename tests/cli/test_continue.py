"""`continue`, and what `sync`, `sources` and `restore` do for sessions that their agent deletes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.sources.sync.recordings import link_recording
from tests.claude import transcripts
from tests.cli.shell import Shell
from tests.sources.codex.codex_files import SESSION as THREAD
from tests.sources.codex.codex_files import CodexWriter
from tests.support.waits import LIMIT

UUID = transcripts.session_id(1)
SESSION = f"claude:{UUID}"
DAY = 86_400


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HITHERTO_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    (tmp_path / "work").mkdir()


def transcript(folder: Path, number: int = 1, *, days: int = 0) -> Path:
    """A transcript that was written to last so many days ago."""
    writer = transcripts.Writer(transcripts.session_id(number), str(folder / "work"))
    writer.user(f"How do I prune a quince tree? {number}")
    writer.say("In late winter.")
    path = writer.save(folder / "claude_config_dir" / "projects")
    at = time.time() - days * DAY
    os.utime(path, (at, at))
    return path


def test_continue_prints_the_command_and_says_how_faithful_it_is(shell: Shell, tmp_path: Path) -> None:
    transcript(tmp_path)
    shell.ok("sync")
    done = shell.ok("continue", SESSION, "--in", "codex")
    assert done.err == "replayed: 2 messages copied into a new codex session\n"
    (made,) = (tmp_path / "codex_home").rglob("*.jsonl")
    assert done.out == f"cd {tmp_path / 'work'} && codex resume {made.stem[-36:]}\n"
    there = f"codex:{made.stem[-36:]}"
    assert f"continued in: {there}" in shell.ok("show", SESSION).lines
    assert f"continues: {SESSION}" in shell.ok("show", there).lines
    assert shell.ok("sync", "--json").json["unchanged"] == 2


def test_a_session_that_is_the_agents_own_is_only_resumed(shell: Shell, tmp_path: Path) -> None:
    transcript(tmp_path)
    shell.ok("sync")
    told = shell.ok("continue", SESSION, "--in", "claude", "--json").json
    assert (told["fidelity"], told["command"], told["path"]) == ("native", ["claude", "--resume", UUID], None)


def test_continue_exec_goes_on_in_the_folder(shell: Shell, tmp_path: Path) -> None:
    transcript(tmp_path)
    shell.ok("sync")
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PWD: $1"\n')
    program.chmod(0o755)
    env = {name: os.environ[name] for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HITHERTO_DATA_DIR")}
    path = f"{program.parent}:/usr/bin:/bin"
    done = shell.run("continue", SESSION, "--in", "codex", "--exec", env={**env, "PATH": path})
    assert (done.code, done.out) == (0, f"{tmp_path / 'work'}: resume\n"), done.err


def test_an_agent_that_cannot_be_started_is_named(shell: Shell, tmp_path: Path) -> None:
    path = transcript(tmp_path)
    shell.ok("sync")
    folder = Path.cwd()
    try:
        with pytest.MonkeyPatch.context() as here:
            here.setenv("PATH", str(tmp_path))
            done = shell.invoke("resume", SESSION, "--exec")
            assert (done.code, "cannot start 'claude'" in done.err) == (2, True), done
            (tmp_path / "work").rename(tmp_path / "moved")
            assert "hitherto move" in shell.invoke("resume", SESSION, "--exec").err
    finally:
        os.chdir(folder)
    (tmp_path / "moved").rename(tmp_path / "work")
    path.unlink()
    shell.ok("sync")
    assert f"hitherto restore {SESSION}" in shell.ok("resume", SESSION).err


def rollout(folder: Path, home: str = "codex_home", *, archived: bool = False) -> Path:
    """A rollout of Codex's."""
    made = CodexWriter(cwd=str(folder / "work")).talk("Prune the quince", "Done.")
    return made.save(folder / home, archived=archived)


def test_where_its_folder_is_gone_a_session_is_not_gone_on_with(shell: Shell, tmp_path: Path) -> None:
    transcript(tmp_path)
    rollout(tmp_path)
    shell.ok("sync")
    (tmp_path / "work").rename(tmp_path / "moved")
    sessions = {"claude": SESSION, "codex": f"codex:{THREAD}"}
    for agent, session in sessions.items():
        for arguments in (("resume", session), ("continue", session, "--in", agent)):
            done = shell.invoke(*arguments)
            assert (done.code, done.out) == (2, ""), done
            assert f"there is no folder '{tmp_path / 'work'}'" in done.err
            assert f"`hitherto move --folder {tmp_path / 'work'} FOLDER`" in done.err
            assert "--cwd" in done.err
    for agent, session in sessions.items():
        elsewhere = ("--cwd", str(tmp_path / "moved"))
        told = shell.ok("continue", session, "--in", agent, *elsewhere, "--json").json
        assert (told["fidelity"], told["cwd"]) == ("native", str(tmp_path / "moved"))


def test_a_thread_that_codex_has_put_away_is_taken_out_first(shell: Shell, tmp_path: Path) -> None:
    path = rollout(tmp_path, archived=True)
    shell.ok("sync")
    line = f"cd {tmp_path / 'work'} && codex unarchive {THREAD} && codex resume {THREAD}\n"
    assert shell.ok("resume", f"codex:{THREAD}").out == line
    assert shell.ok("continue", f"codex:{THREAD}", "--in", "codex").out == line
    command = shell.ok("resume", f"codex:{THREAD}", "--json").json["command"]
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$*"\n')
    program.chmod(0o755)
    done = subprocess.run(
        command,
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    assert done.stdout == f"unarchive {THREAD}\nresume {THREAD}\n"
    path.unlink()
    rollout(tmp_path)
    plain = f"cd {tmp_path / 'work'} && codex resume {THREAD}\n"
    assert shell.ok("resume", f"codex:{THREAD}").out == plain, "since the last sync it was taken out"
    shell.ok("sync")
    (tmp_path / "codex_home" / "sessions").rename(tmp_path / "codex_home" / "away")
    rollout(tmp_path, archived=True)
    assert shell.ok("resume", f"codex:{THREAD}").out == line, "since the last sync it was put away"


def test_a_session_where_its_agent_does_not_look_is_said_to_be_there(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HITHERTO_SOURCES", f"codex={tmp_path / 'backup'}")
    path = rollout(tmp_path, "backup")
    shell.ok("sync")
    done = shell.ok("resume", f"codex:{THREAD}")
    assert f"Codex does not read {path}" in done.err
    assert f"hitherto continue codex:{THREAD}" in done.err

    async def recorded(sessions: Sessions) -> str:
        session = await sessions.create(LOCAL, cwd=str(tmp_path))
        await link_recording(sessions, LOCAL, session, "codex", THREAD)
        return session.id

    assert f"Codex does not read {path}" in shell.ok("resume", shell.inside(recorded)).err
    rollout(tmp_path)
    path.unlink()
    shell.ok("sync")
    assert shell.ok("resume", f"codex:{THREAD}").err == ""


def test_a_recording_is_gone_on_with_in_its_agent(shell: Shell) -> None:
    async def recorded(sessions: Sessions) -> str:
        session = await sessions.create(LOCAL, cwd="/srv")
        await link_recording(sessions, LOCAL, session, "opencode", "ses_1")
        return session.id

    session = shell.inside(recorded)
    assert shell.ok("resume", session).out == "cd /srv && opencode --session ses_1\n"
    assert "records: opencode:ses_1" in shell.ok("show", session).out
    assert f"recorded in: {session}" in shell.ok("show", "opencode:ses_1").out


@pytest.mark.parametrize(
    ("arguments", "said"), [((), "--cwd"), (("--cwd", "/no/such/folder"), "/no/such/folder")]
)
def test_without_a_folder_continue_says_what_is_missing(
    shell: Shell, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    own = shell.inside(lambda sessions: sessions.create(LOCAL)).id
    shell.ok("append", own, "Hello")
    done = shell.invoke("continue", own, "--in", "claude", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not (tmp_path / "claude_config_dir").exists()


def test_sync_and_sources_tell_what_the_agent_will_delete(shell: Shell, tmp_path: Path) -> None:
    for number, days in enumerate((0, 1, *[25] * 7)):
        transcript(tmp_path, number, days=days)
    done = shell.ok("sync")
    assert done.lines[1] == "Claude Code will delete 7 sessions within 7 days; Hitherto keeps them:"
    assert f"claude:{transcripts.session_id(2)}  How do I prune a quince tree? 2" in done.lines[2]
    assert (len(done.lines), done.lines[-1]) == (8, "  and 2 more")
    told = shell.ok("sync", "--json").json["expiring"]
    assert {each["session"] for each in told} == {f"claude:{transcripts.session_id(n)}" for n in range(2, 9)}
    (row,) = (row for row in shell.ok("sources", "--json").json["sources"] if row["source"] == "claude")
    assert row["expiring"] == 7
    assert "7 will be deleted within 7 days" in shell.ok("sources").out


def test_files_beyond_the_budget_are_not_kept_and_what_was_read_of_them_is(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(tmp_path)
    monkeypatch.setenv("HITHERTO_RAW_BUDGET", "0")
    shell.ok("sync")
    path.unlink()
    done = shell.invoke("restore", SESSION)
    assert (done.code, done.out) == (2, "")
    assert "HITHERTO_RAW_BUDGET" in done.err
    assert "In late winter." in shell.ok("show", SESSION).out


def test_files_that_were_kept_go_when_the_budget_gets_smaller(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(tmp_path)
    whole = path.read_bytes()
    shell.ok("sync")
    path.unlink()
    shell.ok("restore", SESSION)
    assert path.read_bytes() == whole
    monkeypatch.setenv("HITHERTO_RAW_BUDGET", "10")
    shell.ok("sync")
    path.unlink()
    assert shell.invoke("restore", SESSION).code == 2


def test_a_file_whose_beginning_is_not_kept_is_not_written_back(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(tmp_path)
    monkeypatch.setenv("HITHERTO_RAW_BUDGET", "0")
    shell.ok("sync")
    monkeypatch.delenv("HITHERTO_RAW_BUDGET")
    writer = transcripts.Writer(UUID, str(tmp_path / "work"))
    more = (
        writer.user("How do I prune a quince tree? 1"),
        writer.say("In late winter."),
        writer.user("And a pear?"),
    )
    with path.open("ab") as file:
        file.write(transcripts.compact(more[-1]))
    assert shell.ok("sync", "--json").json["updated"] == 1
    path.unlink()
    assert "no raw copy" in shell.invoke("restore", SESSION).err
    assert not path.exists()


def test_a_session_that_came_from_no_file_is_not_written_back(shell: Shell) -> None:
    own = shell.ok("new").out.strip()
    assert "not synced from another agent" in shell.invoke("restore", own).err


def test_doctor_examines_a_transcript_and_writes_a_mended_session(shell: Shell, tmp_path: Path) -> None:
    writer = transcripts.Writer(UUID, str(tmp_path / "work"))
    writer.user("How do I prune a quince tree?")
    writer.call("Bash", {"command": "prune"})
    path = writer.save(tmp_path / "claude_config_dir" / "projects")
    before = path.read_bytes()
    shell.ok("sync")
    told = shell.invoke("doctor", SESSION)
    assert (told.code, told.out.split("\t")[:2]) == (1, ["unanswered_calls", "1"])
    assert (
        told.err
        == f"`hitherto doctor {SESSION} --repair` writes a new session without this. The file stays as it is.\n"
    )
    done = shell.ok("doctor", SESSION, "--repair", "--json").json
    assert [each["kind"] for each in done["findings"]] == ["unanswered_calls"]
    assert "not in the transcript" in shell.ok("show", done["mended"]).out
    assert f"continues: {SESSION}" in shell.ok("show", done["mended"]).lines
    assert path.read_bytes() == before
    whole = shell.ok("doctor", done["mended"])
    assert (whole.out, whole.err) == ("", "Nothing is wrong with this transcript.\n")
    assert shell.invoke("doctor", "pi:1").code == 2
