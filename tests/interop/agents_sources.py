"""Sessions that real programs have made are taken in as those programs list and tell them: `make interop`.

opencode, goose and Gemini CLI come from npm and need no account: their model is on the loopback interface.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitherto.presentation.plain_conversation import opening
from hitherto.sources import local_sources
from tests.cli.shell import Shell
from tests.interop import continuing
from tests.interop.continuing import AGAIN, ASKED, LOOKED, LOOKS, PAINTED, continued
from tests.interop.packages import install
from tests.interop.programs import COMMAND, DELEGATE, RUN, Gemini, Json, Program, Said, output_in, running
from tests.sources.census import assert_counted

RESUMED = {
    "opencode": ["opencode", "--session"],
    "goose": ["goose", "session", "--resume", "--session-id"],
    "gemini": ["gemini", "--resume"],
}


pytestmark = pytest.mark.limit(1_800)  # programs that take seconds to start, many times


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    install()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(params=list(RESUMED))
def program(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    with running(request.param, tmp_path) as made:
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path / "data"))
        yield made


def test_its_sessions_are_read_as_it_lists_and_tells_them(program: Program, shell: Shell) -> None:
    names = [program.begin("Paint the barn"), program.begin("Mow the lawn")]
    program.say("And the fence", names[0])
    program.say(RUN, names[1])
    listed = {each.id: each for each in program.listed()}
    assert set(listed) == set(names)
    assert {each.title for each in listed.values()} == {"About the barn", "About the lawn"}

    before = hashes(program.home)
    report = shell.ok("sync", "--json").json
    assert (report["new"], report["damaged_records"], report["unknown_records"]) == (2, 0, 0)
    again = shell.ok("sync", "--json").json
    assert (again["new"], again["updated"]) == (0, 0)
    assert (again["parsed_files"], again["parsed_bytes"]) == (0, 0)
    assert hashes(program.home) == before

    rows = {row["id"]: row for row in shell.ok("list", "--json").json["sessions"]}
    assert set(rows) == {f"{program.name}:{name}" for name in names}
    for name, theirs in listed.items():
        ours = rows[f"{program.name}:{name}"]
        assert (ours["title"], ours["cwd"]) == (theirs.title, theirs.cwd)
        if theirs.messages is not None:
            assert len(spoken(shell, ours["id"])) == theirs.messages
        assert taken_in(shell, ours["id"]) == program.said(name)
    told = taken_in(shell, f"{program.name}:{names[1]}")
    assert ("command", COMMAND) in told
    assert ("output", "grass") in told
    (source,) = (each for each in local_sources() if each.name == program.name)
    for found in source.find():
        assert_counted(found, source.read(found, None))


@pytest.mark.parametrize("program", ["gemini"], indirect=True)
def test_gemini_thinks_once_and_a_command_that_exits_with_an_error_has_failed(
    program: Program, shell: Shell
) -> None:
    assert isinstance(program, Gemini)
    thought = {"text": "**Considering** It is red.", "thought": True}
    fails = {"functionCall": {"name": "run_shell_command", "args": {"command": "echo grass; exit 6"}}}
    otherwise = program.model.answer

    def answer(body: Json) -> list[Json]:
        is_asked = RUN in json.dumps(body["contents"][-1])
        return [thought, fails] if is_asked else [thought, *otherwise(body)]

    program.model.answer = answer
    name = program.begin("Paint the barn")
    program.say(RUN, name)
    program.say("And the fence", name)
    shell.ok("sync")
    parts = [part for entry in spoken(shell, f"gemini:{name}") for part in entry["parts"]]
    assert [part["text"] for part in parts if part["type"] == "thought"] == ["Considering\nIt is red."] * 4
    (result,) = (part for part in parts if part["type"] == "tool_result")
    assert result["is_error"]


@pytest.mark.parametrize("program", ["gemini"], indirect=True)
def test_a_session_continued_in_gemini_is_listed_and_resumed_there(program: Program, shell: Shell) -> None:
    told = continued(shell, continuing.made(shell, program.work), "gemini")
    (listed,) = program.listed()
    assert (listed.id, listed.title) == (told["command"][-1], "The barn")
    said = program.said(listed.id)
    assert said == [
        ("user", opening("Hitherto")),
        ("user", ASKED),
        ("assistant", LOOKS),
        ("command", "ls"),
        ("output", "barn.txt"),
        ("assistant", LOOKED),
        ("user", AGAIN),
        ("assistant", PAINTED),
    ]


def test_only_what_has_changed_is_read_again(program: Program, shell: Shell) -> None:
    names = [program.begin("Paint the barn"), program.begin("Mow the lawn")]
    shell.ok("sync", "--json")
    first = spoken(shell, f"{program.name}:{names[0]}")
    program.say("And the fence", names[0])
    report = shell.ok("sync", "--json").json
    # Gemini CLI may have left an empty transcript beside the one that it has gone on with.
    assert (report["new"], report["updated"]) == (0, 1)
    assert report["parsed_files"] <= (2 if program.name == "gemini" else 1)
    now = spoken(shell, f"{program.name}:{names[0]}")
    assert now[: len(first)] == first
    assert len(now) == len(first) + 2


def test_the_command_to_go_on_is_its_own(program: Program, shell: Shell) -> None:
    name = program.begin("Paint the barn")
    shell.ok("sync")
    (line,) = shell.ok("resume", f"{program.name}:{name}").lines
    assert line == f"cd {shlex.quote(str(program.work))} && {shlex.join([*RESUMED[program.name], name])}"


@pytest.mark.parametrize("program", ["opencode"], indirect=True)
def test_a_subagents_session_is_a_child_of_the_one_that_started_it(program: Program, shell: Shell) -> None:
    name = program.begin(DELEGATE)
    assert shell.ok("sync", "--json").json["new"] == 2
    rows = {
        row["id"]: row.get("parent")
        for row in shell.ok("list", "--all", "--subagents", "--json").json["sessions"]
    }
    assert list(rows.values()).count(f"opencode:{name}") == 1


def hashes(folder: Path) -> dict[str, str]:
    """What every file in a folder holds."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def spoken(shell: Shell, session: str) -> list[Json]:
    """The messages of a session, without what only the program said to its model."""
    entries = shell.ok("show", session, "--all", "--json").json["entries"]
    return [entry for entry in entries if not entry.get("meta", {}).get("meta")]


def taken_in(shell: Shell, session: str) -> Said:
    """What was said in a session, as we have it."""
    said: Said = []
    for entry in spoken(shell, session):
        for part in entry["parts"]:
            if part["type"] == "text":
                said.append((entry["role"], part["text"]))
            elif part["type"] == "tool_call":
                said.append(("command", part["input"]["command"]))
            elif part["type"] == "tool_result":
                said.append(("output", output_in(part["content"][0]["text"])))
    return said
