"""Reading on a terminal: Markdown and diffs rendered, a pager, suggestions, the page in the browser."""

from __future__ import annotations

import json
import signal

import pytest

from hitherto.cli.terminal.output import pager_command
from hitherto.model import LOCAL, Draft, Text, ToolResult
from hitherto.service import Sessions
from tests.cli.shell import Shell, plain
from tests.support.waits import block_until, line_of, output

ANSWER = "Use **two** steps:\n\n- `parse`\n- [render](https://example.org)\n\n```python\ndef f():\n    return 1\n```\n"


@pytest.fixture
def session(shell: Shell) -> str:
    async def work(sessions: Sessions) -> str:
        made = await sessions.create(LOCAL, title="A parser")
        await sessions.append(LOCAL, made.id, Draft(role="user", parts=(Text(text="**How** do I?"),)))
        await sessions.append(LOCAL, made.id, Draft(role="assistant", parts=(Text(text=ANSWER),)))
        diff = {"type": "diff", "path": "a.py", "oldText": "one\n", "newText": "two\n"}
        await sessions.append(LOCAL, made.id, Draft(role="tool", parts=(ToolResult(id="1", output=diff),)))
        return made.id

    return shell.inside(work)


def test_a_terminal_renders_markdown_and_a_pipe_has_what_was_said(shell: Shell, session: str) -> None:
    shown = plain(shell.terminal("show", session, columns=80).out)
    assert "\n  **How** do I?\n" in shown  # what somebody typed stays as it is
    assert "\n  Use two steps:\n" in shown
    assert "\n   • parse\n" in shown
    assert "render (https://example.org)" in shown
    assert "    return 1\n" in shown
    assert "```" not in shown
    piped = shell.ok("show", session).out
    assert all(f"  {line}\n" in piped for line in ANSWER.splitlines() if line)


def test_a_pager_shows_it_and_can_be_left_out(shell: Shell, session: str) -> None:
    pager = shell.folder / "pager"
    pager.write_text("#!/bin/sh\necho PAGED; cat; echo END\n")
    pager.chmod(0o700)
    env = {"PAGER": str(pager)}
    paged = plain(shell.terminal("show", session, "--limit", "1", env=env).out)
    assert paged.startswith("PAGED\n")
    assert paged.index("For earlier messages") < paged.index("END")
    assert "PAGED" not in shell.terminal("show", session, "--no-pager", env=env).out
    assert "PAGED" not in shell.run("show", session, env=env).out
    assert [pager_command({"PAGER": each}) for each in ("", "cat", "no-such-pager")] == [None, None, None]


def test_a_misspelt_command_or_option_is_answered_with_the_nearest(shell: Shell) -> None:
    done = shell.invoke("lst")
    assert (done.code, "Did you mean list or stats?" in done.err) == (2, True)
    assert "Did you mean show?" in shell.invoke("shwo", "x").err
    assert "--all" in shell.invoke("list", "--al").err
    assert "Did you mean" not in shell.invoke("xyzzy").err


def test_open_opens_the_page_of_the_running_server_at_a_session(shell: Shell, session: str) -> None:
    opened, browser = shell.folder / "opened", shell.folder / "browser"
    browser.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o700)
    env = {"HITHERTO_DATA_DIR": str(shell.folder / "data"), "BROWSER": str(browser)}
    assert shell.run("open", session, env=env).code == 3
    with shell.start("serve", "--port", "0", "--json", "--no-sync", env=env) as process:
        told = json.loads(line_of(process, "a server to say where it is"))
        assert shell.run("open", "parser", env=env).out == ""
        block_until(opened.exists, "the browser to be started")
        assert f"url={told['address']}/s/{session}#code=" in opened.read_text()
        alone = shell.run("open", env={**env, "BROWSER": "no-such-browser"})
        assert alone.out.startswith(f"{told['address']}/#code=")
        process.send_signal(signal.SIGTERM)
        output(process, "the server to end")
