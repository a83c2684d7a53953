"""Tokens over the wire, and what a restricted one sees: of everything else, what it would see if it did not exist."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import pytest

from hitherto.gateway.methods import METHODS
from hitherto.model import Reach, Token, TokenRule
from hitherto.service import Sessions
from hitherto.stores import connector
from hitherto.values.scopes import UNRESTRICTED
from tests.gateway.methods.asker import Asker, token
from tests.gateway.methods.test_access import MESSAGES, PARAMS, by_key, comparable, request
from tests.support.homes import Clock, counting
from tests.support.scripted_engine import Scripted

OURS, THEIRS = "agent:main:irc:dm:ann", "agent:main:xmpp:dm:bob"
FACT = "We decided that the staging database is called {}."


def restricted(asker: Asker, **reach: tuple[str, ...]) -> Asker:
    """The same caller with a token that is restricted to this."""
    scopes = ("read", "write", "run", "raw")
    rule = TokenRule(reach=Reach(**reach))
    limited = Token(id="limited", owner="ann", scopes=scopes, created_at=0, rule=rule)
    return asker.with_(token=limited, sessions=asker.context.sessions.limited_to(rule.reach))


# Tokens


async def test_a_token_is_made_listed_replaced_and_revoked(sessions: Sessions, clock: Clock) -> None:
    ann, bob = Asker(sessions), Asker(sessions, "bob")
    reach = {"channels": ["irc"], "methods": ["session.*"]}
    made = await ann.ask("token.create", scopes=["read"], label="irc", expires_at=clock.now + 10, reach=reach)
    told, secret = made["token"], made["secret"]
    assert (told["scopes"], told["label"], told["expires_at"]) == (["read"], "irc", clock.now + 10)
    assert (told["reach"]["channels"], told["reach"]["methods"], told["reach"]["keys"]) == (
        ["irc"],
        ["session.*"],
        [],
    )
    known = await sessions.tokens.verify(secret)
    assert known is not None
    assert known.owner == "ann"
    assert secret not in json.dumps(await ann.ask("token.list"))
    assert (await bob.ask("token.list")) == {"tokens": [], "total": 0}
    for method in ("token.revoke", "token.rotate"):
        assert await bob.code(method, token_id=told["token_id"]) == "not_found"
    before = await sessions.tokens.generation()
    new = await ann.ask("token.rotate", token_id=told["token_id"])
    assert new["token"] == told
    assert await sessions.tokens.verify(secret) is None
    assert await sessions.tokens.verify(new["secret"]) == known
    assert await sessions.tokens.generation() > before
    await sessions.tokens.note_use({known.id: 7})
    (listed,) = (await ann.ask("token.list"))["tokens"]
    assert listed == {**told, "last_used_at": 7}
    clock.advance(10)
    assert await sessions.tokens.verify(new["secret"]) is None
    lasting = await ann.ask("token.create")
    assert await sessions.tokens.verify(lasting["secret"]) is not None
    await ann.ask("token.revoke", token_id=lasting["token"]["token_id"])
    assert await sessions.tokens.verify(lasting["secret"]) is None
    assert await ann.code("token.revoke", token_id=lasting["token"]["token_id"]) == "not_found"
    page = await ann.ask("token.list", limit=1, offset=1)
    assert ([each["token_id"] for each in page["tokens"]], page["total"]) == ([told["token_id"]], 2)
    assert (await sessions.core.store.check(repair=False)).problems == ()


async def test_no_token_passes_on_more_than_it_has(sessions: Sessions, clock: Clock) -> None:
    ann = Asker(sessions)
    keeper = ann.allowed("admin", "read")
    assert await keeper.code("token.create", scopes=["read", "write"]) == "forbidden"
    assert await keeper.code("token.create") == "forbidden"
    await keeper.ask("token.create", scopes=["read"])
    for scope in UNRESTRICTED:
        assert await ann.code("token.create", scopes=[scope], reach={"agents": ["main"]}) == "invalid_input"
    refused: tuple[dict[str, Any], ...] = (
        {"expires_at": clock.now},
        {"reach": {"keys": ["*" * 5]}},
        {"reach": {"keys": [""]}},
        {"scopes": []},
        {"reach": {"owners": ["bob"]}},
    )
    for wrong in refused:
        assert await ann.code("token.create", **wrong) == "invalid_input", wrong


async def test_a_restricted_token_is_unknown_to_programs_that_know_no_restrictions(
    sessions: Sessions,
) -> None:
    _, secret = await sessions.tokens.create("ann", scopes=["read"], reach=Reach(agents=("main",)))
    digest = hashlib.sha256(secret.encode()).digest()
    assert await sessions.core.store.read(lambda tx: tx.token(digest)) is None


# What they reach


@pytest.fixture
async def ann(sessions: Sessions) -> Asker:
    """An owner with a chat on each of two channels, each with a fact, and two accounts that are one person's."""
    asker = Asker(sessions, engine=Scripted())
    for key, name in ((OURS, "otter"), (THEIRS, "heron")):
        await asker.say(FACT.format(name), session_key=key)
        await asker.ask("sessions.reset", session_key=key)
        await asker.say("Good morning", session_key=key)
    await asker.ask(
        "identity.link", channel="irc", peer_id="ann", canonical={"channel": "xmpp", "peer_id": "bob"}
    )
    return asker


@pytest.mark.parametrize(
    "reach",
    [
        {"channels": ("irc",)},
        {"keys": ("agent:main:irc:*", "agent:*:sms:*")},
        {"people": ("irc:ann",)},
        {"agents": ("main", "other"), "channels": ("irc", "sms")},
    ],
    ids=["channel", "keys", "people", "agents and channels"],
)
async def test_what_is_out_of_reach_is_answered_as_if_it_did_not_exist(
    ann: Asker, reach: dict[str, tuple[str, ...]]
) -> None:
    limited = restricted(ann, **reach)
    theirs = (await ann.ask("session.get", session_key=THEIRS))["session_id"]
    missing = theirs[:-1] + ("0" if theirs[-1] != "0" else "1")
    for name in by_key():
        answers = [
            json.dumps(await limited.refused(name, **PARAMS.get(name, {}), session_id=value)).replace(
                value, ""
            )
            for value in (theirs, missing)
        ]
        assert answers[0] == answers[1], name
    for asked in ("session.list", "sessions.list"):
        found = await limited.ask(asked, limit=1)
        assert ([each["session_key"] for each in found["sessions"]], found["total"]) == ([OURS], 1)
        assert "cursor" not in found
    assert [
        hit["session_key"] for hit in (await limited.ask("session.search", query="staging"))["results"]
    ] == [OURS]
    assert (await limited.ask("session.search", query="heron"))["results"] == []
    for asked in ("memory.search", "memory.list"):
        given = {"query": "staging"} if asked == "memory.search" else {}
        assert "heron" not in json.dumps(found := await limited.ask(asked, **given))
        assert [fact["content"] for fact in found["facts"]] == [FACT.format("otter")]
    assert await limited.code("session.resolve", session_key=theirs) == "session_not_found"
    accounts = await limited.ask("identity.accounts", channel="irc", peer_id="ann")
    assert accounts == {"accounts": [{"channel": "irc", "peer_id": "ann"}]} or "keys" in reach
    assert await limited.said(OURS) == ["Good morning"]


async def test_nothing_is_made_out_of_reach(ann: Asker) -> None:
    limited = restricted(ann, channels=("irc",), agents=("main",))
    for key in (THEIRS, "agent:main:xmpp:dm:new", "agent:other:irc:dm:ann"):
        assert await limited.code("session.create", session_key=key) == "out_of_reach"
        assert (
            await limited.code("session.append", session_key=key, create=True, messages=MESSAGES)
            == "out_of_reach"
        )
        assert await limited.code("session.fork", session_key=OURS, new_session_key=key) in (
            "out_of_reach",
            "already_exists",
        )
    await limited.say("Hello", session_key="agent:main:irc:dm:new")
    fork = await limited.ask("session.fork", session_key=OURS)
    assert (await limited.ask("session.get", session_key=fork["session_id"]))["parent"]


async def test_a_parent_out_of_reach_is_not_named_and_not_lost(ann: Asker) -> None:
    fork = await ann.ask("session.fork", session_key=THEIRS, new_session_key="agent:main:irc:dm:fork")
    limited = restricted(ann, channels=("irc",))
    named = {"session_key": "agent:main:irc:dm:fork"}
    assert (await limited.ask("session.get", **named))["parent"] is None
    await limited.ask("sessions.set_topic", **named, topic="Mine")
    await limited.say("And so on", **named)
    assert (await limited.ask("session.get", **named))["parent"] is None
    assert (await ann.ask("session.get", **named))["parent"] == fork["parent"]


async def test_what_is_erased_within_reach_is_gone_beyond_it(ann: Asker) -> None:
    ours, copy = "agent:main:irc:dm:new", "agent:main:xmpp:dm:copy"
    (said,) = (await ann.say(FACT.format("marten"), session_key=ours))["message_ids"]
    await ann.ask("session.fork", session_key=ours, new_session_key=copy)
    await ann.ask("sessions.reset", session_key=copy, recap=True)
    assert "marten" in json.dumps(await ann.ask("session.history", session_key=copy))
    await restricted(ann, channels=("irc",)).ask("session.erase", session_key=ours, message_id=said)
    for view in ("context", "conversation"):
        assert "marten" not in json.dumps(await ann.ask("session.history", session_key=copy, view=view))
    assert (await ann.ask("memory.search", query="marten"))["facts"] == []


async def test_idempotency_keys_of_others_are_free(ann: Asker) -> None:
    given = {"messages": MESSAGES, "idempotency_key": "k"}
    await ann.ask("session.append", session_key=THEIRS, **given)
    limited = restricted(ann, channels=("irc",))
    first = await limited.ask("session.append", session_key=OURS, **given)
    assert await limited.ask("session.append", session_key=OURS, **given) == first
    await ann.ask("sessions.set_topic", session_key=THEIRS, topic="A", idempotency_key="k")
    await limited.ask("sessions.set_topic", session_key=OURS, topic="B", idempotency_key="k")


async def test_methods_are_restricted_too_and_some_are_for_whole_tokens_only(ann: Asker) -> None:
    reader = restricted(ann, methods=("session.get", "session.hist*"))
    assert (await reader.ask("session.get", session_key=THEIRS))["session_key"] == THEIRS
    await reader.ask("session.history", session_key=OURS)
    for name in ("session.list", "sessions.history", "session.append", "rpc.discover"):
        assert await reader.code(name, **request(name)) == "out_of_reach"
    for name, method in METHODS.items():
        if not method.reached and method.scope not in UNRESTRICTED:
            assert await restricted(ann, agents=("main",)).code(name, **request(name)) == "out_of_reach", name


# The census: people inside one owner


PEOPLE = {
    "irc": Reach(channels=("irc",)),
    "xmpp": Reach(keys=("agent:main:xmpp:*",)),
    "sms": Reach(people=("sms:u", "sms:group:g")),
}


class Actor:
    """Somebody with a restricted token who asks at random; what is asked depends only on the dice and on the answers."""

    def __init__(self, sessions: Sessions, name: str, seed: int) -> None:
        limited = token("ann", ("read", "write", "run", "raw"))
        rule = TokenRule(reach=PEOPLE[name])
        self.asker = Asker(sessions.limited_to(rule.reach), "ann", engine=Scripted()).with_(
            token=Token(id=name, owner="ann", scopes=limited.scopes, created_at=0, rule=rule)
        )
        self.name, self.dice = name, random.Random(seed)
        self.keys = [f"agent:main:{channel}:{kind}" for channel in PEOPLE for kind in ("dm:u", "group:g")]

    async def act(self) -> Any:
        name = self.dice.choice(list(METHODS))
        params = {**request(name)}
        own = [key for key in self.keys if f":{self.name}:" in key]
        if name in by_key() or name == "session.resolve":
            params["session_key"] = self.dice.choice([*own, *own, *self.keys])
        for field in ("message_id", "checkpoint_id"):
            if field in params:
                params[field] = await self._known(field, params["session_key"])
        if name == "session.append":
            said = {"role": "user", "content": f"words of {self.name}: {FACT.format(self.name)}"}
            params |= {"create": self.dice.random() < 0.8, "messages": [said] * self.dice.randint(1, 3)}
        if name == "session.create":
            params["session_key"] = self.dice.choice(own)
        return name, params, await self.asker.outcome(name, **params)

    async def _known(self, field: str, key: str) -> str:
        method, rows = {
            "message_id": ("session.history", "messages"),
            "checkpoint_id": ("sessions.compaction.list", "checkpoints"),
        }[field]
        found = await self.asker.outcome(method, session_key=key)
        return str(self.dice.choice(found.get(rows) or [{field: "none"}])[field])


async def played(people: tuple[str, ...], plan: list[str], seed: int) -> dict[str, list[Any]]:
    """What each of these people was told, when only they ask their part of a plan."""
    clock, seen = Clock(), {name: list[Any]() for name in people}
    async with connector("memory:")("memory:", clock) as store:
        actors = {
            name: Actor(Sessions(store, now=clock, new_id=counting(number << 32).__next__), name, seed)
            for number, name in enumerate(PEOPLE, 1)
            if name in people
        }
        for name in plan:
            clock.advance()
            if name in actors:
                seen[name].append(await actors[name].act())
    return seen


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_a_person_is_told_does_not_depend_on_others_of_the_same_owner(seed: int) -> None:
    plan = random.Random(seed).choices(list(PEOPLE), k=500)
    together = await played(tuple(PEOPLE), plan, seed)
    for name in PEOPLE:
        alone = await played((name,), plan, seed)
        assert comparable(alone[name]) == comparable(together[name])
        told = json.dumps(together[name])
        assert f"words of {name}: " in told
        for other in set(PEOPLE) - {name}:
            assert f"words of {other}: " not in told
