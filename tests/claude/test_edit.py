"""Titles, tags, putting away and deleting, in Claude Code's own files; the SDK reads what was written."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import claude_agent_sdk as sdk
import pytest

from hitherto.claude.edit import (
    archive_session,
    delete_session,
    rename_session,
    tag_session,
    unarchive_session,
)
from hitherto.claude.foreign_files import append_line
from hitherto.claude.list import get_session_info
from tests.claude.transcripts import Writer, session_id
from tests.support.privileges import without_privileges
from tests.support.waits import LIMIT

ID = session_id(1)
OTHER = session_id(2)
CWD = "/home/ann/project"

Call = Callable[..., object]
WRITERS: dict[str, tuple[Call, Call | None]] = {
    "rename": (
        lambda *a: rename_session(a[0], "t", *a[1:]),
        lambda *a: sdk.rename_session(a[0], "t", *a[1:]),
    ),
    "tag": (lambda *a: tag_session(a[0], "t", *a[1:]), lambda *a: sdk.tag_session(a[0], "t", *a[1:])),
    "delete": (delete_session, sdk.delete_session),
    "archive": (archive_session, None),
    "unarchive": (unarchive_session, None),
}


def talk(number: int = 1, cwd: str = CWD) -> Writer:
    writer = Writer(session_id(number), cwd)
    writer.user("Paint the barn")
    writer.say("Red or blue?")
    return writer


@pytest.fixture
def transcript(projects: Path) -> Path:
    return talk().save(projects)


def tree(folder: Path) -> dict[str, bytes | str]:
    """All that is below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if stat.S_ISREG(path.lstat().st_mode)
        else stat.filemode(path.lstat().st_mode)
        for path in sorted(folder.rglob("*"))
    }


def failure(call: Call, *arguments: object) -> tuple[type[BaseException], str]:
    with pytest.raises((ValueError, OSError)) as caught:
        call(*arguments)
    return caught.type, str(caught.value)


# Titles and tags


@pytest.mark.parametrize(
    "title", ["The barn", "  stripped \n", "Scheune ö 😀", "a\u2028b\u0085c", '"}{"', "x\ud800y"]
)
def test_a_title_is_written_as_the_sdk_writes_it(transcript: Path, title: str) -> None:
    before = transcript.read_bytes()
    sdk.rename_session(ID, title)
    theirs = transcript.read_bytes()
    transcript.write_bytes(before)
    rename_session(ID, title)
    assert transcript.read_bytes() == theirs
    assert theirs.startswith(before)


def test_the_last_title_is_the_title(transcript: Path) -> None:
    rename_session(ID, "first", CWD)
    rename_session(ID, "second", dir=CWD)
    for read in (sdk.get_session_info, get_session_info):
        info = read(ID)
        assert info is not None
        assert (info.custom_title, info.summary) == ("second", "second")
    assert len(transcript.read_bytes().splitlines()) == 4


HOSTILE_TAGS = [
    "later",
    "  later ",
    "\u200blat\u200fer\ufeff",
    "ﬁne",
    "\u202eevil\u2066",
    "a\ue000b\U000f0000c\u0378d",
    "\U000e0061hidden\U000e007f",
    "e\u0301",
    "\ud800",
    "\u2028x\u0085",
    '{"type":"tag"}',
]


@pytest.mark.parametrize("tag", HOSTILE_TAGS)
def test_a_tag_is_cleaned_and_written_as_the_sdk_does_it(transcript: Path, tag: str) -> None:
    before = transcript.read_bytes()
    sdk.tag_session(ID, tag)
    theirs = transcript.read_bytes()
    transcript.write_bytes(before)
    tag_session(ID, tag)
    assert transcript.read_bytes() == theirs


def test_a_tag_is_replaced_and_taken_away(transcript: Path) -> None:
    tag_session(ID, "one")
    tag_session(ID, "two")
    for read in (sdk.get_session_info, get_session_info):
        info = read(ID)
        assert info is not None
        assert info.tag == "two"
    tag_session(ID, None)
    for read in (sdk.get_session_info, get_session_info):
        info = read(ID)
        assert info is not None
        assert info.tag is None
    assert transcript.read_bytes().endswith(b'{"type":"tag","tag":"","sessionId":"%s"}\n' % ID.encode())


# A torn end


def test_a_torn_tail_is_sealed_and_stays_as_it_was(transcript: Path) -> None:
    torn = transcript.read_bytes() + b'{"type":"assistant","uuid":"x","mess'
    transcript.write_bytes(torn)
    rename_session(ID, "sealed")
    tag_session(ID, "too")
    after = transcript.read_bytes()
    assert after.startswith(torn + b'\n{"type":"custom-title"')
    info = sdk.get_session_info(ID)
    assert info is not None
    assert (info.custom_title, info.tag) == ("sealed", "too")


def run(code: str, *, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own that cannot make a file longer than `limit`."""

    def restrict() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=restrict,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


def test_a_line_that_the_disk_takes_only_half_of_is_an_error_and_the_next_writer_seals_it(
    transcript: Path,
) -> None:
    before = transcript.read_bytes()
    done = run(
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from hitherto.claude import edit, foreign_files\n"
        # As on a file system where no room can be asked for beforehand.
        "foreign_files.reserve = lambda *_: None\n"
        f"edit.rename_session({ID!r}, 'half')",
        limit=len(before) + 20,
    )
    assert "OSError" in done.stderr
    torn = transcript.read_bytes()
    assert torn.startswith(before)
    assert not torn.endswith(b"\n")
    rename_session(ID, "whole")
    assert transcript.read_bytes().startswith(torn + b"\n{")
    info = sdk.get_session_info(ID)
    assert info is not None
    assert info.custom_title == "whole"


def longest(descriptor: int) -> int:
    """How long a file can be on this file system; all of it is a hole."""
    fits = 0
    for bit in reversed(range(63)):
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, fits | 1 << bit)
            fits |= 1 << bit
    return fits


def test_a_line_that_there_is_no_room_for_is_not_begun(tmp_path: Path) -> None:
    with (tmp_path / "transcript").open("ab+") as file:
        end = longest(file.fileno()) - 20
        os.ftruncate(file.fileno(), end)
        with pytest.raises(OSError, match="too large"):
            append_line(file.fileno(), b'{"type":"tag","tag":"longer than the room that is left"}\n')
        assert os.fstat(file.fileno()).st_size == end
        file.truncate(0)


# Putting away


def test_an_archived_session_says_so_until_it_is_taken_back(transcript: Path) -> None:
    before = transcript.read_bytes()
    archive_session(ID)
    note = transcript.parent / ID / "archived.json"
    told = json.loads(note.read_bytes())
    assert (told["archived"], told["by"]) == (True, "sdk")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["at"])
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert stat.S_IMODE(note.parent.stat().st_mode) == 0o700
    info = get_session_info(ID)
    assert info is not None
    assert info.archived is True
    unarchive_session(ID, CWD)
    assert json.loads(note.read_bytes())["archived"] is False
    info = get_session_info(ID)
    assert info is not None
    assert info.archived is not True
    assert transcript.read_bytes() == before
    assert [path.name for path in note.parent.iterdir()] == ["archived.json"]


def test_a_session_is_archived_beside_its_subagents(transcript: Path) -> None:
    agents = transcript.parent / ID / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-1.jsonl").write_bytes(b"{}\n")
    archive_session(ID)
    assert (agents / "agent-1.jsonl").read_bytes() == b"{}\n"


# Deleting


def test_a_deleted_session_leaves_nothing_and_others_stay(projects: Path, transcript: Path) -> None:
    other = talk(2).save(projects)
    agents = transcript.parent / ID / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-1.jsonl").write_bytes(b"{}\n")
    delete_session(ID)
    assert [path.name for path in transcript.parent.iterdir()] == [other.name]
    assert sdk.get_session_info(ID) is None
    assert failure(delete_session, ID) == failure(sdk.delete_session, ID)


def test_deleting_a_session_whose_folder_is_a_link_removes_the_link_only(
    transcript: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "photo").write_bytes(b"1")
    (transcript.parent / ID).symlink_to(precious)
    delete_session(ID)
    assert list(transcript.parent.iterdir()) == []
    assert (precious / "photo").read_bytes() == b"1"


# Input that is no good


BAD_IDS = ["", "nonsense", "../../../etc/passwd", ID + "/../x", ID + "\n", f"{ID}\0", ID[:-1], "*" * 36]


@pytest.mark.usefixtures("transcript")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("bad", BAD_IDS)
def test_what_is_not_an_id_is_refused_as_by_the_sdk(projects: Path, name: str, bad: str) -> None:
    before = tree(projects)
    ours, theirs = WRITERS[name]
    assert failure(ours, bad) == (ValueError, f"Invalid session_id: {bad}")
    if theirs is not None and not bad.endswith("\n"):
        assert failure(theirs, bad) == failure(ours, bad)
    assert tree(projects) == before


@pytest.mark.usefixtures("transcript")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("directory", [None, "", CWD, "/nowhere"])
def test_an_unknown_session_is_not_found_as_by_the_sdk(
    projects: Path, name: str, directory: str | None
) -> None:
    before = tree(projects)
    ours, theirs = WRITERS[name]
    kind, text = failure(ours, OTHER, directory)
    assert kind is FileNotFoundError
    if theirs is not None:
        assert failure(theirs, OTHER, directory) == (kind, text)
    assert tree(projects) == before


@pytest.mark.parametrize("name", ["rename", "tag", "delete"])
def test_without_a_projects_folder_the_error_is_the_sdks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "none"))
    ours, theirs = WRITERS[name]
    assert theirs is not None
    assert failure(ours, ID) == failure(theirs, ID)
    assert not (tmp_path / "none").exists()


def test_a_session_of_another_directory_is_not_found(projects: Path) -> None:
    talk(cwd="/home/ann/elsewhere").save(projects)
    for ours, theirs in WRITERS.values():
        if theirs is not None:
            assert failure(ours, ID, CWD) == failure(theirs, ID, CWD)


@pytest.mark.usefixtures("transcript")
@pytest.mark.parametrize("title", ["", " \n\t", "\u3000"])
def test_an_empty_title_is_refused(projects: Path, title: str) -> None:
    before = tree(projects)
    assert failure(rename_session, ID, title) == (ValueError, "title must be non-empty")
    assert failure(sdk.rename_session, ID, title) == (ValueError, "title must be non-empty")
    assert tree(projects) == before


@pytest.mark.usefixtures("transcript")
@pytest.mark.parametrize("tag", ["", "  ", "\u200b\ufeff", "\ue000\U000e0041", "\u2066\u2069 "])
def test_a_tag_of_which_nothing_is_left_is_refused(projects: Path, tag: str) -> None:
    before = tree(projects)
    assert failure(tag_session, ID, tag) == failure(sdk.tag_session, ID, tag)
    assert failure(tag_session, ID, tag)[0] is ValueError
    assert tree(projects) == before


def test_an_empty_file_is_no_session_and_the_real_one_is_found_elsewhere(
    projects: Path, transcript: Path
) -> None:
    stub = projects / "-a" / transcript.name
    stub.parent.mkdir()
    stub.touch()
    rename_session(ID, "found")
    assert stub.read_bytes() == b""
    assert b"found" in transcript.read_bytes()


# Things that only look like a transcript


PRECIOUS = "precious.jsonl"
NO_TRANSCRIPTS: dict[str, Callable[[Path], object]] = {
    "link": lambda path: path.symlink_to(path.parents[3] / PRECIOUS),
    "pipe": os.mkfifo,
    "link to a device": lambda path: path.symlink_to("/dev/null"),
    "folder": Path.mkdir,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", NO_TRANSCRIPTS)
def test_links_pipes_devices_and_folders_are_refused(
    projects: Path, tmp_path: Path, kind: str, name: str
) -> None:
    target = tmp_path / PRECIOUS
    target.write_bytes(talk().data())
    folder = projects / "-home-ann-project"
    folder.mkdir()
    NO_TRANSCRIPTS[kind](folder / f"{ID}.jsonl")
    before = tree(projects)
    for directory in (None, CWD):
        assert failure(WRITERS[name][0], ID, directory)[0] is FileNotFoundError
    assert tree(projects) == before
    assert target.read_bytes() == talk().data()


@pytest.mark.parametrize("archive", [archive_session, unarchive_session])
def test_nothing_is_put_into_a_folder_that_is_a_link(transcript: Path, tmp_path: Path, archive: Call) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (transcript.parent / ID).symlink_to(elsewhere)
    assert issubclass(failure(archive, ID)[0], OSError)
    assert list(elsewhere.iterdir()) == []


def test_a_note_that_is_a_link_is_replaced_and_its_target_stays(transcript: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    folder = transcript.parent / ID
    folder.mkdir()
    (folder / "archived.json").symlink_to(target)
    archive_session(ID)
    assert target.read_bytes() == b"mine"
    assert json.loads((folder / "archived.json").read_bytes())["archived"] is True


# Folders one may not enter, and files without end


@pytest.fixture
def unprivileged(projects: Path) -> Iterator[Path]:
    """A projects folder seen by somebody whom modes apply to."""
    with without_privileges():
        yield projects


@pytest.mark.parametrize("name", ["rename", "tag", "delete"])
def test_a_folder_without_permission_is_the_sdks_error(unprivileged: Path, name: str) -> None:
    path = talk().save(unprivileged)
    path.parent.chmod(0)
    ours, theirs = WRITERS[name]
    assert theirs is not None
    for directory in (None, CWD):
        assert failure(ours, ID, directory) == failure(theirs, ID, directory)
    path.parent.chmod(0o755)
    assert path.read_bytes() == talk().data()


def test_a_file_that_may_not_be_written_is_the_sdks_error(unprivileged: Path) -> None:
    path = talk().save(unprivileged)
    path.chmod(0o400)
    assert failure(rename_session, ID, "x") == failure(sdk.rename_session, ID, "x")
    assert path.read_bytes() == talk().data()


def test_a_file_of_two_gigabytes_is_renamed_and_tagged_without_reading_it(transcript: Path) -> None:
    before = transcript.read_bytes()
    os.truncate(transcript, 2 << 30)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rename_session(ID, "huge")
    tag_session(ID, "huge")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 20_000
    with transcript.open("rb") as file:
        assert file.read(len(before)) == before
        file.seek(2 << 30)
        assert [json.loads(line)["type"] for line in file.read().split()] == ["custom-title", "tag"]
