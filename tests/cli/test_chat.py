"""`hitherto chat`: on a terminal and without one, with a provider on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from hitherto.cli.terminal.diffs import LINE_CHARS, LINES, change, request
from hitherto.cli.terminal.input import bare_interrupts, interrupts
from hitherto.cli.terminal.line_reader import Interrupted, LineReader
from hitherto.cli.turns.permission import QUESTION
from hitherto.model import LOCAL, Text, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.cli.shell import COLOURS, Done, Shell, plain
from tests.cli.test_output import HOSTILE, unsafe_in
from tests.cli.test_prompt import asked, entries_of, sessions_of, texts_of
from tests.engines.provider import PAUSE, Provider, Thinking, ToolUse
from tests.support.waits import arrives, ended, line_of

T = TypeVar("T")
UP, LEFT, BACKSPACE = "\x1b[A", "\x1b[D", "\x7f"
INTERRUPT, END = "\x03", "\x04"
ASKING = {"> ": "> ", "… ": "… ", "ever: ": QUESTION}
# How the line editor moves past the space at the end of a question: to the left, then one more to the right.
LAST_SPACE = re.compile("(?:\x08|\x1b\\[[0-9]+D)\x1b\\[[0-9]+C")
WORKING = "Working…"
# The sign that a turn runs, and how it goes.
SIGN = re.compile(f"(?:\x1b\\[2m)?  (?:{WORKING}|Writing… [0-9]+ lines)(?:\x1b\\[0m)?\r\x1b\\[K")
# What the line editor itself writes.
EDITING = re.compile("\x1b\\[(?:\\?(?:1|7|12|25|2004)[hl]|[0-9]*[ABCDJKP])|[\x07\x08\r]")


@pytest.fixture
def here(shell: Shell, monkeypatch: pytest.MonkeyPatch, models: dict[str, str]) -> Shell:
    """A shell whose commands run in its folder, with a file there, and find a model."""
    assert models
    monkeypatch.chdir(shell.folder)
    Path("notes.txt").write_text("one\n")
    return shell


@pytest.fixture
def titled(here: Shell) -> str:
    """A session with a title of its user, so that no model is asked for one."""
    return here.ok("new", "--title", "Quinces").out.strip()


def chat(
    shell: Shell,
    *arguments: str,
    typed: Sequence[tuple[str, str]],
    meanwhile: Sequence[str] = (),
    columns: int = 120,
    **env: str,
) -> Done:
    """A conversation at a terminal. Each is typed when what is before it has appeared, and then, unless it is ^C or
    that is in `meanwhile`, a prompt or a question. Signs that are gone are not in what it said."""
    steps: list[tuple[str, str]] = []
    for appears, keys in typed:
        if appears in ASKING:
            steps.append((waiting(appears), keys))
        elif keys == INTERRUPT or appears in meanwhile:
            steps.append((appears, keys))
        else:
            steps += [(appears, ""), (waiting("> "), keys)]
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("ANTHROPIC_", "OPENAI_", "HITHERTO_M"))
    }
    done = shell.terminal("chat", *arguments, answers=steps, columns=columns, env={**variables, **env})
    return Done(done.code, EDITING.sub("", LAST_SPACE.sub(" ", SIGN.sub("", done.out))))


def waiting(question: str) -> str:
    """A question for which the line editor waits, not one whose answer it draws for the last time."""
    shown = ASKING[question].rstrip()
    left = "\x08" if len(shown) == 1 else f"\x1b[{len(shown)}D"
    return f"{shown}{left}\x1b[{len(shown) + 1}C"


def edit(old: str, new: str, id: str = "edit") -> ToolUse:
    return ToolUse("edit_file", {"path": "notes.txt", "old": old, "new": new}, id=id)


def results(shell: Shell, session_id: str) -> list[str]:
    """What became of the tool calls."""
    parts = [part for entry in entries_of(shell, session_id) for part in entry.parts]
    return [
        "".join(inner.text for inner in part.content if isinstance(inner, Text))
        for part in parts
        if isinstance(part, ToolResult)
    ]


# At a terminal


def test_a_new_session_is_made_by_the_first_prompt_and_titled_by_the_model(
    here: Shell, provider: Provider
) -> None:
    left = chat(here, typed=[("> ", END)])
    assert (left.code, sessions_of(here)) == (0, [])
    assert "New session in" in left.out
    provider.script([Thinking("A greeting."), "Hello ", "there."], ["Of greetings"])
    done = chat(here, typed=[("> ", "Hi.\r"), ("there.", END)])
    assert done.code == 0
    assert "\n  A greeting.\n  Hello there.\n\n" in plain(done.out)
    (session,) = sessions_of(here)
    assert (session.title, session.cwd) == ("Of greetings", str(here.folder))
    assert f"Continue with: hitherto chat {session.id[:8]}" in done.out


def test_a_session_goes_on_after_its_last_messages_and_recalls_its_prompts(
    here: Shell, provider: Provider, titled: str
) -> None:
    here.ok("append", titled, "What is a quince?")
    here.ok("append", titled, "A fruit.", "--role", "assistant")
    typed = [("> ", f"{UP}\r"), ("Noted.", f"{UP}{UP} And a pear?\r"), ("Noted.", "/exit\r")]
    done = chat(here, titled, typed=typed)
    shown = plain(done.out)
    assert "title: Quinces\n" in shown
    assert shown.index("  What is a quince?\n") < shown.index("  A fruit.\n") < shown.index("> ")
    prompts = ["What is a quince?", "What is a quince?", "What is a quince? And a pear?"]
    assert [text for text in asked(provider) if "quince" in text] == prompts


def test_an_interrupt_cancels_the_turn_and_the_next_prompt_works(
    here: Shell, provider: Provider, titled: str
) -> None:
    half = "Half of it.\n\nAn ans"
    provider.script([half, PAUSE, "wer"])
    done = chat(
        here,
        titled,
        typed=[("> ", "Hi.\r"), ("Half of it.", INTERRUPT), ("cancelled", "Go on.\r"), ("Noted.", END)],
    )
    assert done.code == 0
    assert provider.left.is_set()
    assert "  Half of it.\n\n  An ans\ncancelled\n" in plain(done.out)
    assert texts_of(here, titled) == ["Hi.", half, "Go on.", "Noted."]
    assert asked(provider) == ["Hi.", half, "Go on."]


def test_a_turn_shows_at_once_that_it_runs_and_what_is_typed_meanwhile_is_for_the_next_prompt(
    here: Shell, provider: Provider, titled: str
) -> None:
    provider.otherwise = lambda body: ["Noted."] if "Why not?" in str(body["messages"][-1]) else [PAUSE]
    typed = [
        ("> ", "Hi.\r"),
        (WORKING, f"Whyy{BACKSPACE} not?{LEFT}\r{INTERRUPT}"),
        ("Why not?", "\r"),
        ("Noted.", END),
    ]
    done = chat(here, titled, typed=typed, meanwhile=(WORKING, "Why not?"))
    shown = plain(done.out)
    assert "> Hi.\ncancelled\n\n> Why not?" in shown
    assert "> Why not?\n  Noted.\n\n" in shown
    assert asked(provider)[-1] == "Why not?"


def test_an_answer_is_rendered_block_by_block_and_in_a_pipe_it_is_as_it_was_written(
    here: Shell, provider: Provider, titled: str
) -> None:
    written = "## Steps\n\nDo **this**:\n\n- one\n- two\n\n```python\nprint(1)\n\nprint(2)\n```\nThe `end`."
    provider.script([*written], [*written])
    rendered = plain(chat(here, titled, typed=[("> ", "How?\r"), ("end", END)]).out)
    assert (
        "  Steps\n\n  Do this:\n\n   • one\n   • two\n\n   print(1)\n\n   print(2)\n\n  The end.\n"
        in rendered
    )
    piped = here.ok("chat", titled, stdin="How?\n").out
    assert piped == "".join(f"  {line}".rstrip() + "\n" for line in written.split("\n"))


def test_an_interrupt_throws_a_line_away_and_twice_at_an_empty_one_leaves(
    here: Shell, provider: Provider, titled: str
) -> None:
    typed = [("> ", "unwanted"), ("unwanted", INTERRUPT), ("> ", INTERRUPT), ("to leave.", INTERRUPT)]
    done = chat(here, titled, typed=typed)
    assert done.code == 130
    thrown_away = done.out.index("unwanted")
    assert thrown_away < done.out.index("> ", thrown_away) < done.out.index("Press ^C again or ^D to leave.")
    assert provider.requests == []


def test_a_prompt_may_have_several_lines(here: Shell, provider: Provider, titled: str) -> None:
    pasted = "\x1b[200~three\nfour\x1b[201~\r"
    chat(
        here,
        titled,
        typed=[
            ("> ", "one\\\r"),
            ("… ", "two\r"),
            ("Noted.", pasted),
            ("Noted.", f"{UP}\r"),
            ("Noted.", END),
        ],
    )
    assert asked(provider)[::2] == ["one\ntwo", "three\nfour", "three\nfour"]


def test_wide_characters_are_edited_one_by_one(here: Shell, provider: Provider, titled: str) -> None:
    done = chat(here, titled, typed=[("> ", f"日本語だ{LEFT}{LEFT}{BACKSPACE}!\r"), ("Noted.", END)])
    assert asked(provider) == ["日!語だ"]
    assert "> 日!語だ\n" in plain(done.out)


def test_a_tool_is_allowed_once_then_always_and_its_changes_are_shown(
    here: Shell, provider: Provider, titled: str
) -> None:
    provider.script([edit("one", "two")], [edit("two", "three")], [edit("three", "four")], ["Done."])
    typed = [
        ("> ", "Count.\r"),
        ("ever: ", "what?\r"),
        ("ever: ", "y\r"),
        ("ever: ", "a\r"),
        ("Done.", END),
    ]
    done = chat(here, titled, typed=typed)
    assert Path("notes.txt").read_text() == "four\n"
    assert "\x1b[31m-one\x1b[0m" in done.out
    assert "\x1b[32m+two\x1b[0m" in done.out
    shown = plain(done.out)
    assert shown.count("edit_file wants to change a file:\n  path: notes.txt\n  -") == 2
    assert shown.count("  → Edit notes.txt\n") == 3
    assert shown.count("  ← Edited ") == 3


def test_a_tool_is_rejected_once_then_for_good(here: Shell, provider: Provider, titled: str) -> None:
    provider.script([edit("one", "two")], [edit("one", "two")], [edit("one", "two")], ["Well."])
    typed = [
        ("> ", "Edit.\r"),
        ("ever: ", "n\r"),
        ("ever: ", "d\r"),
        ("Well.", f"{UP}\r"),  # an answer is not recalled
        ("Noted.", END),
    ]
    shown = plain(chat(here, titled, typed=typed).out)
    assert Path("notes.txt").read_text() == "one\n"
    assert shown.count("  ← failed: refused by the user") == 3
    assert shown.count("wants to change a file") == 2
    assert texts_of(here, titled).count("Edit.") == 2


def test_an_interrupt_at_a_question_cancels_the_turn(here: Shell, provider: Provider, titled: str) -> None:
    provider.script([edit("one", "two")])
    typed = [("> ", "Edit.\r"), ("ever: ", INTERRUPT), ("cancelled", "Go on.\r"), ("Noted.", END)]
    assert chat(here, titled, typed=typed).code == 0
    assert Path("notes.txt").read_text() == "one\n"
    assert len(provider.requests) == 2


def test_the_commands_change_and_tell_what_they_name(here: Shell, provider: Provider, titled: str) -> None:
    provider.script(lambda body: [f"I am {body['model']}."], [edit("one", "two")], ["Edited."])
    typed = [
        ("> ", "/help\r"),
        ("leave", "/model claude-opus-5\r"),
        ("model: claude-opus-5", "Who are you?\r"),
        ("I am claude-opus-5.", "/cost\r"),
        ("context:", "/mode ACCEPTEDITS\r"),
        ("mode: acceptEdits", "/mode never\r"),
        ("[invalid_input]", "/tools\r"),
        ("update_plan", "/fork Another way\r"),
        ("continuing in the fork", "Edit.\r"),
        ("Edited.", "/title A new name\r"),
        ("title: A new name", "/nonsense\r"),
        ("/nonsense; type /help", "/etc/hosts is a file\r"),
        ("Noted.", "/exit\r"),
    ]
    done = chat(here, titled, typed=typed)
    assert done.code == 0
    shown = plain(done.out)
    assert re.search(r"read_file +allow\n", shown)
    assert re.search(r"edit_file +allow\n", shown)
    assert re.search(r"run_command +ask\n", shown)
    assert Path("notes.txt").read_text() == "two\n"
    assert texts_of(here, titled) == ["Who are you?", "I am claude-opus-5."]
    (fork,) = [session for session in sessions_of(here) if session.parent == titled]
    assert (fork.title, fork.earlier_titles) == ("A new name", ("Another way",))
    assert asked(provider)[-1] == "/etc/hosts is a file"


def test_without_a_model_it_says_so_and_one_can_be_set(
    here: Shell, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HITHERTO_MODEL")
    typed = [
        ("choose one with /model NAME", "Hi.\r"),
        ("[model_missing]", "/model nonsense\r"),
        ("[model_missing]", "/model claude-sonnet-5\r"),
        ("model: claude-sonnet-5", "/title Kept\r"),
        ("title: Kept", "Hi again.\r"),
        ("Noted.", END),
    ]
    # Wide: the greeting names the folder, and what is waited for must not be broken over two lines.
    assert chat(here, typed=typed, columns=500).code == 0
    assert [session.title for session in sessions_of(here)] == ["Kept"]
    assert asked(provider) == ["Hi again."]


def test_nothing_that_is_said_or_asked_for_can_command_the_terminal(
    here: Shell, provider: Provider, titled: str
) -> None:
    said = HOSTILE.replace("\ud800", "")
    command = ToolUse("run_command", {"command": f"true {said}"})
    provider.script([Thinking(said), *said, command], [said, "That is all."])
    here.ok("append", titled, stdin=said.replace("\0", ""))
    done = chat(
        here,
        titled,
        typed=[("> ", "Hi.\r"), ("ever: ", "n\r"), ("That is all.", f"{UP}{UP}{END}\r"), ("Noted.", END)],
    )
    assert unsafe_in(done.out) == []
    assert "\\u001b[2Jb" in done.out  # what would be run is seen as it is


def test_no_color_is_honoured(here: Shell, provider: Provider, titled: str) -> None:
    provider.script([Thinking("A thought."), edit("one", "two")], ["Done."])
    typed = [("> ", "Hi.\r"), ("ever: ", "y\r"), ("Done.", END)]
    done = chat(here, titled, typed=typed, NO_COLOR="1")
    assert set(COLOURS.findall(done.out)) <= {"\x1b[0m"}  # the line editor writes it, and it is none
    assert "  +two\n" in done.out


@pytest.mark.parametrize("way", ["stdout is a file", "the terminal cannot move its cursor"])
def test_where_no_line_can_be_edited_lines_are_read_as_they_are(here: Shell, way: str) -> None:
    file = here.folder / "out" if way == "stdout is a file" else None
    done = here.terminal(
        "chat",
        answers=[("> ", "/mode\n"), ("> ", "un"), ("un", INTERRUPT), ("to leave.", ""), ("> ", INTERRUPT)],
        env={"TERM": "dumb"} if file is None else {},
        stdout=file,
    )
    assert done.code == 130
    assert "mode: default\n> un^C\nPress ^C again or ^D to leave.\n> ^C\n" in plain(done.out)


# Without a terminal


def test_without_a_terminal_each_line_is_a_prompt_and_questions_are_refused(
    here: Shell, provider: Provider, titled: str
) -> None:
    provider.script(["One."], ["I try.", edit("one", "two")], ["A pity."])
    done = here.ok("chat", titled, stdin="First.\n\nSecond, \\\nwith more.\n")
    assert done.out.startswith(
        "  One.\n  I try.\n  → Edit notes.txt\n  ← failed: refused: this needs permission"
    )
    assert done.out.endswith("\n  A pity.\n")
    assert done.err == ""
    assert Path("notes.txt").read_text() == "one\n"
    assert texts_of(here, titled)[2] == "Second, \nwith more."


def test_commands_run_in_the_folder_of_the_session(here: Shell, provider: Provider, titled: str) -> None:
    command = ToolUse("run_command", {"command": "cat notes.txt; exit 3"})
    provider.script([command], ["So it is."])
    done = here.ok("chat", titled, "--mode", "bypassPermissions", stdin="Look.\n")
    assert done.out == "  → cat notes.txt; exit 3\n  ← failed: one (exit code 3)\n  So it is.\n"


def test_json_has_a_document_for_each_turn(here: Shell, provider: Provider, titled: str) -> None:
    provider.script(["One."], ["Two."])
    done = here.ok("chat", titled, "--json", stdin="First.\n/cost\nSecond.\n")
    told = [json.loads(line) for line in done.lines]
    assert [(each["session"], each["text"]) for each in told] == [(titled, "One."), (titled, "Two.")]
    assert done.err.startswith("cost: $")


def test_without_a_terminal_the_first_failure_is_the_exit_code_and_the_rest_goes_on(
    here: Shell, provider: Provider, titled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hold(sessions: Sessions) -> None:
        await sessions.leases.acquire(LOCAL, titled, "somebody", ttl_ms=3_600_000)

    assert here.invoke("chat", titled, stdin="/nonsense\nHi.\n").code == 2
    assert len(provider.requests) == 1
    here.inside(hold)
    busy = here.invoke("chat", titled, stdin="Hi.\n/mode\n")
    assert (busy.code, "[busy]" in busy.err, "mode: default" in busy.err) == (4, True, True)
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    assert here.invoke("chat", stdin="Hi.\n").code == 6


def test_a_server_that_does_not_start_is_told_and_the_conversation_goes_on(here: Shell, titled: str) -> None:
    done = here.ok("chat", titled, "--mcp", "gone=no-such-program-anywhere", stdin="Hi.\n/tools\n")
    assert re.search(r"! .*gone", done.out)
    assert "  Noted.\n" in done.out
    assert re.search(r"gone +an MCP server", done.err)


def test_each_line_of_a_pipe_is_read_at_once_also_if_several_come_together(
    shell: Shell, models: dict[str, str]
) -> None:
    with shell.start("chat", env=models) as process:
        assert process.stdin is not None
        process.stdin.write(b"/mode\r\n/mode plan\n")
        process.stdin.flush()
        for mode in (b"default", b"plan"):
            assert line_of(process, "an answer", pipe=process.stderr) == b"mode: %s\n" % mode
        process.stdin.close()
        assert ended(process, "the command to end") == 0


def test_an_interrupt_between_lines_of_a_pipe_leaves(shell: Shell, models: dict[str, str]) -> None:
    with shell.start("chat", env=models) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"/mode\n")
        process.stdin.flush()
        assert line_of(process, "an answer", pipe=process.stderr) == b"mode: default\n"
        process.send_signal(signal.SIGINT)
        assert ended(process, "the command to end") == 130


# What ^C means


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def conversation(work: Callable[[LineReader], Awaitable[T]]) -> T:
    """What comes of a conversation, as a command has it."""

    async def whole() -> T:
        lines = LineReader()
        with interrupts(), lines.hearing():
            return await work(lines)

    with bare_interrupts():
        return asyncio.run(whole())


def test_the_second_interrupt_ends_a_conversation_that_does_not_heed_the_first() -> None:
    cancelled: list[str] = []

    async def stubborn(lines: LineReader) -> None:
        heard = asyncio.Event()

        def cancel() -> None:
            cancelled.append("once")
            heard.set()

        with lines.cancelling(cancel):
            interrupt()
            await arrives(heard.wait(), "the first interrupt to be heard")
            interrupt()
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        conversation(stubborn)
    assert cancelled == ["once"]


def test_an_interrupt_between_two_lines_counts_for_the_next_one() -> None:
    async def careless(lines: LineReader) -> bool:
        for _ in range(2):
            interrupt()
            await asyncio.sleep(0)
            with pytest.raises(Interrupted) as raised:
                await lines.line("> ")
        return raised.value.empty

    assert conversation(careless)


# What is about to be done, and what was


def test_a_request_shows_all_of_a_short_command_and_says_what_it_leaves_out_of_a_long_one() -> None:
    def lines(given: object, kind: str = "execute") -> list[str]:
        return [styled.text for styled in request(ToolCall(id="1", name="tool", kind=kind, input=given))]

    assert lines({"command": "one\ntwo", "seconds": 5}) == ["command: one", "  two", "seconds: 5"]
    assert lines({"path": "a", "old": "x\ny\n", "new": "z"}, "edit") == ["path: a", "-x", "-y", "+z"]
    assert lines(["no", "object"]) == ['input: ["no", "object"]']
    (long,) = lines({"command": "x" * (LINE_CHARS + 100)})
    assert long.endswith("more characters)")
    many = lines({"command": "x\n" * (LINES + 5) + "rm"})
    assert many[LINES:] == ["… (6 more lines)"]


def test_a_change_is_shown_as_a_diff_unless_it_is_too_long() -> None:
    def lines(old: str | None, new: str) -> list[str]:
        output = {"diff": {"path": "/a", "oldText": old, "newText": new}}
        return [styled.text for styled in change(ToolResult(id="1", output=output))]

    assert lines("a\nb\n", "a\nc\n") == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    assert lines(None, "a\n") == ["+a"]
    assert lines("x" * 200_000, "y") == ["(too long to compare)"]
    assert list(change(ToolResult(id="1", output={"diff": "strange"}))) == []
