"""Settings: what the environment says, checked where it is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hitherto
from hitherto.errors import InvalidInput
from hitherto.remote.address import parse_address, token_for
from hitherto.settings import ROOT, WRITTEN_BY_OTHERS, own_folder, read_settings
from hitherto.values.keys import DmScope


def test_unset_and_empty_settings_are_the_defaults() -> None:
    names = ("HITHERTO_COMPACT_AT", "HITHERTO_COMPACT_KEEP_TOKENS", "HITHERTO_DM_SCOPE", "HITHERTO_RESET")
    for environ in ({}, dict.fromkeys(names, "")):
        found = read_settings(environ)
        assert (found.compact_at, found.compact_keep_tokens, found.reset) == (0.8, 20_000, "")
        assert found.dm_scopes.default is DmScope.PER_PEER


@pytest.mark.parametrize(("text", "share"), [("0.5", 0.5), ("80%", 0.8), (" 1 ", 1.0), ("12.5%", 0.125)])
def test_a_share_is_a_number_or_a_percentage(text: str, share: float) -> None:
    assert read_settings({"HITHERTO_COMPACT_AT": text}).compact_at == share


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1500", 1500), ("500 MB", 500_000_000), ("2gb", 2 * 10**9), ("1.5k", 1500), ("", 2 * 10**9)],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, size: int) -> None:
    assert read_settings({"HITHERTO_RAW_BUDGET": text}).raw_budget == size


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("HITHERTO_COMPACT_AT", text) for text in ("0", "1.1", "-1", "80", "nan", "inf", "x", "%")),
        *(("HITHERTO_COMPACT_KEEP_TOKENS", text) for text in ("0", "-5", "1.5", "many", "٣", "9" * 30)),
        *(("HITHERTO_WINDOWS", text) for text in ("32768", "=5", "a:b=", "a:b=0", "a:b=-1", "a=5, b=many")),
        *(("HITHERTO_RAW_BUDGET", text) for text in ("-1", "2 XB", "GB", "1e9", "٣", "9" * 20, "9999999 TB")),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        read_settings({name: text})


def test_the_windows_of_models_are_set_one_by_one() -> None:
    found = read_settings({"HITHERTO_WINDOWS": "ollama:qwen3:8b=32768, gpt-5=400k\nlocal=1_000"})
    assert found.windows == (("ollama:qwen3:8b", 32_768), ("gpt-5", 400_000), ("local", 1_000))


def test_scopes_of_direct_messages_are_read_when_they_are_asked_for() -> None:
    found = read_settings({"HITHERTO_DM_SCOPE": "main, channel:irc=per-channel-peer"})
    assert found.dm_scopes.holding("a", "irc")[0] is DmScope.PER_CHANNEL_PEER
    assert found.dm_scopes.holding("a", "xmpp")[0] is DmScope.MAIN
    wrong = read_settings({"HITHERTO_DM_SCOPE": "everybody"})
    with pytest.raises(InvalidInput):
        wrong.dm_scopes  # noqa: B018 - asking is what is refused


async def test_sessions_are_compacted_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITHERTO_COMPACT_AT", "0.6")
    monkeypatch.setenv("HITHERTO_COMPACT_KEEP_TOKENS", "1_500")
    async with hitherto.open("memory:settings", ephemeral=True) as sessions:
        passing = sessions.at("agent:a:ephemeral:00000000-0000-4000-8000-000000000000")
        for each in (sessions, passing):
            assert (each.core.compaction.at, each.core.compaction.kept_tokens) == (0.6, 1_500)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o720, 0o1777, 0o2770], ids=oct)
async def test_a_data_folder_that_others_can_write_to_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    folder = tmp_path / "my data"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.delenv("HITHERTO_STORE", raising=False)
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(folder))
    with pytest.raises(InvalidInput, match=f"chmod 700 '{folder}'"):
        async with hitherto.open():
            pass
    with pytest.raises(InvalidInput, match="chmod 700"):
        token_for(parse_address("http://127.0.0.1:8787"))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755], ids=oct)
async def test_a_data_folder_that_others_can_at_most_read_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    os.chmod(tmp_path, mode)
    monkeypatch.delenv("HITHERTO_STORE", raising=False)
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path))
    async with hitherto.open():
        assert (tmp_path / "hitherto.db").stat().st_mode & 0o777 == 0o600


def test_a_data_folder_of_another_user_is_refused_and_roots_is_not(tmp_path: Path) -> None:
    if os.geteuid() == ROOT:
        os.chown(tmp_path, 1000, -1)  # what is root's is refused for nobody
    owner = tmp_path.stat().st_uid
    with pytest.raises(InvalidInput, match="belongs to another user"):
        own_folder(tmp_path, owner + 1)
    assert own_folder(tmp_path, owner) == own_folder(tmp_path, ROOT) == tmp_path
    assert own_folder(Path(os.sep, "usr"), owner + 1) == Path("/usr")


async def test_a_store_that_is_named_may_lie_where_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(tmp_path, 0o700 | WRITTEN_BY_OTHERS)
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path))
    async with hitherto.open(f"sqlite:///{tmp_path / 'shared.db'}"):
        assert (tmp_path / "shared.db").exists()
