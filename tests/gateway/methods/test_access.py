"""Who may ask what, and about whose sessions: from the table, so that no method is left out."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from hitherto.gateway.dispatch.method import NAMED, Method, Owns
from hitherto.gateway.dispatch.schema import Named
from hitherto.gateway.methods import METHODS
from hitherto.model import Principal
from hitherto.remote.calls import CALLS
from hitherto.service import Sessions
from hitherto.stores import connector
from hitherto.values.scopes import SCOPES
from tests.gateway.methods import store_requests
from tests.gateway.methods.asker import KEY, Asker
from tests.gateway.methods.store_requests import exact
from tests.support.conversations import everything
from tests.support.homes import Clock, counting
from tests.support.scripted_engine import Scripted

MESSAGES = [{"role": "user", "content": "mine"}]
PARAMS: dict[str, dict[str, Any]] = {
    "session.append": {"messages": MESSAGES},
    "session.erase": {"message_id": "m"},
    "session.send": {"content": "mine"},
    "session.export": {"raw": True},
    "sessions.set_topic": {"topic": "Mine"},
    "sessions.patch": {"label": "Mine"},
    "sessions.compaction.restore": {"checkpoint_id": "c"},
    "sessions.compaction.branch": {"checkpoint_id": "c"},
    "session.search": {"query": "words"},
    "session.create": {},
    "session.import": {"data": {"messages": MESSAGES}},
    "session.unsubscribe": {"subscription_id": "s"},
    "route.resolve": {"agent_id": "main", "channel": "x", "peer_id": "u"},
    "identity.link": {"channel": "x", "peer_id": "u", "canonical": {"channel": "y", "peer_id": "v"}},
    "identity.unlink": {"channel": "x", "peer_id": "u"},
    "identity.accounts": {"channel": "x", "peer_id": "u"},
    "identity.export": {"channel": "x", "peer_id": "u"},
    "identity.erase": {"channel": "x", "peer_id": "u"},
    "token.create": {"scopes": ["admin"]},
    "token.revoke": {"token_id": "t"},
    "token.rotate": {"token_id": "t"},
    "memory.search": {"query": "words"},
    "memory.forget": {"id": "f"},
    "memory.add": {"content": "The sky is blue"},
    "memory.update": {"id": "f", "content": "The sky is grey"},
    **store_requests.PARAMS,
}
"""What a method needs beside the session that it names."""

WRONG: dict[str, Any] = {"unknown": 1, "limit": -1, "messages": 7, "content": None, "expected_revision": "x"}


@pytest.fixture
async def prepared(clock: Clock) -> AsyncIterator[Asker]:
    """Someone with a session, in a store of memory: what is asked here is no matter of stores."""
    async with connector("memory:")("memory:", clock) as store:
        asker = Asker(Sessions(store, now=clock), engine=Scripted())
        await asker.say("one", "two")
        yield asker


def by_key() -> list[str]:
    return [name for name, method in METHODS.items() if method.owns in NAMED]


# The census


def test_every_method_has_a_scope_an_ownership_rule_and_a_sentence() -> None:
    for name, method in METHODS.items():
        assert isinstance(method, Method)
        assert method.scope in SCOPES, name
        assert set(method.needs.values()) <= set(SCOPES), name
        assert isinstance(method.owns, Owns), name
        assert method.summary.endswith("."), name


def test_a_method_that_takes_a_session_says_so_in_its_rule() -> None:
    for name, method in METHODS.items():
        assert (method.owns in NAMED) == issubclass(method.params, Named), name


def test_every_method_that_writes_takes_an_idempotency_key() -> None:
    writing = {name for name, method in METHODS.items() if method.scope in ("write", "run", "commands")}
    handed_over = {"store.hand_over"}  # nothing is written before it is used
    assert writing - handed_over == {name for name, method in METHODS.items() if method.writes}


def test_every_method_that_was_asked_for_is_there() -> None:
    asked = """
    session.get session.list session.history session.compact session.delete session.export
    session.create session.usage sessions.list sessions.history sessions.preview sessions.new sessions.reset
    sessions.delete sessions.set_topic sessions.patch sessions.compaction.list sessions.compaction.restore
    sessions.compaction.branch
    session.episodes
    session.changes changes.list session.append session.send session.cancel session.inbox session.inbox.cancel session.inbox.move session.question session.answer session.reply session.fork session.search session.import session.erase
    session.subscribe session.unsubscribe session.resolve route.resolve memory.search memory.list memory.add memory.update memory.forget
    identity.link identity.unlink identity.accounts identity.export identity.erase
    token.create token.list token.revoke token.rotate
    usage.report
    rpc.discover
    """
    kept = {*CALLS, "about", "hand_over", "await_change", "export_file", "window", "prompt"}
    assert set(asked.split()) | {f"store.{name}" for name in kept} == set(METHODS)


# Scopes


@pytest.mark.parametrize("name", METHODS)
async def test_a_method_needs_its_scope_and_no_other(name: str, prepared: Asker) -> None:
    method, params = METHODS[name], request(name)
    needed = {method.scope, *(scope for field, scope in method.needs.items() if params.get(field))}
    for scope in SCOPES:
        others = [other for other in SCOPES if other != scope]
        outcome = await prepared.allowed(*others).outcome(name, **params)
        forbidden = isinstance(outcome, dict) and outcome.get("code") == -32003
        assert forbidden == (scope in needed), (name, scope)
        if forbidden:
            assert outcome["data"] == {"code": "forbidden", "scope": scope}
    sufficient = await prepared.allowed(*needed).outcome(name, **params)
    assert not (isinstance(sufficient, dict) and sufficient.get("code") == -32003)


@pytest.mark.parametrize("name", METHODS)
async def test_a_token_without_rights_learns_nothing(name: str, prepared: Asker) -> None:
    asker = prepared.allowed()
    told = [
        await asker.refusal(name, json.dumps(params).encode())
        for params in (request(name), {**request(name), "session_key": "nobody"}, WRONG, {})
    ]
    assert told == [told[0]] * 4
    assert told[0]["data"]["code"] == "forbidden"


async def test_programs_and_folders_are_only_for_those_who_may_have_them(
    sessions: Sessions, clock: Clock
) -> None:
    engine = Scripted()
    asker = Asker(sessions, engine=engine)
    made = await asker.ask("session.create", cwd="/work")
    for scopes in (("run",), ("run", "commands")):
        await asker.allowed(*scopes).ask("session.send", session_key=made["session_id"], content="Go")
        clock.advance()
    without, allowed = engine.setups
    assert (without.local, without.roots) == (False, ())
    assert (allowed.local, allowed.roots) == (True, ("/work",))


async def opened(asker: Asker, engine: Scripted, session: str, clock: Clock) -> tuple[str, ...]:
    """The folders that a prompt of somebody with all rights opens."""
    await asker.ask("session.send", session_key=session, content="Go")
    clock.advance()
    return engine.setups[-1].roots


async def test_a_folder_that_somebody_without_rights_on_the_machine_names_is_opened_for_nobody(
    clock: Clock,
) -> None:
    engine = Scripted()
    async with connector("memory:")("memory:", clock) as store:
        asker = Asker(Sessions(store, now=clock), engine=engine, open_connection=store_requests.silent())
        channel = asker.allowed("read", "write")
        claimed = (await channel.ask("session.create", session_key=KEY, cwd="/"))["session_id"]
        assert (await asker.ask("session.get", session_key=KEY))["cwd"] == "/"
        assert await opened(asker, engine, claimed, clock) == ()
        fork = (await asker.ask("session.fork", session_key=KEY))["session_id"]
        fresh = (await asker.ask("sessions.new", session_key=KEY))["session_id"]
        elsewhere = (await channel.ask("store.fork", session_id=claimed, cwd="/etc"))["value"]["id"]
        imported = exact(replace(store_requests.IMPORTED, cwd="/etc"))
        await channel.ask("store.take_in", imported=imported, entries=exact([]))
        goes_on = (await asker.ask("store.continuation", session_id="claude:mine"))["value"]["id"]
        for session in (fork, fresh, elsewhere, goes_on):
            assert await opened(asker, engine, session, clock) == (), session
        await asker.ask("store.move", session_id=claimed, cwd="/work")
        assert await opened(asker, engine, claimed, clock) == ("/work",)
        await channel.ask("store.move", session_id=claimed, cwd="/")
        assert await opened(asker, engine, claimed, clock) == ()


async def test_a_folder_stays_open_when_somebody_without_rights_starts_its_session_anew(clock: Clock) -> None:
    engine = Scripted()
    async with connector("memory:")("memory:", clock) as store:
        asker = Asker(Sessions(store, now=clock), engine=engine)
        await asker.ask("session.create", session_key=KEY, cwd="/work")
        await asker.allowed("write").ask("sessions.new", session_key=KEY)
        assert await opened(asker, engine, KEY, clock) == ("/work",)


# Ownership


@pytest.mark.parametrize("wrong", [False, True], ids=["valid", "wrong"])
async def test_foreign_is_answered_byte_for_byte_like_missing_and_before_anything_else(
    sessions: Sessions, clock: Clock, wrong: bool
) -> None:
    asker = Asker(sessions, engine=Scripted())
    await asker.say("mine", session_key="agent:main:x:dm:me")

    async def told() -> dict[str, bytes]:
        answers = {}
        for name in by_key():
            params = {**PARAMS.get(name, {}), "session_key": KEY, **(WRONG if wrong else {})}
            answers[name] = json.dumps(await asker.refused(name, **params)).encode()
        return answers

    missing = await told()
    mine = await everything(sessions, Principal(owner="ann"))
    clock.advance()
    bob = Asker(sessions, "bob")
    await bob.say("theirs", "also theirs")
    theirs = await everything(sessions, Principal(owner="bob"))
    assert await told() == missing
    assert {json.loads(answer)["data"]["code"] for answer in missing.values()} == {"session_not_found"}
    assert await everything(sessions, Principal(owner="ann")) == mine
    assert await everything(sessions, Principal(owner="bob")) == theirs


async def test_a_foreign_id_is_answered_like_a_missing_one_whatever_names_it(sessions: Sessions) -> None:
    ann, bob = Asker(sessions), Asker(sessions, "bob")
    theirs = (await bob.say("theirs"))["session_id"]
    missing = theirs[:-1] + ("0" if theirs[-1] != "0" else "1")
    for name in by_key():
        for field in ("session_key", "session_id"):
            answers = [
                json.dumps(await ann.refused(name, **PARAMS.get(name, {}), **{field: value})).replace(
                    value, ""
                )
                for value in (theirs, missing)
            ]
            assert answers[0] == answers[1], name
    for value in (theirs, missing):
        assert await ann.code("session.resolve", session_key=value) == "session_not_found"
        assert await ann.code("session.create", parent=value) == "session_not_found"


async def test_a_foreign_message_checkpoint_fact_and_cursor_are_not_reached_through_an_own_session(
    sessions: Sessions,
) -> None:
    ann, bob = Asker(sessions), Asker(sessions, "bob")
    for asker in (ann, bob):
        await asker.say("one", "two")
        await asker.say("one", session_key="agent:main:x:dm:u")
    history = await bob.ask("session.history", session_key=KEY)
    entry = history["messages"][0]["message_id"]
    await bob.ask("sessions.reset", session_key=KEY)
    checkpoints = await bob.ask("sessions.compaction.list", session_key=KEY)
    checkpoint = checkpoints["checkpoints"][0]["checkpoint_id"]
    reaching: dict[str, dict[str, Any]] = {
        "session.erase": {"message_id": entry},
        "session.fork": {"message_id": entry},
        "session.history": {"before": entry},
        "sessions.compaction.restore": {"checkpoint_id": checkpoint},
        "sessions.compaction.branch": {"checkpoint_id": checkpoint},
    }
    for name, params in reaching.items():
        assert (await ann.code(name, session_key=KEY, **params)).endswith("_not_found"), name
    cursor = (await bob.ask("session.list", limit=1))["cursor"]
    assert await ann.code("session.list", limit=1, cursor=cursor) == "invalid_cursor"


class Actor:
    """One owner who asks at random; what is asked depends only on the dice and on the answers."""

    def __init__(self, sessions: Sessions, owner: str, seed: int) -> None:
        self.asker = Asker(sessions, owner, engine=Scripted())
        self.dice = random.Random(seed)

    async def act(self) -> Any:
        name = self.dice.choice(list(METHODS))
        params = {**request(name)}
        if name in by_key():
            params["session_key"] = self.dice.choice(KEYS)
        for field in ("message_id", "checkpoint_id"):
            if field in params:
                params[field] = await self._known(field, params["session_key"])
        if name == "session.append":
            params |= {"create": self.dice.random() < 0.8, "messages": self._messages()}
        if name == "session.create":
            params["session_key"] = self.dice.choice(KEYS)
        return name, params, await self.asker.outcome(name, **params)

    def _messages(self) -> list[dict[str, Any]]:
        count = self.dice.randint(1, 3)
        return [{"role": "user", "content": f"words of {self.asker.context.who.owner}"}] * count

    async def _known(self, field: str, key: str) -> str:
        """An id that there is, if there is one."""
        method, rows = {
            "message_id": ("session.history", "messages"),
            "checkpoint_id": ("sessions.compaction.list", "checkpoints"),
        }[field]
        found = await self.asker.outcome(method, session_key=key)
        return str(self.dice.choice(found.get(rows) or [{field: "none"}])[field])


KEYS = [KEY, "agent:main:x:dm:u", "agent:main:x:group:g", "agent:main:cron:j"]
OWNERS = ("ann", "bob", "an")


async def played(owners: tuple[str, ...], plan: list[str], seed: int) -> dict[str, list[Any]]:
    """What each of these owners was told, when only they ask their part of a plan."""
    clock = Clock()
    seen: dict[str, list[Any]] = {owner: [] for owner in owners}
    async with connector("memory:")("memory:", clock) as store:
        actors = {
            owner: Actor(Sessions(store, now=clock, new_id=counting().__next__), owner, seed)
            for owner in owners
        }
        for owner in plan:
            clock.advance()
            if owner in actors:
                seen[owner].append(await actors[owner].act())
    return seen


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_what_an_owner_is_told_does_not_depend_on_others_and_holds_no_word_of_theirs(seed: int) -> None:
    plan = random.Random(seed).choices(OWNERS, k=600)
    together = await played(OWNERS, plan, seed)
    for owner in OWNERS:
        alone = await played((owner,), plan, seed)
        assert comparable(alone[owner]) == comparable(together[owner])
        told = json.dumps(together[owner])
        for other in set(OWNERS) - {owner}:
            assert f'words of {other}"' not in told


def comparable(answers: list[Any]) -> Any:
    """The answers without cursors, secrets and names, of which each store has its own, and the document that is the same for all."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items() if name not in ("cursor", "secret")}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    return [plain(answer) for answer in answers if answer[0] not in ("rpc.discover", "store.about")]


def request(name: str) -> dict[str, Any]:
    """Parameters with which a method is answered, as far as there is something to answer."""
    named = {"session_key": KEY} if METHODS[name].owns is not Owns.OWN and name in by_key() else {}
    if name == "session.resolve":
        named = {"session_key": KEY}
    return {**named, **PARAMS.get(name, {})}
