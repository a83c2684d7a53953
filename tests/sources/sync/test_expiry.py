"""Sessions that their agent will delete soon: which they are, and that they are kept."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.gemini.source import GeminiSource
from hitherto.sources.pi.source import PiSource
from hitherto.sources.port import Source
from hitherto.sources.sync.expiry import DAY, SOON, Expiring, expiring, soon_deleted
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync
from tests.claude import transcripts
from tests.sources.gemini.gemini_files import GeminiWriter
from tests.sources.pi.pi_files import PiWriter

NOW = 1_794_744_000_000


def aged(path: Path, days: float) -> Path:
    """The file, last changed so many days ago."""
    at = (NOW - int(days * DAY)) / 1000
    os.utime(path, (at, at))
    return path


def claude(home: Path, number: int, days: float) -> str:
    writer = transcripts.Writer(transcripts.session_id(number))
    writer.user(f"Question {number}")
    aged(writer.save(home / "projects"), days)
    return f"claude:{writer.session_id}"


def gemini(home: Path, number: int, days: float) -> None:
    made = GeminiWriter(f"5e551011-1111-4000-8000-{number:012d}")
    made.user(f"Question {number}")
    chats = home / "tmp" / f"project-{number // 100}" / "chats"
    chats.mkdir(parents=True, exist_ok=True)
    path = chats / f"session-2026-11-01T10-00-{number:08d}.jsonl"
    path.write_bytes(made.data())
    aged(path, days)


def doomed(source: Source) -> list[float]:
    """In how many days those go that go soon."""
    return sorted((each.at - NOW) / DAY for each in soon_deleted(source, list(source.find()), NOW))


def set_up(home: Path, **settings: Any) -> None:
    home.mkdir(exist_ok=True)
    (home / "settings.json").write_text(json.dumps({"apiKeyHelper": "x", **settings}))


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({}, [-10, 1, 7]),
        ({"cleanupPeriodDays": 22}, [-18, -7, -1, 1]),
        ({"cleanupPeriodDays": 3650}, []),
        ({"cleanupPeriodDays": "soon"}, [-10, 1, 7]),
    ],
)
def test_claude_deletes_what_was_not_written_to_for_so_many_days(
    tmp_path: Path, settings: dict[str, Any], left: list[float]
) -> None:
    set_up(tmp_path, **settings)
    for number, days in enumerate((0, 21, 23, 29, 40)):
        claude(tmp_path, number, days)
    assert doomed(ClaudeSource(tmp_path)) == left


def test_settings_that_cannot_be_read_are_as_if_there_were_none(tmp_path: Path) -> None:
    claude(tmp_path, 1, 29)
    (tmp_path / "settings.json").write_bytes(b"{torn")
    assert doomed(ClaudeSource(tmp_path)) == [1]


@pytest.mark.parametrize(
    ("retention", "left"),
    [
        ({}, [-10, 1, 7]),
        ({"enabled": False}, []),
        ({"maxAge": "1w"}, [-33, -22, -16, -14, 7, 7]),
        ({"maxAge": "often"}, []),
        ({"maxAge": "100d", "maxCount": 3}, [0, 0, 0]),
        ({"maxAge": None, "maxCount": 50}, []),
    ],
)
def test_gemini_deletes_what_is_too_old_or_too_much_in_its_project(
    tmp_path: Path, retention: dict[str, Any], left: list[float]
) -> None:
    set_up(tmp_path, general={"sessionRetention": retention})
    for number, days in enumerate((0, 21, 23, 29, 40)):
        gemini(tmp_path, number, days)
    gemini(tmp_path, 100, 0)
    assert doomed(GeminiSource(tmp_path)) == left


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ('{// "general": {},\n"general": {"sessionRetention": /* not "any" more */ {"enabled": false}}}', []),
        ('{"a": "// \\" /*", "general": {"sessionRetention": {"enabled": false}}} // "', []),
        ('{"general": {"sessionRetention": {"maxAge": "24d"}}} /* no end', [-5]),
        ('{"general": {"sessionRetention": {"maxAge": "24d"}}, "torn": "no end /*', [1]),
    ],
)
def test_comments_in_geminis_settings_say_nothing(tmp_path: Path, said: str, left: list[float]) -> None:
    gemini(tmp_path, 1, 29)
    (tmp_path / "settings.json").write_text(said)
    assert doomed(GeminiSource(tmp_path)) == left


def test_agents_that_delete_nothing_by_themselves_are_not_warned_of(tmp_path: Path) -> None:
    made = PiWriter()
    made.user("Hello")
    aged(made.save(tmp_path), 1_000)
    assert doomed(PiSource(tmp_path)) == []


def test_a_folder_that_cannot_be_read_is_not_taken_for_a_session(tmp_path: Path) -> None:
    projects = tmp_path / "projects"
    projects.symlink_to(projects)  # a way that leads nowhere, not even to "there is none"
    assert doomed(ClaudeSource(tmp_path)) == []
    gemini(tmp_path, 1, 29)
    chats = tmp_path / "tmp" / "project-1" / "chats"
    chats.parent.mkdir()
    chats.symlink_to(chats)
    assert doomed(GeminiSource(tmp_path)) == [1]


@pytest.fixture
async def sessions(tmp_path: Path) -> AsyncIterator[Sessions]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


async def test_those_that_are_kept_are_named_the_first_to_go_first(
    sessions: Sessions, tmp_path: Path
) -> None:
    source = ClaudeSource(tmp_path / "claude")
    later, first = (claude(source.home, number, days) for number, days in ((1, 24), (2, 29)))
    deleted = claude(source.home, 3, 29)
    claude(source.home, 4, 0)
    ledger = Ledger(tmp_path / "ledger.db")
    try:
        assert await expiring(sessions, LOCAL, ledger, [source], list(source.find()), NOW) == ()
        await Sync(sessions, LOCAL, ledger).run([source], source.find())
        await sessions.delete(LOCAL, deleted)
        told = await expiring(sessions, LOCAL, ledger, [source], list(source.find()), NOW)
    finally:
        ledger.close()
    assert told == (
        Expiring(session=first, source="claude", title="Question 2", at=NOW + DAY),
        Expiring(session=later, source="claude", title="Question 1", at=NOW + 6 * DAY),
    )
    assert all(each.at <= NOW + SOON for each in told)
