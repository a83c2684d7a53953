"""Reading in other processes: the same comes of it, whatever happens to them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

import hitherto
from hitherto.model import LOCAL, Entry, Filter, Session, Text
from hitherto.service import Imported, Sessions
from hitherto.sources import AGENTS, Source
from hitherto.sources.port import FoundSession, Known, Reading
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Report, Sync
from hitherto.sources.sync.workers import WORTH, Wanted, processes_for, read_all
from tests.claude import transcripts
from tests.sources.codex.codex_files import CodexWriter
from tests.sources.gemini import gemini_files
from tests.sources.gemini.gemini_files import GeminiWriter
from tests.sources.goose.goose_files import GooseWriter
from tests.sources.openclaw import openclaw_files
from tests.sources.openclaw.openclaw_files import OpenclawWriter
from tests.sources.opencode.opencode_files import OpencodeWriter
from tests.sources.pi.pi_files import PiWriter
from tests.support.waits import arrives, block_until, until


class MadeUp(msgspec.Struct, frozen=True):
    """A source of `count` sessions; reading one of them does `what`, in another process if that is to die or to wait."""

    home: Path
    what: str = ""
    count: int = 3
    name: str = "made-up"
    version: int = 1

    def folders(self) -> Sequence[Path]:
        return (self.home,)

    def beside(self) -> Sequence[Path]:
        return ()

    def find(self) -> Iterator[FoundSession]:
        for number in range(self.count):
            # Too large to share a piece of work with another.
            yield FoundSession(self, f"session-{number}", (number,), -number, number, 4 << 20)

    def read(self, found: FoundSession, known: Known | None) -> Reading:  # noqa: ARG002 - all of it is always new
        if multiprocessing.parent_process() is not None:
            (self.home / f"reader-{found.where}").write_text(str(os.getpid()))
            if self.what == "dies" and found.where == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "waits":
                block_until((self.home / "go-on").exists, "leave to go on")
        if self.what == "stumbles" and found.where == 1:
            raise KeyError("type")
        entry = Entry(id="a", at=1, role="user", parts=(Text(text=f"said in {found.where}"),))
        imported = Imported(id=f"made-up:{found.where}", source=self.name, created_at=1, updated_at=1)
        return Reading(imported, (entry,), 1)

    def resume(self, session: Session) -> Sequence[str] | None:  # noqa: ARG002 - nobody can
        return None

    def restorable_path(self, session: Session) -> Path | None:  # noqa: ARG002 - there is no file
        return None


@pytest.fixture
async def sessions() -> AsyncIterator[Sessions]:
    async with hitherto.open("memory:") as opened:
        yield opened


async def sync(sessions: Sessions, sources: Sequence[Source], ledger: Path, processes: int) -> Report:
    notes = Ledger(ledger)
    found = [each for source in sources for each in source.find()]
    try:
        return await Sync(sessions, LOCAL, notes, processes=processes).run(sources, found)
    finally:
        notes.close()


async def all_that_is_there(sessions: Sessions) -> list[object]:
    """Sessions with all that was said in them, and the bytes that are kept of them."""
    told = list[object]()
    for session in (await sessions.find(LOCAL, Filter(archived="include"), limit=100)).sessions:
        page = await sessions.history(LOCAL, session.id, view="conversation", limit=1_000)
        told.append((session, page.entries, await sessions.transfer.raw(LOCAL, session.id)))
    return told


def everything(home: Path) -> list[Source]:
    """A few sessions of every agent; two of Codex's have a past in common."""
    for number, name in enumerate(("one", "two")):
        writer = transcripts.Writer(transcripts.session_id(number))
        writer.user(f"hello {name}")
        writer.say("Hello.")
        writer.save(home / "claude" / "projects")
    first = CodexWriter("paginated").talk("begin", "begun")
    first.save(home / "codex")
    fork = CodexWriter("paginated", f"{first.session_id[:-2]}02", first=20, history_base=first.place())
    fork.talk("go on", "gone on").save(home / "codex")
    log = GeminiWriter()
    log.user("hello")
    log.save(home / "gemini")
    gemini_files.mark(home / "gemini")
    tree = PiWriter()
    tree.user("hello")
    tree.save(home / "pi")
    older = PiWriter("older")
    older.user("hello")
    openclaw_files.save(home / "openclaw", older, "older")
    goose, opencode = GooseWriter(home / "goose"), OpencodeWriter(home / "opencode")
    openclaw = OpenclawWriter(home / "openclaw")
    goose.user("hello", goose.session())
    opencode.user("hello", opencode.session())
    openclaw.write(tree)
    for database in (goose, opencode, openclaw):
        database.close()
    return [AGENTS[name].at(home / name) for name in AGENTS]


@pytest.mark.parametrize("processes", [0, 1])
async def test_a_session_over_which_its_reader_stumbles_keeps_no_other_out(
    sessions: Sessions, tmp_path: Path, processes: int
) -> None:
    report = await sync(sessions, [MadeUp(tmp_path, "stumbles")], tmp_path / "ledger", processes)
    assert (report.new, len(report.failed)) == (2, 1)


async def test_sessions_of_every_agent_are_the_same_wherever_they_were_read(
    sessions: Sessions, tmp_path: Path
) -> None:
    sources = everything(tmp_path)
    here = await sync(sessions, sources, tmp_path / "here.db", 0)
    async with hitherto.open("memory:") as other:
        there = await sync(other, sources, tmp_path / "there.db", 1)
        assert await all_that_is_there(other) == await all_that_is_there(sessions)
        again = await sync(other, sources, tmp_path / "there.db", 1)
    assert there == here
    assert here.new == here.found == 10
    assert (again.unchanged, again.parsed_files, again.parsed_bytes) == (10, 0, 0)


async def test_a_session_that_cannot_be_read_keeps_no_other_from_being_read(
    sessions: Sessions, tmp_path: Path
) -> None:
    for number in range(3):
        writer = transcripts.Writer(transcripts.session_id(number))
        writer.user("hello")
        path = writer.save(tmp_path / "claude" / "projects")
    source = AGENTS["claude"].at(tmp_path / "claude")
    found = list(source.find())
    path.unlink()
    ledger = Ledger(tmp_path / "ledger.db")
    report = await Sync(sessions, LOCAL, ledger, processes=1).run([source], found)
    ledger.close()
    assert (report.new, len(report.failed)) == (2, 1)
    assert path.name in report.failed[0]


async def test_what_a_process_was_to_read_when_it_was_killed_is_read_all_the_same(
    sessions: Sessions, tmp_path: Path
) -> None:
    report = await sync(sessions, [MadeUp(tmp_path, "dies")], tmp_path / "ledger.db", 1)
    assert (report.new, report.failed) == (3, ())
    assert (tmp_path / "reader-1").exists()


async def test_a_sync_that_is_interrupted_leaves_no_process_behind_and_the_next_one_does_the_rest(
    sessions: Sessions, tmp_path: Path
) -> None:
    source = MadeUp(tmp_path, "waits")
    task = asyncio.create_task(sync(sessions, [source], tmp_path / "ledger.db", 1))
    pid = await written(tmp_path / "reader-0")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await arrives(task, "the end of what was cancelled")
    (tmp_path / "go-on").touch()  # what is being read is read to its end
    await ended(pid)
    report = await sync(sessions, [source], tmp_path / "ledger.db", 0)
    assert (report.new, report.failed) == (3, ())


async def test_a_process_that_reads_ends_with_the_one_that_it_reads_for(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from tests.sources.sync.test_workers import wait_for_ever\n"
        "if __name__ == '__main__': asyncio.run(wait_for_ever(Path(sys.argv[1])))"
    )
    program = tmp_path / "program.py"
    program.write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = await asyncio.create_subprocess_exec(sys.executable, program, tmp_path, env=environment)
    pid = await written(tmp_path / "reader-0")
    process.kill()
    await arrives(process.wait(), "the end of a killed process")
    await ended(pid)


async def wait_for_ever(home: Path) -> None:
    """Have a process read what takes for ever."""
    wanted = [Wanted(found, None) for found in MadeUp(home, "waits").find()]
    async for _ in read_all(wanted, 1, raw=True):
        raise AssertionError("nothing can be read here")


async def written(file: Path) -> int:
    """The process that has said here that it reads."""
    return int(await until(lambda: said_in(file), f"{file.name} to be written"))


def said_in(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def ended(pid: int) -> None:
    def is_gone() -> bool:
        multiprocessing.active_children()  # takes notice of those that have ended
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    await until(is_gone, "the end of the process")


def test_processes_are_begun_only_for_much_that_was_never_read(tmp_path: Path) -> None:
    large = [FoundSession(MadeUp(tmp_path), str(number), (), 0, number, WORTH) for number in range(100)]
    cores = len(os.sched_getaffinity(0))
    assert processes_for(Wanted(each, None) for each in large) == cores - 1
    assert processes_for([Wanted(msgspec.structs.replace(large[0], size=WORTH - 1), None)]) == 0
    assert processes_for(Wanted(each, Known((), b"")) for each in large) == 0
