"""The forms of output: JSON, plain text in a pipe, tables and colours on a terminal; and what may never be in them."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.cli.terminal.files import new_file
from hitherto.cli.terminal.output import clean, clean_json, clean_lines, json_text
from hitherto.model import LOCAL, Draft
from hitherto.service import Sessions
from tests.cli.shell import Shell, plain

ESCAPE = "\x1b"
HOSTILE = "a\x1b[2Jb\x1b]0;owned\x07c\x9b31md\u202ee\u2066f\x7fg\x00h\rover\x08\x85\u2028i\ud800j\ufeff"
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
# What a terminal form itself may write: colours, and what a bar needs to draw itself.
OWN_SEQUENCES = re.compile("\x1b\\[(?:[0-9;]*m|\\?25[lh]|2K|1A)")


def unsafe_in(text: str) -> list[str]:
    """Characters in a terminal's or a pipe's text that only hostile content can have brought there."""
    return UNSAFE.findall(OWN_SEQUENCES.sub("", text).replace("\r", ""))


async def hostile(sessions: Sessions) -> str:
    """A session that tries to command the terminal wherever it can."""
    bad = HOSTILE.replace("\x00", "").replace("\ud800", "")
    made = await sessions.create(
        LOCAL, cwd=f"/x{bad}", agent_id=bad, channel=bad, tags=[bad], session_id=f"id{bad}"
    )
    parts = [
        {"type": "text", "text": f"needle {HOSTILE} needle"},
        {"type": "thought", "text": HOSTILE},
        {"type": "tool_call", "id": "1", "name": HOSTILE, "input": {HOSTILE: HOSTILE}},
        {"type": "tool_result", "id": "1", "content": [{"type": "text", "text": HOSTILE}], "output": HOSTILE},
        {"type": "plan", "steps": [{"content": HOSTILE, "status": HOSTILE}]},
        {"type": "resource_link", "uri": HOSTILE, "name": HOSTILE},
        {"type": "image", "mime_type": HOSTILE, "uri": HOSTILE},
        {"type": "unknown", "raw": HOSTILE},
    ]
    draft = msgspec.convert({"role": "assistant", "parts": parts, "model": HOSTILE, "id": f"e{bad}"}, Draft)
    await sessions.append(LOCAL, made.id, draft)
    return made.id


@given(st.text(st.characters(), max_size=200) | st.text("\x1b[]0;m\x07\x9b\\PX^_a\n\r\t", max_size=200))
def test_cleaned_text_has_nothing_that_could_command_a_terminal(text: str) -> None:
    for cleaned in (clean(text), clean_lines(text)):
        assert not UNSAFE.search(cleaned)
        assert {unicodedata.category(char) for char in cleaned} & {"Cs", "Zl", "Zp"} == set()
    assert not set("\n\t") & set(clean(text))
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_text_that_people_write_stays_as_it_is(text: str) -> None:
    assert clean_lines(text) == "".join(char for char in text if not 0xE0000 <= ord(char) <= 0xE007F)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\text", "text"),
        ("an unfinished \x1b]0; hides nothing", "an unfinished ]0; hides nothing"),
        ("\x9b31mc1", "c1"),
        ("10%\r20%\r\ndone", "10% 20% done"),
        ("a\tb\n\nc", "a b c"),
        ("family 👨‍👩‍👧 naïve 漢字 עברית", "family 👨‍👩‍👧 naïve 漢字 עברית"),
        ("admin\u202egpj.exe", "admingpj.exe"),
    ],
)
def test_sequences_are_taken_out_and_words_are_left(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(
    st.recursive(
        st.none() | st.integers() | st.text(st.characters()), lambda inner: st.lists(inner, max_size=4)
    )
)
def test_json_is_one_line_of_ascii_that_means_the_same(value: object) -> None:
    text = json_text(value)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_json_line_for_a_terminal_means_the_same(text: str) -> None:
    line = msgspec.json.encode({"text": text})
    safe = clean_json(line)
    assert not UNSAFE.search(safe)
    assert json.loads(safe) == {"text": text}


COMMANDS_THAT_SHOW = (
    ("list",),
    ("show", "id"),
    ("show", "id", "--all"),
    ("search", "needle"),
    ("search", "agent:x"),
    ("checkpoints", "id"),
    ("episodes", "id"),
    ("tag", "id"),
    ("archive", "id"),
    ("prune", "--keep", "0"),
    ("stats",),
    ("export", "id"),
    ("delete", "id", "--yes"),
)


@pytest.mark.parametrize("arguments", COMMANDS_THAT_SHOW)
def test_hostile_content_reaches_no_terminal(shell: Shell, arguments: tuple[str, ...]) -> None:
    shell.inside(hostile)
    done = shell.terminal(*arguments)
    assert done.code == 0, done
    assert unsafe_in(done.out) == []


@pytest.mark.parametrize("arguments", [each for each in COMMANDS_THAT_SHOW if each[0] != "export"])
def test_hostile_content_reaches_no_pipe(shell: Shell, arguments: tuple[str, ...]) -> None:
    shell.inside(hostile)
    done = shell.ok(*arguments)
    assert unsafe_in(done.out + done.err) == []
    assert ESCAPE not in done.out + done.err


@pytest.mark.parametrize(
    "arguments", [("list",), ("show", "id"), ("search", "needle"), ("stats",), ("tag", "id")]
)
def test_json_is_ascii_whatever_the_content(shell: Shell, arguments: tuple[str, ...]) -> None:
    shell.inside(hostile)
    done = shell.ok(*arguments, "--json")
    assert done.out.isascii()
    assert unsafe_in(done.out) == []
    json.loads(done.out)


def test_json_holds_the_content_exactly(shell: Shell) -> None:
    shell.inside(hostile)
    entry = shell.ok("show", "id", "--json").json["entries"][0]
    assert entry["parts"][0]["text"] == f"needle {HOSTILE} needle"


def test_errors_and_questions_are_clean_too(shell: Shell) -> None:
    shell.inside(hostile)
    asked = shell.terminal("delete", "id", answers=[("[y/N]", "n\n")])
    assert asked.code == 1
    assert unsafe_in(asked.out) == []
    for arguments in (("show", HOSTILE.replace("\0", "")), ("list", "--since", "\x1b[2J"), ("\x9b31m",)):
        failed = shell.invoke(*arguments)
        assert failed.code in (2, 3)
        assert unsafe_in(failed.err) == []


def test_an_export_on_a_terminal_can_be_imported(shell: Shell) -> None:
    shell.inside(hostile)
    seen = shell.terminal("export", "id", columns=200)
    shell.ok("delete", "id", "--yes")
    shell.ok("import", "-", "--include-deleted", stdin=seen.out)
    entry = shell.ok("show", "id", "--json").json["entries"][0]
    assert entry["parts"][0]["text"] == f"needle {HOSTILE} needle"


# Terminal forms


def three(shell: Shell) -> list[str]:
    """Sessions, two of which were made in the same millisecond."""
    ids = [
        "019a8c0e-7b3d-7000-8000-000000000001",
        "019a8c0e-7b3d-7000-8000-000000000002",
        "019a8c0e-9999-7000-8000-1",
    ]

    async def work(sessions: Sessions) -> None:
        for number, session_id in enumerate(ids):
            await sessions.create(LOCAL, session_id=session_id, title=f"title {number}", cwd="/srv/x")

    shell.inside(work)
    return ids


def test_a_terminal_shows_a_table_whose_ids_can_be_typed(shell: Shell) -> None:
    ids = three(shell)
    done = shell.terminal("list")
    assert done.out != plain(done.out)
    header, *rows = plain(done.out).splitlines()
    assert header.split() == ["#", "ID", "AGE", "AGENT", "PROJECT", "TITLE", "MESSAGES", "CONTEXT", "COST"]
    shown = {row.split("title ")[1][0]: row.split()[1] for row in rows}
    assert shown["2"] == "019a8c0e-9999"
    for number, session_id in enumerate(ids):
        assert shell.ok("show", shown[str(number)], "--json").json["session"]["id"] == session_id


def test_a_pipe_gets_full_ids_and_no_colours(shell: Shell) -> None:
    ids = three(shell)
    done = shell.run("list", env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert sorted(line.split("\t")[0] for line in done.lines) == sorted(ids)
    assert ESCAPE not in done.out


@pytest.mark.parametrize("arguments", [("list",), ("show", "019a8c0e-9999"), ("search", "title"), ("stats",)])
def test_no_color_is_honoured_on_a_terminal(shell: Shell, arguments: tuple[str, ...]) -> None:
    three(shell)
    assert ESCAPE in shell.terminal(*arguments).out
    assert ESCAPE not in shell.terminal(*arguments, env={"NO_COLOR": "1"}).out


def test_a_terminal_sets_roles_and_hits_off_in_colour(shell: Shell) -> None:
    session_id = three(shell)[2]
    shell.ok("append", session_id, "find the needle here")
    shell.ok("append", session_id, "needle again", "--role", "assistant")
    assert "\x1b[1;36muser\x1b[0m" in shell.terminal("show", session_id).out
    found = shell.terminal("search", "needle").out
    assert "\x1b[1;33mneedle\x1b[0m again" in found
    assert "+1 more" in found


def test_markup_in_content_stays_text(shell: Shell) -> None:
    shell.ok("new", "--title", "[red]not red[/red] :smile:")
    assert "[red]not red[/red] :smile:" in plain(shell.terminal("list").out)


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("n\n", 1, 3), ("\n", 1, 3), ("y\n", 0, 2), ("\x03", 130, 3)]
)
def test_delete_asks_on_a_terminal(shell: Shell, answer: str, code: int, left: int) -> None:
    session_id = three(shell)[0]
    done = shell.terminal(
        "delete", session_id, answers=[("'title 0' (0 messages) permanently? [y/N]", answer)]
    )
    assert done.code == code
    assert len(shell.ok("list").lines) == left


def test_long_work_shows_a_bar_on_the_terminal_only(shell: Shell) -> None:
    ids = three(shell)
    target = shell.folder / "stdout"
    seen = shell.terminal("export", "--all", stdout=target)
    assert "Exporting" in seen.out
    assert target.read_text().count('{"format"') == 3
    assert shell.run("export", "--all").err == ""
    seen = shell.terminal("delete", "--yes", *ids, stdout=target)
    assert "Deleting" in seen.out
    assert target.read_text().count("Deleted ") == 3
    for arguments, label in ((("prune", "--keep", "0", "--apply"), "Pruning"), (("doctor",), "Checking")):
        assert label in shell.terminal(*arguments, stdout=target).out


def test_an_import_shows_a_bar_above_which_its_results_stand(shell: Shell) -> None:
    ids = three(shell)
    file = shell.folder / "all.jsonl"
    shell.ok("export", "--all", "-o", str(file))
    shell.ok("delete", "--yes", *ids)
    seen = shell.terminal("import", str(file), "--include-deleted")
    assert seen.code == 0
    assert "Importing" in seen.out
    shown = re.split(r"[\r\n]+", OWN_SEQUENCES.sub("", seen.out))
    assert {f"Imported {session_id}: 0 messages" for session_id in ids} <= set(shown)


def test_a_letter_that_the_output_cannot_write_is_replaced(shell: Shell) -> None:
    shell.ok("new", "--title", "漢字 ok")
    done = shell.run("list", env={"PYTHONIOENCODING": "latin-1"})
    assert (done.code, done.out.split("\t")[4]) == (0, "?? ok")


def test_a_new_file_is_durable_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, bool]] = []
    target, sync = tmp_path / "out.jsonl", os.fsync

    def noting(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, target.exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    with new_file(str(target), force=False) as stream:
        stream.write(b"{}")
    # First the file, and after the renaming its folder.
    assert synced == [(target.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
