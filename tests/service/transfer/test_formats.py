"""Files in every format: what is in them, what is not, and what comes back from those that can be read."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.exports import FORMATS
from hitherto.model import Draft, Fact, Image, Principal, Session, Text, ToolCall, ToolResult
from hitherto.service import Sessions
from hitherto.service.transfer import export
from hitherto.service.transfer.export import PAGE
from hitherto.values.titles import TITLE_WIDTH
from tests.service.history.test_entries import EVERY_PART
from tests.service.transfer.test_export import rich_session
from tests.support.conversations import everything, exported, filed, said, say, started, talk
from tests.support.homes import Clock, MemoryHome, PostgresHome, SqliteHome
from tests.support.worlds import Worlds

PAGE_BYTES = 60_000
SECRET = "ghp_" + "a1B2c3D4e5" * 4
LONG_SECRET = "adafruit_api_key=" + "dj5PD92T2I-A_V4oBU4SlhsFmuNQS8yy"
"""Less than all of it is not recognised."""
ANOTHER = "AKIA" + "Q2W3E4R5T6Y7U2I3"
READABLE = [name for name, format in FORMATS.items() if format.for_reading]
RESTORABLE = [name for name in FORMATS if name not in READABLE]


@pytest.mark.parametrize("format", RESTORABLE)
async def test_a_raw_file_is_imported_to_an_equal_session(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock, format: str
) -> None:
    session = await rich_session(sessions, ann, clock)
    file = await filed(reader, ann, session.id, format, raw=True)
    clock.advance(1_000_000)
    assert await sessions.import_(bob, file.split(b"\n")) == session
    assert await exported(reader, bob, session.id) == await exported(reader, ann, session.id)
    if format == "jsonl":
        assert file.split(b"\n")[:-1] == await exported(reader, ann, session.id)


async def test_a_document_that_another_program_wrote_again_is_imported_to_an_equal_session(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    session = await rich_session(sessions, ann, clock)
    document = json.loads(await filed(reader, ann, session.id, raw=True))
    lines = await exported(reader, ann, session.id)
    for text in (
        json.dumps(document),
        json.dumps(document, separators=(",", ":")),
        json.dumps(document, indent=2),
        json.dumps({**document, "odd": "\ue000"}, indent=2).replace("\\ue000", "\\uE000"),
    ):
        await sessions.import_(bob, text.encode().split(b"\n"), include_deleted=True)
        assert await exported(reader, bob, session.id) == lines
        await sessions.delete(bob, session.id)


ODD = [
    "",
    "\0",
    "a\ud800b",
    "漢字 😀",
    "[Compacted summary from 2025-06-01]",
    "```\n# x",
    '{"entry":{}}',
    "x" * 99,
]
a_text = st.one_of(st.sampled_from(ODD), st.text(max_size=12))
a_part = st.one_of(a_text.map(lambda text: Text(text=text)), st.sampled_from(EVERY_PART))
a_draft = st.builds(
    Draft,
    role=st.sampled_from(["user", "assistant", "system", "tool"]),
    parts=st.lists(a_part, max_size=3).map(tuple),
    tokens=st.sampled_from([None, 0, 7]),
    meta=st.dictionaries(a_text.filter(lambda name: name != "erased"), a_text, max_size=2),
)
a_step = st.one_of(
    st.tuples(st.just("append"), st.lists(a_draft, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["compact", "rewind", "erase", "fork", "rename", "fact"]), st.integers(0, 5)),
)


async def _lived(sessions: Sessions, who: Principal, steps: list[tuple[str, Any]]) -> Session:
    """A session to which all of this has happened."""
    session = await sessions.create(who, title="T", cwd="/x", tags=["t"], key="k", meta={"m": "\ud800"})
    await sessions.append(who, session.id, say("first"))
    for what, how in steps:
        session = await _happened(sessions, who, session, what, how)
    return await sessions.get(who, session.id)


async def _happened(sessions: Sessions, who: Principal, session: Session, what: str, how: Any) -> Session:
    page = await sessions.history(who, session.id, limit=1_000)
    entry = page.entries[how % len(page.entries)].id if isinstance(how, int) and page.entries else None
    match what, entry:
        case "append", _:
            await sessions.append(who, session.id, how)
        case "rename", _:
            await sessions.rename(who, session.id, f"T{how}")
        case "fact", _:
            await sessions.memory.add(who, [Fact(id=f"f{how}", at=how, text="\0", session=session.id)])
        case "compact", str():
            await sessions.compact(who, session.id, say("S", "system"), keep=how)
        case "rewind", str(entry):
            await sessions.rewind(who, session.id, entry)
        case "erase", str(entry):
            await sessions.erase(who, session.id, entry)
        case "fork", str(entry):
            return await sessions.fork(who, session.id, at=entry)
    return session


@pytest.fixture
def worlds(tmp_path: Path, postgres_database: PostgresHome) -> Iterator[Worlds]:
    postgres_database.empty()
    with Worlds([MemoryHome(), SqliteHome(tmp_path), postgres_database]) as opened:
        yield opened


def test_whatever_has_happened_to_a_session_its_raw_files_bring_it_back(worlds: Worlds) -> None:
    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.lists(a_step, max_size=8))
    def brings_back(steps: list[tuple[str, Any]]) -> None:
        ann, bob = worlds.begin()
        session = worlds.agree(lambda s: _lived(s, ann, steps))
        lines = worlds.agree(lambda s: exported(s, ann, session.id))
        for format in RESTORABLE:
            file = worlds.agree(partial(filed, who=ann, session_id=session.id, format=format, raw=True))
            given_lines = file.split(b"\n")
            made = worlds.agree(partial(Sessions.import_, who=bob, lines=given_lines, include_deleted=True))
            assert made == replace(session, read_at=None)
            assert worlds.agree(lambda s: exported(s, bob, session.id)) == lines
            assert worlds.agree(partial(already_there, who=bob, lines=given_lines)) == made
            worlds.agree(lambda s: s.delete(bob, session.id))

    brings_back()


async def already_there(sessions: Sessions, who: Principal, lines: list[bytes]) -> Session | None:
    return await sessions.transfer.already_there(who, lines)


async def test_a_document_has_the_shape_that_programs_know(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann, key="agent:main:main", agent_id="main")
    call = ToolCall(id="c1", name="bash", input={"command": "ls"})
    result = ToolResult(id="c1", content=(Text(text="a.txt"),))
    await sessions.append(
        ann,
        session.id,
        [
            say("What is here?", tokens=5),
            Draft(role="assistant", parts=(Text(text="Let me"), Text(text="look."), call), tokens=7),
            Draft(role="tool", parts=(result,)),
        ],
    )
    at, now = clock.now, clock.advance()
    document = json.loads(await filed(reader, ann, session.id))
    del document["hitherto"]
    assert document == {
        "session_key": "agent:main:main",
        "agent_id": "main",
        "messages": [
            {"role": "user", "content": "What is here?", "timestamp": at},
            {
                "role": "assistant",
                "content": "Let me\nlook.",
                "timestamp": at,
                "tool_calls": [{"id": "c1", "name": "bash", "input": {"command": "ls"}}],
            },
            {"role": "tool", "content": "a.txt", "timestamp": at},
        ],
        "metadata": {"created_at": session.created_at, "message_count": 3, "token_count": 12},
        "exported_at": now,
    }
    bare = await sessions.create(ann)
    empty = json.loads(await filed(reader, ann, bare.id))
    assert (empty["session_key"], empty["messages"], empty["metadata"]["message_count"]) == (bare.id, [], 0)


async def secretive(sessions: Sessions, who: Principal) -> Session:
    """A session with secrets in every place that can hold one."""
    session = await sessions.create(who, title=f"Use {SECRET}", meta={"note": SECRET})
    drafts = [
        say(f"my key is {SECRET}, and again {SECRET}", id="e1"),
        say("nothing here", "assistant", id="e2"),
        Draft(role="assistant", id="e3", parts=(ToolCall(id="c", name="x", input={"env": [ANOTHER]}),)),
        Draft(
            role="tool",
            id="e4",
            parts=(ToolResult(id="c", output={"password": "hunter2"}),),
            meta={"k": SECRET},
        ),
    ]
    await sessions.append(who, session.id, drafts)
    await sessions.compact(who, session.id, say(f"He has {SECRET}", "system", id="e5"), keep=1)
    await sessions.memory.add(who, [Fact(id="f", at=1, text=f"key: {SECRET}", session=session.id)])
    await sessions.transfer.keep_raw(who, session.id, "raw.jsonl", SECRET.encode())
    return await sessions.get(who, session.id)


@pytest.mark.parametrize("format", FORMATS)
async def test_no_secret_leaves_unless_the_file_is_to_be_raw(
    sessions: Sessions, reader: Sessions, ann: Principal, format: str
) -> None:
    session = await secretive(sessions, ann)
    before = await everything(reader, ann)
    file = await filed(reader, ann, session.id, format)
    for secret in (SECRET, ANOTHER, "hunter2"):
        assert secret.encode() not in file
    assert b"[redacted: github token]" in file
    assert SECRET.encode() in await filed(reader, ann, session.id, format, raw=True)
    assert await everything(reader, ann) == before


async def test_no_beginning_of_a_secret_leaves_in_a_title_that_breaks_off_in_it(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, say(f"{'h' * (TITLE_WIDTH // 2 - 4)} {LONG_SECRET}"))
    title = (await reader.get(ann, session.id)).title or ""
    beginning = title.removesuffix("…").rpartition(" ")[2]
    assert LONG_SECRET.startswith(beginning)
    for format in FORMATS:
        assert beginning.encode() not in await filed(reader, ann, session.id, format)
    assert beginning.encode() in await filed(reader, ann, session.id, "jsonl", raw=True)


async def test_no_secret_leaves_in_a_folder_a_kind_or_an_id_and_what_belongs_together_still_does(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd=f"/srv/{SECRET}", additional_directories=[f"/{ANOTHER}"])
    drafts = [
        Draft(role="user", id=f"m-{SECRET}", parts=(Image(mime_type=f"image/{SECRET}", data="aGk="),)),
        Draft(role="assistant", id=f"n-{ANOTHER}", parts=(ToolCall(id=f"c-{SECRET}", name="x"),)),
        Draft(role="tool", parts=(ToolResult(id=f"c-{SECRET}", content=(Text(text="done"),)),)),
    ]
    await sessions.append(ann, session.id, drafts)
    fact = Fact(id="f", at=1, text="x", session=session.id, entries=(f"m-{SECRET}",), cwd=f"/{SECRET}")
    await sessions.memory.add(ann, [fact])
    file = await filed(reader, ann, session.id, "jsonl")
    assert not [secret for secret in (SECRET, ANOTHER) if secret.encode() in file]
    lines = [json.loads(line) for line in file.splitlines()]
    entries = [line["entry"] for line in lines if "entry" in line]
    assert len({entry["id"] for entry in entries}) == 3
    assert entries[1]["parts"][0]["id"] == entries[2]["parts"][0]["id"]
    (fact_line,) = (line["fact"] for line in lines if "fact" in line)
    assert fact_line["entries"] == [entries[0]["id"]]


async def test_every_replacement_is_listed_with_its_kind_and_its_place(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await secretive(sessions, ann)
    expected = [
        {"kind": "github token", "count": 2, "where": "session"},
        {"kind": "github token", "count": 1, "where": "facts"},
        {"kind": "raw copy", "count": 1, "where": "raw copies"},
        {"kind": "github token", "count": 2, "entry": "e1"},
        {"kind": "aws key", "count": 1, "entry": "e3"},
        {"kind": "github token", "count": 1, "entry": "e4"},
        {"kind": "named secret", "count": 1, "entry": "e4"},
        {"kind": "github token", "count": 1, "entry": "e5"},
    ]

    def listed(last: Any) -> list[Any]:
        return sorted(last["redacted"], key=lambda each: json.dumps(each, sort_keys=True))

    lines = (await filed(reader, ann, session.id, "jsonl")).splitlines()
    document = json.loads(await filed(reader, ann, session.id, "json"))
    in_order = sorted(expected, key=lambda each: json.dumps(each, sort_keys=True))
    assert listed(json.loads(lines[-1])) == listed(document["hitherto"]["lines"][-1]) == in_order
    for format in READABLE:
        text = (await filed(reader, ann, session.id, format)).decode().replace("\\", "")
        for row in ("github token: 2 in entry e1", "aws key: 1 in entry e3", "github token: 2 in session"):
            assert row in text


@pytest.mark.parametrize("format", RESTORABLE)
async def test_a_file_without_secrets_comes_back_with_everything_else(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, format: str
) -> None:
    session = await secretive(sessions, ann)
    file = await filed(reader, ann, session.id, format)
    copy = await sessions.import_(bob, file.split(b"\n"))
    assert (copy.id, copy.message_count) == (session.id, session.message_count)
    for view in ("context", "conversation"):
        theirs = await reader.history(bob, session.id, view=view)
        ours = await reader.history(ann, session.id, view=view)
        assert [(each.id, each.role) for each in theirs.entries] == [
            (each.id, each.role) for each in ours.entries
        ]
        assert theirs.marks == ours.marks
    assert await reader.transfer.raw(bob, session.id) == []
    assert (await reader.admin.check(repair=False)).problems == ()


@pytest.mark.parametrize("format", [*READABLE, "json"])
async def test_a_file_tells_all_that_was_said_in_order_with_summaries_in_their_place(
    sessions: Sessions, reader: Sessions, ann: Principal, format: str
) -> None:
    texts = [f"message {number}." for number in range(PAGE * 2 + 7)]
    session = await sessions.create(ann, title="Long")
    await sessions.append(ann, session.id, [say(text) for text in texts])
    await sessions.compact(ann, session.id, say("in short.", "system"), keep=2)
    await talk(sessions, ann, session.id, "afterwards.")
    file = (await filed(reader, ann, session.id, format)).decode()
    shown = file.partition('"hitherto":')[0].partition("<nav")[0]  # the outline repeats the prompts
    order = [*texts, "in short.", "afterwards."]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)
    assert [shown.count(text) for text in order] == [1] * len(order)
    assert ("Summary of earlier messages" in shown) is (format in READABLE)


@pytest.mark.parametrize("format", FORMATS)
async def test_what_is_said_while_a_file_is_written_is_not_in_it(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, format: str
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, [say(f"message {number}") for number in range(PAGE + 3)])
    settled = await sessions.get(ann, session.id)
    pieces = []
    async for piece in reader.transfer.export_file(ann, session.id, format, raw=True):
        pieces.append(piece)
        await talk(sessions, ann, session.id, "too late") if len(pieces) == 2 else None
    file = b"".join(pieces)
    assert b"too late" not in file
    assert f"message {PAGE + 2}".encode() in file
    if format in RESTORABLE:
        assert await sessions.import_(bob, file.split(b"\n")) == settled


@pytest.mark.parametrize("format", FORMATS)
async def test_the_file_of_a_session_that_is_deleted_meanwhile_is_not_finished(
    sessions: Sessions, reader: Sessions, ann: Principal, format: str
) -> None:
    session, _ = await started(sessions, ann, "a", "b")
    writing = reader.transfer.export_file(ann, session.id, format)
    await anext(writing)
    await sessions.delete(ann, session.id)
    with pytest.raises(SessionNotFound):
        async for _ in writing:
            pass


def _copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


@pytest.mark.parametrize("format", FORMATS)
async def test_a_file_whose_pages_are_made_elsewhere_is_the_same(
    sessions: Sessions, ann: Principal, clock: Clock, format: str
) -> None:
    session = await rich_session(sessions, ann, clock)
    await sessions.append(ann, session.id, [say(f"{SECRET} {number}") for number in range(PAGE + 1)])

    async def elsewhere(*work: Any) -> Any:
        function, *given = _copied(work)
        return _copied(function(*given))

    transfer = sessions.transfer
    made = [piece async for piece in transfer.export_file(ann, session.id, format, beside=elsewhere)]
    assert b"".join(made) == await filed(sessions, ann, session.id, format)
    seen = await transfer.review(ann, session.id, format, beside=elsewhere)
    assert seen == await transfer.review(ann, session.id, format)


async def test_the_pages_of_a_file_are_bounded_in_bytes(
    sessions: Sessions, reader: Sessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PAGE_BYTES", PAGE_BYTES)
    session = await sessions.create(ann)
    large = [say("x" * (PAGE_BYTES // 3)) for _ in range(7)]
    await sessions.append(ann, session.id, [*large, say("y" * (2 * PAGE_BYTES)), say("z")])
    pages: list[list[bytes]] = []

    async def noting(function: Any, writer: Any, page: Any, redactor: Any) -> Any:
        pages.append(page.payloads)
        return function(writer, page, redactor)

    files = reader.transfer.export_file(ann, session.id, "markdown", beside=noting)
    made = [piece async for piece in files]
    assert b"z" in b"".join(made)
    assert sum(map(len, pages)) == 9
    assert all(len(page) == 1 or sum(map(len, page)) <= PAGE_BYTES for page in pages)


async def test_a_format_that_is_none_is_refused(sessions: Sessions, ann: Principal) -> None:
    session, _ = await started(sessions, ann, "a")
    with pytest.raises(InvalidInput, match="json, jsonl, markdown, html"):
        await filed(sessions, ann, session.id, "pdf")


async def test_every_file_can_be_made_of_a_session_that_has_one_of_everything(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await rich_session(sessions, ann, clock)
    for format in FORMATS:
        for raw in (False, True):
            text = (await filed(reader, ann, session.id, format, raw=raw)).decode()
            assert "secret to be erased" not in text
    assert said(await reader.history(ann, session.id))


@pytest.mark.parametrize("format", FORMATS)
async def test_a_review_tells_what_the_file_would_replace_and_shows_it_replaced(
    sessions: Sessions, reader: Sessions, ann: Principal, format: str
) -> None:
    session = await secretive(sessions, ann)
    before = await everything(reader, ann)
    seen = await reader.transfer.review(ann, session.id, format)
    file = await filed(reader, ann, session.id, format)
    assert seen.size == len(file)
    places = {each.entry for each in seen.replaced if each.entry is not None}
    assert {entry.id for entry in seen.entries} == places >= {"e1", "e3", "e4"}
    assert SECRET not in repr(seen)
    assert "[redacted: github token]" in repr(seen.entries)
    assert len((await reader.transfer.review(ann, session.id, format, limit=1)).entries) == 1
    assert await everything(reader, ann) == before
