"""Entries are replayed from the bytes they are stored as, in pieces; what comes out must be what the values say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.acp.protocol.entry_bytes import read_page, read_stored
from hitherto.acp.protocol.initialize import Client
from hitherto.acp.protocol.updates import CHUNKS, INTERRUPTED, Renderer
from hitherto.model import ROLES, Entry, Json, Part, Text, Thought, ToolCall, ToolResult, encode

SESSION = 'a "session"'
# Half a surrogate pair, quotes, controls and everything else.
WORDS = st.text(max_size=12) | st.text(st.characters(categories=["Cs", "Cc", "Po", "So"]), max_size=4)
IDS = st.sampled_from(["t1", "t2", 't"3'])
JSON = st.none() | st.integers() | WORDS | st.dictionaries(WORDS, st.integers() | WORDS, max_size=2)


def says() -> st.SearchStrategy[Part]:
    texts = st.builds(Text, text=WORDS)
    thoughts = st.builds(Thought, text=WORDS, signature=st.none() | WORDS)
    calls = st.builds(ToolCall, id=IDS, name=WORDS, input=JSON, kind=st.sampled_from([None, "read", "odd"]))
    results = st.builds(
        ToolResult, id=IDS, content=st.tuples(texts) | st.just(()), is_error=st.booleans(), output=JSON
    )
    return st.one_of(texts, texts, thoughts, calls, results)


ENTRIES = st.builds(
    Entry,
    id=st.uuids().map(str) | WORDS,
    at=st.integers(-5, 1 << 43),
    role=st.sampled_from(ROLES),
    parts=st.lists(says(), max_size=3).map(tuple),
    model=st.none() | WORDS,
    meta=st.sampled_from([{}, {"meta": True}, {"meta": "x"}, {"compact_summary": True}]),
)


@settings(max_examples=150)
@given(st.lists(ENTRIES, max_size=4), st.booleans())
def test_the_lines_of_entries_are_what_their_values_say(entries: list[Entry], marked: bool) -> None:
    lines: list[bytes] = []
    renderer = Renderer(SESSION, Client())
    payloads = [encode(entry) for entry in entries]
    marks = range(len(entries)) if marked else ()
    renderer.entries(read_page(payloads), lines, marks=marks)
    told = [json.loads(line) for line in b"".join(lines).splitlines(keepends=True)]
    assert [message["params"]["update"] for message in told] == ([] if marked else list(updates(entries)))
    assert all(message["params"]["sessionId"] == SESSION for message in told)
    assert read_page(payloads) == [read_stored(payload) for payload in payloads]


def test_each_change_of_an_edit_is_shown_in_the_file_that_it_is_made_in() -> None:
    edits = [
        {"path": "/p/a.py", "old_string": "1", "new_string": "2"},
        {"path": "b.py", "old_string": "", "new_string": "3"},
        {"path": "c.py", "old": "4", "new": "5"},
        {"old_string": "6", "new_string": "7"},
        "no edit",
    ]
    places = ({"path": "/p/a.py"}, {"path": "/p/sub/b.py"})
    call = ToolCall(
        id="t", name="patch", kind="edit", input={"path": "/p/a.py", "edits": edits}, locations=places
    )
    lines: list[bytes] = []
    entry = Entry(id="e", at=0, role="assistant", parts=(call,))
    Renderer(SESSION, Client()).entries(read_page([encode(entry)]), lines)
    shown = json.loads(b"".join(lines))["params"]["update"]["content"]
    assert [(diff["path"], diff["newText"]) for diff in shown] == [
        ("/p/a.py", "2"),
        ("/p/sub/b.py", "3"),
        ("c.py", "5"),
        ("/p/a.py", "7"),
    ]


def updates(entries: Sequence[Entry]) -> Iterator[Json]:
    """What a client is told, from values alone."""
    running: dict[str, None] = {}
    for entry in entries:
        if entry.meta in ({"meta": True}, {"compact_summary": True}):
            continue
        if entry.role == "user":
            yield from (ended(call, "failed", INTERRUPTED) for call in running)
            running.clear()
        for part in entry.parts:
            if isinstance(part, ToolCall):
                running[part.id] = None
            elif isinstance(part, ToolResult):
                running.pop(part.id, None)
            yield {**update(entry, part), "_meta": {"hitherto/at": stamp(entry.at)}}


def update(entry: Entry, part: Part) -> Json:
    match part:
        case Text() | Thought():
            kind = CHUNKS[entry.role] if isinstance(part, Text) else "agent_thought_chunk"
            return {"sessionUpdate": kind, "messageId": mended(entry.id), "content": block(part.text)}
        case ToolCall():
            return {
                "sessionUpdate": "tool_call",
                "toolCallId": part.id,
                "title": mended(part.title or part.name),
                "name": mended(part.name),
                "kind": "read" if part.kind == "read" else "other",
                "status": "pending",
                **({} if part.input is None else {"rawInput": plain(part.input)}),
            }
        case ToolResult():
            said = part.content[0].text if part.content and isinstance(part.content[0], Text) else None
            output = {} if part.output is None else {"rawOutput": plain(part.output)}
            return {**ended(part.id, "failed" if part.is_error else "completed", said), **output}
    raise AssertionError(part)


def ended(call: str, status: str, said: str | None) -> Json:
    shown = {} if said is None else {"content": [{"type": "content", "content": block(said)}]}
    return {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, **shown}


def block(text: str) -> Json:
    return {"type": "text", "text": mended(text)}


def plain(value: object) -> object:
    return json.loads(mended(json.dumps(value, ensure_ascii=False)))


def mended(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def stamp(ms: int) -> str:
    return datetime.fromtimestamp(max(ms, 0) / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
