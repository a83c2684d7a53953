"""What lists remember: it makes them quick, and nothing that can happen to it makes them wrong."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hitherto.claude import SDKSessionInfo, cache, list_sessions, metadata
from hitherto.claude import list as listing
from hitherto.claude.edit import delete_session, rename_session, tag_session
from tests.claude.transcripts import MORNING, Writer, grow, session_id
from tests.support.privileges import without_privileges
from tests.support.waits import LIMIT

CWD = "/home/ann/project"


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small trees are worth remembering here."""
    monkeypatch.setattr(listing, "WORTH_REMEMBERING", 0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """From where to where each transcript was read since."""
    seen: list[tuple[int, int]] = []
    read: Callable[[int, metadata.Metadata | None], metadata.Metadata] = metadata.read_metadata

    def counting(descriptor: int, known: metadata.Metadata | None = None) -> metadata.Metadata:
        found = read(descriptor, known)
        seen.append((known.end if known else 0, found.end))
        return found

    monkeypatch.setattr(cache, "read_metadata", counting)
    return seen


def plain_list() -> list[SDKSessionInfo]:
    """The list as it is without a cache."""
    worth, listing.WORTH_REMEMBERING = listing.WORTH_REMEMBERING, 1 << 60
    try:
        # A list with a limit leaves the cache as it is.
        return list_sessions(limit=1_000)
    finally:
        listing.WORTH_REMEMBERING = worth


def file_of(projects: Path) -> Path:
    return cache.cache_file(projects)


def test_the_second_list_reads_no_transcript(projects: Path, reads: list[tuple[int, int]]) -> None:
    list(grow(projects, 12))
    first = list_sessions()
    assert len(reads) == 12

    reads.clear()
    assert list_sessions() == first == list_sessions(limit=100)
    assert reads == []
    assert plain_list() == first


def test_only_what_was_added_is_read(projects: Path, reads: list[tuple[int, int]]) -> None:
    path = next(grow(projects, 1))
    size = path.stat().st_size
    list_sessions()
    reads.clear()
    rename_session(path.stem, "a new name")
    tag_session(path.stem, "later")

    (info,) = list_sessions()
    assert (info.custom_title, info.tag) == ("a new name", "later")
    assert reads == [(size, path.stat().st_size)]
    assert plain_list() == [info]


def test_a_list_that_grows_piece_by_piece_is_always_the_list_of_the_whole(projects: Path) -> None:
    rng = random.Random(4)
    writer = Writer(session_id(1), CWD, rng=rng)
    writer.note("mode", mode="plan")
    writer.user("<command-name>/clear</command-name>")
    for number in range(6):
        writer.title(f"title {number}")
        writer.user(f"prompt {number}", gitBranch=f"branch {number}")
        writer.tag(["", "one", "two"][number % 3])
        writer.last_prompt(f"prompt {number}")
    data = writer.data()
    path = writer.save(projects)
    path.write_bytes(b"")
    place = 0
    while place < len(data):
        # Cuts fall anywhere, most of them within a record.
        step = rng.randrange(1, 120)
        with path.open("ab") as file:
            file.write(data[place : place + step])
        place += step
        assert list_sessions() == plain_list()
    assert list_sessions()[0].custom_title == "title 5"


def replaced(path: Path, other: bytes) -> None:
    path.unlink()
    path.write_bytes(other)


def shrunk(path: Path, other: bytes) -> None:
    path.write_bytes(other[: len(other) // 2] + b"\n")


def overwritten(path: Path, other: bytes) -> None:
    """Written in place, longer than before: the same file by its number."""
    path.write_bytes(other * 3)


def rewritten(path: Path, other: bytes) -> None:
    """In place, and with the same length."""
    size = path.stat().st_size
    path.write_bytes(other[: other.index(b"\n") + 1].ljust(size - 1) + b"\n")
    assert path.stat().st_size == size


def exchanged(path: Path, other: bytes) -> None:
    """For another file of the same length and time."""
    before = path.stat()
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(other[: other.index(b"\n") + 1].ljust(before.st_size - 1) + b"\n")
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.rename(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def renamed_over(path: Path, other: bytes) -> None:
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(other)
    fresh.rename(path)


@pytest.mark.parametrize("change", [replaced, shrunk, overwritten, rewritten, exchanged, renamed_over])
def test_a_file_that_did_not_only_grow_is_read_again(
    projects: Path, change: Callable[[Path, bytes], None]
) -> None:
    writer = Writer(session_id(1), CWD)
    writer.user("before")
    writer.title("old")
    path = writer.save(projects, mtime_ms=MORNING)
    assert list_sessions()[0].custom_title == "old"

    other = Writer(session_id(1), CWD, rng=random.Random(2))
    for number in range(20):
        other.user(f"after {number}")
    change(path, other.data())
    (info,) = list_sessions()
    assert (info.custom_title, info.first_prompt) == (None, "after 0")


def test_a_cache_that_cannot_be_understood_is_not_used(projects: Path) -> None:
    list(grow(projects, 3))
    expected = list_sessions()
    whole = file_of(projects).read_bytes()
    rng = random.Random(1)
    flips = [rng.randrange(len(whole)) for _ in range(40)]
    broken = [
        b"",
        b"x",
        whole[:-1],
        whole[:30],
        whole + b"x",
        b"\0" * len(whole),
        b"hitherto claude list 0\n" + whole[24:],
    ]
    broken += [
        whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :] for place in flips
    ]
    for data in broken:
        file_of(projects).write_bytes(data)
        assert list_sessions() == expected
        assert file_of(projects).read_bytes() == whole


def test_the_cache_is_its_owners_alone_and_never_with_the_agent(projects: Path, tmp_path: Path) -> None:
    path = next(grow(projects, 1))
    before = sorted(tmp_path.joinpath("config").rglob("*"))
    list_sessions()

    assert file_of(projects).stat().st_mode & 0o777 == 0o600
    assert file_of(projects).parent.stat().st_mode & 0o777 == 0o700
    assert file_of(projects).is_relative_to(tmp_path / "data")
    assert sorted(tmp_path.joinpath("config").rglob("*")) == before
    assert list(file_of(projects).parent.iterdir()) == [file_of(projects)]
    assert path.exists()


def test_a_list_works_where_nothing_can_be_remembered(projects: Path, tmp_path: Path) -> None:
    list(grow(projects, 2))
    (tmp_path / "data").write_text("in the way")
    assert list_sessions() == plain_list()

    (tmp_path / "data").unlink()
    (tmp_path / "data").mkdir(mode=0o500)
    with without_privileges():
        assert len(list_sessions()) == 2
    assert list((tmp_path / "data").iterdir()) == []


def test_what_is_gone_is_forgotten(projects: Path) -> None:
    paths = list(grow(projects, 6, per_project=2))
    secret = Writer(session_id(77), CWD)
    secret.user("a secret prompt")
    secret.save(projects)
    list_sessions()
    assert b"a secret prompt" in file_of(projects).read_bytes()

    delete_session(session_id(77))
    assert len(list_sessions()) == 6
    assert b"a secret prompt" not in file_of(projects).read_bytes()
    for folder in {path.parent for path in paths}:
        shutil.rmtree(folder)
    assert list_sessions() == []
    assert not file_of(projects).exists()


def test_a_list_of_one_project_leaves_what_is_known_of_others(
    projects: Path, reads: list[tuple[int, int]]
) -> None:
    for number in range(3):
        writer = Writer(session_id(number), f"/home/ann/{number}")
        writer.user("hi")
        writer.save(projects, mtime_ms=MORNING + number)
    list_sessions()
    rename_session(session_id(1), "changed")
    reads.clear()

    assert [info.custom_title for info in list_sessions("/home/ann/1")] == ["changed"]
    assert len(reads) == 1
    assert len(list_sessions()) == 3
    assert len(reads) == 1


def test_a_page_of_small_sessions_does_not_touch_the_cache(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "WORTH_REMEMBERING", 32 << 20)
    list(grow(projects, 5))
    list_sessions(limit=3)
    assert not file_of(projects).exists()


def test_what_is_remembered_is_for_its_user_alone_whatever_the_mask(projects: Path, tmp_path: Path) -> None:
    list(grow(projects, 3))
    mask = os.umask(0)
    try:
        list_sessions()
    finally:
        os.umask(mask)
    made = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
    assert file_of(projects) in made
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_where_others_can_write_nothing_is_remembered_or_believed(
    projects: Path, tmp_path: Path, reads: list[tuple[int, int]]
) -> None:
    list(grow(projects, 3))
    first = list_sessions()
    (tmp_path / "data").chmod(0o777)
    reads.clear()
    assert [list_sessions(), list_sessions()] == [first, first]
    assert len(reads) == 6


def _list_often(config: str, data: str, rounds: int) -> None:
    os.environ |= {"CLAUDE_CONFIG_DIR": config, "HITHERTO_DATA_DIR": data}
    listing.WORTH_REMEMBERING = 0
    for _ in range(rounds):
        found = {info.session_id for info in list_sessions()}
        assert {session_id(number) for number in range(8)} <= found


def test_several_processes_may_list_and_remember_at_once(projects: Path, tmp_path: Path) -> None:
    list(grow(projects, 8))
    context = multiprocessing.get_context("spawn")
    arguments = (str(tmp_path / "config"), str(tmp_path / "data"), 30)
    processes = [context.Process(target=_list_often, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    for number in range(40):
        rename_session(session_id(number % 8), f"name {number}")
    for process in processes:
        process.join(LIMIT)
        assert process.exitcode == 0

    assert list_sessions() == plain_list()
    assert list(file_of(projects).parent.iterdir()) == [file_of(projects)]
