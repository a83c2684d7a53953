"""The picker: `hitherto` alone on a terminal, and wherever a session's name is left out."""

from __future__ import annotations

import pytest

from hitherto.model import LOCAL, Session
from hitherto.service import Sessions
from tests.claude import transcripts
from tests.cli.shell import Shell, plain
from tests.support.repositories import repository

DOWN, ESCAPE, TAB, TAGS, KEYS, READ = "\x1b[B", "\x1b", "\t", "\x14", "\x07", "\x12"
PROJECT = "\x10"
QUINCE, MEDLAR = "How do I prune a quince?", "When is a medlar ripe?"


@pytest.fixture
def env(shell: Shell) -> dict[str, str]:
    """Two sessions of Claude Code, the quince newer, and a program that stands for it."""
    for number, (text, answer) in enumerate(((MEDLAR, "When it has bletted."), (QUINCE, "In late winter."))):
        writer = transcripts.Writer(transcripts.session_id(number + 1), str(shell.folder))
        writer.now += number * 1_000_000
        writer.user(text)
        writer.say(answer)
        writer.save(shell.folder / "home" / ".claude" / "projects")
    program = shell.folder / "bin" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "RESUMED $*"\n')
    program.chmod(0o700)
    path = f"{program.parent}:{shell.environment()['PATH']}"
    return {"HITHERTO_DATA_DIR": str(shell.folder / "data"), "PATH": path}


def sessions_of(shell: Shell) -> dict[str, Session]:
    async def work(sessions: Sessions) -> dict[str, Session]:
        page = await sessions.find(LOCAL)
        return {str(each.title): each for each in page.sessions}

    return shell.inside(work)


def test_the_first_start_syncs_and_what_is_typed_finds_the_session_that_enter_resumes(
    shell: Shell, env: dict[str, str]
) -> None:
    typed = [("late winter", "medl"), ("bletted", "\r")]
    done = shell.terminal(answers=typed, env=env, columns=80)
    assert done.code == 0
    assert f"RESUMED --resume {transcripts.session_id(1)}" in done.out
    assert "2 transcripts: 2 new" in done.out


def test_selected_sessions_are_tagged_the_keys_are_shown_and_escape_leaves(
    shell: Shell, env: dict[str, str]
) -> None:
    shell.run("sync", env=env)
    typed = [
        ("late winter", TAB + TAB + TAGS),
        ("Tags: ", "fruit garden\r"),
        ("late winter", KEYS),
        ("this project", ESCAPE),
    ]
    done = shell.terminal(answers=typed, env=env, columns=140)
    assert done.code == 0
    assert {each.tags for each in sessions_of(shell).values()} == {("fruit", "garden")}


def test_a_session_is_read_from_the_picker_and_chosen_where_its_name_is_left_out(
    shell: Shell, env: dict[str, str]
) -> None:
    shell.run("sync", env=env)
    done = shell.terminal(
        answers=[("late winter", READ), ("title:", ""), ("late winter", ""), ("late winter", ESCAPE)],
        env=env,
    )
    assert f"title: {QUINCE}" in plain(done.out)
    shown = shell.terminal("show", answers=[("late winter", DOWN), ("bletted", "\r")], env=env)
    assert f"title: {MEDLAR}" in plain(shown.out)
    left = shell.terminal("resume", answers=[("late winter", ESCAPE)], env=env)
    assert left.code == 130


def test_ctrl_p_limits_the_list_to_the_project_that_the_folder_is_of(
    shell: Shell, env: dict[str, str]
) -> None:
    shell.run("sync", env=env)
    repository(shell.folder)

    async def placed(sessions: Sessions) -> None:
        """The medlar is of the project that the folder is of, in another folder of it; the quince is of another."""
        names = iter(("elsewhere", shell.folder.name))
        for each in (await sessions.find(LOCAL)).sessions:
            await sessions.move(LOCAL, each.id, "/srv/garden")
            await sessions.projects.assign(LOCAL, each.id, next(names))

    shell.inside(placed)
    typed = [("late winter", PROJECT), ("bletted", "\r")]
    done = shell.terminal("show", answers=typed, env=env)
    assert f"title: {MEDLAR}" in plain(done.out)


def test_without_a_terminal_there_is_help_and_a_session_has_to_be_named(shell: Shell) -> None:
    assert "Print the completion script" in shell.ok().out
    for command in ("show", "resume"):
        done = shell.invoke(command)
        assert (done.code, "Missing argument 'SESSION'." in done.err) == (2, True)
