"""Listing and searching files."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hitherto import tasks
from hitherto.engines.tools import regex_process, search_files, walk
from hitherto.engines.tools.limits import (
    ALTERNATIVES,
    HIT_CHARS,
    HITS,
    LISTED,
    PATTERN_CHARS,
    RESULT_BYTES,
    SEARCHED_FILE_BYTES,
    WALK_DEPTH,
)
from hitherto.engines.tools.list_files import ListFiles
from hitherto.engines.tools.regex_process import Hit, Matcher, MatcherEnded
from hitherto.engines.tools.search_files import BATCH_BYTES, SearchFiles
from hitherto.engines.tools.walk import Glob
from tests.engines.tools.bench import Bench
from tests.support.waits import NEVER, arrives, is_set

FOREVER = "(a+)+$"
"""Takes twice as long for each further letter of a line that does not match after all."""
LETTERS = "a" * 64 + "!"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search is stopped for being slow, and no end of one is given up, unless a test wants it."""
    for place, limit in (
        (tasks, "STOP_SECONDS"),
        (search_files, "SEARCH_SECONDS"),
        (regex_process, "SEARCH_SECONDS"),
    ):
        monkeypatch.setattr(place, limit, int(NEVER))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _fill(bench: Bench, *paths: str, text: str = "") -> None:
    for path in paths:
        (bench.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (bench.folder / path).write_text(text)


# Patterns


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*", "a", True),
        ("*", "a/b", False),
        ("*.py", "a.py", True),
        ("*.py", "a.pyc", False),
        ("**", "a/b/c", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("src/**/a.py", "src/a.py", True),
        ("src/**/a.py", "src/x/y/a.py", True),
        ("src/**/a.py", "lib/a.py", False),
        ("**/x/**", "a/x/b", True),
        ("**/x/**", "a/b", False),
        ("**/**/a", "a", True),
        ("./a//b", "a/b", True),
        ("a/", "a", True),
        ("[ab]?", "bz", True),
        ("[!a]", "a", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.t", False),
        ("{a,b/{c,d}}", "b/d", True),
        ("{a}", "a", True),
        ("a{,.py}", "a", True),
        ("{a", "{a", True),
        (".*", "a", False),
        ("A", "a", False),
    ],
)
def test_a_pattern_fits_what_it_says(pattern: str, path: str, fits: bool) -> None:
    glob = Glob(pattern)
    states = glob.start
    for name in path.split("/"):
        states = glob.step(states, name)
    assert glob.matches(states) is fits


@pytest.mark.parametrize("pattern", ["", "x" * (PATTERN_CHARS + 1), "{a,b}" * 7, "{a,b,c}" * 100])
def test_a_pattern_beyond_the_limits_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Glob(pattern)


def test_a_pattern_at_the_limits_is_taken() -> None:
    assert ALTERNATIVES == 2**6
    glob = Glob("{a,b}" * 6)
    assert glob.matches(glob.step(glob.start, "ababab"))
    stars = Glob("**/" * 100 + "x" * (PATTERN_CHARS - 300))
    assert not stars.matches(stars.start)


# Listing


async def test_a_folder_is_listed_by_name_with_its_folders(bench: Bench) -> None:
    _fill(bench, "b.py", ".hidden", "folder/c.py")
    (bench.folder / "link").symlink_to("folder")
    assert await bench.told("list_files") == ".hidden\nb.py\nfolder/\nlink"
    assert await bench.told("list_files", path="folder") == "c.py"
    assert await bench.told("list_files", pattern="*.md") == "(nothing matches)"


async def test_deep_patterns_find_files_in_every_folder(bench: Bench) -> None:
    _fill(bench, "a.py", "src/b.py", "src/deep/c.py", "src/deep/d.md")
    assert await bench.told("list_files", pattern="**/*.py") == "a.py\nsrc/b.py\nsrc/deep/c.py"
    assert await bench.told("list_files", pattern="src/**") == "src/b.py\nsrc/deep/c.py\nsrc/deep/d.md"
    assert await bench.told("list_files", pattern="**/*.{md,txt}") == "src/deep/d.md"


async def test_the_last_changed_comes_first_if_that_is_asked_for(bench: Bench) -> None:
    _fill(bench, "a", "b", "c")
    for name, at in (("a", 2), ("b", 3), ("c", 1)):
        os.utime(bench.folder / name, (at, at))
    assert await bench.told("list_files", order="newest") == "b\na\nc"


async def test_heavy_folders_are_left_out_unless_they_are_named(bench: Bench) -> None:
    _fill(bench, "a", ".git/a", "x/node_modules/a", ".venv/a", "__pycache__/a")
    assert await bench.told("list_files", pattern="**/a") == "a"
    assert await bench.told("list_files", pattern="**/node_modules/a") == "x/node_modules/a"
    assert await bench.told("list_files", pattern="*", path=".git") == "a"
    _fill(bench, "b", ".git/b", text="word")
    assert await bench.told("search_files", pattern="word") == "b:1:word"
    assert await bench.told("search_files", pattern="word", glob=".git/*") == ".git/b:1:word"


async def test_one_more_than_are_listed_is_counted(bench: Bench) -> None:
    _fill(bench, *(f"{number:04}" for number in range(LISTED)))
    assert (await bench.told("list_files")).endswith(f"\n{LISTED - 1:04}")
    _fill(bench, "9999")
    assert (await bench.told("list_files")).endswith(f"\n{LISTED - 1:04}\n(1 more; narrow the pattern)")


async def test_a_walk_without_end_is_cut_and_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "WALK_ENTRIES", 10)
    _fill(bench, *(f"{number}/x" for number in range(5)))
    assert "(not everything" not in await bench.told("list_files", pattern="**")
    _fill(bench, "5")
    assert "(not everything" in await bench.told("list_files", pattern="**")
    assert "(not every file" in await bench.told("search_files", pattern="nothing")


async def test_a_walk_goes_only_so_deep(bench: Bench) -> None:
    _fill(bench, "x/" * WALK_DEPTH + "file")
    assert (await bench.told("list_files", pattern="**/file")).endswith("x/file")
    _fill(bench, "x/" * (WALK_DEPTH + 1) + "deeper")
    assert "(not everything" in await bench.told("list_files", pattern="**/deeper")


async def test_names_that_could_deceive_are_written_as_escapes(bench: Bench) -> None:
    _fill(bench, "a\nb", os.fsdecode(b"caf\xe9"), "\x1b[2J", text="word")
    assert await bench.told("list_files") == "\\x1b[2J\na\\nb\ncaf\\xe9"
    assert await bench.told("search_files", pattern="w") == "\\x1b[2J:1:word\na\\nb:1:word\ncaf\\xe9:1:word"


@pytest.mark.parametrize("path", ["nothing", "file", "out"])
async def test_what_is_no_folder_of_the_roots_is_not_listed(path: str, bench: Bench, tmp_path: Path) -> None:
    _fill(bench, "file")
    (bench.folder / "out").symlink_to(tmp_path.parent)
    await bench.refused("list_files", path=path)


async def test_a_link_that_leads_out_is_never_walked_into(tmp_path: Path) -> None:
    root, beside = tmp_path / "root", tmp_path / "beside"
    bench = Bench(root)
    root.mkdir()
    beside.mkdir()
    (beside / "file").write_text("secret")
    (root / "out").symlink_to(beside)
    (root / "out_file").symlink_to(beside / "file")
    assert await bench.told("list_files", pattern="**") == "out\nout_file"
    assert await bench.told("list_files", pattern="out/*") == "(nothing matches)"
    assert await bench.told("list_files", pattern="../beside/*") == "(nothing matches)"
    assert await bench.told("search_files", pattern="secret") == "(nothing found)"


@pytest.mark.parametrize("moment", range(12))
async def test_a_folder_that_becomes_a_link_on_the_way_is_not_walked_into(
    moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, beside = tmp_path / "root", tmp_path / "beside"
    for folder, text in ((root, "plain"), (beside, "secret")):
        (folder / "in").mkdir(parents=True)
        (folder / "in" / "file").write_text(text)
    calls = iter(range(1_000))

    def swapped(real: object) -> object:
        def call(*args: object, **named: object) -> object:
            if next(calls) == moment:
                (root / "in").rename(tmp_path / "aside")
                (root / "in").symlink_to(beside / "in")
            assert callable(real)
            return real(*args, **named)

        return call

    bench = Bench(root)
    for name in ("open", "scandir", "stat", "readlink"):
        monkeypatch.setattr(os, name, swapped(getattr(os, name)))
    assert "secret" not in await bench.told("search_files", pattern="secret|plain")


# Searching


async def test_lines_are_found_with_their_places(bench: Bench) -> None:
    _fill(bench, "a.py", text="import os\nprint(1)\n")
    _fill(bench, "src/b.md", text="Print me\r\nprint(2)\r\n")
    assert await bench.told("search_files", pattern=r"print\(\d\)$") == "a.py:2:print(1)\nsrc/b.md:2:print(2)"
    assert await bench.told("search_files", pattern="^print", ignore_case=True, path="src") == (
        "src/b.md:1:Print me\nsrc/b.md:2:print(2)"
    )
    assert await bench.told("search_files", pattern="print", glob="*.md") == "src/b.md:2:print(2)"
    assert await bench.told("search_files", pattern="print", path="a.py") == "a.py:2:print(1)"
    assert await bench.told("search_files", pattern="nowhere") == "(nothing found)"


async def test_an_empty_pattern_line_is_found_where_there_is_one(bench: Bench) -> None:
    _fill(bench, "a", text="x\n\ny\n")
    _fill(bench, "b", text="")
    assert await bench.told("search_files", pattern="^$") == "a:2:"


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "*", "", "(?P<1>a)", "x" * (PATTERN_CHARS + 1)])
async def test_what_is_no_pattern_is_refused(pattern: str, bench: Bench) -> None:
    await bench.refused("search_files", pattern=pattern)


@pytest.mark.parametrize("given", [{"path": "nothing"}, {"path": ".."}, {"glob": "{a,b}" * 7}])
async def test_where_there_is_nothing_to_search_says_so(given: dict[str, str], bench: Bench) -> None:
    await bench.refused("search_files", pattern="x", **given)


async def test_one_line_more_than_is_shown_is_not_shown(bench: Bench) -> None:
    _fill(bench, "a", text="x\n" * HITS)
    told = await bench.told("search_files", pattern="x")
    assert told.count("\n") == HITS - 1
    _fill(bench, "b", text="x\n")
    assert await bench.told("search_files", pattern="x") == (
        f"{told}\n(only the first {HITS} lines; narrow the pattern)"
    )


async def test_long_paths_leave_room_for_fewer_of_them(bench: Bench) -> None:
    folders = "/".join(["x" * 200] * 5)
    _fill(bench, *(f"{folders}/{number:03}" for number in range(HITS)), text="x")
    for name, given in (("list_files", {"pattern": "**"}), ("search_files", {"pattern": "x"})):
        told = await bench.told(name, **given)
        assert 0.9 * RESULT_BYTES < len(told.encode()) < RESULT_BYTES + 100
        assert told.endswith("narrow the pattern)")


async def test_of_a_long_line_the_part_around_what_was_found_is_shown(bench: Bench) -> None:
    _fill(bench, "a", text="y" * 1_000_000 + "x" + "z" * 1_000_000)
    told = await bench.told("search_files", pattern="x")
    assert "yyxzz" in told
    assert len(told) == len("a:1:") + HIT_CHARS + len("……")


async def test_what_is_no_text_or_too_large_is_passed_over(bench: Bench) -> None:
    _fill(bench, "a", text="x\0")
    _fill(bench, "b", text="x" * SEARCHED_FILE_BYTES)
    os.mkfifo(bench.folder / "pipe")
    assert (await bench.told("search_files", pattern="x")).startswith("b:1:xxx")
    _fill(bench, "b", text="x" * (SEARCHED_FILE_BYTES + 1))
    assert await bench.told("search_files", pattern="x") == (
        f"(nothing found)\n(1 files of more than {SEARCHED_FILE_BYTES} bytes were left out)"
    )
    assert "larger than" in await bench.refused("search_files", pattern="x", path="b")


async def test_more_than_one_portion_is_searched_in_order(bench: Bench) -> None:
    for number in range(5):
        _fill(bench, f"{number}", text="y" * BATCH_BYTES + "\nx")
    told = await bench.told("search_files", pattern="^x$")
    assert told == "\n".join(f"{number}:2:x" for number in range(5))


async def test_a_module_of_the_project_is_not_taken_for_one_of_the_search(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(bench.folder))
    monkeypatch.chdir(bench.folder)
    _fill(bench, "json.py", "re.py", "sitecustomize.py", text="raise SystemExit('taken')")
    assert "taken" in await bench.told("search_files", pattern="taken", path="re.py")


class Recorded(Matcher):
    """Remembers the processes that were started."""

    pids: list[int]
    matching: threading.Event

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        super().__init__(pattern, ignore_case=ignore_case)
        self.pids.append(self.pid)

    def match(self, files: Sequence[bytes]) -> list[Hit]:
        self.matching.set()
        return super().match(files)


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    Recorded.pids = []
    Recorded.matching = threading.Event()
    monkeypatch.setattr(search_files, "Matcher", Recorded)
    return Recorded.pids


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_pattern_that_takes_for_ever_is_stopped_and_what_was_found_is_told(
    bench: Bench, pids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_files, "BATCH_BYTES", 1)
    _fill(bench, "1", text="aaa")
    _fill(bench, "2", text=LETTERS)
    told = ""
    for seconds in (1, 10, 100):  # a machine that is busy may find nothing so soon
        monkeypatch.setattr(search_files, "SEARCH_SECONDS", seconds)
        told = await bench.told("search_files", pattern=FOREVER)
        if "aaa" in told:
            break
    assert told.startswith("1:1:aaa\n(stopped")
    assert pids
    assert not any(map(_is_there, pids))


@pytest.mark.parametrize("moment", ["while it matches", "at its beginning"])
async def test_a_search_that_is_cancelled_ends_its_process(
    moment: str, bench: Bench, pids: list[int]
) -> None:
    _fill(bench, "file", text=LETTERS)
    call = asyncio.ensure_future(bench.call("search_files", pattern=FOREVER))
    if moment == "while it matches":
        await asyncio.to_thread(is_set, Recorded.matching, "the search to match")
    else:
        await asyncio.wait((call,), timeout=0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await arrives(call, "the end of the search")
    assert not _is_there(pids[0])


@pytest.mark.parametrize("given", [{"pattern": "x"}, {"pattern": "("}, {"pattern": "x", "path": "nothing"}])
async def test_no_search_leaves_its_process_behind(
    given: dict[str, str], bench: Bench, pids: list[int]
) -> None:
    descriptors = len(os.listdir("/dev/fd"))
    _fill(bench, "file", text="x")
    await bench["search_files"].call(given, lambda _: None)
    assert not _is_there(pids[0])
    assert len(os.listdir("/dev/fd")) == descriptors


def test_a_search_that_wants_too_much_memory_ends_its_own_process_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regex_process, "SEARCH_MEMORY", 1)
    with Matcher("x", ignore_case=False) as matcher:
        matcher.begin()
        with pytest.raises(MatcherEnded):
            matcher.match([b"x" * SEARCHED_FILE_BYTES])


def test_the_limits_of_a_list_are_what_the_tool_says() -> None:
    assert str(LISTED) in (ListFiles.__doc__ or "")
    assert str(HITS) in (SearchFiles.__doc__ or "")
