"""A session that was recorded, and that its agent's own files tell as well: one of them is found, both are deleted."""

from __future__ import annotations

from hitherto.model import RECORDED_IN, RECORDS, Draft, Entry, Filter, Principal, Text
from hitherto.ports import RawCopy
from hitherto.service import Imported, Sessions
from hitherto.sources.sync.recordings import link_recording
from tests.support.homes import Clock


async def test_the_recording_stands_for_what_sync_reads_and_takes_it_along(
    sessions: Sessions, reader: Sessions, clock: Clock, ann: Principal, bob: Principal
) -> None:
    recording = await sessions.create(ann)
    await sessions.append(ann, recording.id, Draft(role="user", parts=(Text(text="Paint the barn"),)))
    recording = await link_recording(sessions, ann, recording, "pi", "1")
    assert recording.meta[RECORDS] == ["pi:1"]
    assert await link_recording(sessions, ann, recording, "pi", "1") == recording
    read = Imported(id="pi:1", source="pi", created_at=clock(), updated_at=clock())
    told = [Entry(id="e", at=clock(), role="user", parts=(Text(text="Paint the barn"),))]
    await sessions.transfer.sync(ann, read, told)
    copy = await reader.get(ann, "pi:1")
    assert (copy.archived, copy.message_count, copy.meta[RECORDED_IN]) == (True, 1, recording.id)

    assert [hit.session.id for hit in (await reader.search(ann, "barn")).hits] == [recording.id]
    away = await reader.search(ann, "barn", given=Filter(archived="only"))
    assert [hit.session.id for hit in away.hits] == ["pi:1"]
    fork = await sessions.fork(ann, recording.id)
    assert RECORDS not in fork.meta
    await sessions.delete(ann, fork.id)
    assert await reader.catalog.known(ann, ["pi:1", recording.id, "pi:2", "\0"]) == {"pi:1", recording.id}
    assert await reader.catalog.known(bob, ["pi:1", recording.id]) == set()

    await sessions.delete(ann, recording.id)
    assert (await reader.find(ann, Filter(archived="include"))).sessions == ()
    assert (await sessions.transfer.sync(ann, read, told)).refused
    assert await reader.catalog.known(ann, ["pi:1"]) == {"pi:1"}


async def test_what_is_erased_in_a_recording_is_gone_from_what_sync_has_read_of_it(
    sessions: Sessions, reader: Sessions, clock: Clock, ann: Principal
) -> None:
    recording = await sessions.create(ann)
    barn, other = (Draft(role="user", parts=(Text(text=text),)) for text in ("Paint the barn", "Hello"))
    (first, _) = (await sessions.append(ann, recording.id, [barn, other])).entries
    await link_recording(sessions, ann, recording, "pi", "1")
    read = Imported(id="pi:1", source="pi", created_at=clock(), updated_at=clock(), title="Paint the barn")
    told = [
        Entry(id=name, at=clock(), role="user", parts=(Text(text=text),))
        for name, text in (("e", "Paint the barn"), ("f", "Hello"))
    ]
    await sessions.transfer.sync(ann, read, told, raw=[RawCopy("0", b"Paint the barn")])
    await sessions.erase(ann, recording.id, first)
    for revive in (False, True):
        await sessions.transfer.sync(ann, read, told, raw=[RawCopy("0", b"Paint the barn")], revive=revive)
        for given in (Filter(), Filter(archived="only")):
            assert (await reader.search(ann, "barn", given=given)).hits == ()
    assert await reader.transfer.raw(ann, "pi:1") == []
    assert (await reader.get(ann, "pi:1")).title == "Hello"
