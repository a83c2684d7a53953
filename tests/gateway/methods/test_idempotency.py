"""Asking twice, at the same time, and after somebody else has changed something."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from msgspec.structs import replace

from hitherto.gateway.dispatch.method import Owns
from hitherto.gateway.dispatch.schema import Overwriting
from hitherto.gateway.methods import METHODS
from hitherto.model import Draft, Principal, Session, Text
from hitherto.remote.values import from_bytes
from hitherto.service import Sessions
from hitherto.values.days import DAY_MS
from tests.gateway.methods import store_requests
from tests.gateway.methods.asker import KEY, Asker
from tests.support.conversations import everything
from tests.support.homes import Clock
from tests.support.scripted_engine import Scripted, says

FILLER = ["We talked for a while about the weather, as one does when there is nothing else to say."] * 60
MESSAGES = [{"role": "user", "content": "hello"}]


async def prepared(sessions: Sessions) -> tuple[Asker, dict[str, dict[str, Any]]]:
    """A session with a checkpoint, and for each method that writes something that it can do."""
    asker = Asker(sessions, engine=Scripted(says("Yes"), says("No")), open_connection=store_requests.silent())
    await asker.say("My name is Quentin Marsh.", *FILLER)
    await asker.ask("session.compact", session_key=KEY)
    await asker.say(*FILLER)
    history = await asker.ask("session.history", session_key=KEY, limit=1)
    checkpoints = await asker.ask("sessions.compaction.list", session_key=KEY)
    checkpoint = {"checkpoint_id": checkpoints["checkpoints"][0]["checkpoint_id"]}
    facts = (await asker.ask("memory.list"))["facts"]
    named, message = {"session_key": KEY}, history["messages"][0]["message_id"]
    return asker, {
        "session.create": {"name": "N"},
        "session.append": {**named, "messages": MESSAGES},
        "session.fork": named,
        "session.compact": named,
        "session.erase": {**named, "message_id": history["messages"][0]["message_id"]},
        "session.delete": named,
        "session.import": {"data": {"messages": MESSAGES}},
        "session.send": {**named, "content": "Hi"},
        "session.cancel": named,
        "session.inbox.cancel": {**named, "message_id": "m"},
        "session.inbox.move": {**named, "message_id": "m", "place": 1},
        "session.answer": {**named, "tool_call_id": "c", "choice": "reject_once"},
        "session.reply": {**named, "elicitation_id": "e", "action": "decline"},
        "sessions.new": named,
        "sessions.reset": named,
        "sessions.delete": named,
        "sessions.set_topic": {**named, "topic": "T"},
        "sessions.patch": {**named, "pinned": True},
        "sessions.compaction.restore": {**named, **checkpoint},
        "sessions.compaction.branch": {**named, **checkpoint},
        "memory.forget": {"id": facts[0]["id"]},
        "memory.add": {"content": "The sky is blue"},
        "memory.update": {"id": facts[0]["id"], "content": "The sky is grey"},
        **{name: store_requests.PARAMS.get(name, {}) for name in WRITING if name.startswith("store.")},
        **{name: {**named, **store_requests.PARAMS.get(name, {})} for name in STORED},
        "store.rewind": {**named, "to": message},
        "store.erase": {**named, "entry_id": message},
        "store.restore": {**named, "checkpoint": checkpoint["checkpoint_id"]},
        "store.branch": {**named, "checkpoint": checkpoint["checkpoint_id"]},
    }


WRITING = [name for name, method in METHODS.items() if method.writes]
STORED = [name for name in WRITING if name.startswith("store.") and METHODS[name].owns is Owns.SESSION]
OTHERWISE: dict[str, dict[str, Any]] = {
    "session.create": {"name": "Other"},
    "session.append": {"messages": [{"role": "user", "content": "other"}]},
    "session.erase": {"message_id": "other"},
    "session.import": {"data": {"messages": [{"role": "user", "content": "other"}]}},
    "session.send": {"content": "Other"},
    "session.inbox.cancel": {"message_id": "other"},
    "session.inbox.move": {"place": 2},
    "memory.forget": {"id": "other"},
    "memory.add": {"content": "other"},
    "memory.update": {"content": "other"},
    "sessions.set_topic": {"topic": "Other"},
    "sessions.patch": {"pinned": False},
    "sessions.new": {"topic": "Other"},
    "session.fork": {"title": "Other"},
    "sessions.compaction.restore": {"since": True},
    "sessions.compaction.branch": {"title": "Other"},
    "store.create": {"title": "Other"},
    "store.append": {"drafts": store_requests.exact([Draft(role="user")])},
    "store.fork": {"title": "Other"},
    "store.import_session": {"first_line": 2},
    "store.take_in": {"revive": True},
    "store.prompt": {"parts": store_requests.exact([Text(text="Other")])},
}


@pytest.mark.parametrize("name", WRITING)
async def test_the_same_request_with_the_same_key_is_done_once(
    name: str, sessions: Sessions, clock: Clock
) -> None:
    asker, requests = await prepared(sessions)
    if name.startswith("session.inbox"):
        session = await asker.ask("session.get", session_key=KEY)
        await sessions.leases.acquire(Principal(owner="ann"), session["session_id"], "turn", ttl_ms=3_600_000)
        waits = [{"role": "user", "content": "wait", "message_id": "m"}]
        await asker.ask("session.append", session_key=KEY, messages=waits)
    if name == "store.rename_project":
        await asker.ask("store.assign", session_key=KEY, project="mine")
    params = {**requests[name], "idempotency_key": "k"}
    first = await asker.ask(name, **params)
    state = await everything(sessions, Principal(owner="ann"))
    clock.advance()
    assert await asker.ask(name, **params) == first
    assert await everything(sessions, Principal(owner="ann")) == state
    if name in OTHERWISE:
        code = await asker.code(name, **{**params, **OTHERWISE[name]})
        assert code == "idempotency_conflict"
    assert await everything(sessions, Principal(owner="ann")) == state


@pytest.mark.parametrize("name", ["session.fork", "session.import", "sessions.new", "session.append"])
async def test_the_same_request_several_times_at_once_is_done_once(name: str, sessions: Sessions) -> None:
    asker, requests = await prepared(sessions)
    if name == "session.import":
        requests[name]["new_session_key"] = "agent:main:x:dm:u"
    before = (await asker.ask("session.list"))["total"]
    params = {**requests[name], "idempotency_key": "k"}
    answers = await asyncio.gather(*(asker.ask(name, **params) for _ in range(5)))
    assert answers == [answers[0]] * 5
    made = 0 if name == "session.append" else 1
    assert (await asker.ask("session.list"))["total"] == before + made


async def test_a_key_is_remembered_for_its_method_and_its_owner_alone(sessions: Sessions) -> None:
    ann, bob = Asker(sessions), Asker(sessions, "bob")
    one = await ann.ask("session.create", idempotency_key="k")
    other = await bob.ask("session.create", idempotency_key="k")
    assert one["session_id"] != other["session_id"]
    again = await ann.ask("session.fork", session_key=one["session_id"], idempotency_key="k")
    assert again["session_id"] not in (one["session_id"], other["session_id"])


async def test_a_key_is_kept_for_seven_days_and_until_it_is_forgotten(
    sessions: Sessions, clock: Clock
) -> None:
    asker = Asker(sessions)
    one = await asker.ask("session.create", idempotency_key="k")
    clock.advance(7 * DAY_MS)
    assert await sessions.admin.forget_notes() == 0
    assert await asker.ask("session.create", idempotency_key="k") == one
    clock.advance(1)
    assert await asker.ask("session.create", idempotency_key="k") == one
    assert await sessions.admin.forget_notes() == 1
    assert await asker.ask("session.create", idempotency_key="k") != one


async def test_a_request_that_failed_is_not_remembered(sessions: Sessions) -> None:
    asker = Asker(sessions)
    await asker.say("one")
    params = {"session_key": KEY, "new_session_key": "agent:main:x:dm:u", "idempotency_key": "k"}
    await asker.ask("session.create", session_key="agent:main:x:dm:u")
    assert await asker.code("session.fork", **params) == "already_exists"
    await asker.ask("session.delete", session_key="agent:main:x:dm:u")
    assert (await asker.ask("session.fork", **params))["session_key"] == "agent:main:x:dm:u"


async def test_a_deletion_is_confirmed_again_to_whoever_asks_again_and_to_nobody_else(
    sessions: Sessions,
) -> None:
    asker = Asker(sessions)
    await asker.say("one", "two")
    await Asker(sessions, "bob").say("theirs")
    for method in ("session.delete", "sessions.delete"):
        await asker.say("one")
        done = await asker.ask(method, session_key=KEY, idempotency_key="k")
        assert await asker.ask(method, session_key=KEY, idempotency_key="k") == done
        assert await asker.code(method, session_key=KEY, idempotency_key="other") == "session_not_found"
        assert await asker.code(method, session_key=KEY) == "session_not_found"


OVERWRITING = [name for name, method in METHODS.items() if issubclass(method.params, Overwriting)]


@pytest.mark.parametrize("name", OVERWRITING)
async def test_what_would_overwrite_is_refused_if_the_session_has_changed(
    name: str, sessions: Sessions
) -> None:
    asker, requests = await prepared(sessions)
    seen = (await asker.ask("session.get", session_key=KEY))["revision"]
    await asker.say("meanwhile")
    state = await everything(sessions, Principal(owner="ann"))
    params = {**requests[name], "expected_revision": seen, "idempotency_key": "k"}
    refused = await asker.refused(name, **params)
    assert refused["code"] == -32010
    assert refused["data"] == {"code": "revision_conflict", "expected": seen, "actual": seen + 1}
    assert await everything(sessions, Principal(owner="ann")) == state
    await asker.ask(name, **{**params, "expected_revision": seen + 1})


def test_all_that_would_overwrite_can_be_guarded() -> None:
    assert set(OVERWRITING) == {
        "session.append",
        "session.compact",
        "session.delete",
        "sessions.compaction.restore",
        "sessions.delete",
        "sessions.new",
        "sessions.patch",
        "sessions.reset",
        "sessions.set_topic",
    }


WORD = "Xylophagous"


@pytest.mark.parametrize("name", ["store.tag", "store.fork", "store.pin", "store.archive", "session.create"])
async def test_a_request_that_is_repeated_tells_nothing_that_was_erased_and_is_not_done_again(
    name: str, sessions: Sessions
) -> None:
    asker = Asker(sessions)
    await asker.say(f"The word is {WORD}", "Hello there")
    first_message = (await asker.ask("session.history", session_key=KEY))["messages"][0]["message_id"]
    named = {"name": WORD} if name == "session.create" else {"session_key": KEY}
    params = {**named, "idempotency_key": "k"}
    first = await asker.ask(name, **params)
    assert WORD in str(first)
    if name == "session.create":
        await asker.ask("session.delete", session_key=first["session_key"])
    await asker.ask("session.erase", session_key=KEY, message_id=first_message)
    state = await everything(sessions, Principal(owner="ann"))
    again = await asker.ask(name, **params)
    assert WORD not in str(again)
    for kept in ("id", "revision", "message_count", "session_id"):
        assert again.get("value", again).get(kept) == first.get("value", first).get(kept)
    assert await everything(sessions, Principal(owner="ann")) == state


async def test_a_turn_that_is_repeated_tells_nothing_that_was_erased_and_does_not_run_again(
    sessions: Sessions,
) -> None:
    ann, engine = Principal(owner="ann"), Scripted(says(f"It is {WORD}"))
    session = await sessions.create(ann)
    async with sessions.opened(ann, session.id, engine, improve_titles=False) as opened:
        first = await opened.prompt((Text(text="Which word?"),), idempotency_key="k")
        again = await opened.prompt((Text(text="Which word?"),), idempotency_key="k")
        assert (first, WORD in first.text) == (again, True)
        await sessions.erase(ann, session.id, first.answer or "")
        assert await opened.prompt((Text(text="Which word?"),), idempotency_key="k") == replace(
            first, text=""
        )
    assert len(engine.turns) == 1


async def test_an_answer_that_is_no_common_json_comes_again_as_it_was(sessions: Sessions) -> None:
    asker = Asker(sessions)
    await asker.say("Hello")
    session = (await asker.ask("session.get", session_key=KEY))["session_id"]
    await sessions.catalog.set_meta(Principal(owner="ann"), session, {"odd": "\ud800"})
    params = {"session_key": KEY, "idempotency_key": "k"}
    first, again = [
        from_bytes(base64.b64decode((await asker.ask("store.pin", **params))["exact"]), Session) for _ in "12"
    ]
    assert first == again == await sessions.get(Principal(owner="ann"), session)
