"""The edits that sessions made are kept beside what was said, and go with it."""

from __future__ import annotations

from typing import Any

from hitherto.edits.changes import EditCounts
from hitherto.model import Draft, Entry, Principal, Text, ToolCall, ToolResult
from hitherto.ports import Store
from hitherto.service import Imported, Sessions
from hitherto.service.history.append import EncodedEntry, encode_entry
from tests.support.conversations import say
from tests.support.homes import Clock

ONE = "total = sum(price * amount for price, amount in basket)"
TWO = "shipping = tariff.lookup(country, weight_in_grams)"
THREE = "raise BasketEmpty(f'nothing to ship to {country}')"


def call(name: str, given: dict[str, Any], id: str = "c1", at: int | None = None) -> Draft:
    return Draft(role="assistant", parts=(ToolCall(id=id, name=name, input=given, kind="edit"),), at=at)


def result(id: str = "c1", *, failed: bool = False, output: Any = None) -> Draft:
    part = ToolResult(id=id, content=(Text(text="done"),), is_error=failed, output=output)
    return Draft(role="tool", parts=(part,))


def edited(old: str, new: str, id: str = "c1", path: str = "/w/shop/basket.py") -> Draft:
    return call("edit", {"file_path": path, "old_string": old, "new_string": new}, id)


async def batches(store: Store, owner: str) -> list[Any]:
    from hitherto.edits.lines import name_mark

    wanted = frozenset([name_mark(store.secret, "basket.py")])
    return await store.read(lambda tx: tx.edits_marked(owner, wanted))


async def test_a_session_s_changes_are_its_files_with_the_message_of_each_edit(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    done = await sessions.append(
        ann,
        session.id,
        [say("Add totals"), edited("", f"{ONE}\n{TWO}"), result(), edited(TWO, THREE, "c2"), result("c2")],
    )
    found = await reader.edits.changes(ann, session.id)
    assert [(each.path, each.added, each.removed) for each in found.files] == [("basket.py", 2, 0)]
    (file,) = found.files
    assert [edit.message for edit in file.edits] == [done.entries[1], done.entries[3]]
    assert file.edits[1].hunks[0].removed == (TWO,)
    assert file.edits[1].hunks[0].added == (THREE,)
    assert (await reader.edits.counts(ann, [session.id]))[session.id].added == 3
    assert (await reader.edits.changes(ann, session.id, file="other.py")).files == ()


async def test_an_edit_that_failed_or_was_undone_is_told_apart(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    await sessions.append(ann, session.id, [edited("", ONE), edited("", TWO, "c2"), edited("", THREE, "c3")])
    await sessions.append(ann, session.id, [result("c2", failed=True)])
    await sessions.append(ann, session.id, [edited(ONE, "", "c4"), result("c4")])
    found = await reader.edits.changes(ann, session.id)
    assert [(edit.failed, edit.undone) for edit in found.files[0].edits] == [
        (False, True),
        (True, False),
        (False, False),
        (False, True),
    ]
    assert (found.added, found.removed) == (1, 0)


async def test_what_a_later_result_says_was_changed_takes_the_place_of_what_was_asked_for(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    await sessions.append(ann, session.id, [edited("price", "amount")])
    told = {"filePath": "/w/shop/basket.py", "structuredPatch": [{"lines": ["-x = price", "+x = amount"]}]}
    await sessions.append(ann, session.id, [result(output=told)])
    (file,) = (await reader.edits.changes(ann, session.id)).files
    assert file.edits[0].hunks[0].added == ("x = amount",)


async def test_a_whole_file_is_compared_with_what_the_session_knew_of_it(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    written = [
        call("write", {"file_path": "basket.py", "content": text}, id)
        for id, text in (("c1", f"{ONE}\n{TWO}\n"), ("c2", f"{ONE}\n{THREE}\n"))
    ]
    await sessions.append(ann, session.id, written)
    (file,) = (await reader.edits.changes(ann, session.id)).files
    assert (file.added, file.removed) == (2, 0)
    assert file.edits[1].hunks[0].removed == (TWO,)


async def test_what_is_erased_or_deleted_takes_its_edits_along(
    sessions: Sessions, store: Store, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    done = await sessions.append(ann, session.id, [edited("", ONE), edited("", TWO, "c2")])
    fork = await sessions.fork(ann, session.id, at=done.entries[0])
    await sessions.erase(ann, session.id, done.entries[1])
    assert await batches(store, ann.owner) == []
    (file,) = (await sessions.edits.changes(ann, session.id)).files
    assert [edit.message for edit in file.edits] == [done.entries[0]]
    await sessions.delete(ann, session.id)
    await sessions.admin.collect()
    assert (await sessions.edits.changes(ann, fork.id)).files[0].added == 1
    await sessions.delete(ann, fork.id)
    await sessions.admin.collect()
    assert await batches(store, ann.owner) == []


async def test_edits_can_be_read_again_from_the_sessions(
    sessions: Sessions, store: Store, ann: Principal, bob: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    await sessions.append(ann, session.id, [edited("", f"{ONE}\n{TWO}"), result()])
    await sessions.append(ann, session.id, [edited(ONE, THREE, "c2"), result("c2", failed=True)])
    before = await sessions.edits.changes(ann, session.id)
    assert await sessions.edits.rebuild(ann) == 1
    assert await sessions.edits.changes(ann, session.id) == before
    assert await batches(store, bob.owner) == []
    assert (await sessions.admin.check(repair=False)).problems == ()


async def test_what_a_subagent_did_counts_for_its_parent_and_a_fork_does_not(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    def spoken(id: str, draft: Draft) -> EncodedEntry:
        return encode_entry(Entry(id=id, at=1, role=draft.role, parts=draft.parts))

    for id, parent, text in (("claude:a", None, ONE), ("claude:b", "claude:a", TWO)):
        imported = Imported(id=id, source="claude", created_at=1, updated_at=1, cwd="/w/shop", parent=parent)
        await sessions.transfer.sync(ann, imported, [spoken("e", edited("", text)).entry])
    fork = await sessions.fork(ann, "claude:a")
    await sessions.append(ann, fork.id, edited("", THREE, "c9"))
    (file,) = (await reader.edits.changes(ann, "claude:a")).files
    assert [edit.session for edit in file.edits] == ["claude:a", "claude:b"]
    assert (await reader.edits.counts(ann, ["claude:a", "none"])).keys() == {"claude:a"}
    counts = await reader.edits.counts(ann, ["claude:a", fork.id])
    assert (counts["claude:a"], counts[fork.id]) == (
        EditCounts(added=2, files=1, agents=1),
        EditCounts(added=2, files=1),
    )


async def test_counts_are_those_of_the_conversation_and_of_nothing_that_was_taken_back(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    done = await sessions.append(
        ann, session.id, [edited("", ONE), edited("", f"{TWO}\n{THREE}", "c2", "/w/shop/other.py")]
    )
    await sessions.append(ann, session.id, [edited(ONE, "", "c3"), result("c3", failed=True)])
    ids = [session.id]
    assert (await reader.edits.counts(ann, ids))[session.id] == EditCounts(added=3, files=2)
    await sessions.timeline.rewind(ann, session.id, to=done.entries[0])
    assert (await reader.edits.counts(ann, ids))[session.id] == EditCounts(added=1, files=1)
    assert await reader.edits.counts(bob, [*ids, "half \ud83d"]) == {}


async def test_the_files_that_were_changed_last_come_first(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    made = []
    for path in ("a.py", "b.py", "a.py"):
        session = await sessions.create(ann, cwd="/w/shop")
        await sessions.append(ann, session.id, edited("", f"{ONE}\n{TWO}", path=f"/w/shop/{path}"))
        made.append(session.id)
        clock.advance()
    await sessions.append(ann, made[0], edited("", THREE, "c2", "/w/shop/c.py"))
    found = await reader.edits.recent(ann)
    assert [(each.session, each.path, each.added) for each in found] == [
        (made[0], "c.py", 1),
        (made[2], "a.py", 2),
        (made[1], "b.py", 2),
        (made[0], "a.py", 2),
    ]
    assert await reader.edits.recent(ann, limit=2) == found[:2]
    assert [each.session for each in await reader.edits.touched(ann, "a.py")] == [made[2], made[0]]
    assert await reader.edits.recent(bob) == []


async def test_what_is_kept_of_edits_is_small_and_has_no_text(
    sessions: Sessions, store: Store, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/w/shop")
    lines = "\n".join(f"value_{n} = compute_{n}(first_{n}, second={n}, third_{n})" for n in range(200))
    await sessions.append(ann, session.id, [say("Do"), edited("", lines), result()])
    (batch,) = await batches(store, ann.owner)
    size = (await sessions.get(ann, session.id)).bytes
    assert len(batch.data) + len(batch.marks) < size / 4
    assert b"compute" not in batch.data
