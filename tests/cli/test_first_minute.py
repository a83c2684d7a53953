"""The first minute: `hitherto serve` finds the sessions of this user's agents, imports them, follows them, opens the page."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from hitherto.cli.commands.serve import is_own
from hitherto.cli.syncing import progress_sentence
from hitherto.cli.terminal.browser import browser_command
from hitherto.gateway.serve import ListenAddress
from hitherto.model import LOCAL
from hitherto.sources.sync.sync import Progress
from tests.claude import transcripts
from tests.cli.shell import Shell
from tests.support.waits import block_until, kill, line_of, output


@pytest.fixture
def env(shell: Shell) -> dict[str, str]:
    return {"HITHERTO_DATA_DIR": str(shell.folder / "data")}


def talk(shell: Shell, number: int, *texts: str) -> None:
    """A session of Claude Code in the home folder."""
    writer = transcripts.Writer(transcripts.session_id(number), str(shell.folder))
    for text in texts:
        writer.user(text)
    writer.save(shell.folder / "home" / ".claude" / "projects")


@contextmanager
def serving(
    shell: Shell, env: dict[str, str], *options: str
) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    with shell.start("serve", "--port", "0", "--json", *options, env=env) as process:
        yield process, json.loads(line_of(process, "a server to say where it is"))
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, err = output(process, "the server to end")
        assert err == b""


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def gone(processes: list[psutil.Process]) -> bool:
    return all(not each.is_running() or each.status() == psutil.STATUS_ZOMBIE for each in processes)


def listed(shell: Shell) -> int:
    return shell.inside(lambda sessions: sessions.count(LOCAL))


def test_a_server_imports_the_sessions_of_its_user_and_follows_them_until_it_ends(
    shell: Shell, env: dict[str, str]
) -> None:
    talk(shell, 1, "How do I prune a quince?")
    with serving(shell, env) as (process, told):
        block_until(lambda: listed(shell) == 1, "the session that was there")
        talk(shell, 2, "And a medlar?")
        block_until(lambda: listed(shell) == 2, "the session that came later")
        assert shell.run("page", "--json", env=env).json["page"].startswith(f"{told['address']}/#code=")
        beside = children(process)
        assert beside
    assert process.returncode == 0
    assert gone(beside)
    assert shell.run("page", env=env).out.startswith("http://127.0.0.1:8787/#code=")


def test_sync_ends_with_a_server_that_was_killed(shell: Shell, env: dict[str, str]) -> None:
    talk(shell, 1, "How do I prune a quince?")
    with serving(shell, env) as (process, _):
        block_until(lambda: listed(shell) == 1, "the session that was there")
        beside = children(process)
        kill(process)
    block_until(lambda: gone(beside), "sync to end")
    assert shell.run("page", env=env).out.startswith("http://127.0.0.1:8787/#code=")


@pytest.mark.parametrize(("option", "setting"), [("--no-sync", ""), ("--no-open", "off")])
def test_an_option_and_a_setting_turn_it_off(
    shell: Shell, env: dict[str, str], option: str, setting: str
) -> None:
    talk(shell, 1, "How do I prune a quince?")
    with serving(shell, {**env, "HITHERTO_SYNC": setting}, option) as (process, _):
        assert listed(shell) == 0
        assert children(process) == []


def test_only_a_server_of_its_user_alone_syncs() -> None:
    own, team = "sqlite:////home/ann/hitherto.db", "postgresql://db/hitherto"
    assert is_own(own, ListenAddress())
    assert is_own(own, ListenAddress(host="::1"))
    assert not is_own(team, ListenAddress())
    assert not is_own(own, ListenAddress(host="192.0.2.1"))
    assert not is_own(own, ListenAddress(origins=("https://hitherto.example.org",)))
    assert not is_own(own, ListenAddress(names=("hitherto.example.org",)))


def test_on_a_terminal_it_shows_what_it_reads_and_opens_the_page(shell: Shell, env: dict[str, str]) -> None:
    talk(shell, 1, "How do I prune a quince?")
    opened = shell.folder / "opened"
    browser = shell.folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o700)
    done = shell.terminal(
        "serve",
        "--port",
        "0",
        answers=[("Synced 1 new session.", "\x03")],
        env={**env, "BROWSER": str(browser)},
    )
    assert "1 session of Claude Code; reading … 0 of " in done.out
    block_until(opened.exists, "the browser to be started")
    way = Path(opened.read_text().strip().removeprefix("file://"))
    assert way.stat().st_mode & 0o077 == 0
    (link,) = [line.removeprefix("Open ") for line in done.lines if line.startswith("Open ")]
    assert f'url={link}"' in way.read_text()


def test_how_far_it_is_is_one_sentence() -> None:
    far = Progress(found=303, agents=("claude", "codex", "gemini"), size=4_800_000_000, done=2_100_000_000)
    assert progress_sentence(far) == (
        "303 sessions of Claude Code, Codex and Gemini CLI; reading … 2.1 of 4.8 GB"
    )


def test_there_is_a_browser_where_there_is_a_desktop_or_it_is_named(tmp_path: Path) -> None:
    desktop = tmp_path / "xdg-open"
    desktop.write_text("")
    desktop.chmod(0o700)
    assert browser_command({"PATH": str(tmp_path)}) is None
    assert browser_command({"PATH": str(tmp_path), "DISPLAY": ":0"}) == [str(desktop)]
    assert browser_command({"BROWSER": "firefox --new-tab:w3m"}) == ["firefox", "--new-tab"]
