"""Settings: what the environment says, checked where it is read."""

from __future__ import annotations

import pytest

import recollect
from recollect.errors import InvalidInput
from recollect.keys import DmScope
from recollect.settings import read_settings


def test_unset_and_empty_settings_are_the_defaults() -> None:
    names = ("RECOLLECT_COMPACT_AT", "RECOLLECT_COMPACT_KEEP_TOKENS", "RECOLLECT_DM_SCOPE", "RECOLLECT_RESET")
    for environ in ({}, dict.fromkeys(names, "")):
        found = read_settings(environ)
        assert (found.compact_at, found.compact_keep_tokens, found.reset) == (0.8, 20_000, "")
        assert found.dm_scopes.default is DmScope.PER_PEER


@pytest.mark.parametrize(("text", "share"), [("0.5", 0.5), ("80%", 0.8), (" 1 ", 1.0), ("12.5%", 0.125)])
def test_a_share_is_a_number_or_a_percentage(text: str, share: float) -> None:
    assert read_settings({"RECOLLECT_COMPACT_AT": text}).compact_at == share


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1500", 1500), ("500 MB", 500_000_000), ("2gb", 2 * 10**9), ("1.5k", 1500), ("", 2 * 10**9)],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, size: int) -> None:
    assert read_settings({"RECOLLECT_RAW_BUDGET": text}).raw_budget == size


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("RECOLLECT_COMPACT_AT", text) for text in ("0", "1.1", "-1", "80", "nan", "inf", "x", "%")),
        *(("RECOLLECT_COMPACT_KEEP_TOKENS", text) for text in ("0", "-5", "1.5", "many", "٣", "9" * 30)),
        *(
            ("RECOLLECT_RAW_BUDGET", text)
            for text in ("-1", "2 XB", "GB", "1e9", "٣", "9" * 20, "9999999 TB")
        ),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        read_settings({name: text})


def test_scopes_of_direct_messages_are_read_when_they_are_asked_for() -> None:
    found = read_settings({"RECOLLECT_DM_SCOPE": "main, channel:irc=per-channel-peer"})
    assert found.dm_scopes.holding("a", "irc")[0] is DmScope.PER_CHANNEL_PEER
    assert found.dm_scopes.holding("a", "xmpp")[0] is DmScope.MAIN
    wrong = read_settings({"RECOLLECT_DM_SCOPE": "everybody"})
    with pytest.raises(InvalidInput):
        wrong.dm_scopes  # noqa: B018 - asking is what is refused


async def test_sessions_are_compacted_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_COMPACT_AT", "0.6")
    monkeypatch.setenv("RECOLLECT_COMPACT_KEEP_TOKENS", "1_500")
    async with recollect.open("memory:settings", ephemeral=True) as sessions:
        passing = sessions.at("agent:a:ephemeral:00000000-0000-4000-8000-000000000000")
        for each in (sessions, passing):
            assert (each._compaction.at, each._compaction.kept_tokens) == (0.6, 1_500)
