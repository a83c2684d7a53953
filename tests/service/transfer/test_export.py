"""Exports that come back exactly, and imports that refuse what is no export."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitherto.errors import AlreadyExists, InvalidInput, SessionNotFound, TooLarge
from hitherto.limits import ENTRY_BYTES
from hitherto.model import Draft, Fact, Filter, Identity, Principal, Session, Usage
from hitherto.service import Sessions
from hitherto.values.words import parse_words
from tests.service.history.test_entries import EVERY_PART
from tests.support.conversations import everything, exported, finds, listed, say, started, talk, told
from tests.support.homes import Clock


async def rich_session(sessions: Sessions, who: Principal, clock: Clock) -> Session:
    """A session that has one of everything."""
    session = await sessions.create(
        who,
        cwd="/srv",
        title="Rich",
        tags=["a", "b"],
        key="agent:x:main",
        agent_id="x",
        channel="irc",
        identity=Identity(role="r", identity_id="i"),
        meta={"odd": "\ud800\0", "big": 2**70},
        additional_directories=["/lib"],
    )
    drafts = [
        say("lone \ud800 and \udfff", meta={"k": "\udead"}),
        say("nul \0 in the middle", tokens=3),
        Draft(role="assistant", parts=EVERY_PART, usage=Usage(input=1, cost=0.1), tokens=9, model="m"),
        say("secret to be erased", tokens=4),
    ]
    ids = (await sessions.append(who, session.id, drafts)).entries
    await sessions.rename(who, session.id, "Richer")
    clock.advance()
    await sessions.compact(who, session.id, say("S1", "system"), keep=2)
    more = await talk(sessions, who, session.id, *"ab")
    await sessions.rewind(who, session.id, more[0])
    await talk(sessions, who, session.id, "c")
    await sessions.compact(who, session.id, say("S2", "system"), keep=1)
    await sessions.erase(who, session.id, ids[3])
    await sessions.memory.add(
        who,
        [
            Fact(id="f1", at=1, text="One \0", session=session.id, entries=(ids[0],)),
            Fact(id="f2", at=2, text="Two", kind="preference", session=session.id),
        ],
    )
    await sessions.transfer.keep_raw(who, session.id, "raw.jsonl", bytes(range(256)))
    await sessions.archive(who, session.id)
    await sessions.pin(who, session.id)
    await sessions.catalog.set_status(who, session.id, "failed")
    return await sessions.get(who, session.id)


async def test_the_export_of_an_import_is_the_same_bytes(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    session = await rich_session(sessions, ann, clock)
    lines = await exported(reader, ann, session.id)
    clock.advance(1_000_000)
    imported = await sessions.import_(bob, lines)
    assert imported == session
    assert await reader.get(bob, session.id) == session
    assert await exported(reader, bob, session.id) == lines
    for view in ("context", "conversation"):
        theirs = await reader.history(bob, session.id, view=view, limit=1_000)
        ours = await reader.history(ann, session.id, view=view, limit=1_000)
        assert (theirs.raw, theirs.marks) == (ours.raw, ours.marks)
    assert await reader.checkpoints(bob, session.id) == await reader.checkpoints(ann, session.id)
    assert await reader.memory.facts(bob) == await reader.memory.facts(ann)
    assert await reader.transfer.raw(bob, session.id) == await reader.transfer.raw(ann, session.id)
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_a_deleted_session_comes_back_from_its_export(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await rich_session(sessions, ann, clock)
    lines = await exported(reader, ann, session.id)
    await sessions.delete(ann, session.id)
    await sessions.import_(ann, lines, include_deleted=True)
    assert await exported(reader, ann, session.id) == lines
    assert await finds(reader, ann, "middle") == [session.id]
    assert await finds(reader, ann, "richer") == [session.id]
    assert await finds(reader, ann, "erased") == []


async def test_every_line_of_an_export_is_json_and_names_no_number_of_the_store(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await rich_session(sessions, ann, clock)
    lines = await exported(reader, ann, session.id)
    head, *rest = [json.loads(line) for line in lines]
    assert (head["format"], head["version"], head["session"]["id"]) == ("hitherto-session", 1, session.id)
    assert "read_at" not in head["session"]
    assert sum("entry" in line for line in rest) == head["entries"]
    assert not any(b"\n" in line for line in lines)


async def test_an_imported_session_goes_on(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await rich_session(sessions, ann, clock)
    lines = await exported(reader, ann, session.id)
    await sessions.delete(ann, session.id)
    await sessions.import_(ann, lines, include_deleted=True)
    before = await told(reader, ann, session.id, "conversation")
    await talk(sessions, ann, session.id, "Going on")
    assert await told(reader, ann, session.id, "conversation") == [*before, "Going on"]
    checkpoints = await reader.checkpoints(ann, session.id)
    await sessions.restore(ann, session.id, checkpoints[0].id, since=True)
    assert (await told(reader, ann, session.id))[-1] == "Going on"
    fork = await sessions.fork(ann, session.id)
    await sessions.delete(ann, session.id)
    assert (await told(reader, ann, fork.id))[-1] == "Going on"
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_a_fork_s_export_is_whole_by_itself(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abcd")
    await sessions.compact(ann, source.id, say("S", "system"), keep=1)
    fork = await sessions.fork(ann, source.id)
    await talk(sessions, ann, fork.id, "e")
    early = await sessions.fork(ann, source.id, at=ids[1])
    for session_id in (fork.id, early.id):
        lines = await exported(reader, ann, session_id)
        await sessions.import_(bob, lines)
        assert await exported(reader, bob, session_id) == lines
        assert await told(reader, bob, session_id) == await told(reader, ann, session_id)


async def test_an_import_under_its_own_id_needs_the_id_to_be_free(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a", key="k")
    lines = await exported(reader, ann, session.id)
    before = await everything(reader, ann)
    with pytest.raises(AlreadyExists):
        await sessions.import_(ann, lines)
    assert await everything(reader, ann) == before
    await sessions.delete(ann, session.id)
    await sessions.create(ann, key="k")
    with pytest.raises(AlreadyExists):
        await sessions.import_(ann, lines, include_deleted=True)


async def test_an_import_under_a_new_id_leaves_the_original_alone(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await rich_session(sessions, ann, clock)
    lines = await exported(reader, ann, session.id)
    copy = await sessions.import_(ann, lines, new_id=True)
    assert copy.id != session.id
    assert copy.key is None
    assert await exported(reader, ann, session.id) == lines
    assert len(await reader.memory.facts(ann, session.id)) == 2
    assert len(await reader.memory.facts(ann, copy.id)) == 2
    assert await told(reader, ann, copy.id) == await told(reader, ann, session.id)
    await sessions.delete(ann, copy.id)
    assert await exported(reader, ann, session.id) == lines


async def test_an_imported_session_stands_in_the_list_by_its_own_time(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    old, _ = await started(sessions, ann, "Old")
    lines = await exported(reader, ann, old.id)
    await sessions.delete(ann, old.id)
    clock.advance()
    new, _ = await started(sessions, ann, "New")
    clock.advance()
    await sessions.import_(ann, lines, include_deleted=True)
    assert await listed(reader, ann) == [new.id, old.id]
    ahead = lines[0].replace(b'"updated_at":1', b'"updated_at":9').replace(old.id.encode(), b"ahead")
    await sessions.import_(ann, [ahead, *lines[1:]], include_deleted=True)
    clock.advance()
    newest, _ = await started(sessions, ann, "Newest")
    assert await listed(reader, ann) == [newest.id, "ahead", new.id, old.id]


def changed_head(lines: list[bytes], **fields: Any) -> list[bytes]:
    head = json.loads(lines[0])
    head["session"] |= {name: value for name, value in fields.items() if name != "head"}
    head |= fields.get("head", {})
    return [json.dumps(head).encode(), *lines[1:]]


async def bad_exports(sessions: Sessions, who: Principal) -> dict[str, list[bytes]]:
    """What only looks like an export."""
    session, _ = await started(sessions, who, *"abc", session_id="exported")
    await sessions.compact(who, session.id, say("S", "system"))
    await sessions.memory.add(who, [Fact(id="f1", at=1, text="t", session=session.id)])
    good = await exported(sessions, who, session.id)
    await sessions.delete(who, session.id)
    checkpoint = json.loads(good[1])
    cyclic = {**checkpoint, "spans": [[4, 4, "summary", checkpoint["checkpoint"]["id"]]]}
    return {
        "nothing": [],
        "an empty line": [b""],
        "no JSON": [b"hello"],
        "JSON of another kind": [b"[]"],
        "another format": changed_head(good, head={"format": "other"}),
        "a newer version": changed_head(good, head={"version": 2}),
        "an entry too few": good[:-1],
        "an entry too many": [*good, good[-1].replace(b'"id":"0', b'"id":"1')],
        "an entry twice": [*good[:-1], good[-2]],
        "an entry cut off": [*good[:-1], good[-1][:-5]],
        "an entry that is none": [*good[:-1], b'{"entry":{"role":"user"}}'],
        "an entry of no known role": [*good[:-1], good[-1].replace(b'"system"', b'"robot"')],
        "an entry with an odd id": [
            *good[:-1],
            good[-1].replace(b'"entry":{"id":"', b'"entry":{"id":"\\u0000'),
        ],
        "spans over nothing": changed_head(good, head={"spans": [[1, 99, "plain", None]]}),
        "spans backwards": changed_head(good, head={"spans": [[3, 1, "plain", None]]}),
        "a summary of nothing": changed_head(good, head={"spans": [[1, 1, "summary", "no such checkpoint"]]}),
        "a summary of itself": [good[0], json.dumps(cyclic).encode(), *good[2:]],
        "no id": changed_head(good, id=""),
        "an odd id": changed_head(good, id="a\0b"),
        "an endless id": changed_head(good, id="x" * 10_000),
        "a relative folder": changed_head(good, cwd="relative"),
        "odd tags": changed_head(good, tags=["", "a\0"]),
        "a negative revision": changed_head(good, revision=-1),
        "a revision beyond all bounds": changed_head(good, revision=2**70),
        "a time beyond all bounds": changed_head(good, updated_at=2**70),
        "a count of its own": changed_head(good, message_count=77),
        "an unknown status": changed_head(good, status="sleeping"),
        "an odd key": changed_head(good, key="\ud800"),
        "an odd agent": changed_head(good, agent_id="\0"),
        "raw data that is none": [*good, b'{"raw":"name","data":"***"}'],
        "a raw copy without a name": [*good, b'{"raw":"","data":"AAAA"}'],
        "a document with a line that is no text": [
            b'{"messages":[],"hitherto":{"lines":[{"entry":"\xd9"}]}}'
        ],
    }


async def test_what_is_no_export_is_refused_and_nothing_is_written(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    exports = await bad_exports(sessions, ann)
    before = await everything(reader, ann)
    accepted = []
    for name, lines in exports.items():
        try:
            await sessions.import_(ann, lines)
        except (InvalidInput, AlreadyExists):
            assert await everything(reader, ann) == before, name
        else:
            accepted.append(name)
            await sessions.delete(ann, (await listed(sessions, ann, Filter(archived="include")))[0])
            before = await everything(reader, ann)
    assert accepted == []


async def test_an_entry_over_the_limit_is_not_imported(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    lines = await exported(reader, ann, session.id)
    await sessions.delete(ann, session.id)
    large = lines[-1].replace(b'"text":"a"', b'"text":"' + b"a" * ENTRY_BYTES + b'"')
    before = await everything(reader, ann)
    with pytest.raises(TooLarge):
        await sessions.import_(ann, [*lines[:-1], large])
    assert await everything(reader, ann) == before


async def test_only_a_session_of_the_caller_is_exported(
    sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    for who, session_id in ((bob, session.id), (ann, "nowhere")):
        with pytest.raises(SessionNotFound):
            await exported(sessions, who, session_id)


async def test_an_imported_session_s_title_is_newer_than_its_messages(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "needle", title="Needle")
    lines = await exported(sessions, ann, session.id)
    await sessions.delete(ann, session.id)
    await sessions.import_(ann, lines, include_deleted=True)
    found = await reader.core.store.read(
        lambda tx: tx.matches(ann.owner, parse_words("needle"), None, None, 9)
    )
    assert [match.place is None for match in found] == [True, False]


async def test_an_export_with_an_id_twice_is_refused(
    sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    session, _ = await started(sessions, ann, "a", "b")
    lines = await exported(sessions, ann, session.id)
    doubled = [*lines[:-1], lines[-2]]
    with pytest.raises(InvalidInput, match="occurs twice"):
        await sessions.import_(bob, doubled)
    assert await sessions.count(bob) == 0


async def test_the_cost_of_what_a_reset_put_aside_is_restored_too(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    paid = Draft(role="assistant", parts=say("b").parts, usage=Usage(cost=0.5))
    await sessions.append(ann, session.id, [paid])
    await sessions.reset(ann, session.id)
    made = await sessions.import_(bob, await exported(reader, ann, session.id))
    assert (made.cost, made.message_count) == (0.5, 0)
