"""Whatever happened to a transcript of lines, what is whole in it is read, and no other one suffers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, Filter
from hitherto.sources.goose.source import GooseSource
from hitherto.sources.sync.sync import find_all
from tests.sources.agent_home import House
from tests.sources.damage import HIT, KINDS, TEXTS, WRITTEN, Written, packed


class Damaged(House):
    """A house in which each kind of damage was done to a transcript of its own, beside one that is whole."""

    def __init__(self, house: House, written: Written) -> None:
        super().__init__(house.folder, house.sessions, house.source)
        self.written = written

    def write(self, number: int, data: bytes, **how: bool) -> Path:
        return self.written.save(self.folder / "agent", number, data, **how)

    async def said_in(self, path: Path) -> tuple[list[str], int]:
        """The texts of the session that was read from a file, without what was put in, and its damaged records."""
        found = (await self.sessions.find(LOCAL, Filter(archived="include"), limit=100)).sessions
        for session in found:
            if session.meta["path"] == str(path):
                said = [text[: len(TEXTS[0])] for text in await self.said(session.id)]
                return [text for text in said if text in TEXTS], session.meta.get("damaged_records", 0)
        return [], 0


@pytest.fixture(params=WRITTEN)
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Damaged]:
    written = WRITTEN[request.param]
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield Damaged(House(tmp_path, sessions, written.source(tmp_path / "agent")), written)


async def test_every_whole_record_is_read_and_no_other_transcript_suffers(house: Damaged) -> None:
    assert len(KINDS) == 14
    healthy = house.write(0, b"".join(house.written.lines(0, TEXTS)))
    harmed = {
        kind: house.write(number, kind.harm(house.written.lines(number, TEXTS), TEXTS[HIT].encode()))
        for number, kind in enumerate(KINDS, 1)
    }
    before = house.hashes(house.folder / "agent")
    report = await house.sync()
    assert report.failed == ()
    assert house.hashes(house.folder / "agent") == before
    assert await house.said_in(healthy) == (list(TEXTS), 0)
    for kind, path in harmed.items():
        said, damaged = await house.said_in(path)
        assert sorted(said) == kind.left(house.written, TEXTS, HIT), kind.name
        assert bool(damaged) == kind.told, kind.name
    assert (await house.sync()).parsed_files == 0


@pytest.mark.parametrize("end", [None, b"nonsense" * 10], ids=["torn", "nonsense"])
async def test_what_can_be_unpacked_of_a_broken_pack_is_read(house: Damaged, end: bytes | None) -> None:
    if not house.written.packs:
        return
    path = house.write(1, packed(house.written.lines(1, TEXTS), end), packed=True)
    assert (await house.sync()).failed == ()
    assert await house.said_in(path) == (list(TEXTS[:HIT]), 1)


def test_each_database_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    sources = [GooseSource(tmp_path / name) for name in ("one", "two")]
    for source in sources:
        (database,) = source.folders()
        database.mkdir(parents=True)
        (database / "sessions.db").write_bytes(b"no database" * 1_000)
    assert len(find_all(sources)) == 2
