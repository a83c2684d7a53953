"""A transcript that its agent would refuse becomes a new session without faults: nothing is lost, the file stays as it is."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.claude.foreign_files import encoded
from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import LOCAL, Entry, Text, ToolCall, ToolResult
from hitherto.service import Sessions
from hitherto.sources.claude import parse as claude_parse
from hitherto.sources.mend.doctor import MENDABLE, TranscriptDoctor
from hitherto.sources.mend.findings import KINDS, Findings
from hitherto.sources.sync.ledger import Ledger
from tests.claude.transcripts import session_id
from tests.sources.damage import WRITTEN
from tests.sources.mend.planted import FAULTS, TALKS, Fault, entries_in, line, said, texts_of, whole_texts

NOW = "2026-11-17T12:00:00.000Z"
PLANTED = [(agent, fault) for agent, faults in FAULTS.items() for fault in faults]


def mended(agent: str, data: bytes, findings: Findings) -> tuple[bytes, dict[str, bytes]]:
    ids = (f"new-{number}" for number in range(10_000))
    done = MENDABLE[agent].mend(data, findings, session_id(2), NOW, lambda: next(ids))
    return b"".join(map(encoded, done.records)), done.files


@pytest.mark.parametrize(
    ("agent", "fault"), PLANTED, ids=lambda each: each if isinstance(each, str) else each.name
)
def test_a_planted_fault_is_found_and_mended_and_nothing_is_lost(agent: str, fault: Fault) -> None:
    for seed in range(1 if fault.found == "oversized_records" else 3):
        dice = random.Random(f"{fault.name}{seed}")
        data = fault.plant(TALKS[agent](dice, session_id(1)), dice)
        findings = Findings()
        new, files = mended(agent, data, findings)
        assert fault.found in [each.kind for each in findings.known()]
        again = Findings()
        assert mended(agent, new, again)[0] == new
        assert again.known() == ()
        assert said(whole_texts(agent, data)) <= said(entries_in(agent, new)) | texts_of(files)
        assert_calls_are_answered(entries_in(agent, new))


def assert_calls_are_answered(entries: list[Entry]) -> None:
    parts = [part for entry in entries for part in entry.parts]
    calls = [part.id for part in parts if isinstance(part, ToolCall)]
    results = [part.id for part in parts if isinstance(part, ToolResult)]
    assert sorted(set(calls)) == sorted(results)


@pytest.mark.parametrize("agent", FAULTS)
def test_a_whole_transcript_stays_as_it_is(agent: str) -> None:
    records = TALKS[agent](random.Random(1), session_id(2))
    findings = Findings()
    new, files = mended(agent, b"".join(map(line, records)), findings)
    assert findings.known() == ()
    assert not files
    assert [json.loads(each) for each in new.splitlines()] == records


def test_every_kind_of_finding_is_planted() -> None:
    assert {fault.found for _, fault in PLANTED} == set(KINDS)
    assert all(len({fault.found for fault in faults}) >= 10 for faults in FAULTS.values())


def test_what_two_programs_wrote_at_the_same_time_is_one_conversation() -> None:
    (fault,) = (each for each in FAULTS["claude"] if each.found == "two_writers")
    dice = random.Random(1)
    data = fault.plant(TALKS["claude"](dice, session_id(1)), dice)
    new, _ = mended("claude", data, Findings())
    parsed = claude_parse.parse(new)
    assert parsed.branches == ()
    assert {"ask elsewhere", "answer once more", "ask 3", "answer 3"} <= said(parsed.entries)


def test_an_item_that_is_whole_in_a_torn_record_gets_a_record_of_its_own() -> None:
    records = TALKS["codex"](random.Random(1), session_id(1))
    place = next(at for at, each in enumerate(records) if each["payload"].get("type") == "message")
    torn = line(records[place])[:-2] + b"\n"
    data = b"".join([*map(line, records[:place]), torn, *map(line, records[place + 1 :])])
    findings = Findings()
    new, _ = mended("codex", data, findings)
    assert [each.kind for each in findings.known()] == ["spliced_lines", "missing_times"]
    again = [json.loads(each)["payload"] for each in new.splitlines()]
    assert again[1:] == [each["payload"] for each in records[1:]]


@pytest.fixture
async def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sessions]:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    async with hitherto.open(f"memory:{tmp_path.name}") as opened:
        yield opened


def saved(tmp_path: Path, agent: str, plant: Callable[..., bytes] | None = None) -> Path:
    """A transcript where its agent would have it, with a fault."""
    dice = random.Random(5)
    home = tmp_path / ("claude_config_dir" if agent == "claude" else "codex_home")
    written = WRITTEN["claude" if agent == "claude" else "codex-legacy"]
    records: list[dict[str, Any]] = TALKS[agent](dice, session_id(1))
    data = b"".join(map(line, records)) if plant is None else plant(records, dice)
    return written.save(home, 1, data)


@pytest.mark.parametrize("agent", FAULTS)
async def test_a_new_session_is_written_and_imported_and_the_old_file_stays(
    agent: str, sessions: Sessions, tmp_path: Path
) -> None:
    (fault,) = (each for each in FAULTS[agent] if each.found == "oversized_records")
    path = saved(tmp_path, agent, fault.plant)
    before = path.read_bytes()
    name = f"{agent}:{session_id(1)}"
    doctor, ledger = TranscriptDoctor(sessions, LOCAL), Ledger(tmp_path / "ledger.db")
    try:
        examined = await doctor.examine(name)
        assert [each.kind for each in examined.findings] == ["oversized_records"]
        assert examined.mended is None
        done = await doctor.repair(name, ledger)
        assert done.findings == examined.findings
        assert done.mended is not None
        assert done.mended_path is not None
        assert path.read_bytes() == before
        assert (await doctor.examine(done.mended)).findings == ()
        again = await doctor.repair(done.mended, ledger)
        assert again.mended is None
    finally:
        ledger.close()
    page = await sessions.history(LOCAL, done.mended, limit=1_000)
    texts = [part.text for entry in page.entries for part in entry.parts if isinstance(part, Text)]
    assert [text for text in texts if text.startswith("ask")] == [f"ask {number}" for number in range(4)]
    kept = [each for each in Path(done.mended_path).parent.rglob("*.txt") if len(each.read_bytes()) > 1 << 20]
    assert len(kept) == 1


async def test_what_cannot_be_examined_is_refused(sessions: Sessions, tmp_path: Path) -> None:
    saved(tmp_path, "claude")
    doctor = TranscriptDoctor(sessions, LOCAL)
    assert (await doctor.examine(f"claude:{session_id(1)}")).findings == ()
    with pytest.raises(SessionNotFound):
        await doctor.examine(f"claude:{session_id(9)}")
    for wrong in ("pi:1", "claude", "claude:1:agent-2", ""):
        with pytest.raises(InvalidInput):
            await doctor.examine(wrong)
