"""Transcripts whose paths are no text: found, read, and written back under the very same name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL
from hitherto.sources import AGENTS
from hitherto.sources.handoff.restore import original, write_back
from hitherto.sources.shared.files import EXACT, path_text
from tests.claude import transcripts
from tests.sources.agent_home import House
from tests.sources.codex.codex_files import CodexWriter
from tests.sources.gemini import gemini_files
from tests.sources.openclaw import openclaw_files
from tests.sources.pi.pi_files import PiWriter

ODD = os.fsdecode(b"caf\xe9 %41")


def claude(home: Path) -> Path:
    made = transcripts.Writer(transcripts.session_id(1))
    made.user("one")
    path = transcripts.save(
        home / "projects", "/x", made.session_id, b"".join(map(transcripts.compact, made.records))
    )
    return moved(path, path.parent.parent / ODD / path.name)


def codex(home: Path) -> Path:
    path = CodexWriter().talk("one").save(home)
    return moved(path, path.parent.parent / ODD / path.name)


def gemini(home: Path) -> Path:
    made = gemini_files.GeminiWriter()
    made.user("one")
    path = made.save(home)
    return moved(path, home / "tmp" / ODD / "chats" / path.name)


def pi(home: Path) -> Path:
    made = PiWriter()
    made.user("one")
    (home / ODD).mkdir(parents=True)
    path = home / ODD / "a.jsonl"
    path.write_bytes(made.data())
    return path


def openclaw(home: Path) -> Path:
    made = PiWriter()
    made.user("one")
    return openclaw_files.save(home, made, ODD)


def moved(path: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True)
    return path.rename(to)


@pytest.mark.parametrize("make", [claude, codex, gemini, pi, openclaw])
async def test_a_transcript_in_a_folder_that_is_no_text_is_written_back_where_it_was(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path / "home")
    data = path.read_bytes()
    async with hitherto.open("memory:") as sessions:
        house = House(tmp_path, sessions, AGENTS[make.__name__].at(tmp_path / "home"))
        assert (await house.sync()).failed == ()
        assert (await house.sync()).parsed_files == 0
        path.unlink()
        path.parent.rmdir()
        assert (await house.sync()).kept == 1
        session = await house.only()
        assert session.meta["path"] == path_text(path)
        home = house.source.restorable_path(session)
        assert home == path
        write_back(home, await original(sessions, LOCAL, session.id))
        assert path.read_bytes() == data
        if make is pi:
            assert house.source.resume(session) is None
        # Where it lies now is told by its present path alone.
        told = {"path": str(path).replace(ODD, "plain")}
        session = await sessions.set_meta(LOCAL, session.id, told)
        assert EXACT in session.meta
        assert house.source.restorable_path(session) == Path(told["path"])
