from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hitherto.sources.claude.files import TranscriptFile, agent_notes, find, notes
from hitherto.sources.claude.parse import parse
from hitherto.sources.shared.files import read_from, read_whole
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import SESSION, writer


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "config"


def saved(home: Path, made: Writer | None = None) -> Path:
    if made is None:
        made = writer()
        made.user("Hello")
    return made.save(home / "projects")


def only(home: Path) -> TranscriptFile:
    (found,) = find(home, [])
    return found


def test_a_transcript_is_found_with_all_that_tells_whether_it_changed(home: Path) -> None:
    path = saved(home)
    seen = path.stat()
    found = only(home)
    assert (found.path, found.session, found.agent) == (path, SESSION, None)
    assert found.project == path.parent.name
    assert found.file.stamp == (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)


def test_without_the_agents_folder_nothing_is_found(home: Path) -> None:
    assert list(find(home, [])) == []


def test_subagents_are_found_with_their_session_at_any_depth(home: Path) -> None:
    folder = saved(home).with_suffix("") / "subagents"
    deep = folder / "workflows" / "run-1"
    deep.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(b"{}\n")
    (folder / "agent-a1.meta.json").write_text(
        json.dumps({"agentType": "Explore", "toolUseId": "t1", "description": 5})
    )
    (deep / "agent-b2.jsonl").write_bytes(b"{}\n")
    agents = {found.agent: found for found in find(home, []) if found.agent}
    assert set(agents) == {"a1", "b2"}
    assert all(found.session == SESSION for found in agents.values())
    said = agent_notes(agents["a1"])
    assert (said.agent_type, said.tool_use_id, said.description) == ("Explore", "t1", None)
    assert agent_notes(agents["b2"]).agent_type is None


def test_subagents_in_the_projects_folder_are_found_without_a_session(home: Path) -> None:
    path = saved(home)
    (path.parent / "agent-old.jsonl").write_bytes(b"{}\n")
    assert {(found.session, found.agent) for found in find(home, [])} == {(SESSION, None), (None, "old")}


def test_links_pipes_folders_empty_files_and_other_names_are_passed_over(home: Path, tmp_path: Path) -> None:
    path = saved(home)
    ids = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(4)]
    (path.parent / f"{ids[0]}.jsonl").symlink_to(path)
    os.mkfifo(path.parent / f"{ids[1]}.jsonl")
    (path.parent / f"{ids[2]}.jsonl").mkdir()
    (path.parent / f"{ids[3]}.jsonl").touch()
    (path.parent / "notes.jsonl").write_bytes(b"{}\n")
    outside = tmp_path / "outside"
    (outside / "subagents").mkdir(parents=True)
    (outside / "subagents" / "agent-x.jsonl").write_bytes(b"{}\n")
    (path.parent / ids[0]).symlink_to(outside)
    (path.parent.parent / "linked").symlink_to(path.parent)
    assert [found.path for found in find(home, [])] == [path]


def test_the_notes_beside_a_transcript_are_read_and_their_change_is_seen(home: Path) -> None:
    path = saved(home)
    assert only(home).noted_ns == 0
    folder = path.with_suffix("")
    folder.mkdir()
    (folder / "archived.json").write_text(json.dumps({"archived": True, "at": "2026-01-02T03:04:05.006Z"}))
    (folder / "custom-title.json").write_text(json.dumps({"customTitle": "Mine"}))
    found = only(home)
    assert found.noted_ns > 0
    said = notes(found)
    assert (said.archived, said.archived_at, said.custom_title) == (True, 1_767_323_045_006, "Mine")


def test_notes_without_a_time_are_read_too(home: Path) -> None:
    folder = saved(home).with_suffix("")
    folder.mkdir()
    (folder / "custom-title.json").write_text(json.dumps({"customTitle": "Mine"}))
    os.utime(folder / "custom-title.json", ns=(0, 0))
    assert notes(only(home)).custom_title == "Mine"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"archived": "yes", "at": [], "customTitle": 3}'])
def test_broken_notes_say_nothing(home: Path, text: str) -> None:
    folder = saved(home).with_suffix("")
    folder.mkdir()
    for name in ("archived.json", "custom-title.json"):
        (folder / name).write_text(text)
    said = notes(only(home))
    assert (said.archived, said.archived_at, said.custom_title) == (None, None, None)


def test_only_what_was_added_is_read_on(home: Path) -> None:
    made = writer()
    made.user("one")
    path = saved(home, made)
    first = parse(read_whole(path))
    made.say("two")
    with path.open("ab") as file:
        file.write(made.data()[first.state.offset :])
    more = read_from(path, first.state.offset, first.state.seal)
    assert more == made.data()[first.state.offset :]
    assert len(parse(more, first.state).entries) == 1


@pytest.mark.parametrize("rewritten", [b"", b"x", b"y" * 10_000])
def test_a_file_that_was_rewritten_is_not_read_on(home: Path, rewritten: bytes) -> None:
    path = saved(home)
    state = parse(path.read_bytes()).state
    path.write_bytes(rewritten)
    assert read_from(path, state.offset, state.seal) is None


def test_a_link_in_the_place_of_a_transcript_is_not_opened(home: Path, tmp_path: Path) -> None:
    path = saved(home)
    secret = tmp_path / "secret"
    secret.write_text("{}")
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(OSError, match=SESSION):
        read_whole(path)
