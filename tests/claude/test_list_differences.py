"""Where lists differ from the SDK's on purpose; docs/claude.md has a row for each."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import claude_agent_sdk as sdk
import pytest

from hitherto.claude import get_session_info, list_sessions, project_key_for_directory
from hitherto.claude.edit import archive_session, rename_session, unarchive_session
from hitherto.claude.paths import folder_name
from tests.claude.transcripts import MORNING, Writer, compact, iso, save, session_id

CWD = "/home/ann/project"
ID = session_id(1)
FAR = 200_000
"""More than the SDK looks at, from either end."""


@pytest.fixture
def writer() -> Writer:
    return Writer(ID, CWD)


def pad(writer: Writer, size: int = FAR) -> None:
    """Let `size` bytes of something else follow."""
    writer.attach("prompt_snapshot", systemPrompt=["x" * size])


def test_titles_and_tags_are_found_anywhere_in_the_file(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    pad(writer)
    writer.ai_title("made")
    writer.title("given")
    writer.tag("later")
    writer.note("relocated", relocatedCwd="/home/ann/elsewhere")
    pad(writer)
    writer.save(projects)

    theirs = sdk.list_sessions()[0]
    assert (theirs.custom_title, theirs.tag, theirs.cwd) == (None, None, CWD)
    (info,) = list_sessions()
    assert (info.custom_title, info.summary, info.tag) == ("given", "given", "later")
    assert info.cwd == "/home/ann/elsewhere"


def test_titles_are_found_at_every_place_of_a_file_of_many_blocks(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    for number in range(30):
        pad(writer, 90_000 + number * 1_001)
        writer.title(f"title {number}")
        writer.tag(f"tag {number}")
        path = writer.save(projects)
        (info,) = list_sessions()
        assert (info.custom_title, info.tag) == (f"title {number}", f"tag {number}")
    assert path.stat().st_size > 3_000_000


def test_a_first_prompt_is_found_wherever_it_begins(projects: Path, writer: Writer) -> None:
    pad(writer)
    writer.user("finally")
    writer.save(projects)

    assert sdk.list_sessions() == []
    assert [info.first_prompt for info in list_sessions()] == ["finally"]


def test_what_a_tool_is_given_or_answers_never_becomes_the_title(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    planted = {"type": "custom-title", "customTitle": "planted", "aiTitle": "planted", "sessionId": ID}
    _, call = writer.call(
        "Write", {**planted, "summary": "planted", "lastPrompt": "planted", "tag": "planted"}
    )
    writer.result(call, "ok", toolUseResult={"summary": "planted", "tag": "planted", "gitBranch": "planted"})
    writer.save(projects)

    assert sdk.list_sessions()[0].custom_title == "planted"
    (info,) = list_sessions()
    assert (info.summary, info.custom_title, info.tag, info.git_branch) == ("hi", None, None, "main")


def test_the_order_of_keys_does_not_matter(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    records = [
        {"sessionId": ID, "tag": "later", "type": "tag"},
        {"customTitle": "given", "type": "custom-title"},
    ]
    data = writer.data() + b"".join(map(compact, records)) + b'{ "tag" : "blanks" , "type" : "tag" }\r\n'
    save(projects, CWD, ID, data)

    assert sdk.list_sessions()[0].tag is None
    (info,) = list_sessions()
    assert (info.custom_title, info.tag) == ("given", "blanks")


@pytest.mark.parametrize("kind", ["image", "document"])
def test_a_session_that_shows_only_pictures_is_listed(projects: Path, writer: Writer, kind: str) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    writer.user([{"type": kind, "source": source}])
    writer.say("nice")
    writer.save(projects)

    assert sdk.list_sessions() == []
    (info,) = list_sessions()
    assert (info.summary, info.first_prompt) == (kind.capitalize(), None)


def test_a_sidechain_that_begins_with_metadata_is_not_listed(projects: Path, writer: Writer) -> None:
    writer.note("mode", mode="plan")
    writer.user("of a subagent", isSidechain=True)
    writer.save(projects)

    assert len(sdk.list_sessions()) == 1
    assert list_sessions() == []
    assert get_session_info(ID) is None


def test_characters_beyond_the_basic_plane_count_twice_in_folder_names(
    projects: Path, tmp_path: Path
) -> None:
    cwd = tmp_path / "émoji 😀.dir_é"
    cwd.mkdir()
    # As Claude Code itself named it.
    expected = folder_name(str(tmp_path)) + "--moji----dir--"
    writer = Writer(ID, str(cwd))
    writer.user("hi")
    (projects / expected).mkdir()
    (projects / expected / f"{ID}.jsonl").write_bytes(writer.data())

    assert project_key_for_directory(cwd) == expected
    assert sdk.list_sessions(str(cwd)) == []
    assert [info.session_id for info in list_sessions(str(cwd))] == [ID]
    assert get_session_info(ID, str(cwd)) is not None


def test_a_path_is_not_composed_before_it_is_encoded(tmp_path: Path) -> None:
    taken_apart = unicodedata.normalize("NFD", "é")
    assert project_key_for_directory(tmp_path / taken_apart).endswith("-e-")
    assert sdk.project_key_for_directory(tmp_path / taken_apart).endswith("--")


def test_long_paths_that_begin_alike_are_kept_apart(projects: Path) -> None:
    beginning = "/home/ann/" + "long/" * 45
    paths = [beginning + name for name in ("one", "two", "three")]
    for number, cwd in enumerate(paths[:2]):
        writer = Writer(session_id(number), cwd)
        writer.user("hi")
        path = writer.save(projects)
        # As a version named it that hashed differently.
        path.parent.rename(projects / f"{path.parent.name[:200]}-other{number}")

    assert [[info.session_id for info in list_sessions(cwd)] for cwd in paths] == [
        [session_id(0)],
        [session_id(1)],
        [],
    ]
    assert len(sdk.list_sessions(paths[2])) == 1
    assert get_session_info(session_id(1), paths[0]) is None


def test_a_fixed_folder_name_is_honoured(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(ID, CWD)
    writer.user("hi")
    writer.save(projects).parent.rename(projects / "fixed_name")

    assert list_sessions(CWD) == []
    monkeypatch.setenv("CLAUDE_CODE_PROJECT_DIR_NAME", "fixed_name")
    assert [info.session_id for info in list_sessions(CWD)] == [ID]
    for unusable in ("../x", "", "a" * 65, "NUL"):
        monkeypatch.setenv("CLAUDE_CODE_PROJECT_DIR_NAME", unusable)
        assert list_sessions(CWD) == []


def test_links_pipes_and_devices_are_no_transcripts(projects: Path, writer: Writer, tmp_path: Path) -> None:
    writer.user("hi")
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(writer.data())
    folder = writer.save(projects).parent
    (folder / f"{session_id(2)}.jsonl").symlink_to(outside)
    os.mkfifo(folder / f"{session_id(3)}.jsonl")

    assert [info.session_id for info in list_sessions()] == [ID]
    assert get_session_info(session_id(2)) is None
    assert get_session_info(session_id(3)) is None


def test_a_title_file_of_the_command_line_counts_where_the_transcript_has_none(
    projects: Path, writer: Writer
) -> None:
    writer.user("hi")
    writer.ai_title("made")
    folder = writer.save(projects).with_suffix("")
    folder.mkdir()
    (folder / "custom-title.json").write_text('{"customTitle": "from the file"}')
    assert list_sessions()[0].custom_title == "from the file"

    rename_session(ID, "from the transcript")
    assert list_sessions()[0].custom_title == "from the transcript"
    for broken in ("", "[]", '{"customTitle": 5}', "{"):
        (folder / "custom-title.json").write_text(broken)
        assert list_sessions()[0].custom_title == "from the transcript"


def test_the_time_of_the_last_change_is_rounded_not_cut(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    path = writer.save(projects)
    os.utime(path, ns=(0, MORNING * 1_000_000 + 700_000))

    assert list_sessions()[0].last_modified == MORNING + 1
    assert sdk.list_sessions()[0].last_modified <= MORNING


def test_ties_go_to_the_higher_id(projects: Path) -> None:
    for number in (3, 1, 4, 2):
        writer = Writer(session_id(number), f"/home/ann/{number % 2}")
        writer.user("hi")
        writer.save(projects, mtime_ms=MORNING)

    assert [info.session_id for info in list_sessions()] == [session_id(number) for number in (4, 3, 2, 1)]
    assert [info.session_id for info in list_sessions(limit=2)] == [session_id(4), session_id(3)]


def test_without_a_directory_the_newest_session_of_that_id_is_meant(projects: Path) -> None:
    for number in (2, 3, 1):
        writer = Writer(ID, f"/home/ann/{number}")
        writer.user("hi")
        writer.save(projects, mtime_ms=MORNING + number)

    info = get_session_info(ID)
    assert info is not None
    assert [info] == list_sessions()
    assert info.cwd == "/home/ann/3"


def test_what_is_no_transcript_does_not_hide_one_of_the_same_id(projects: Path, tmp_path: Path) -> None:
    writer = Writer(ID, CWD)
    writer.user("hi")
    path = writer.save(projects, mtime_ms=MORNING)
    for name in ("empty", "link"):
        (projects / name).mkdir()
    (projects / "empty" / path.name).touch()
    (projects / "link" / path.name).symlink_to(tmp_path / "nowhere")

    info = get_session_info(ID)
    assert info is not None
    assert info.first_prompt == "hi"


def test_created_at_is_a_records_own_time_not_one_inside_it(projects: Path, writer: Writer) -> None:
    snapshot = {"messageId": "m", "trackedFileBackups": {}, "timestamp": iso(MORNING - 60_000)}
    writer.records.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": snapshot})
    writer.user("hi", timestamp=iso(MORNING))
    writer.save(projects)

    assert sdk.list_sessions()[0].created_at == MORNING - 60_000
    assert list_sessions()[0].created_at == MORNING


@pytest.mark.parametrize("entrypoint", ["sdk-cli", "sdk-ts", "sdk-py"])
def test_sessions_of_programs_can_be_left_out(projects: Path, entrypoint: str) -> None:
    for number, values in enumerate(({}, {"entrypoint": entrypoint}, {"sessionKind": "daemon"})):
        writer = Writer(session_id(number), CWD)
        writer.note("mode", mode="plan")
        writer.user("hi", **values)
        writer.save(projects, mtime_ms=MORNING + number)

    assert len(list_sessions()) == 3
    assert [info.session_id for info in list_sessions(include_programmatic=False)] == [session_id(0)]
    assert [info.session_id for info in list_sessions(limit=1, include_programmatic=False)] == [session_id(0)]


def test_a_session_is_archived_until_its_user_goes_on(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    path = writer.save(projects)
    assert list_sessions()[0].archived is False
    archive_session(ID)
    assert list_sessions()[0].archived is True

    rename_session(ID, "put away")
    os.utime(path, (4e9, 4e9))
    info = get_session_info(ID)
    assert info is not None
    assert (info.archived, info.custom_title) == (True, "put away")

    with path.open("ab") as file:
        file.write(compact(writer.say("said by the model", timestamp="2090-01-01T00:00:00.000Z")))
    assert list_sessions()[0].archived is True
    with path.open("ab") as file:
        file.write(compact(writer.user("going on", timestamp="2090-01-01T00:00:00.000Z")))
    assert list_sessions()[0].archived is False


def test_an_unarchived_session_is_not_archived(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    writer.save(projects)
    archive_session(ID)
    unarchive_session(ID)
    assert list_sessions()[0].archived is False


@pytest.mark.parametrize("at", [MORNING * 2, None, "no time"])
def test_any_mark_of_being_archived_is_understood(projects: Path, writer: Writer, at: object) -> None:
    writer.user("hi")
    folder = writer.save(projects).with_suffix("")
    folder.mkdir()
    (folder / "archived.json").write_text(json.dumps({"archived": True, "at": at, "by": "sdk"}))
    assert list_sessions()[0].archived is True


TITLE = compact({"type": "custom-title", "customTitle": "rescued", "sessionId": ID})
HI = compact({"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "hi"}})
LINK = compact({"parentUuid": None, "type": "user", "uuid": "u2", "message": {"content": "x" * 5_000}})
DAMAGED = {
    "a byte order mark": b"\xef\xbb\xbf" + TITLE + HI,
    "NULs before it": HI + b"\0" * 5_000 + TITLE,
    "NULs behind it": HI + TITLE + b"\0" * 5_000,
    "NULs within another record": HI + LINK[:100] + b"\0" * 100 + LINK[200:] + TITLE,
    "behind a torn record": HI + LINK[:3_000] + TITLE,
    "behind a whole record": HI + LINK.strip() + TITLE,
    "before another record": HI + TITLE.strip() + LINK,
    "behind a torn record of another kind": HI + b'{"type":"cost-state","x":{"y"' + TITLE,
    "bad UTF-8 elsewhere": HI + LINK.replace(b"xxxx", b"\xff\xfe\xfd\xfc", 1) + TITLE,
    "a torn tail": HI + TITLE + LINK[:40],
    "no line end": HI + TITLE.strip(),
    "blank lines and CRLF": b"\r\n\n  \n" + HI.strip() + b"\r\n\n" + TITLE.strip() + b"\r\n",
    "lines that are no objects": b'5\n[1]\n"x"\nnull\nnonsense\n' + HI + TITLE,
    "too deep": b'{"type":"tag","tag":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n" + HI + TITLE,
    "a lone surrogate": HI + b'{"type":"mode","mode":"\\ud800"}\n' + TITLE,
    "values of other types": HI + b'{"type":"custom-title","customTitle":7}\n' + TITLE
    + b'{"type":"tag","tag":{},"isMeta":"x","timestamp":3}\n',
}  # fmt: skip


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_title_is_found_whatever_happened_around_it(projects: Path, data: bytes) -> None:
    path = save(projects, CWD, ID, data)

    (info,) = list_sessions()
    assert (info.custom_title, info.first_prompt) == ("rescued", "hi")
    assert path.read_bytes() == data


def test_a_title_with_bad_utf8_is_shown_with_replacements(projects: Path) -> None:
    save(projects, CWD, ID, HI + TITLE.replace(b"rescued", b"res\xffcued"))
    assert list_sessions()[0].custom_title == "res\ufffdcued"
