"""Noticing changes where sources lie, and in the files beside them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import cast

from hitherto.sources.codex.source import CodexSource
from hitherto.sources.sync.watch import changes_of
from tests.sources.codex.codex_files import SESSION, CodexWriter, name_threads
from tests.support.waits import arrives


async def test_a_new_name_in_codexs_database_is_a_change(tmp_path: Path) -> None:
    path = CodexWriter().talk("one").save(tmp_path)
    name_threads(tmp_path, {SESSION: "Engine"})
    source = CodexSource(tmp_path)
    noticed = cast("AsyncGenerator[None, None]", changes_of(source.folders(), source.beside))
    async with aclosing(noticed):
        for _ in ("at the beginning", "when it is watched"):
            await arrives(anext(noticed), "the change to be noticed")
        name_threads(tmp_path, {SESSION: "Barn"})
        await arrives(anext(noticed), "the change to be noticed")
        (tmp_path / "session_index.jsonl").write_text("{}")
        await arrives(anext(noticed), "the change to be noticed")
        with path.open("ab") as file:
            file.write(b"{}\n")
        await arrives(anext(noticed), "the change to be noticed")


def test_of_the_files_in_codexs_folder_only_those_that_tell_of_names_are_watched(tmp_path: Path) -> None:
    watched = {"state_5.sqlite", "state_5.sqlite-wal", "state_12.sqlite", "session_index.jsonl"}
    for name in (*watched, "logs_1.sqlite", "auth.json", "history.jsonl", "state_5.sqlite-shm"):
        (tmp_path / name).write_text("x")
    assert {path.name for path in CodexSource(tmp_path).beside()} == watched
    assert list(CodexSource(tmp_path / "nowhere").beside()) == []
