"""What a user sees who is asked about an edit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitherto.engine import Event, Message, Turn
from hitherto.engines.tools.edit_file import EditFile, WriteFile
from hitherto.model import ToolCall
from tests.acp.agent.in_process import Json, serving
from tests.support.scripted_engine import Scripted

QUESTION = "session/request_permission"


async def asked_about(
    folder: Path, name: str, given: Any, place: str, content: str | None = None
) -> list[Json]:
    """The diffs of the question about a call. If `content` is given, it is what the editor has."""
    call = ToolCall(
        id="c", name=name, kind="edit", input=msgspec.to_builtins(given), locations=({"path": place},)
    )

    async def edits(turn: Turn) -> AsyncIterator[Event]:
        yield Message(parts=(call,))
        await turn.permit(call)

    able: Json = {} if content is None else {"fs": {"readTextFile": True}}
    async with serving(Scripted(edits), capabilities=able) as (line, _):
        made = await line.call("session/new", cwd=str(folder), mcpServers=[])
        prompt = [{"type": "text", "text": "Go"}]
        turn = line.begin("session/prompt", sessionId=made["sessionId"], prompt=prompt)
        if content is not None:
            at = await line.until(lambda message: message.get("method") == "fs/read_text_file")
            line.say(id=line.seen[at]["id"], result={"content": content})
        question = line.seen[await line.until(lambda message: message.get("method") == QUESTION)]
        line.say(id=question["id"], result={"outcome": {"outcome": "cancelled"}})
        await line.answer(turn)
    found: list[Json] = question["params"]["toolCall"].get("content", [])
    return found


async def test_an_edit_of_our_own_tool_is_shown_with_an_absolute_path(tmp_path: Path) -> None:
    place = str(tmp_path / "a.txt")
    given = EditFile(path="a.txt", old="one", new="two")
    (diff,) = await asked_about(tmp_path, "edit_file", given, place)
    assert diff == {"type": "diff", "path": place, "oldText": "one", "newText": "two"}


@pytest.mark.parametrize(
    ("there", "unsaved", "old"),
    [(None, None, None), ("before", None, "before"), ("before", "not saved yet", "not saved yet")],
)
async def test_a_file_that_would_be_replaced_is_shown_as_it_is_and_not_as_new(
    tmp_path: Path, there: str | None, unsaved: str | None, old: str | None
) -> None:
    path = tmp_path / "a.txt"
    if there is not None:
        path.write_text(there)
    (diff,) = await asked_about(
        tmp_path, "write_file", WriteFile(path="a.txt", content="after"), str(path), unsaved
    )
    assert diff == {"type": "diff", "path": str(path), "oldText": old, "newText": "after"}


async def test_nothing_outside_of_the_folders_is_read_for_a_question(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "work").mkdir()
    place = str(tmp_path / "secret")
    given = WriteFile(path=place, content="after")
    (diff,) = await asked_about(tmp_path / "work", "write_file", given, place)
    assert diff["oldText"] is None
