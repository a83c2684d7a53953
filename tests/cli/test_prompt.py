"""`hitherto prompt`: one prompt, answered by a real model layer that talks to a provider on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.cli.terminal.input import cancelling, interrupts
from hitherto.cli.terminal.output import clean_lines
from hitherto.cli.turns.stream_text import MARGIN, Cleaner, Margin
from hitherto.engines.mcp import servers
from hitherto.model import LOCAL, Entry, Session, Text, ToolResult, plain_text
from hitherto.permissions import REMEMBERED
from hitherto.service import Sessions
from tests.claude import transcripts
from tests.cli.shell import Shell
from tests.cli.test_output import HOSTILE, unsafe_in
from tests.engines.provider import CUT, PAUSE, Provider, Stop, Thinking, ToolUse, Used
from tests.support.paths import ROOT
from tests.support.waits import NEVER, ended, is_set, or_killed, output, until

WIRES = ("anthropic:claude-sonnet-5", "openai:gpt-5")
SERVE = """
import runpy, sys
sys.path.insert(0, {root!r})
sys.argv[1:] = ["stdio"]
runpy.run_module("tests.engines.mcp.sdk_server", run_name="__main__")
"""
EDIT = ToolUse("edit_file", {"path": "notes.txt", "old": "one", "new": "two"}, id="edit")


@pytest.fixture
def here(shell: Shell, monkeypatch: pytest.MonkeyPatch, models: dict[str, str]) -> Shell:
    """A shell whose commands run in its folder, with a file there, and find a model."""
    assert models
    monkeypatch.chdir(shell.folder)
    Path("notes.txt").write_text("one\n")
    return shell


def sessions_of(shell: Shell) -> list[Session]:
    async def work(sessions: Sessions) -> list[Session]:
        return list((await sessions.find(LOCAL)).sessions)

    return shell.inside(work)


def entries_of(shell: Shell, session_id: str | None = None) -> list[Entry]:
    """What was said in a session, or in the only one."""

    async def work(sessions: Sessions) -> list[Entry]:
        return list((await sessions.history(LOCAL, session_id or only.id)).entries)

    if session_id is None:
        (only,) = sessions_of(shell)
    return shell.inside(work)


def texts_of(shell: Shell, session_id: str | None = None) -> list[str]:
    return [plain_text(entry) for entry in entries_of(shell, session_id)]


def asked(provider: Provider, number: int = -1) -> list[str]:
    """The texts of the conversation that the model was sent."""
    found: list[str] = []
    for message in provider.requests[number]["messages"]:
        parts = message["content"] if message["role"] != "system" else []
        found += [parts] if isinstance(parts, str) else [part["text"] for part in parts if "text" in part]
    return found


def said_until(process: subprocess.Popen[bytes], wanted: bytes) -> bytes:
    """All that a command says until it has said this."""
    assert process.stdout is not None
    seen = b""
    with or_killed(process, f"{wanted!r}"):
        while wanted not in seen:
            piece = os.read(process.stdout.fileno(), 65_536)
            assert piece, seen
            seen += piece
    return seen


# What is printed


@pytest.mark.parametrize("model", WIRES)
def test_the_answer_comes_as_it_is_said_and_nothing_else_comes(
    shell: Shell, provider: Provider, models: dict[str, str], model: str
) -> None:
    provider.script([Thinking("A thought."), "The first ", PAUSE, "and the second."])
    with shell.start("prompt", "--model", model, "Count to two.", env=models) as process:
        seen = said_until(process, b"first ")
        assert seen == b"The first "
        provider.go.set()
        out, err = output(process, "the command to end")
    assert (process.returncode, out, err) == (0, b"and the second.\n", b"")
    (session,) = sessions_of(shell)
    assert (session.title, session.cwd) == ("Count to two.", str(shell.folder))
    assert texts_of(shell) == ["Count to two.", "The first and the second."]


def test_told_to_be_verbose_it_tells_on_stderr_what_happens(here: Shell, provider: Provider) -> None:
    provider.script([Thinking("I must edit."), "I edit it.", EDIT], ["Done."])
    done = here.ok("prompt", "-v", "--mode", "acceptEdits", "Edit the notes.")
    assert done.out == "I edit it.\nDone.\n"
    told = done.err.splitlines()
    assert told[0] == "I must edit."
    assert "  → Edit notes.txt" in told
    assert {"  -one", "  +two"} <= set(told)
    assert told[-1] == f"  session {sessions_of(here)[0].id}"


def test_on_a_terminal_it_tells_beside_the_answer(
    shell: Shell, provider: Provider, models: dict[str, str]
) -> None:
    provider.script([Thinking("I wonder."), "It is."])
    target = shell.folder / "answer"
    done = shell.terminal("prompt", "Is it?", env=models, stdout=target)
    assert target.read_text() == "It is.\n"
    assert "I wonder." in done.out
    assert "session 0" in done.out
    assert shell.terminal("prompt", "Is it?", env=models).out.startswith("Noted.\n")


def test_json_is_one_document_at_the_end(here: Shell, provider: Provider) -> None:
    provider.script(["I look.", ToolUse("list_files", {})], ["Nothing.", Used(60, 8, cache_read=50)])
    told = here.ok("prompt", "--json", "Look around.").json
    (session,) = sessions_of(here)
    assert told["session"] == session.id
    assert (told["text"], told["stop_reason"], told["requests"]) == ("Nothing.", "end_turn", 2)
    assert (told["usage"]["input"], told["usage"]["cache_read"]) == (70, 50)
    assert told["cost"] == told["usage"]["cost"] > 0
    ids = [entry.id for entry in entries_of(here)]
    assert (told["prompt"], told["answer"]) == (ids[0], ids[-1])


def test_a_stream_of_json_has_every_step_in_order(here: Shell, provider: Provider) -> None:
    provider.script(["Hel", "lo."])
    told = [json.loads(line) for line in here.ok("prompt", "--stream-json", "Hi.").lines]
    assert [each["update"] for each in told] == ["stored", "said", "said", "stored", "context", "ended"]
    assert [each["text"] for each in told if each["update"] == "said"] == ["Hel", "lo."]
    assert told[0]["entry"]["parts"] == [{"type": "text", "text": "Hi."}]
    assert told[-1]["text"] == "Hello."


def test_what_a_model_says_cannot_command_a_terminal(
    shell: Shell, provider: Provider, models: dict[str, str]
) -> None:
    said = HOSTILE.replace("\ud800", "")
    tool = ToolUse(f"no{said}tool", {"path": said})
    provider.script([Thinking(said), *said, tool], [said])
    in_pipes = shell.run("prompt", "-v", "Hi.", env=models)
    assert in_pipes.out.startswith("abcdefgh\nover\n")
    assert [unsafe_in(in_pipes.out), unsafe_in(in_pipes.err)] == [[], []]
    provider.script([Thinking(said), *said, tool], [said])
    assert unsafe_in(shell.terminal("prompt", "Hi.", env=models).out) == []


# What is asked


def test_the_prompt_comes_from_the_argument_or_from_stdin(here: Shell, provider: Provider) -> None:
    here.ok("prompt", "from the argument")
    here.ok("prompt", "-", stdin="from stdin\n")
    here.ok("prompt", stdin="also\nfrom stdin")
    assert [asked(provider, number) for number in range(3)] == [
        ["from the argument"],
        ["from stdin"],
        ["also\nfrom stdin"],
    ]


def test_a_session_goes_on_with_all_that_was_said(here: Shell, provider: Provider) -> None:
    here.ok("prompt", "--add-dir", "/usr", "One.")
    (session,) = sessions_of(here)
    assert session.additional_directories == ("/usr",)
    here.ok("prompt", "--session", session.id[:13], "Two.")
    assert asked(provider) == ["One.", "Noted.", "Two."]
    assert [each.id for each in sessions_of(here)] == [session.id]
    refused = here.invoke("prompt", "--session", session.id, "--cwd", "/usr", "Three.")
    assert (refused.code, "[usage]" in refused.err) == (2, True)


def test_the_options_reach_the_model(here: Shell, provider: Provider) -> None:
    here.ok("prompt", "--system", "You are a quince.", "--append-system", "Be brief.", "Hi.")
    system = json.dumps([each for each in provider.requests[0]["messages"] if each["role"] == "system"])
    assert "You are a quince." in system
    assert "Be brief." in system


@pytest.fixture
def transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a session of another agent."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path / "data"))
    uuid = transcripts.session_id(1)
    writer = transcripts.Writer(uuid, str(tmp_path))
    writer.user("How do I prune a quince tree?")
    writer.say("In late winter.")
    writer.save(tmp_path / "claude" / "projects")
    return f"claude:{uuid}"


def test_a_session_of_another_agent_goes_on_as_one_fork(
    here: Shell, provider: Provider, transcript: str
) -> None:
    here.ok("sync")
    first = here.ok("prompt", "--session", transcript, "And a pear?")
    assert asked(provider) == ["How do I prune a quince tree?", "In late winter.", "And a pear?"]
    (fork,) = [session for session in sessions_of(here) if session.parent == transcript]
    assert fork.id in first.err
    here.ok("prompt", "--session", transcript, "And a plum?")
    assert asked(provider)[-3:] == ["And a pear?", "Noted.", "And a plum?"]
    assert len(sessions_of(here)) == 1  # the fork takes its place
    assert texts_of(here, transcript) == ["How do I prune a quince tree?", "In late winter."]


# What fails


def test_without_a_model_it_says_what_to_set_and_stores_nothing(
    here: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = here.ok("new", "--title", "kept").out.strip()
    monkeypatch.delenv("HITHERTO_MODEL")
    for arguments in ((), ("--session", session_id)):
        done = here.invoke("prompt", *arguments, "Hi.")
        assert (done.code, done.out) == (6, "")
        assert done.err.endswith("[model_missing]\n")
        assert "HITHERTO_MODEL" in done.err
    (session,) = sessions_of(here)
    assert (session.id, session.message_count) == (session_id, 0)


def test_a_refused_key_is_told_plainly(here: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-wrong-key")
    done = here.invoke("prompt", "Hi.")
    assert (done.code, done.out) == (6, "")
    assert done.err.endswith("[model_refused]\n")
    assert "a-wrong-key" not in done.err
    (session,) = sessions_of(here)
    assert session.id in done.err
    assert (session.status, texts_of(here)) == ("failed", ["Hi."])


def test_an_answer_that_breaks_off_is_kept_and_told(here: Shell, provider: Provider) -> None:
    provider.script(["half an ans", CUT])
    done = here.invoke("prompt", "Hi.")
    assert (done.code, done.out) == (6, "half an ans\n")
    assert done.err.endswith("[model_unreachable]\n")
    assert texts_of(here) == ["Hi.", "half an ans"]


@pytest.mark.parametrize(
    ("reply", "options", "reason"),
    [
        (["So far", Stop("max_tokens")], (), "output limit of the model"),
        (["No.", Stop("refusal")], (), "refused"),
        (["Look.", ToolUse("list_files", {})], ("--max-turns", "1"), "maximum number of model requests"),
    ],
)
def test_an_answer_that_is_not_whole_is_no_success(
    here: Shell, provider: Provider, reply: list[Any], options: tuple[str, ...], reason: str
) -> None:
    provider.script(reply)
    done = here.invoke("prompt", *options, "Hi.")
    assert (done.code, done.out) == (6, f"{reply[0]}\n")
    assert reason in done.err


def test_a_busy_session_is_left_alone(here: Shell, provider: Provider) -> None:
    session_id = here.ok("new").out.strip()

    async def hold(sessions: Sessions) -> None:
        await sessions.leases.acquire(LOCAL, session_id, "somebody", ttl_ms=3_600_000)

    here.inside(hold)
    done = here.invoke("prompt", "--session", session_id, "Hi.")
    assert (done.code, done.out) == (4, "")
    assert done.err.endswith("[busy]\n")
    assert entries_of(here, session_id) == []
    assert provider.requests == []


@pytest.mark.parametrize(
    ("arguments", "stdin", "code"),
    [
        (("prompt",), "", "invalid_input"),
        (("prompt", " \n"), "", "invalid_input"),
        (("prompt",), "NUL \0", "invalid_input"),
        (("prompt", "--mode", "never", "x"), "", "usage"),
        (("prompt", "--max-turns", "0", "x"), "", "usage"),
        (("prompt", "--cwd", "missing", "x"), "", "usage"),
        (("prompt", "--mcp", "unnamed", "x"), "", "usage"),
        (("prompt", "--mcp", "name='", "x"), "", "usage"),
        (("prompt", "--mcp-config", "missing.json", "x"), "", "usage"),
        (("prompt", "--mcp-config", "notes.txt", "x"), "", "usage"),
        (("prompt", "--mcp-config", "bare.json", "x"), "", "usage"),
        (("prompt", "--session", "missing", "x"), "", "session_not_found"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_stores_nothing(
    here: Shell, arguments: tuple[str, ...], stdin: str, code: str
) -> None:
    Path("bare.json").write_text('{"mcpServers": {"x": {"args": []}}}')
    done = here.invoke(*arguments, stdin=stdin)
    assert done.code in (2, 3)
    assert done.err.endswith(f"[{code}]\n")
    assert sessions_of(here) == []


# ^C and readers that leave


def test_an_interrupt_cancels_the_turn_and_keeps_what_was_said(
    shell: Shell, provider: Provider, models: dict[str, str]
) -> None:
    provider.script(["half an ans", PAUSE, "wer"])
    with shell.start("prompt", "Hi.", env=models) as process:
        said_until(process, b"half an ans")
        process.send_signal(signal.SIGINT)
        out, err = output(process, "the command to end")
    assert (process.returncode, out, err) == (130, b"\n", b"cancelled\n")
    is_set(provider.left, "the connection to close")
    (session,) = sessions_of(shell)
    assert (session.status, texts_of(shell)) == ("idle", ["Hi.", "half an ans"])
    assert shell.run("prompt", "--session", session.id, "Again.", env=models).out == "Noted.\n"
    assert asked(provider) == ["Hi.", "half an ans", "Again."]


def test_an_interrupt_ends_a_running_command_of_a_tool(
    shell: Shell, provider: Provider, models: dict[str, str]
) -> None:
    provider.script(
        [ToolUse("run_command", {"command": "echo $$ > pid; echo begun; exec tail -f /dev/null"})]
    )
    with shell.start(
        "prompt", "--stream-json", "--mode", "bypassPermissions", "Wait.", env=models
    ) as process:
        said_until(process, b"begun\\n")
        pid = int((shell.folder / "pid").read_text())
        os.kill(pid, 0)
        process.send_signal(signal.SIGINT)
        output(process, "the command to end")
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert isinstance(result := entries_of(shell)[-1].parts[0], ToolResult)
    assert result.is_error


def test_the_second_interrupt_ends_whatever_does_not_heed_the_first() -> None:
    heard: list[str] = []

    async def stubborn() -> None:
        with interrupts(), cancelling(lambda: heard.append("once")):
            os.kill(os.getpid(), signal.SIGINT)
            await until(lambda: heard, "the first interrupt to be heard")
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(stubborn())
    assert heard == ["once"]


def test_a_reader_that_leaves_cancels_the_turn_quietly(
    shell: Shell, provider: Provider, models: dict[str, str]
) -> None:
    provider.script(["first line\n", PAUSE, "second\n", ToolUse("list_files", {})])
    with shell.start("prompt", "Hi.", env=models) as process:
        said_until(process, b"first line\n")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        provider.go.set()
        assert ended(process, "the command to end") == 0
        assert process.stderr.read() == b""
    assert texts_of(shell) == ["Hi.", "first line\nsecond\n"]
    assert sessions_of(shell)[0].status == "idle"
    assert len(provider.requests) == 1


# Tools and what they may do


def test_a_tool_really_edits_the_file_and_the_model_is_told(here: Shell, provider: Provider) -> None:
    provider.script([EDIT], lambda body: [f"{json.dumps(body['messages'][-1])}"])
    done = here.ok("prompt", "--mode", "acceptEdits", "Edit the notes.")
    assert Path("notes.txt").read_text() == "two\n"
    assert "Edited" in done.out
    assert [entry.role for entry in entries_of(here)] == ["user", "assistant", "tool", "assistant"]


def test_without_a_terminal_what_would_be_asked_is_refused(here: Shell, provider: Provider) -> None:
    provider.script([EDIT], ["As you wish."])
    assert here.ok("prompt", "Edit the notes.").out == "As you wish.\n"
    assert Path("notes.txt").read_text() == "one\n"
    assert "there is nobody to ask" in json.dumps(provider.requests[1])


@pytest.mark.parametrize(
    ("answer", "text", "remembered"),
    [("y", "two\n", None), ("a", "two\n", True), ("x\nN", "one\n", None), ("d", "one\n", False)],
)
def test_on_a_terminal_it_asks_before_a_tool_acts(
    shell: Shell, provider: Provider, models: dict[str, str], answer: str, text: str, remembered: bool | None
) -> None:
    notes = shell.folder / "notes.txt"
    notes.write_text("one\n")
    provider.script([EDIT], ["As you wish."])
    done = shell.terminal("prompt", "Edit the notes.", env=models, answers=[("ever: ", f"{answer}\n")])
    assert (done.code, notes.read_text()) == (0, text)
    assert "path: notes.txt" in done.out
    (session,) = sessions_of(shell)
    assert session.meta.get(REMEMBERED, {}).get("edit_file") is remembered


@pytest.mark.parametrize("form", ["command", "file"])
def test_mcp_servers_of_the_command_line_offer_their_tools(
    here: Shell, provider: Provider, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "START_SECONDS", NEVER)
    words = [sys.executable, "-c", SERVE.format(root=str(ROOT))]
    if form == "command":
        options = ["--mcp", f"words={shlex.join(words)}"]
    else:
        config = {"mcpServers": {"words": {"command": words[0], "args": words[1:], "disabled": False}}}
        Path("servers.json").write_text(json.dumps(config))
        options = ["--mcp-config", "servers.json"]
    provider.script(lambda body: [ToolUse(named(body, "echo"), {"text": "quince"})], ["Done."])
    here.ok("prompt", *options, "--mode", "bypassPermissions", "Say quince.")
    assert isinstance(result := entries_of(here)[2].parts[0], ToolResult)
    assert result.content == (Text(text="quince"),)


def test_a_server_that_does_not_start_is_told_and_the_answer_comes(here: Shell) -> None:
    done = here.ok("prompt", "-v", "--mcp", "gone=no-such-program-anywhere", "Hi.")
    assert done.out == "Noted.\n"
    assert re.search(r"! .*gone", done.err)


def named(body: dict[str, Any], ending: str) -> str:
    """The full name under which a tool is offered."""
    names = [str(tool["function"]["name"]) for tool in body["tools"]]
    return next(name for name in names if name.endswith(ending))


# Text in pieces

PIECES = st.lists(
    st.sampled_from(
        ("\x1b", "[", "31", "m", "]", "0;t", "\x07", "\\", "\x9b", "\x9d", "\x9c", "\x90", "P", "(", "a b")
    )
    | st.text(max_size=5),
    max_size=20,
)


@given(PIECES.filter(lambda pieces: "\r" not in "".join(pieces)))
def test_text_in_pieces_is_cleaned_as_if_it_had_come_whole(pieces: list[str]) -> None:
    cleaner = Cleaner()
    assert "".join([*map(cleaner.clean, pieces), cleaner.rest()]) == clean_lines("".join(pieces))


def test_a_line_break_in_two_pieces_is_one_and_an_endless_sequence_does_not_hide_the_rest() -> None:
    cleaner = Cleaner()
    assert [cleaner.clean("a\r"), cleaner.clean("\nb")] == ["a", "\nb"]
    shown = "".join(cleaner.clean("\x1b]0;" + "x" * 100) for _ in range(100))
    assert len(shown) > 9_000


@given(st.lists(st.text("ab \n\t\u4e2d", max_size=30), max_size=8), st.integers(4, 20))
def test_every_line_stands_behind_the_margin_and_fits(pieces: list[str], width: int) -> None:
    margin = Margin()
    shown = "".join(margin.set(piece, width) for piece in pieces)
    lines = [line for line in shown.split("\n") if line]
    assert all(line.startswith(MARGIN) and len(line) <= width for line in lines)
    assert "".join(shown.split()) == "".join("".join(pieces).split())


def test_without_a_width_only_the_margin_is_added() -> None:
    margin = Margin()
    assert margin.set("one\n\ntw") + margin.set("o\n") == "  one\n\n  two\n"
