"""Claude Code's files in our own store: only what is new is read, nothing is lost, the files are never changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import hitherto
from hitherto.errors import AlreadyExists
from hitherto.model import LOCAL, Filter, Text, plain_text
from hitherto.service import Sessions
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.handoff.restore import files_beside, original, subagents_of, write_back
from hitherto.sources.sync.ledger import Ledger, Seen
from hitherto.sources.sync.sync import Progress, Report, Sync, find_all
from tests.claude import transcripts

MANY = 25


class House:
    """A folder of Claude Code's, a store and a ledger."""

    def __init__(self, folder: Path, sessions: Sessions) -> None:
        self.config = folder / "claude"
        self.projects = self.config / "projects"
        self.sessions = sessions
        self.ledger_file = folder / "data" / "ledger.db"

    async def sync(self) -> Report:
        ledger = Ledger(self.ledger_file)
        try:
            source = ClaudeSource(self.config)
            return await Sync(self.sessions, LOCAL, ledger).run([source], find_all([source]))
        finally:
            ledger.close()

    def talk(self, number: int, *texts: str) -> Path:
        """A transcript in which the user says these texts."""
        writer = transcripts.Writer(transcripts.session_id(number))
        for text in texts:
            writer.user(text)
        data = b"".join(map(transcripts.compact, writer.records))
        return transcripts.save(self.projects, writer.cwd, writer.session_id, data)

    def ledger_bytes(self) -> bytes:
        """All that the ledger's files have, once nobody has it open."""
        return b"".join(path.read_bytes() for path in self.ledger_file.parent.glob("ledger.db*"))

    def hashes(self) -> dict[str, str]:
        files = (path for path in self.config.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield House(tmp_path, sessions)


def id_of(number: int) -> str:
    return f"claude:{transcripts.session_id(number)}"


async def said(house: House, number: int) -> list[str]:
    page = await house.sessions.history(LOCAL, id_of(number), limit=1_000)
    return [part.text for entry in page.entries for part in entry.parts if isinstance(part, Text)]


async def test_the_sessions_that_changed_last_are_read_first(house: House) -> None:
    for number, day in ((1, 2), (2, 3), (3, 1)):
        path = house.talk(number, f"Day {day}")
        os.utime(path, (day * 86_400, day * 86_400))
    told: list[Progress] = []
    ledger, source = Ledger(house.ledger_file), ClaudeSource(house.config)
    await Sync(house.sessions, LOCAL, ledger, told.append).run([source], find_all([source]))
    ledger.close()
    order = [change.session for change in await house.sessions.changes.since(LOCAL)]
    assert order == [id_of(2), id_of(1), id_of(3)]
    sizes = sum(path.stat().st_size for path in house.projects.rglob("*.jsonl"))
    first, last = told[0], told[-1]
    assert (first.found, first.agents, first.size, first.done, last.done) == (3, ("claude",), sizes, 0, sizes)


async def test_every_transcript_is_taken_in_and_none_is_changed(house: House) -> None:
    assert len(list(transcripts.grow(house.projects, MANY))) == MANY
    before = house.hashes()
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (MANY, MANY, ())
    assert house.hashes() == before
    assert await house.sessions.count(LOCAL, Filter(source="claude")) == MANY
    assert (await house.sessions.admin.check(repair=True)).problems == ()


async def test_a_second_sync_parses_nothing(house: House) -> None:
    list(transcripts.grow(house.projects, MANY))
    await house.sync()
    change = await house.sessions.changes.newest(LOCAL)
    report = await house.sync()
    assert (report.unchanged, report.parsed_files, report.parsed_bytes) == (MANY, 0, 0)
    assert await house.sessions.changes.newest(LOCAL) == change


def git(folder: Path, url: str) -> Path:
    """A repository in this folder."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')
    return folder


async def test_sessions_of_clones_and_folders_that_are_gone_belong_to_one_project(
    house: House, tmp_path: Path
) -> None:
    one = git(tmp_path / "one", "https://ada:s3cret@host/ada/engine.git")
    two = git(tmp_path / "two", "git@host:ada/engine")
    for number, (cwd, branch) in enumerate(
        [(one, "topic"), (two / "src", "HEAD"), (tmp_path / "gone", "main")]
    ):
        writer = transcripts.Writer(transcripts.session_id(number), str(cwd), branch)
        writer.user("hello")
        writer.user("elsewhere", cwd=str(tmp_path / "inner"))
        writer.save(house.projects)
    await house.sync()
    found = [await house.sessions.get(LOCAL, id_of(number)) for number in range(3)]
    assert [session.project for session in found] == ["host/ada/engine", "host/ada/engine", "gone"]
    assert [session.branch for session in found] == ["topic", None, "main"]
    assert (found[0].cwd, found[0].earlier_cwds) == (str(one), (str(tmp_path / "inner"),))
    assert (await house.sessions.statistics.facets(LOCAL)).projects == (("host/ada/engine", 2), ("gone", 1))


async def test_sessions_from_before_there_were_projects_get_theirs_without_being_read(
    house: House, tmp_path: Path
) -> None:
    folder = git(tmp_path / "one", "https://host/ada/engine.git")
    writer = transcripts.Writer(transcripts.session_id(1), str(folder))
    writer.user("hello")
    writer.save(house.projects)
    await house.sync()
    await house.sessions.projects.assign(LOCAL, id_of(1), None)
    own = await house.sessions.create(LOCAL, cwd=str(folder))
    report = await house.sync()
    assert (report.unchanged, report.parsed_files) == (1, 0)
    for session_id in (id_of(1), own.id):
        assert (await house.sessions.get(LOCAL, session_id)).project == "host/ada/engine"
    change = await house.sessions.changes.newest(LOCAL)
    await house.sync()
    assert await house.sessions.changes.newest(LOCAL) == change


async def test_an_appended_line_costs_the_new_bytes_only(house: House) -> None:
    path = house.talk(1, "first", "second")
    await house.sync()
    line = json.dumps({"type": "custom-title", "customTitle": "Mine", "sessionId": "x"}).encode() + b"\n"
    with path.open("ab") as file:
        file.write(line)
    report = await house.sync()
    assert (report.updated, report.parsed_files, report.parsed_bytes) == (1, 1, len(line))
    assert (await house.sessions.get(LOCAL, id_of(1))).title == "Mine"
    assert await said(house, 1) == ["first", "second"]


async def test_what_is_said_later_is_found_and_kept_raw(house: House) -> None:
    writer = transcripts.Writer(transcripts.session_id(1))
    writer.user("about apricots")
    head = b"".join(map(transcripts.compact, writer.records))
    path = transcripts.save(house.projects, writer.cwd, writer.session_id, head)
    await house.sync()
    writer.user("about quinces")
    tail = transcripts.compact(writer.records[-1])
    with path.open("ab") as file:
        file.write(tail[:20])
    assert (await house.sync()).parsed_files == 1
    assert await said(house, 1) == ["about apricots"]
    with path.open("ab") as file:
        file.write(tail[20:])
    await house.sync()
    assert await said(house, 1) == ["about apricots", "about quinces"]
    assert [hit.session.id for hit in (await house.sessions.search(LOCAL, "quinces")).hits] == [id_of(1)]
    assert await original(house.sessions, LOCAL, id_of(1)) == path.read_bytes()


async def test_a_compaction_of_the_agents_is_one_of_ours(house: House) -> None:
    made = transcripts.Writer(transcripts.session_id(1))
    made.user("one")
    kept = [made.user("two")["uuid"], made.say("three")["uuid"]]

    async def synced() -> tuple[list[str], list[str]]:
        made.save(house.projects)
        assert (await house.sync()).failed == ()
        assert (await house.sessions.admin.check(repair=True)).problems == ()
        page = await house.sessions.history(LOCAL, id_of(1), view="conversation", limit=1_000)
        return await said(house, 1), list(map(plain_text, page.entries))

    whole = ["one", "two", "three"]
    assert await synced() == (whole, whole)
    made.compact(keep=kept, summary="first")
    made.user("four")
    whole += ["Conversation compacted", "first", "four"]
    assert await synced() == (["first", "two", "three", "four"], whole)
    made.compact(summary="second")
    made.user("five")
    whole += ["Conversation compacted", "second", "five"]
    assert await synced() == (["second", "five"], whole)
    house.ledger_file.unlink()
    revision = (await house.sessions.get(LOCAL, id_of(1))).revision
    assert await synced() == (["second", "five"], whole)
    assert (await house.sessions.get(LOCAL, id_of(1))).revision == revision
    assert [kept.reason for kept in await house.sessions.checkpoints(LOCAL, id_of(1))] == ["compaction"] * 2


@pytest.mark.parametrize("how", ["shrunk", "replaced"])
async def test_a_shrunk_or_replaced_file_is_read_again_and_nothing_is_lost(house: House, how: str) -> None:
    path = house.talk(1, "one", "two", "three")
    await house.sync()
    if how == "shrunk":
        os.truncate(path, len(path.read_bytes().splitlines(keepends=True)[0]))
    else:
        path.unlink()
        house.talk(1, "another beginning")
    await house.sync()
    assert await said(house, 1) == (["one"] if how == "shrunk" else ["another beginning"])
    (checkpoint,) = await house.sessions.checkpoints(LOCAL, id_of(1))
    branch = await house.sessions.branch(LOCAL, id_of(1), checkpoint.id)
    assert branch.message_count == 3


async def test_a_vanished_file_leaves_our_copy_which_can_be_written_back(house: House) -> None:
    path = house.talk(1, "keep me")
    await house.sync()
    before = path.read_bytes()
    path.unlink()
    assert (await house.sync()).kept == 1
    assert (await house.sync()).kept == 0
    session = await house.sessions.get(LOCAL, id_of(1))
    assert session.meta["source_gone"] is True
    assert await said(house, 1) == ["keep me"]
    assert ClaudeSource(house.config).restorable_path(session) == path
    write_back(path, await original(house.sessions, LOCAL, id_of(1)))
    assert path.read_bytes() == before
    with pytest.raises(AlreadyExists):
        write_back(path, b"other")
    assert path.read_bytes() == before
    await house.sync()
    assert "source_gone" not in (await house.sessions.get(LOCAL, id_of(1))).meta


async def test_nothing_is_written_back_outside_of_the_agents_folder(house: House, tmp_path: Path) -> None:
    house.talk(1, "x")
    await house.sync()
    for path in (tmp_path / "elsewhere.jsonl", house.projects / ".." / "x.jsonl", house.projects / "x.txt"):
        session = await house.sessions.set_meta(LOCAL, id_of(1), {"path": str(path)})
        assert ClaudeSource(house.config).restorable_path(session) is None


async def test_a_session_deleted_here_stays_away(house: House) -> None:
    path = house.talk(1, "one")
    await house.sync()
    await house.sessions.delete(LOCAL, id_of(1))
    with path.open("ab") as file:
        file.write(b'{"type":"mode","mode":"x"}\n')
    assert (await house.sync()).refused == 1
    assert await house.sessions.count(LOCAL) == 0


async def test_a_lost_ledger_costs_reading_but_changes_nothing(house: House) -> None:
    list(transcripts.grow(house.projects, 5))
    await house.sync()
    before = [session.revision for session in (await house.sessions.find(LOCAL)).sessions]
    house.ledger_file.write_bytes(b"nonsense" * 100)
    for part in house.ledger_file.parent.glob("ledger.db-*"):
        part.unlink()
    report = await house.sync()
    assert (report.parsed_files, report.new, report.updated) == (5, 0, 0)
    assert [session.revision for session in (await house.sessions.find(LOCAL)).sessions] == before


def harm(ledger_file: Path, pages: slice = slice(1, None)) -> None:
    """Overwrite the beginning of pages of a ledger that nobody has open, but never of the first."""
    assert [each.name for each in ledger_file.parent.glob("ledger.db*")] == [ledger_file.name]
    data = bytearray(ledger_file.read_bytes())
    for start in range(0, len(data), 4096)[pages]:
        data[start : start + 64] = b"\xa5" * 64
    ledger_file.write_bytes(data)


@pytest.mark.parametrize("pages", [slice(1, None), slice(1, 2), slice(2, None)])
async def test_a_ledger_damaged_behind_its_first_page_is_begun_anew(house: House, pages: slice) -> None:
    paths = list(transcripts.grow(house.projects, 5))
    await house.sync()
    harm(house.ledger_file, pages)
    paths[0].unlink()
    with paths[1].open("ab") as file:
        file.write(b'{"type":"mode","mode":"x"}\n')
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (4, 0, ())
    assert (await house.sync()).failed == ()
    assert (await house.sync()).parsed_files == 0
    assert await house.sessions.count(LOCAL) == 5


async def test_whatever_is_asked_of_a_damaged_ledger_nothing_was_read_and_it_can_be_written(
    tmp_path: Path,
) -> None:
    one = Seen(b"[1]", "claude:one")
    asked: list[tuple[Callable[[Ledger], object], object]] = [
        (lambda ledger: ledger.seen("claude"), {}),
        (lambda ledger: ledger.stamps("claude"), {}),
        (lambda ledger: ledger.state("claude", "/one"), None),
        (lambda ledger: ledger.forget("claude", "/one"), None),
        (lambda ledger: ledger.put([("claude", "/one", one, b"")]), None),
    ]
    for number, (ask, nothing) in enumerate(asked):
        path = tmp_path / str(number) / "ledger.db"
        ledger = Ledger(path)
        ledger.put([("claude", "/one", one, b"x")])
        ledger.close()
        harm(path)
        ledger = Ledger(path)
        assert ask(ledger) == nothing
        ledger.put([("claude", "/two", one, b"")])
        assert ledger.stamps("claude").keys() - {"/one"} == {"/two"}
        ledger.close()


async def test_a_stamp_that_was_damaged_is_like_no_other(house: House) -> None:
    path = house.talk(1, "one")
    await house.sync()
    ledger = Ledger(house.ledger_file)
    ledger.put([("claude", str(path), Seen(b"\xff", id_of(1)), b"\xff")])
    ledger.close()
    report = await house.sync()
    assert (report.parsed_files, report.failed) == (1, ())


async def test_one_unreadable_file_does_not_stop_the_others(house: House) -> None:
    house.talk(1, "good")
    bad = house.talk(2, "bad")
    bad.unlink()
    bad.mkdir()
    target = house.talk(3, "linked")
    (target.parent / f"{transcripts.session_id(4)}.jsonl").symlink_to(target)
    report = await house.sync()
    assert report.new == 2
    assert {session.id for session in (await house.sessions.find(LOCAL)).sessions} == {id_of(1), id_of(3)}


async def test_a_session_moved_to_another_folder_is_not_called_gone(house: House) -> None:
    path = house.talk(1, "one")
    await house.sync()
    elsewhere = house.projects / "-somewhere-else" / path.name
    elsewhere.parent.mkdir()
    path.rename(elsewhere)
    assert (await house.sync()).kept == 0
    assert "source_gone" not in (await house.sessions.get(LOCAL, id_of(1))).meta
    assert await said(house, 1) == ["one"]


@pytest.mark.parametrize("folder", ["-a", "-z"])
async def test_of_a_session_in_two_folders_the_fullest_counts(house: House, folder: str) -> None:
    fuller = house.talk(1, "one", "two", "three", "four")
    lines = fuller.read_bytes().splitlines(keepends=True)
    fuller.write_bytes(b"".join(lines[:3]))
    copy = house.projects / folder / fuller.name
    copy.parent.mkdir()
    copy.write_bytes(lines[0])
    report = await house.sync()
    assert (report.found, report.new, report.updated) == (1, 1, 0)
    assert await said(house, 1) == ["one", "two", "three"]
    copy.unlink()
    assert (await house.sync()).kept == 0
    copy.write_bytes(b"".join(lines))
    report = await house.sync()
    assert (report.updated, report.kept) == (1, 0)
    assert await said(house, 1) == ["one", "two", "three", "four"]
    assert await original(house.sessions, LOCAL, id_of(1)) == copy.read_bytes()
    copy.unlink()
    fuller.unlink()
    assert (await house.sync()).kept == 1
    assert await said(house, 1) == ["one", "two", "three", "four"]


async def test_a_folder_that_cannot_be_read_takes_no_session_away(house: House) -> None:
    house.talk(1, "one")
    house.talk(2, "two")
    await house.sync()
    aside = house.projects.rename(house.config / "aside")
    house.projects.symlink_to(house.projects)  # a way that leads nowhere, not even to "there is none"
    report = await house.sync()
    assert (report.kept, len(report.failed)) == (0, 1)
    assert "projects" in report.failed[0]
    house.projects.unlink()
    aside.rename(house.projects)
    report = await house.sync()
    assert (report.unchanged, report.parsed_files, report.failed) == (2, 0, ())


async def test_files_in_which_nothing_can_be_read_are_told_of(house: House) -> None:
    path = house.talk(1, "one")
    path.write_bytes(b'{"type":"new-kind"}\n' * 3)
    house.talk(2, "two").write_bytes(b"garbage\n" * 2)
    report = await house.sync()
    assert (report.new, report.unknown_records, report.damaged_records) == (0, 3, 2)


@pytest.mark.parametrize("how", ["erased", "deleted"])
async def test_the_ledger_has_no_words_of_what_was_erased_or_deleted(house: House, how: str) -> None:
    house.talk(1, "The word is Xylophagous", "Hello there")
    await house.sync()
    assert b"Xylophagous" in house.ledger_bytes()
    page = await house.sessions.history(LOCAL, id_of(1))
    if how == "erased":
        await house.sessions.erase(LOCAL, id_of(1), page.entries[0].id)
    else:
        await house.sessions.delete(LOCAL, id_of(1))
    for texts in (["Hello there"], ["Hello there", "More"], ["Hello there", "More", "And more"]):
        house.talk(1, "The word is Xylophagous", *texts)
        await house.sync()
        assert b"Xylophagous" not in house.ledger_bytes()
        if how == "erased":
            assert await said(house, 1) == texts


async def test_a_newer_reader_reads_everything_once_more_and_takes_nothing_twice(house: House) -> None:
    house.talk(1, "one")
    await house.sync()
    ledger = Ledger(house.ledger_file)
    ledger.put_reader("claude", 1)  # as an older program left it
    ledger.close()
    report = await house.sync()
    assert (report.parsed_files, report.unchanged, report.updated) == (1, 1, 0)
    assert (await house.sync()).parsed_files == 0


async def test_a_fork_that_claude_made_names_its_origin_and_a_subagent_is_no_row(house: House) -> None:
    house.talk(1, "one")
    origin = transcripts.session_id(1)
    forked = transcripts.Writer(transcripts.session_id(2))
    forked.user(
        "one", forkedFrom={"sessionId": origin, "messageUuid": "11111111-0000-4000-8000-000000000001"}
    )
    forked.user("two")
    forked.save(house.projects)
    child = transcripts.Writer(origin)
    child.user("Look it up", isSidechain=True, agentId="a1")
    folder = next(house.projects.rglob(f"{origin}.jsonl")).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(child.data())
    await house.sync()
    session = await house.sessions.get(LOCAL, id_of(2))
    assert (session.parent, session.parent_entry) == (id_of(1), "11111111-0000-4000-8000-000000000001")
    listed = await house.sessions.find(LOCAL, Filter(subagents=False), limit=2)
    assert sorted(each.id for each in listed.sessions) == [id_of(1), id_of(2)]
    assert len((await house.sessions.find(LOCAL)).sessions) == 3
    assert await house.sessions.resolve(LOCAL, id_of(1)[:-1]) == id_of(1)


async def test_files_beside_a_transcript_are_searched_and_written_back_with_it(house: House) -> None:
    made = transcripts.Writer(transcripts.session_id(1))
    made.user("Run it")
    _, call = made.call("Bash", {"command": "make"})
    preview = (
        "<persisted-output>\nOutput too large. Full output saved to: /h/tool-results/b1.txt\n\nPreview: a"
    )
    made.result(call, preview)
    path = made.save(house.projects)
    folder = path.with_suffix("")
    output = folder / "tool-results" / "b1.txt"
    output.parent.mkdir(parents=True)
    output.write_bytes(b"a\n" * 5_000 + b"planted quince\n")
    child = transcripts.Writer(transcripts.session_id(1))
    child.user("Look it up", isSidechain=True, agentId="a1")
    (folder / "subagents").mkdir()
    (folder / "subagents" / "agent-a1.jsonl").write_bytes(child.data())
    (folder / "subagents" / "agent-a1.meta.json").write_bytes(b'{"toolUseId":"t"}')
    before = house.hashes()
    await house.sync()
    (hit,) = (await house.sessions.search(LOCAL, "quince")).hits
    assert hit.session.id == id_of(1)
    shutil.rmtree(folder)
    path.unlink()
    await house.sync()
    assert [each.agent_id for each in await subagents_of(house.sessions, LOCAL, id_of(1))] == ["claude-code"]
    for name in (id_of(1), f"{id_of(1)}:agent-a1"):
        session = await house.sessions.get(LOCAL, name)
        there = ClaudeSource(house.config).restorable_path(session)
        assert there is not None
        write_back(there, await original(house.sessions, LOCAL, name))
        for file in await files_beside(house.sessions, LOCAL, name, there):
            write_back(*file)
    assert house.hashes() == before
