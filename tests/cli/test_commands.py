"""What the commands do, whatever the form of their output."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from hitherto import errors
from hitherto.cli import COMMANDS
from hitherto.cli.options.values import parse_duration, parse_moment, parse_size
from hitherto.cli.terminal.exit_codes import EXIT_CODES, exit_code
from hitherto.ids import now_ms, uuid7
from hitherto.model import LOCAL, Draft, Session, Text
from hitherto.service import Sessions
from hitherto.values.days import DAY_MS
from tests.cli.shell import Shell
from tests.support.waits import LIMIT, block_until, end_of, ended, line_of, or_killed, output

SESSION_FIELDS = set(Session.__struct_fields__)


def said(text: str, role: str = "user", at: int | None = None) -> Draft:
    return msgspec.convert({"role": role, "parts": [{"type": "text", "text": text}], "at": at}, Draft)


def test_a_session_is_made_filled_listed_shown_found_and_deleted_from_a_shell(shell: Shell) -> None:
    made = shell.run("new", "--cwd", "/srv/parser", "--tag", "work")
    session_id = made.out.strip()
    assert (made.code, made.err) == (0, "")
    assert shell.run("append", session_id, "Why does the parser fail?").code == 0
    assert shell.run("append", session_id, "--role", "assistant", stdin=b"It reads too far.\n").code == 0
    fields = shell.run("list").out.rstrip("\n").split("\t")
    assert fields[0] == session_id
    assert fields[2:10] == ["2", "/srv/parser", "Why does the parser fail?", "#work", "0", "0", "0", "2"]
    shown = shell.run("show", session_id[:13]).out
    assert "title: Why does the parser fail?\n" in shown
    assert "  It reads too far.\n\n── 2 messages · " in shown
    assert shell.run("search", "reads", "far").out.split("\t")[0] == session_id
    deleted = shell.run("delete", "--yes", session_id)
    assert deleted.out == f"Deleted {session_id}: 2 messages\n"
    assert shell.run("list").out == ""


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("serve", "uvicorn", "server"), ("mcp", "mcp", "models")]
)
def test_a_command_without_its_packages_says_how_to_install_them(
    shell: Shell, name: str, package: str, extra: str
) -> None:
    shell.ok("new")
    code = (
        f"import sys; sys.modules['{package}'] = None; from hitherto.__main__ import main; main(['{name}'])"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), env=shell.environment(), capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 2
    assert f"this command needs more packages: pip install 'hitherto[{extra}]' [usage]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_the_overview_names_every_command(shell: Shell, arguments: tuple[str, ...]) -> None:
    done = shell.ok(*arguments)
    for name, listed in COMMANDS.items():
        assert f"  {name} " in done.out
        assert listed.help in done.out


def test_a_command_imports_no_other_command_and_nothing_for_terminals(shell: Shell) -> None:
    code = (
        "import sys; from hitherto.cli import app\n"
        "try: app.main(['list', '--json'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = _python(shell, code)
    loaded = set(done.split())
    assert {listed.module for listed in COMMANDS.values()} & loaded == {"hitherto.cli.commands.list"}
    assert not {"rich", "psycopg", "prompt_toolkit"} & loaded


def test_only_what_answers_prompts_imports_engines(shell: Shell) -> None:
    code = (
        "import sys; from hitherto.cli import app\n"
        "try: app.main(sys.argv[1:])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    for arguments in (["list", "--json"], ["new"], ["prompt", "--help"], ["chat", "--help"]):
        loaded = _python(shell, code, *arguments).split()
        assert "hitherto.cli" in loaded
        assert not [name for name in loaded if name.startswith(("hitherto.engines", "pydantic_ai", "mcp"))]


def _python(shell: Shell, code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=shell.environment(),
        capture_output=True,
        check=True,
        timeout=LIMIT,
    )
    return done.stderr.decode()


# Lists


def make(shell: Shell, *titles: str, **fields: Any) -> list[str]:
    """Sessions with these titles, the last one newest."""

    async def work(sessions: Sessions) -> list[str]:
        return [(await sessions.create(LOCAL, title=title, **fields)).id for title in titles]

    ticks: Iterator[int] = iter(range(1_000_000_000_000, 2_000_000_000_000, 60_000))
    return shell.inside(work, now=lambda: next(ticks))


def titles(shell: Shell, *options: str) -> list[str]:
    return [session["title"] for session in shell.ok("list", "--json", *options).json["sessions"]]


def test_list_is_one_document_with_every_field_of_every_session(shell: Shell) -> None:
    first, second = make(shell, "one", "two")
    page = shell.ok("list", "--json").json
    assert set(page) == {"sessions", "cursor"}
    assert [session["id"] for session in page["sessions"]] == [second, first]
    assert set(page["sessions"][0]) == {*SESSION_FIELDS, "changes", "usage"}
    assert page["cursor"] is None


def test_each_filter_of_list_narrows_it(shell: Shell) -> None:
    one, two, three = make(shell, "red apple", "green pear", "blue plum")

    async def work(sessions: Sessions) -> None:
        await sessions.create(
            LOCAL, title="by coder", agent_id="coder", channel="chat", cwd=str(shell.folder)
        )
        await sessions.tag(LOCAL, one, add=["fruit", "sweet"])
        await sessions.tag(LOCAL, two, add=["fruit"])
        await sessions.archive(LOCAL, two)
        await sessions.pin(LOCAL, three)
        await sessions.catalog.set_status(LOCAL, three, "running")

    shell.inside(work)
    assert titles(shell) == ["by coder", "blue plum", "red apple"]
    assert titles(shell, "--tag", "fruit") == ["red apple"]
    assert titles(shell, "--tag", "fruit", "--archived", "include") == ["green pear", "red apple"]
    assert titles(shell, "--tag", "fruit", "--tag", "sweet", "--archived", "include") == ["red apple"]
    assert titles(shell, "--archived", "only") == ["green pear"]
    assert titles(shell, "--pinned") == ["blue plum"]
    assert titles(shell, "--status", "running") == ["blue plum"]
    assert titles(shell, "--agent", "coder") == ["by coder"]
    assert titles(shell, "--channel", "chat") == ["by coder"]
    assert titles(shell, "--source", "elsewhere") == []
    assert titles(shell, "--text", "appl*") == ["red apple"]
    assert titles(shell, "--cwd", f"{shell.folder}/x/..") == ["by coder"]


def test_list_here_means_the_current_folder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    make(shell, "here", cwd=str(shell.folder.resolve()))
    make(shell, "there", cwd="/elsewhere")
    monkeypatch.chdir(shell.folder)
    assert titles(shell, "--here") == ["here"]
    assert titles(shell, "--cwd", ".") == ["here"]
    assert shell.invoke("list", "--here", "--cwd", ".").code == 2


def test_sessions_made_in_a_repository_are_listed_by_its_project_and_day(shell: Shell) -> None:
    for name, url in (("one", "https://ada:s3cret@host/ada/engine.git"), ("two", "git@host:ada/engine")):
        git = shell.folder / name / ".git"
        git.mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/topic\n")
        (git / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')
        shell.ok("new", "--title", name, "--cwd", str(git.parent))
    shell.ok("new", "--title", "apart", "--cwd", str(shell.folder / "apart"))
    placeless = shell.ok("new", "--title", "nowhere", "--no-cwd", "--json").json
    assert (placeless["project"], placeless["branch"]) == (None, None)
    for project in ("host/ada/engine", "ada/engine", "engine"):
        assert titles(shell, "--project", project) == ["two", "one"]
    assert titles(shell, "--project", "apart") == ["apart"]
    assert shell.ok("list", "--json", "--project", "engine").json["sessions"][0]["branch"] == "topic"
    assert "s3cret" not in shell.ok("list", "--json").out

    async def work(sessions: Sessions) -> None:
        at = parse_moment("2021-06-15T23:59+00:00", 0)
        await sessions.append(LOCAL, placeless["id"], said("long ago", at=at))

    shell.inside(work)
    assert titles(shell, "--day", "2021-06-15") == ["nowhere"]
    assert titles(shell, "--day", "2021-06-16") == []
    assert shell.ok("search", "ago", "--day", "2021-06-15").out
    assert shell.invoke("list", "--day", "yesterday").code == 2


def test_since_and_until_take_dates_and_ages(shell: Shell) -> None:
    for title, day in (("old", "2020-01-01"), ("middle", "2021-06-15")):

        async def work(sessions: Sessions, title: str = title) -> None:
            made = await sessions.create(LOCAL, title=title)
            await sessions.append(LOCAL, made.id, said(title))

        shell.inside(work, now=partial(parse_moment, f"{day}T12:00+00:00", 0))
    shell.ok("new", "--title", "fresh")
    assert titles(shell, "--since", "7d") == ["fresh"]
    assert titles(shell, "--since", "2021-01-01") == ["fresh", "middle"]
    assert titles(shell, "--until", "2021-01-01") == ["old"]
    assert titles(shell, "--since", "2020-01-01", "--until", "1h") == ["middle", "old"]


def test_a_shortened_list_says_so_and_its_cursor_goes_on(shell: Shell) -> None:
    make(shell, *"abcde")
    first = shell.ok("list", "--limit", "2")
    assert len(first.lines) == 2
    assert first.err == "2 of 5. Show all with --all.\n"
    page = shell.ok("list", "--limit", "2", "--json").json
    rest = titles(shell, "--limit", "2", "--cursor", page["cursor"])
    assert [session["title"] for session in page["sessions"]] + rest == ["e", "d", "c", "b"]


def test_list_all_walks_every_page(shell: Shell) -> None:
    many = [f"session {number}" for number in range(1_003)]
    make(shell, *many)
    done = shell.ok("list", "--all")
    assert [line.split("\t")[4] for line in done.lines] == many[::-1]
    assert done.err == ""


# Single sessions


def test_show_has_the_last_twenty_messages_unless_told(shell: Shell) -> None:
    (session_id,) = make(shell, "long")
    drafts = [said(f"message {number}") for number in range(30)]
    shell.inside(lambda sessions: sessions.append(LOCAL, session_id, drafts))

    def texts(*options: str) -> list[str]:
        page = shell.ok("show", session_id, "--json", *options).json
        return [entry["parts"][0]["text"].removeprefix("message ") for entry in page["entries"]]

    page = shell.ok("show", session_id, "--json").json
    assert set(page) == {
        "session",
        "usage",
        "view",
        "total",
        "entries",
        "marks",
        "previous",
        "next",
        "branch",
        "branches",
    }
    assert (page["total"], page["next"]) == (30, None)
    entry = page["entries"][5]["id"]
    assert texts() == [str(number) for number in range(10, 30)]
    assert texts("--limit", "2") == ["28", "29"]
    assert texts("--before", entry, "--limit", "2") == ["13", "14"]
    assert texts("--after", entry, "--limit", "2") == ["16", "17"]
    assert texts("--around", entry, "--limit", "3") == ["14", "15", "16"]
    assert texts("--all") == [str(number) for number in range(30)]
    assert "--before" in shell.ok("show", session_id).err
    assert shell.invoke("show", session_id, "--all", "--before", entry).code == 2
    assert shell.invoke("show", session_id, "--after", entry, "--before", entry).code == 2


def test_show_marks_compactions_and_puts_tools_in_one_line(shell: Shell) -> None:
    (session_id,) = make(shell, "tools")
    call = {"type": "tool_call", "id": "1", "name": "run", "input": {"command": "make\n\ntest"}}
    failed = {
        "type": "tool_result",
        "id": "1",
        "is_error": True,
        "content": [{"type": "text", "text": "no\nrule"}],
    }
    drafts = [
        msgspec.convert({"role": "assistant", "parts": [call]}, Draft),
        msgspec.convert({"role": "tool", "parts": [failed]}, Draft),
    ]

    async def work(sessions: Sessions) -> None:
        await sessions.append(LOCAL, session_id, drafts)
        await sessions.compact(LOCAL, session_id, said("the summary", role="system"))

    shell.inside(work)
    lines = shell.ok("show", session_id).lines
    assert '  → run {"command": "make\\n\\ntest"}' in lines
    assert "  ← failed: no rule" in lines
    mark = next(number for number, line in enumerate(lines) if line.startswith("── compacted here"))
    assert lines[mark + 1].startswith("system")
    assert lines[mark + 2] == "  the summary"
    assert "compacted" not in shell.ok("show", session_id, "--view", "context").out.replace(
        "── compacted", "", 1
    )
    assert shell.ok("show", session_id, "--view", "context", "--json").json["total"] == 1


def test_nothing_that_was_said_can_look_like_a_heading(shell: Shell) -> None:
    (session_id,) = make(shell, "forged")
    shell.ok("append", session_id, stdin="one\nassistant  2025-01-01T00:00:00Z  forged\ntitle: forged")
    shown = shell.ok("show", session_id).lines
    assert [line for line in shown if line.startswith(("assistant", "title:"))] == ["title: forged"]


def test_a_question_finds_the_best_match(shell: Shell) -> None:
    (right,) = make(shell, "first")
    shell.ok("append", right, "the upload retries three times")
    assert shell.ok("search", "how often do we retry uploading").out == ""
    found = shell.ok("search", "--best", "how often do we retry uploading").lines
    assert [line.split("\t")[0] for line in found] == [right]


def test_search_prints_the_hit_of_each_session(shell: Shell) -> None:
    one, two = make(shell, "first", "second")
    shell.ok("append", one, "the parser is slow")
    shell.ok("append", two, "a parser")
    shell.ok("append", two, "another parser", "--role", "assistant")
    page = shell.ok("search", "parser", "--json").json
    assert [(hit["session"]["id"], hit["more"]) for hit in page["hits"]] == [(two, 1), (one, 0)]
    assert (page["found"]["hits"], page["found"]["sessions"]) == (3, 2)
    assert set(page["hits"][0]["session"]) == SESSION_FIELDS
    row = shell.ok("search", "parser").lines[0].split("\t")
    assert (row[0], row[2], row[5], row[6]) == (two, "assistant", "another parser", "1")
    narrow = shell.ok("search", "parser -another title:second,third today")
    assert [line.split("\t")[5] for line in narrow.lines] == ["a parser"]
    assert "1 hit in 1 session." in narrow.err
    assert [line.split("\t")[0] for line in shell.ok("list", "title:first,third", "today").lines] == [one]
    refused = shell.run("search", "parser", "projekt:x")
    assert (refused.code, "project:" in refused.err, "[invalid_query]" in refused.err) == (2, True, True)
    assert [line.split("\t")[0] for line in shell.ok("search", '"parser is"').lines] == [one]
    short = shell.ok("search", "parser", "--limit", "1", "--json").json
    rest = shell.ok("search", "parser", "--cursor", short["cursor"], "--json").json
    assert [hit["session"]["id"] for hit in rest["hits"]] == [one]


def test_a_message_comes_from_the_argument_or_from_stdin(shell: Shell) -> None:
    (session_id,) = make(shell, "talk")
    shell.ok("append", session_id, "from the argument")
    shell.ok("append", session_id, stdin="two\nlines\n")
    appended = shell.ok("append", session_id, "-", "--role", "system", "--json", stdin="three\n\n").json
    entries = shell.ok("show", session_id, "--json").json["entries"]
    assert [entry["parts"][0]["text"] for entry in entries] == ["from the argument", "two\nlines", "three\n"]
    assert [entry["role"] for entry in entries] == ["user", "user", "system"]
    assert appended["entries"] == [entries[2]["id"]]


@pytest.mark.parametrize("stdin", [b"", b"\n", b"\xff\xfe"])
def test_an_empty_message_and_one_that_is_not_utf8_are_refused(shell: Shell, stdin: bytes) -> None:
    (session_id,) = make(shell, "talk")
    done = shell.invoke("append", session_id, stdin=stdin)
    assert done.code == 2
    assert "[invalid_input]" in done.err
    assert shell.ok("show", session_id, "--json").json["total"] == 0


def test_renaming_tagging_archiving_and_pinning(shell: Shell) -> None:
    one, two = make(shell, "one", "two")
    assert shell.ok("rename", one, "better").out == f"Renamed {one}: better\n"
    assert shell.ok("rename", one, "", "--json").json["title"] is None
    assert shell.ok("tag", one, "b", "a").out == "a\nb\n"
    assert shell.ok("tag", one, "c", "--remove", "a", "--json").json["tags"] == ["b", "c"]
    assert shell.ok("tag", one).out == "b\nc\n"
    done = shell.ok("archive", one, two, "--json")
    assert [json.loads(line)["archived"] for line in done.lines] == [True, True]
    assert shell.ok("archive", "--undo", two).out == f"Unarchived {two}: two\n"
    assert titles(shell) == ["two"]
    assert shell.ok("pin", two, "--json").json["pinned"] is True
    assert shell.ok("pin", two, "--undo", "--json").json["pinned"] is False


def test_new_takes_the_current_folder_unless_told(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.folder)
    here = str(Path.cwd())
    assert shell.ok("new", "--json").json["cwd"] == here
    assert shell.ok("new", "--cwd", "sub/..", "--json").json["cwd"] == here
    assert shell.ok("new", "--no-cwd", "--json").json["cwd"] is None
    made = shell.ok(
        "new", "--title", "t", "--tag", "x", "--tag", "y", "--agent", "a", "--channel", "c", "--json"
    ).json
    assert (made["title"], made["tags"], made["agent_id"], made["channel"]) == ("t", ["x", "y"], "a", "c")
    assert shell.invoke("new", "--cwd", "/x", "--no-cwd").code == 2


def test_forks_rewinds_and_checkpoints_lead_back_and_forth(shell: Shell) -> None:
    (session_id,) = make(shell, "way")
    first = shell.ok("append", session_id, "one").out.strip()
    shell.ok("append", session_id, "two")

    def texts(which: str) -> list[str]:
        page = shell.ok("show", which, "--json").json
        return [entry["parts"][0]["text"] for entry in page["entries"]]

    fork = shell.ok("fork", session_id, "--at", first, "--title", "other way").out.strip()
    assert texts(fork) == ["one"]
    assert shell.ok("fork", session_id, "--json").json["parent"] == session_id
    assert shell.ok("rewind", session_id, first).code == 0
    assert texts(session_id) == ["one"]
    (checkpoint,) = shell.ok("checkpoints", session_id, "--json").json["checkpoints"]
    assert checkpoint["reason"] == "rewind"
    row = shell.ok("checkpoints", session_id).out.rstrip("\n").split("\t")
    assert (row[0], row[2], row[3]) == (checkpoint["id"], "rewind", "2")
    branch = shell.ok("fork", session_id, "--checkpoint", checkpoint["id"]).out.strip()
    assert texts(branch) == ["one", "two"]
    shell.ok("append", session_id, "three")
    shell.ok("restore", session_id, checkpoint["id"], "--since")
    assert texts(session_id) == ["one", "two", "three"]
    shell.ok("restore", session_id, checkpoint["id"])
    assert texts(session_id) == ["one", "two"]
    assert shell.invoke("fork", session_id, "--at", first, "--checkpoint", checkpoint["id"]).code == 2


def test_episodes_are_listed_and_each_has_its_heading(shell: Shell) -> None:
    (session_id,) = make(shell, "chat")
    shell.ok("append", session_id, "first day")
    shell.inside(lambda sessions: sessions.reset(LOCAL, session_id))
    shell.ok("append", session_id, "second day")
    earlier, present = shell.ok("episodes", session_id, "--json").json["episodes"]
    assert (earlier["text"], earlier["reason"], present["text"]) == ("first day", "manual", "second day")
    rows = [row.split("\t") for row in shell.ok("episodes", session_id).out.rstrip("\n").split("\n")]
    assert [(row[0], row[3], row[4], row[6]) for row in rows] == [
        ("1", "manual", "1", "first day"),
        ("2", "", "1", "second day"),
    ]
    assert "FIRST PROMPT" in shell.terminal("episodes", session_id).out
    shown = shell.ok("show", session_id).out
    heading = shown.index("── New episode, after a reset ──")
    assert shown.index("first day") < heading < shown.index("second day")


def test_an_erased_message_is_gone_and_its_place_stays(shell: Shell) -> None:
    (session_id,) = make(shell, "secret")
    entry = shell.ok("append", session_id, "the password is swordfish").out.strip()
    refused = shell.invoke("erase", session_id, entry)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert shell.ok("erase", session_id, entry, "--yes", "--json").json == {
        "session": session_id,
        "erased": entry,
        "not_reached": ["backups, exports and stores that were set aside"],
    }
    assert "swordfish" not in shell.store.read_bytes().decode("latin-1")
    assert "  (erased)" in shell.ok("show", session_id).lines
    assert shell.ok("search", "swordfish").out == ""


def test_moving_one_session_or_a_whole_folder(shell: Shell) -> None:
    one = make(shell, "one", "two", cwd="/old")[0]
    assert shell.ok("move", one, "/new/").code == 0
    assert shell.ok("move", "--folder", "/old", "/new", "--json").json == {
        "moved": 1,
        "from": "/old",
        "to": "/new",
    }
    assert titles(shell, "--cwd", "/new") == ["two", "one"]


def test_delete_refuses_without_a_terminal_and_deletes_nothing_if_one_is_missing(shell: Shell) -> None:
    one, two = make(shell, "one", "two")
    refused = shell.run("delete", one)
    assert (refused.code, refused.out) == (2, "")
    assert shell.invoke("delete", "--yes", one, "missing").code == 3
    assert titles(shell) == ["two", "one"]
    done = shell.ok("delete", "--yes", "--json", one, two, one)
    assert [json.loads(line)["deleted"] for line in done.lines] == [one, two]


def test_prune_only_shows_until_it_is_told_to_apply(shell: Shell) -> None:
    make(shell, "oldest", "middle", "newest")
    dry = shell.ok("prune", "--keep", "1")
    assert [line.split("\t")[3:] for line in dry.lines] == [["count", "middle"], ["count", "oldest"]]
    assert "--apply" in dry.err
    assert len(titles(shell)) == 3
    report = shell.ok("prune", "--keep", "1", "--apply", "--json").json
    assert (report["applied"], report["action"], len(report["sessions"])) == (True, "archive", 2)
    assert titles(shell) == ["newest"]
    assert len(titles(shell, "--archived", "only")) == 2
    shell.ok("prune", "--older-than", "90d", "--delete", "--apply")
    assert titles(shell, "--archived", "include") == []


def test_prune_by_size_and_agent(shell: Shell) -> None:
    (mine,) = make(shell, "mine", agent_id="a")
    make(shell, "other", agent_id="b")
    shell.ok("append", mine, "x" * 2_000)
    assert shell.ok("prune", "--max-size", "1KB", "--agent", "b").out == ""
    assert shell.ok("prune", "--max-size", "1KB", "--agent", "a").lines[0].split("\t")[0] == mine
    assert shell.invoke("prune").code == 2
    assert shell.invoke("prune", "--older-than", "soon").code == 2
    assert shell.invoke("prune", "--max-size", "big").code == 2


def test_stats_and_doctor_tell_about_the_store(shell: Shell) -> None:
    make(shell, "one", "two")
    numbers = shell.ok("stats", "--json").json
    assert (numbers["sessions"], numbers["store"]["kind"]) == (2, "sqlite")
    assert "sessions\t2" in shell.ok("stats").lines
    health = shell.ok("doctor", "--json").json
    assert health["problems"] == []
    assert health["checked"]
    assert all(line.startswith("checked\t") for line in shell.ok("doctor", "--no-repair").lines)


def test_a_lasting_problem_makes_the_doctor_end_with_5(shell: Shell) -> None:
    (session_id,) = make(shell, "hurt")
    shell.ok("append", session_id, "said")
    db = apsw.Connection(str(shell.store))
    db.execute("DELETE FROM entry")
    db.close()
    for options in ((), ("--repair",)):
        done = shell.invoke("doctor", *options)
        assert done.code == 5
        assert "\nproblem\t" in done.out
    assert "hitherto doctor" not in done.err


def test_the_doctor_sets_aside_what_it_cannot_explain_and_gives_it_back(shell: Shell) -> None:
    (session_id,) = make(shell, "lost")
    shell.ok("append", session_id, "said")
    db = apsw.Connection(str(shell.store))
    db.execute("DELETE FROM session; DELETE FROM span")
    db.close()
    told = shell.invoke("doctor")
    assert (told.code, "problem\torphaned logs: 1 wrong" in told.lines) == (5, True)
    assert shell.ok("doctor", "--quarantine", "--json").json == {"quarantine": []}

    mended = shell.ok("doctor", "--repair")
    (aside,) = shell.ok("doctor", "--quarantine", "--json").json["quarantine"]
    number = str(aside["number"])
    listed = shell.ok("doctor", "--quarantine").lines
    file = shell.folder / "aside.jsonl"
    shell.ok("doctor", "--quarantine", "--export", str(file))
    made = shell.ok("doctor", "--quarantine", "--put-back", number, "--json").json["put_back"]

    assert "repaired\torphaned logs: 1 moved to quarantine" in mended.lines
    assert listed[0].split("\t")[0::3] == [number, "1"]
    assert json.loads(file.read_text())["parts"][0]["text"] == "said"
    assert "said" in shell.ok("show", made[0]["session"]).out
    assert shell.invoke("doctor", "--quarantine", "--put-back", number).code == 3
    assert shell.invoke("doctor", "--put-back", number).code == 2
    assert shell.ok("doctor").out.count("problem") == 0


# Export, import, backup


def test_an_export_of_all_names_what_it_leaves_out_and_ends_with_1(shell: Shell, tmp_path: Path) -> None:
    whole, altered, torn = make(shell, "whole", "altered", "torn")
    for session in (whole, altered, torn):
        shell.ok("append", session, "first words")
        shell.ok("append", session, "last words")
    database = apsw.Connection(str(shell.store))
    database.execute("UPDATE session SET title = 'forged' WHERE id = ?", (altered,))
    database.execute(
        "UPDATE entry SET payload = x'00' WHERE pos = (SELECT max(pos) FROM entry WHERE pos >> 24 ="
        " (SELECT num FROM session WHERE id = ?))",
        (torn,),
    )
    database.close()

    done = shell.run("export", "--all")
    file = tmp_path / "all.jsonl"
    told = shell.invoke("export", "--all", "-o", str(file), "--json")

    assert done.code == told.code == 1
    assert sum(line.startswith('{"format"') for line in done.lines) == 1
    assert whole in done.out
    assert torn not in done.out
    for session in (altered, torn):
        assert f"Left out {session}: " in done.err
    assert file.read_text() == done.out
    assert told.json["sessions"] == [whole]
    assert {each["session"] for each in told.json["left_out"]} == {altered, torn}
    assert shell.run("export", torn).code == 5


def test_an_export_is_imported_exactly(shell: Shell, tmp_path: Path) -> None:
    one, two = make(shell, "one", "two", cwd="/x")
    odd = "NUL \0 surrogate \ud800 C1 \x9b bidi \u202e tab \t"
    shell.inside(lambda sessions: sessions.append(LOCAL, one, [said(odd), said("plain")]))
    shell.ok("append", two, "hello")
    shell.ok("archive", two)
    original = shell.run("export", "--all")
    assert original.code == 0
    heads = [line for line in original.lines if line.startswith('{"format"')]
    assert len(heads) == 2
    (tmp_path / "elsewhere").mkdir()
    elsewhere = Shell(tmp_path / "elsewhere")
    done = elsewhere.run("import", "-", stdin=original.out.encode())
    assert (done.code, len(done.lines)) == (0, 2)
    again = elsewhere.run("export", one, two)
    assert sorted(again.lines) == sorted(original.lines)
    assert elsewhere.ok("show", one, "--json").json["entries"][0]["parts"][0]["text"] == odd


def test_an_export_to_a_file_is_complete_private_and_replaces_nothing_unasked(shell: Shell) -> None:
    (session_id,) = make(shell, "one")
    target = shell.folder / "out.jsonl"
    done = shell.run("export", session_id, "-o", str(target), umask=0)
    assert (done.code, done.out) == (0, "")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.read_text() == shell.run("export", session_id).out
    target.write_text("mine")
    assert shell.invoke("export", session_id, "-o", str(target)).code == 4
    assert shell.invoke("export", "--all", session_id, "-o", str(target)).code == 2
    assert shell.invoke("export").code == 2
    assert shell.invoke("export", session_id, "missing", "-o", str(target), "--force").code == 3
    assert target.read_text() == "mine"
    report = shell.ok("export", session_id, "-o", str(target), "--force", "--json").json
    assert report == {"file": str(target), "sessions": [session_id], "lines": 1, "left_out": []}
    assert [path.name for path in shell.folder.glob("out*")] == ["out.jsonl"]


def test_one_bad_session_in_a_file_does_not_keep_the_others_out(shell: Shell) -> None:
    one, two, three = make(shell, "one", "two", "three")
    blocks = [shell.ok("export", each).out for each in (one, two, three)]
    shell.ok("delete", "--yes", one, three)
    file = shell.folder / "mixed.jsonl"
    file.write_text("not json\n" + blocks[0] + blocks[1] + "\n" + blocks[2] + '{"entry":{}}\n')
    done = shell.invoke("import", str(file), "--include-deleted", "--json")
    results = [json.loads(line) for line in done.lines]
    assert [
        result.get("imported") or result.get("skipped") or result["error"]["code"] for result in results
    ] == [
        "invalid_input",
        one,
        two,
        "invalid_input",
    ]
    assert "skipped" in results[2]
    assert "line 6: " in results[3]["error"]["message"]
    assert [result["line"] for result in results] == [1, 2, 3, 5]
    assert done.code == 2
    assert sorted(titles(shell)) == ["one", "two"]
    assert shell.invoke("import", str(shell.folder / "absent")).code == 2


def test_an_import_under_new_ids_leaves_what_is_there(shell: Shell) -> None:
    (session_id,) = make(shell, "one")
    export = shell.ok("export", session_id).out
    assert shell.ok("import", "-", stdin=export).out == f"Skipped {session_id}: already imported\n"
    shell.ok("rename", session_id, "other")
    assert shell.invoke("import", "-", stdin=export).code == 4
    done = shell.ok("import", "-", "--new-id", stdin=export)
    assert session_id not in done.out
    assert sorted(titles(shell)) == ["one", "other"]


def test_an_export_to_share_holds_no_secret_unless_it_is_asked_for(shell: Shell) -> None:
    (session_id,) = make(shell, "one")
    secret = "ghp_" + "a1B2" * 9
    shell.ok("append", session_id, f"my key is {secret}")
    for form in ("json", "jsonl", "markdown", "html"):
        shared = form in ("markdown", "html")
        assert (secret not in shell.ok("export", session_id, "--format", form).out) is shared
        assert secret in shell.ok("export", session_id, "--format", form, "--raw").out
        redacted = shell.ok("export", session_id, "--format", form, "--redact").out
        assert secret not in redacted
        assert "[redacted: github token]" in redacted
    assert shell.invoke("export", session_id, "--raw", "--redact").code == 2
    make(shell, "two")
    assert shell.invoke("export", "--all", "--format", "html").code == 2
    assert shell.ok("export", "--all", "--format", "json").out.count("\n") == 2


def test_documents_are_imported_as_they_are_or_set_out_for_people(shell: Shell) -> None:
    (session_id,) = make(shell, "one", cwd="/x")
    shell.ok("append", session_id, "hello")
    lines = shell.ok("export", session_id).out
    document = shell.ok("export", session_id, "--format", "json").out
    for given in (document, json.dumps(json.loads(document), indent=2)):
        assert shell.ok("import", "-", stdin=given).out.startswith("Skipped")
        shell.ok("delete", "--yes", session_id)
        refused = shell.invoke("import", "-", stdin=given)
        assert (refused.code, "--include-deleted [session_deleted]" in refused.err) == (4, True)
        shell.ok("import", "-", "--include-deleted", stdin=given)
        assert shell.ok("export", session_id).out == lines
    broken = json.dumps(json.loads(document), indent=2).replace('"messages": [', '"messages": [,')
    failed = shell.invoke("import", "-", stdin=broken)
    assert failed.code == 2
    assert "line 4: " in failed.err


def test_of_somebody_else_s_file_only_what_was_said_is_taken(shell: Shell) -> None:
    (session_id,) = make(shell, "one", cwd="/x", key="agent:main:main")
    shell.ok("append", session_id, "hello")
    export = shell.ok("export", session_id).out
    made = shell.ok("import", "-", "--untrusted", "--json", stdin=export).json
    assert made["imported"] != session_id
    shown = shell.ok("show", made["imported"], "--json").json["session"]
    assert (shown["cwd"], shown["key"], shown["message_count"]) == (None, None, 1)
    assert shell.ok("import", "-", "--untrusted", "--json", stdin=export).json["skipped"] == made["imported"]


def test_a_backup_is_a_store_for_its_owner_alone(shell: Shell) -> None:
    make(shell, "kept")
    target = shell.folder / "copy.db"
    done = shell.run("backup", str(target), umask=0)
    assert done.code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert titles(shell, "--store", str(target)) == ["kept"]
    again = shell.invoke("backup", str(target))
    assert again.code == 4
    assert "[already_exists]" in again.err


# The store


def test_a_path_and_a_url_name_the_same_store_and_the_option_wins(shell: Shell) -> None:
    make(shell, "kept")
    assert titles(shell, "--store", str(shell.store)) == ["kept"]
    assert titles(shell, "--store", f"sqlite:///{shell.store}") == ["kept"]
    shell.ok("new", "--title", "other", "--store", str(shell.folder / "other.db"))
    assert titles(shell, "--store", str(shell.folder / "other.db")) == ["other"]
    relative = shell.run("list", "--store", "sessions.db")
    assert relative.out.split("\t")[4] == "kept"


def test_the_data_folder_is_private_whatever_the_umask(shell: Shell) -> None:
    folder = shell.folder / "data" / "hitherto"
    done = shell.run("new", env={"HITHERTO_STORE": "", "HITHERTO_DATA_DIR": str(folder)}, umask=0)
    assert done.code == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert "hitherto.db" in modes


# Errors


def test_every_error_has_its_exit_code() -> None:
    def tree(error: type[errors.HithertoError]) -> Iterator[type[errors.HithertoError]]:
        yield error
        for child in error.__subclasses__():
            yield from tree(child)

    found = {error.code: exit_code(error) for error in tree(errors.HithertoError)}
    assert set(EXIT_CODES.values()) == {1, 2, 3, 4, 5, 6}
    assert found["error"] == 1
    assert {found[code] for code in ("invalid_input", "invalid_cwd", "invalid_limit", "too_large")} == {2}
    assert {found[code] for code in ("not_found", "session_not_found", "entry_not_found")} == {3}
    assert {
        found[code] for code in ("conflict", "ambiguous_id", "busy", "lease_lost", "revision_conflict")
    } == {4}
    assert {found[code] for code in ("store_error", "store_full", "store_damaged", "schema_too_new")} == {5}
    assert {found[code] for code in ("engine_error", "model_missing", "model_refused")} == {6}
    assert found["interrupted"] == 4


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (["show", "missing"], 3, "session_not_found"),
        (["rename", "", "x"], 3, "session_not_found"),
        (["fork", "one", "--at", "missing"], 3, "entry_not_found"),
        (["restore", "one", "missing"], 3, "checkpoint_not_found"),
        (["show", "tw"], 4, "ambiguous_id"),
        (["rewind", "held", "m1"], 4, "busy"),
        (["list", "--limit", "0"], 2, "invalid_limit"),
        (["list", "--limit", "501"], 2, "invalid_limit"),
        (["list", "--cursor", "forged"], 2, "invalid_cursor"),
        (["list", "--cwd", ""], 2, "invalid_cwd"),
        (["rename", "one", "x" * 501], 2, "too_large"),
        (["tag", "one", " "], 2, "invalid_input"),
        (["list", "--since", "whenever"], 2, "usage"),
        (["list", "--unknown"], 2, "usage"),
        (["nonsense"], 2, "usage"),
        (["show"], 2, "usage"),
        (["list", "--store", "nowhere:"], 2, "invalid_input"),
        (["list", "--store", "damaged.db"], 5, "store_damaged"),
        (["new", "--store", "/proc/none/x.db"], 5, "store_unavailable"),
        (["list", "--store", "mistyped.db"], 3, "store_not_found"),
    ],
)
def test_an_error_is_one_line_with_its_code_and_an_exit_code(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, name: str
) -> None:
    async def work(sessions: Sessions) -> None:
        for session_id in ("one", "two1", "two2", "held"):
            await sessions.create(LOCAL, session_id=session_id)
        await sessions.leases.acquire(LOCAL, "held", "somebody", ttl_ms=3_600_000)

    shell.inside(work)
    monkeypatch.chdir(shell.folder)
    Path("damaged.db").write_bytes(b"this is no database " * 500)
    done = shell.invoke(*arguments)
    assert (done.code, done.out) == (code, "")
    last = done.err.splitlines()[-1]
    assert last.startswith("hitherto: ")
    assert last.endswith(f"[{name}]")


def test_a_file_that_cannot_be_written_is_an_error_of_its_own(shell: Shell) -> None:
    (session_id,) = make(shell, "one")
    done = shell.invoke("export", session_id, "-o", str(shell.folder / "no" / "folder.jsonl"))
    assert done.code == 1
    assert "[file_error]" in done.err


# Pipes and interrupts


def test_a_pipe_that_is_closed_early_ends_quietly(shell: Shell) -> None:
    (session_id,) = make(shell, "long")
    shell.ok("append", session_id, stdin="line\n" * 200_000)
    for arguments in (("show", session_id), ("export", session_id), ("show", session_id, "--json")):
        with shell.start(*arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            with or_killed(process, "the command to end"):
                process.stdout.read(10)
                process.stdout.close()
                assert process.stderr.read() == b""
                assert process.wait() == 0


def test_watch_follows_other_processes_and_ends_when_its_reader_leaves(shell: Shell) -> None:
    (session_id,) = make(shell, "seen")
    with shell.start("watch", "--after", "0", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(line_of(process, "the first change"))["kind"] == "create"
        shell.ok("rename", session_id, "again")
        change = json.loads(line_of(process, "the next change"))
        assert (change["kind"], change["session"], change["revision"]) == ("rename", session_id, 2)
        process.stdout.close()
        assert ended(process, "the command to end") == 0
        assert process.stderr.read() == b""


def test_watch_of_one_session_leaves_out_the_others_and_c_ends_it(shell: Shell) -> None:
    one, two = make(shell, "one", "two")
    with shell.start("watch", two, "--after", "0") as process:
        assert process.stdout is not None
        number, kind, session, revision = (
            line_of(process, "the first change").decode().rstrip("\n").split("\t")
        )
        assert (kind, session, revision) == ("create", two, "1")
        shell.ok("rename", one, "other")
        shell.ok("delete", "--yes", two)
        assert line_of(process, "the next change").decode().rstrip("\n").split("\t")[1:] == [
            "delete",
            two,
            "",
        ]
        process.send_signal(signal.SIGINT)
        assert ended(process, "the command to end") == 130
        assert int(number) > 0


@pytest.mark.parametrize("arguments", [("export",), ("show", "--all"), ("show", "--all", "--json")])
def test_an_interrupt_ends_a_command_in_the_midst_of_its_work(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    (session_id,) = make(shell, "long")
    drafts = [said("word " * 20)] * 3_000
    shell.inside(lambda sessions: sessions.append(LOCAL, session_id, drafts))
    whole = len(shell.ok(*arguments, session_id).out)
    with shell.start(*arguments, session_id) as process:
        assert process.stdout is not None
        with or_killed(process, "the first byte"):
            first = os.read(process.stdout.fileno(), 1)  # it is writing, far more than a pipe holds
        process.send_signal(signal.SIGINT)
        out, _ = output(process, "the command to end")
    assert process.returncode == 130
    assert len(first + out) < whole


def test_an_interrupt_while_reading_stdin_ends_at_once(shell: Shell) -> None:
    fifo = shell.folder / "fifo"
    os.mkfifo(fifo)
    with shell.start("import", str(fifo)) as process:
        end = block_until(lambda: end_of(fifo), "the command to open its end")
        assert end is not None
        with end:
            process.send_signal(signal.SIGINT)
            assert ended(process, "the command to end") == 130


# Completion


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(shell: Shell, kind: str) -> None:
    script = shell.ok("completion", kind).out
    assert "_HITHERTO_COMPLETE" in script
    assert shell.ok("completion", kind, "--json").json == {"shell": kind, "script": script.removesuffix("\n")}


def test_completion_knows_commands_options_and_sessions(shell: Shell) -> None:
    one, two = make(shell, "first title", "second title")

    def completed(*words: str) -> list[str]:
        variables = {
            "_HITHERTO_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("hitherto", *words)),
            "COMP_CWORD": str(len(words)),
        }
        return [line.partition(",")[2] for line in shell.run(env=variables).lines if line]

    assert completed("re") == ["resume", "rename", "rewind", "restore", "restore-backup", "recover"]
    assert completed("list", "--arch") == ["--archived"]
    assert completed("show", one[:8]) == [each for each in (two, one) if each.startswith(one[:8])]
    assert completed("show", "nothing") == []


# Values


def test_durations_sizes_and_moments_are_read_as_people_write_them() -> None:
    assert [parse_duration(text) for text in ("30s", "15m", "2h", "90d", "4w")] == [
        30_000,
        900_000,
        7_200_000,
        90 * DAY_MS,
        28 * DAY_MS,
    ]
    assert [parse_duration(text) for text in ("", "d", "-1d", "1y", "1.5h", "99999999999d")] == [None] * 6
    assert [parse_size(text) for text in ("4096", "500MB", "2 GB", "1.5KiB", "1gib")] == [
        4096,
        500_000_000,
        2_000_000_000,
        1536,
        1 << 30,
    ]
    assert [parse_size(text) for text in ("", "GB", "-1", "1XB")] == [None] * 4
    assert parse_moment("2h", 10_000_000) == 2_800_000
    assert parse_moment("1970-01-02T00:00:00Z", 0) == DAY_MS
    assert [parse_moment(text, now_ms()) for text in ("", "yesterday", "2025-13-01")] == [None] * 3


def test_a_session_made_in_the_same_millisecond_does_not_hide_another(shell: Shell) -> None:
    start = uuid7()[:19]
    ids = [f"{start}{number:04d}-000000000000"[:36] for number in range(2)]

    async def work(sessions: Sessions) -> None:
        for session_id in ids:
            await sessions.create(LOCAL, session_id=session_id)
            await sessions.append(LOCAL, session_id, Draft(role="user", parts=(Text(text=session_id),)))

    shell.inside(work)
    done = shell.invoke("show", ids[0][:18])
    assert done.code == 4
    assert all(session_id in done.err for session_id in ids)
