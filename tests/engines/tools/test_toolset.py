"""What all tools have in common, what each may do in each mode, and who they act through."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitherto import tasks
from hitherto.engine import Finished
from hitherto.engines.tools.limits import PLAN_STEPS, STEP_CHARS, TITLE_CHARS
from hitherto.engines.tools.toolset import local_tools
from hitherto.model import Plan
from hitherto.permissions import KINDS, MODES, Mode, Ruling, ruling
from hitherto.tasks import in_thread
from tests.engines.tools.bench import Bench, words
from tests.support.waits import NEVER, arrives, is_set

RULINGS: dict[str, tuple[Ruling, Ruling, Ruling, Ruling, Ruling]] = {
    # in the order of MODES: default, acceptEdits, plan, dontAsk, bypassPermissions
    "read_file": ("allow", "allow", "allow", "allow", "allow"),
    "list_files": ("allow", "allow", "allow", "allow", "allow"),
    "search_files": ("allow", "allow", "allow", "allow", "allow"),
    "update_plan": ("allow", "allow", "allow", "allow", "allow"),
    "write_file": ("ask", "allow", "refuse", "refuse", "allow"),
    "edit_file": ("ask", "allow", "refuse", "refuse", "allow"),
    "run_command": ("ask", "ask", "refuse", "refuse", "allow"),
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("mode", MODES)
def test_what_each_tool_may_do_in_each_mode(mode: Mode, bench: Bench) -> None:
    ruled = {name: ruling(mode, tool.kind) for name, tool in bench.tools.items()}
    assert ruled == {name: rulings[MODES.index(mode)] for name, rulings in RULINGS.items()}


def test_without_a_root_there_is_only_the_plan() -> None:
    assert [tool.name for tool in local_tools((), None)] == ["update_plan"]


def test_each_tool_is_offered_whole(bench: Bench) -> None:
    for tool in bench.tools.values():
        assert tool.kind in KINDS
        assert 40 < len(tool.description) < 500
        assert tool.schema["type"] == "object"
        assert tool.schema["additionalProperties"] is False
        assert "$ref" not in str(tool.schema)


BAD: tuple[dict[str, Any], ...] = (
    {},
    {"path": None},
    {"path": 5, "content": 5, "old": 5, "new": 5, "pattern": 5, "command": 5, "steps": 5},
    {
        "path": "a",
        "content": "",
        "old": "",
        "new": "",
        "pattern": "x",
        "command": "x",
        "steps": [],
        "more": 1,
    },
)


@pytest.mark.parametrize("given", [*BAD, None, [], "text"])
@pytest.mark.parametrize("name", RULINGS)
async def test_input_that_does_not_fit_is_told_and_describes_nothing(
    name: str, given: Any, bench: Bench
) -> None:
    if given == {} and name == "list_files":
        given = {"pattern": 5}
    tool = bench[name]
    ran = await tool.call(given, lambda _: None)
    assert ran.is_error
    assert words(ran).startswith(f"invalid input for {name}: ")
    assert tool.title(given) is None
    assert tool.locations(given) == ()
    assert os.listdir(bench.folder) == []


TITLES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("read_file", {"path": "a/b.py", "offset": 7}, "Read a/b.py"),
    ("write_file", {"path": "a/b.py", "content": ""}, "Write a/b.py"),
    ("edit_file", {"path": "a/b.py", "old": "a", "new": "b"}, "Edit a/b.py"),
    ("list_files", {"path": "a/b.py", "pattern": "*.md"}, "List *.md in a/b.py"),
    ("search_files", {"path": "a/b.py", "pattern": "x+"}, "Search for x+ in a/b.py"),
    ("run_command", {"command": "echo a\n  echo b"}, "echo a echo b"),
    ("update_plan", {"steps": []}, "Update the plan"),
)


@pytest.mark.parametrize(("name", "given", "title"), TITLES)
def test_a_call_is_described_by_a_title_and_the_places_it_is_about(
    name: str, given: dict[str, Any], title: str, bench: Bench
) -> None:
    assert bench[name].title(given) == title
    line = {"line": 7} if "offset" in given else {}
    places = ({"path": f"{bench.folder}/a/b.py", **line},) if "path" in given else ()
    assert bench[name].locations(given) == places


def test_a_title_is_one_short_line_of_what_can_be_seen(bench: Bench) -> None:
    title = bench["run_command"].title({"command": "x\x1b[31m" + "y" * 500})
    assert title is not None
    assert title.startswith("x\\x1b[31my")
    assert len(title) == TITLE_CHARS
    assert bench["read_file"].title({"path": "a\udcff\ud800"}) == "Read a\\udcff\\ud800"


ESCAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read_file", {}),
    ("write_file", {"content": "changed"}),
    ("edit_file", {"old": "secret", "new": "changed"}),
    ("list_files", {}),
    ("search_files", {"pattern": "secret"}),
)


@pytest.mark.parametrize(
    "path", ["../beside/{}", "{beside}/{}", "out/{}", "out_file", "~/{}", "\0", "/proc/self/root/{}"]
)
@pytest.mark.parametrize(("name", "given"), ESCAPES)
async def test_no_tool_leaves_the_roots(name: str, given: dict[str, Any], path: str, tmp_path: Path) -> None:
    root, beside = tmp_path / "root", tmp_path / "beside"
    root.mkdir()
    beside.mkdir()
    (beside / "file").write_text("secret")
    (root / "out").symlink_to(beside)
    (root / "out_file").symlink_to(beside / "file")
    target = path.replace("{}", "" if name == "list_files" else "file").format(beside=beside)
    told = await Bench(root).refused(name, path=target, **given)
    assert "secret" not in told
    assert (beside / "file").read_text() == "secret"
    assert os.listdir(beside) == ["file"]


# An editor as the host


class Editor:
    """Has a text that was never saved, and a terminal of its own."""

    def __init__(self) -> None:
        self.texts = dict[str, str]()
        self.commands = list[tuple[str, str]]()

    async def read_text(self, path: str) -> str:
        if path not in self.texts:
            raise FileNotFoundError(2, "the editor has no such file")
        return self.texts[path]

    async def write_text(self, path: str, text: str) -> None:
        self.texts[path] = text

    async def run(
        self, command: str, cwd: str, *, seconds: float, output_bytes: int, show: Callable[[str], None]
    ) -> Finished:
        self.commands.append((command, cwd))
        show("half")
        return Finished(output=f"{seconds:g} s, {output_bytes} bytes", exit_code=0)


async def test_text_and_commands_go_through_the_editor(tmp_path: Path) -> None:
    editor = Editor()
    bench = Bench(tmp_path, host=editor)
    place = f"{tmp_path}/new/file"
    assert await bench.told("write_file", path="new/file", content="one") == f"Made {place}."
    await bench.told("edit_file", path="new/file", old="one", new="two")
    assert await bench.told("read_file", path="new/file") == "     1\ttwo"
    assert editor.texts == {place: "two"}
    assert os.listdir(tmp_path) == []
    shown = list[str]()
    ran = await bench.call("run_command", shown.append, command="make", seconds=7)
    assert words(ran) == "7 s, 65536 bytes"
    assert shown == ["half"]
    assert editor.commands == [("make", str(tmp_path))]


async def test_an_editor_is_not_asked_about_what_is_outside(tmp_path: Path) -> None:
    root, beside = tmp_path / "root", tmp_path / "beside"
    root.mkdir()
    beside.mkdir()
    (root / "out").symlink_to(beside)
    editor = Editor()
    editor.texts[f"{beside}/file"] = editor.texts[f"{root}/out/file"] = "secret"
    bench = Bench(root, host=editor)
    before = dict(editor.texts)
    for path in ("../beside/file", f"{beside}/file", "out/file"):
        assert "outside" in await bench.refused("read_file", path=path)
        assert "outside" in await bench.refused("write_file", path=path, content="changed")
        assert "outside" in await bench.refused("edit_file", path=path, old="secret", new="changed")
    assert editor.texts == before


class Broken(Editor):
    async def read_text(self, path: str) -> str:
        raise RuntimeError(f"no connection for {path}")


async def test_whatever_an_editor_fails_of_the_model_is_told(tmp_path: Path) -> None:
    told = await Bench(tmp_path, host=Broken()).refused("read_file", path="file")
    assert told == f"file: no connection for {tmp_path}/file"


# The plan


async def test_a_plan_stands_beside_the_result(bench: Bench) -> None:
    steps = [{"content": "Look"}, {"content": "Do", "status": "in_progress", "priority": "high"}]
    ran = await bench.call("update_plan", steps=steps)
    assert ran.extra == (
        Plan(
            steps=(
                {"content": "Look", "status": "pending", "priority": "medium"},
                {"content": "Do", "status": "in_progress", "priority": "high"},
            )
        ),
    )
    assert not ran.is_error


@pytest.mark.parametrize(
    "steps",
    [
        [{"content": ""}],
        [{"content": "x" * (STEP_CHARS + 1)}],
        [{"content": "x", "status": "done"}],
        [{"content": "x", "priority": 1}],
        [{"content": "x"}] * (PLAN_STEPS + 1),
    ],
)
async def test_a_plan_that_does_not_fit_is_refused(steps: list[dict[str, Any]], bench: Bench) -> None:
    await bench.refused("update_plan", steps=steps)


async def test_the_largest_plan_is_taken(bench: Bench) -> None:
    await bench.told("update_plan", steps=[{"content": "x" * STEP_CHARS}] * PLAN_STEPS)


# Cancelling


async def test_what_a_cancelled_call_has_begun_is_over_when_the_call_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "STOP_SECONDS", NEVER)
    begun, stop, over = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        is_set(stop, "the call to be stopped")
        over.set()

    call = asyncio.create_task(in_thread(work, stop.set))
    await asyncio.to_thread(is_set, begun, "the work to begin")
    call.cancel()
    # And once more, while it is ending.
    asyncio.get_running_loop().call_soon(call.cancel)
    with pytest.raises(asyncio.CancelledError):
        await arrives(call, "the end of the call")
    assert over.is_set()
