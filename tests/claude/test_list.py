"""Lists of Claude Code's sessions: equal to the SDK's, wherever the SDK is right."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.claude import (
    SDKSessionInfo,
    get_session_info,
    get_session_messages,
    list_sessions,
    paths,
    project_key_for_directory,
)
from tests.claude.transcripts import MORNING, Writer, grow, session_id
from tests.support.privileges import without_privileges
from tests.support.waits import LIMIT, NEVER

CWD = "/home/ann/project"
FIELDS = (
    "session_id", "summary", "file_size", "custom_title", "first_prompt", "git_branch", "cwd", "tag", "created_at",
)  # fmt: skip


def fields(info: Any) -> dict[str, Any] | None:
    """What both SDKs say of a session, without the time of the last change: theirs may be off by a millisecond."""
    return None if info is None else {name: getattr(info, name) for name in FIELDS}


def assert_as_sdk(**options: Any) -> list[SDKSessionInfo]:
    """Both list the same, in the same order."""
    ours, theirs = list_sessions(**options), sdk.list_sessions(**options)
    assert [fields(info) for info in ours] == [fields(info) for info in theirs]
    for our, their in zip(ours, theirs, strict=True):
        assert abs(our.last_modified - their.last_modified) <= 1
    return ours


@pytest.fixture
def tree(projects: Path) -> list[str]:
    """Thirty sessions in five projects."""
    return [path.stem for path in grow(projects, 30, per_project=6)]


@pytest.mark.usefixtures("projects")
def test_no_projects_folder_is_an_empty_list() -> None:
    paths.projects_folder().rmdir()

    assert assert_as_sdk() == assert_as_sdk(directory=CWD) == []
    assert get_session_info(session_id(1)) is None


def test_a_list_of_all_projects_is_as_the_sdk_has_it(tree: list[str]) -> None:
    assert {info.session_id for info in assert_as_sdk()} == set(tree)


PAGES: list[dict[str, Any]] = [
    {"limit": 5}, {"limit": 5, "offset": 5}, {"limit": 5, "offset": 28}, {"limit": 5, "offset": 100}, {"limit": 0},
    {"limit": -1}, {"offset": 7}, {"offset": -3}, {"limit": 4, "offset": -3}, {"limit": 1_000}, {"limit": None},
]  # fmt: skip


@pytest.mark.usefixtures("tree")
def test_every_page_is_as_the_sdk_has_it() -> None:
    for options in PAGES:
        assert_as_sdk(**options)


@pytest.mark.usefixtures("tree")
def test_the_sessions_of_one_project_are_as_the_sdk_has_them() -> None:
    directories = {info.cwd for info in list_sessions()}
    assert len(directories) > 1
    for directory in directories:
        assert directory is not None
        listed = assert_as_sdk(directory=directory, include_worktrees=False)
        assert list_sessions(dir=directory) == listed


@pytest.mark.usefixtures("tree")
def test_what_is_known_of_one_session_is_as_the_sdk_has_it() -> None:
    for info in list_sessions():
        assert info.cwd is not None
        assert get_session_info(info.session_id) == info
        assert get_session_info(info.session_id, info.cwd) == info
        assert get_session_info(info.session_id, dir=info.cwd) == info
        assert fields(info) == fields(sdk.get_session_info(info.session_id, info.cwd))


@pytest.mark.parametrize(
    "name", ["", "no-id", "../../etc/passwd", "0" * 36, session_id(99), session_id(1) + "\n"]
)
def test_an_unknown_session_and_what_is_no_id_are_not_found(tree: list[str], name: str) -> None:
    assert tree
    assert get_session_info(name) is None
    assert get_session_info(name, CWD) is None


def test_directory_and_dir_may_not_contradict_each_other(tree: list[str]) -> None:
    assert list_sessions(CWD, dir=CWD) == list_sessions(CWD)
    with pytest.raises(TypeError, match="either"):
        list_sessions(CWD, dir="/home/ann/other")
    with pytest.raises(TypeError, match="either"):
        get_session_info(tree[0], CWD, dir="/home/ann/other")


OPENINGS: dict[str, list[Any]] = {
    "a text": ["hello"],
    "lines and blanks": ["  one\ntwo\r\n  "],
    "longer than 200 characters": ["word " * 60],
    "200 characters and a blank": ["x" * 199 + " " + "y"],
    "blocks": [[{"type": "text", "text": "  "}, {"type": "text", "text": "second block"}]],
    "an image and a text": [[{"type": "image", "source": {}}, {"type": "text", "text": "what is this?"}]],
    "a command, then a prompt": ["<command-name>/clear</command-name>", "then this"],
    "only commands": [
        "<command-name>/model</command-name>\n<args>x</args>",
        "<command-name>/clear</command-name>",
    ],
    "output of a command, then a prompt": ["<local-command-stdout>ok</local-command-stdout>", "then this"],
    "what hooks and timers say": ["<session-start-hook>x", "<tick>", "<goal>g</goal>", "then this"],
    "an interruption": ["[Request interrupted by user for tool use]", "then this"],
    "what the editor shows": [
        "<ide_opened_file>a.py</ide_opened_file>",
        "<ide_selection>x\ny</ide_selection>",
        "this",
    ],
    "a prompt after what the editor shows": ["<ide_opened_file>a.py</ide_opened_file> and explain it"],
    "a tool's answer with a text": [
        [{"type": "tool_result", "tool_use_id": "t", "content": "x"}, {"type": "text", "text": "no prompt"}],
        "then this",
    ],
    "tags of one's own": ["<task>fix it</task>"],
    "line ends of Unicode": ["one\u2028two\u0085three"],
    "beyond the basic plane": ["\U0001f600" * 250],
    "nothing": [""],
    "no content": [None],
    "a number": [7],
    "a block that is none": [["text", {"type": "text", "text": 5}, {"type": "text", "text": "right"}]],
}


@pytest.mark.parametrize("prompts", OPENINGS.values(), ids=OPENINGS.keys())
def test_the_first_prompt_is_found_as_the_sdk_finds_it(projects: Path, prompts: list[Any]) -> None:
    writer = Writer(session_id(1), CWD)
    writer.user("meta", isMeta=True)
    writer.user("summary of before", isCompactSummary=True)
    _, call = writer.call("Bash", {"command": "ls"})
    writer.result(call, "a tool's answer")
    for prompt in prompts:
        writer.user(prompt)
    writer.save(projects)

    assert fields(get_session_info(session_id(1))) == fields(sdk.get_session_info(session_id(1)))


NAMES: list[tuple[str, dict[str, str]]] = [
    ("ai-title", {"aiTitle": "made"}),
    ("custom-title", {"customTitle": "given"}),
    ("custom-title", {"customTitle": "given again"}),
    ("last-prompt", {"lastPrompt": "the last prompt", "leafUuid": "x"}),
    ("summary", {"summary": "an old summary", "leafUuid": "x"}),
    ("custom-title", {"customTitle": ""}),
]


def test_titles_take_precedence_as_in_the_sdk(projects: Path) -> None:
    for number in range(64):
        writer = Writer(session_id(number), CWD)
        writer.user("the prompt")
        for bit, (kind, values) in enumerate(NAMES):
            if number & 1 << bit:
                writer.note(kind, **values)
        writer.save(projects, mtime_ms=MORNING + number)

    assert len(assert_as_sdk()) == 64


def test_a_tag_is_the_last_one_and_an_empty_one_takes_it_away(projects: Path) -> None:
    for number, tags in enumerate([["one"], ["one", "two"], ["one", ""], ["one", "", "é ✓"]]):
        writer = Writer(session_id(number), CWD)
        writer.user("hi")
        for tag in tags:
            writer.tag(tag)
        writer.save(projects, mtime_ms=MORNING + number)

    assert [info.tag for info in assert_as_sdk()] == ["é ✓", None, "two", "one"]


def test_the_branch_is_the_last_one_named(projects: Path) -> None:
    for number, branches in enumerate([["main", "topic"], ["main", ""], [""]]):
        writer = Writer(session_id(number), CWD)
        for branch in branches:
            writer.user("hi", gitBranch=branch)
        writer.save(projects, mtime_ms=MORNING + number)

    assert [info.git_branch for info in assert_as_sdk()] == [None, "main", "topic"]


def test_what_is_no_session_is_not_listed(projects: Path) -> None:
    writer = Writer(session_id(1), CWD)
    writer.user("hi")
    path = writer.save(projects)
    (path.parent / "agent-1234.jsonl").write_bytes(writer.data())
    (path.parent / f"{session_id(2)}.jsonl").touch()
    (path.parent / f"{session_id(3)}.jsonl").mkdir()
    (path.parent / f"{session_id(4)}.txt").write_bytes(writer.data())
    (path.parent / f"x{session_id(5)[1:]}.jsonl").write_bytes(writer.data())
    Writer(session_id(6), CWD).save(projects).write_bytes(b'{"type":"mode","mode":"plan"}\n')
    (projects / f"{session_id(7)}.jsonl").write_bytes(writer.data())
    sidechain = Writer(session_id(8), CWD)
    sidechain.user("of a subagent", isSidechain=True)
    sidechain.save(projects)

    assert [info.session_id for info in assert_as_sdk()] == [session_id(1)]
    for number in range(2, 9):
        assert get_session_info(session_id(number)) is None


def test_of_sessions_with_one_id_the_newest_is_listed(projects: Path) -> None:
    for number, cwd in enumerate(("/home/ann/a", "/home/ann/b", "/home/ann/c")):
        writer = Writer(session_id(1), cwd)
        writer.user(f"in {cwd}")
        writer.save(projects, mtime_ms=MORNING + number * (-1) ** number * 10)

    (info,) = assert_as_sdk()
    assert info.cwd == "/home/ann/c"


def test_what_may_not_be_read_is_left_out(projects: Path) -> None:
    for number in (1, 2, 3):
        writer = Writer(session_id(number), f"/home/ann/{number}")
        writer.user("hi")
        path = writer.save(projects)
        if number == 1:
            path.parent.chmod(0)
        if number == 2:
            path.chmod(0)

    with without_privileges():
        assert [info.session_id for info in assert_as_sdk()] == [session_id(3)]
        assert get_session_info(session_id(1)) is None
        assert get_session_info(session_id(2)) is None


def test_the_sessions_of_all_worktrees_are_listed(
    projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "WORKTREE_SECONDS", NEVER)
    main, other, apart = (tmp_path / name for name in ("main", "other", "main-apart"))
    for folder in (main, apart):
        folder.mkdir()
    git = ["git", "-c", "user.name=ann", "-c", "user.email=ann@example.com", "-C", str(main)]
    for words in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", str(other)],
    ):
        subprocess.run([*git, *words], check=True, timeout=LIMIT)
    for number, folder in enumerate((main, other, apart, main / "package")):
        writer = Writer(session_id(number), str(folder))
        writer.user("hi")
        writer.save(projects, mtime_ms=MORNING + number)
    (main / "package").mkdir()

    assert len(assert_as_sdk(directory=str(main))) == 2
    assert len(assert_as_sdk(directory=str(other))) == 2
    assert len(assert_as_sdk(directory=str(main / "package"))) == 3
    assert len(assert_as_sdk(directory=str(main), include_worktrees=False)) == 1
    assert fields(get_session_info(session_id(1), str(main))) == fields(
        sdk.get_session_info(session_id(1), str(main))
    )
    assert get_session_info(session_id(2), str(main)) is None


@given(
    st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"]), min_size=1, max_size=300)
)
def test_project_keys_are_the_sdks(name: str) -> None:
    directory = "/nowhere/" + name.replace("/", "_")
    # Theirs are composed on every system, Claude Code's own on macOS only.
    if directory.isascii() or project_key_for_directory(directory).count("-") == 0:
        assert project_key_for_directory(directory) == sdk.project_key_for_directory(directory)


@pytest.mark.parametrize(
    "directory", [None, ".", "/", "/home/ann", "/home/ann/" + "long/" * 60, "/home/é.ü_x"]
)
def test_project_keys_of_usual_directories_are_the_sdks(directory: str | None) -> None:
    assert project_key_for_directory(directory) == sdk.project_key_for_directory(directory)


def test_a_limit_that_is_no_whole_number_is_refused_by_name(projects: Path) -> None:
    path = Writer(session_id(1))
    path.user("one")
    path.save(projects)
    readers: list[Callable[..., list[Any]]] = [list_sessions, partial(get_session_messages, session_id(1))]
    for read in readers:
        assert len(read(limit=1.0)) == 1
        for wrong in (1.5, "1", float("inf")):
            with pytest.raises(TypeError, match=r"limit must be a whole number, not "):
                read(limit=wrong)
