"""A record whose values are of other types than they should be is at worst strange: it stops no sync, and loses no other."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hitherto.model import Json, encode
from hitherto.service.validation import checked_entry
from hitherto.sources import AGENTS
from hitherto.sources.port import Source
from tests.sources.claude.random_transcripts import random_transcript
from tests.sources.codex.codex_files import CodexWriter
from tests.sources.damage import WRITTEN
from tests.sources.gemini.gemini_files import GeminiWriter, call
from tests.sources.goose.goose_files import GooseWriter, request, response
from tests.sources.opencode.opencode_files import OpencodeWriter, text, tool
from tests.sources.pi.pi_files import PiWriter

KINDS = ("type", "role", "status")
OTHERS: tuple[Any, ...] = ([], {}, [{"type": []}], "\ud800", 10**30, True, None)


def codex() -> list[Json]:
    made = CodexWriter()
    made.user("One")
    made.think("Hm")
    made.run("c1", "ls", "out")
    made.patch("c2", "a.py", "1", "2")
    made.call("c3", "update_plan", plan=[{"step": "x", "status": "pending"}])
    made.event("mcp_tool_call_end", call_id="c4", invocation={"server": "s", "tool": "t"}, result={"Ok": {}})
    made.used()
    return made.records


def gemini() -> list[Json]:
    made = GeminiWriter()
    made.user("One")
    thoughts = [{"subject": "s", "description": "d", "timestamp": "2026-11-01T10:00:00Z"}]
    made.say("Two", thoughts=thoughts, toolCalls=[call("run_shell_command", {"command": "ls"})])
    made.rewind(made.user("Three"))
    made.set(summary="Sum", messages=[{"id": "z", "type": "user", "content": "s"}])
    return made.records


def pi() -> list[Json]:
    made = PiWriter()
    first = made.user("One")
    made.answer({"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}})
    result = {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "content": [text("o")]}
    made.add("message", message=result)
    made.add("compaction", summary="s", firstKeptEntryId=first, tokensBefore=1)
    made.add("custom_message", customType="c", content="x", display=True)
    return [json.loads(line) for line in made.data().splitlines()]


def claude() -> list[Json]:
    return [json.loads(line) for line in random_transcript(5, 25).splitlines()]


LINES: dict[str, tuple[str, Callable[[], list[Json]]]] = {
    "claude": ("claude", claude),
    "codex": ("codex-paginated", codex),
    "gemini": ("gemini", gemini),
    "pi": ("pi", pi),
}


def misshapen(record: Json) -> Iterator[Json]:
    """The record with one of its values, wherever it stands, of another type each time; of what tells the kind of
    something, of all types."""
    for number, place in enumerate(places(record)):
        others = (
            OTHERS
            if place[-1] in KINDS
            else (OTHERS[number % len(OTHERS)], OTHERS[(number + 1) % len(OTHERS)])
        )
        for other in others:
            changed = copy.deepcopy(record)
            holder: Any = changed
            for name in place[:-1]:
                holder = holder[name]
            holder[place[-1]] = other
            yield changed


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield (*at, name)
        yield from places(each, (*at, name))


def rows(*parts: Json) -> Iterator[list[Json]]:
    """These parts of a message, one of them misshapen."""
    for number, part in enumerate(parts):
        for changed in misshapen(part):
            yield [*parts[:number], changed, *parts[number + 1 :]]


def read_all(source: Source) -> None:
    """Read everything; what came of it can be kept."""
    for found in source.find():
        for entry in source.read(found, None).entries:
            encode(checked_entry(entry))


@pytest.mark.parametrize("agent", LINES)
def test_no_value_of_a_line_stops_the_reading_of_a_transcript(tmp_path: Path, agent: str) -> None:
    kind, make = LINES[agent]
    records, source = make(), WRITTEN[kind].source(tmp_path)
    for number, record in enumerate(records):
        for changed in misshapen(record):
            told = [*records[:number], changed, *records[number + 1 :]]
            WRITTEN[kind].save(tmp_path, 1, b"".join(json.dumps(each).encode() + b"\n" for each in told))
            read_all(source)


def test_no_value_of_a_row_stops_the_reading_of_a_database(tmp_path: Path) -> None:
    goose, opencode = GooseWriter(tmp_path / "goose"), OpencodeWriter(tmp_path / "opencode")
    goose.session()
    opencode.session()
    for blocks in rows(text("x"), request("shell", {"command": "ls"}), response("out")):
        for role in ("user", "assistant"):
            goose.message(role, *blocks)
            opencode.message(role, *blocks)
    for parts in rows(tool("bash", {"command": "ls"}), {"type": "reasoning", "text": "t"}):
        opencode.answer(*parts)
    said: Json = {"content": [{"type": "tool", "id": "c", "name": "bash", "state": {"status": "completed"}}]}
    for row in misshapen(said):
        opencode.row("assistant", **row)
        opencode.row("user", text=row["content"])
    read_all(AGENTS["goose"].at(tmp_path / "goose"))
    read_all(AGENTS["opencode"].at(tmp_path / "opencode"))
