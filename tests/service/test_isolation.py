"""Nothing of one owner is ever seen by another, not even that it is there."""

from __future__ import annotations

import base64
import inspect
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from hitherto.engine import Elicitation, Reply
from hitherto.errors import HithertoError, SessionNotFound
from hitherto.model import Draft, Fact, Filter, Principal, Text, ToolCall
from hitherto.ports import Store
from hitherto.service import ROOMS, Address, Guard, Policy, Sessions
from hitherto.service.memory.facts import NewFact
from hitherto.stores import connector
from hitherto.summariser import CompactionPolicy
from hitherto.values.query.moments import Period
from hitherto.values.words import parse_words
from tests.support.conversations import everything, exported, filed, say, started
from tests.support.homes import Clock, Home, counting
from tests.support.outcomes import outcome, plain
from tests.support.scripted_engine import Scripted, ask_once

Call = Callable[[Sessions, Principal, str], Awaitable[Any]]


def guard(session_id: str) -> Guard:
    return Guard(method="pin", asked=1, key="k", session_id=session_id, expected_revision=1)


BY_ID: dict[str, Call] = {
    "catalog.get": lambda s, who, x: s.get(who, x),
    "catalog.get_by_key": lambda s, who, x: s.get_by_key(who, x),
    "catalog.resolve": lambda s, who, x: s.resolve(who, x),
    "catalog.rename": lambda s, who, x: s.rename(who, x, "Mine"),
    "catalog.tag": lambda s, who, x: s.tag(who, x, add=["mine"]),
    "catalog.archive": lambda s, who, x: s.archive(who, x),
    "catalog.pin": lambda s, who, x: s.pin(who, x),
    "catalog.set_status": lambda s, who, x: s.catalog.set_status(who, x, "failed"),
    "catalog.set_meta": lambda s, who, x: s.set_meta(who, x, {"a": 1}),
    "catalog.move": lambda s, who, x: s.move(who, x, "/mine"),
    "catalog.delete": lambda s, who, x: s.delete(who, x),
    "entries.append": lambda s, who, x: s.append(who, x, say("Mine")),
    "entries.history": lambda s, who, x: s.history(who, x),
    "entries.entry": lambda s, who, x: s.entry(who, x, "e"),
    "conversation.find": lambda s, who, x: s.within(who, x, "secret"),
    "edits.changes": lambda s, who, x: s.edits.changes(who, x),
    "conversation.beside": lambda s, who, x: s.conversation.beside(who, x, "e", "user"),
    "entries.erase": lambda s, who, x: s.erase(who, x, "e"),
    "forks.fork": lambda s, who, x: s.fork(who, x, at="e"),
    "timeline.rewind": lambda s, who, x: s.rewind(who, x, "e"),
    "episodes.reset": lambda s, who, x: s.reset(who, x),
    "episodes.known": lambda s, who, x: s.episodes.known(who, x),
    "timeline.checkpoints": lambda s, who, x: s.checkpoints(who, x),
    "branches.known": lambda s, who, x: s.branches.known(who, x),
    "branches.resolve": lambda s, who, x: s.branches.resolve(who, x, "1"),
    "timeline.restore": lambda s, who, x: s.restore(who, x, "c"),
    "forks.branch": lambda s, who, x: s.branch(who, x, "c"),
    "compaction.compact": lambda s, who, x: s.compact(who, x, say("Mine")),
    "compaction.shrink": lambda s, who, x: s.compaction.shrink(who, x),
    "compaction.preview": lambda s, who, x: s.compaction.preview(who, x),
    "comparison.relatives": lambda s, who, x: s.comparison.relatives(who, x),
    "comparison.compare": lambda s, who, x: s.comparison.compare(who, x, x),
    "leases.acquire": lambda s, who, x: s.leases.acquire(who, x, "me"),
    "leases.renew": lambda s, who, x: s.leases.renew(who, x, 1),
    "leases.release": lambda s, who, x: s.leases.release(who, x, 1),
    "leases.current": lambda s, who, x: s.leases.current(who, x),
    "presence.attended": lambda s, who, x: s.presence.attended(who, x),
    "changes.put_live": lambda s, who, x: s.changes.put_live(who, x, b"mine"),
    "changes.live": lambda s, who, x: s.changes.live(who, x),
    "memory.facts": lambda s, who, x: s.memory.facts(who, x),
    "memory.note": lambda s, who, x: s.memory.note(who, NewFact(text="t", session=x)),
    "memory.add": lambda s, who, x: s.memory.add(who, [Fact(id="f", at=1, text="t", session=x)]),
    "transfer.keep_raw": lambda s, who, x: s.transfer.keep_raw(who, x, "n", b"mine"),
    "transfer.raw": lambda s, who, x: s.transfer.raw(who, x),
    "transfer.drop_raw": lambda s, who, x: s.transfer.drop_raw(who, x),
    "transfer.export": lambda s, who, x: exported(s, who, x),
    "transfer.export_file": lambda s, who, x: filed(s, who, x),
    "transfer.review": lambda s, who, x: s.transfer.review(who, x),
    "turns.opened": lambda s, who, x: ask_once(s, who, x, Scripted()),
    "catalog.set_directories": lambda s, who, x: s.catalog.set_directories(who, x, ["/b"]),
    "catalog.set_own_meta": lambda s, who, x: s.catalog.set_own_meta(who, x, {"hitherto/a": 1}),
    "turns.continuation": lambda s, who, x: s.turns.continuation(who, x),
    "turns.continued": lambda s, who, x: s.turns.continued(who, x),
    "turns.retitle": lambda s, who, x: s.turns.retitle(who, x, "T"),
    "channels.resolve": lambda s, who, x: s.channels.resolve(who, x),
    "channels.begin": lambda s, who, x: s.channels.begin(who, Address(), parent=x),
    "channels.start_anew": lambda s, who, x: s.channels.start_anew(who, x),
    "channels.fork_to": lambda s, who, x: s.channels.fork_to(who, x, Address()),
    "channels.readdress": lambda s, who, x: s.channels.readdress(who, x, Address()),
    "channels.amend": lambda s, who, x: s.channels.amend(who, x, pinned=True),
    "leases.request_end": lambda s, who, x: s.leases.request_end(who, x),
    "leases.end_requested": lambda s, who, x: s.leases.end_requested(who, x),
    "turns.end": lambda s, who, x: s.turns.end(who, x, seconds=0),
    "inbox.waiting": lambda s, who, x: s.inbox.waiting(who, x),
    "inbox.cancel": lambda s, who, x: s.inbox.cancel(who, x, "m"),
    "inbox.move": lambda s, who, x: s.inbox.move(who, x, "m", 1),
    "inbox.settle": lambda s, who, x: s.inbox.settle(who, x),
    "questions.ask": lambda s, who, x: s.questions.ask(who, x, ToolCall(id="c", name="n"), fence=1),
    "questions.pending": lambda s, who, x: s.questions.pending(who, x),
    "questions.answer": lambda s, who, x: s.questions.answer(who, x, "c", "allow_once"),
    "questions.answered": lambda s, who, x: s.questions.answered(who, x, "c"),
    "questions.elicit": lambda s, who, x: s.questions.elicit(
        who, x, Elicitation(id="e", server="s", message="m"), fence=1
    ),
    "questions.elicitation": lambda s, who, x: s.questions.elicitation(who, x),
    "questions.reply": lambda s, who, x: s.questions.reply(who, x, "e", Reply(action="decline")),
    "questions.replied": lambda s, who, x: s.questions.replied(who, x, "e"),
    "projects.assign": lambda s, who, x: s.projects.assign(who, x, "mine"),
    "idempotency.guarded": lambda s, who, x: s.idempotency.guarded(
        who, guard(x), lambda inner: inner.pin(who, x), str
    ),
    "spending.usage": lambda s, who, x: s.usage(who, x),
    "prompt": lambda s, who, x: s.prompt(who, x, [Text(text="Mine")], engine=Scripted()),
}
"""Methods that name a session: a foreign one is answered exactly like a missing one."""

INVALID: dict[str, Call] = {
    "catalog.rename": lambda s, who, x: s.rename(who, x, "x" * 10_000),
    "catalog.tag": lambda s, who, x: s.tag(who, x, add=["\0"]),
    "catalog.set_status": lambda s, who, x: s.catalog.set_status(who, x, "no"),  # type: ignore[arg-type]
    "catalog.set_meta": lambda s, who, x: s.set_meta(who, x, {"a": object()}),
    "catalog.move": lambda s, who, x: s.move(who, x, "relative"),
    "entries.append": lambda s, who, x: s.append(who, x, []),
    "entries.history": lambda s, who, x: s.history(who, x, limit=0),
    "conversation.find": lambda s, who, x: s.within(who, x, "secret", limit=0),
    "conversation.beside": lambda s, who, x: s.conversation.beside(who, x, "no such entry", "robot"),  # type: ignore[arg-type]
    "compaction.compact": lambda s, who, x: s.compact(who, x, Draft(role="user"), keep=-1),
    "leases.acquire": lambda s, who, x: s.leases.acquire(who, x, "", ttl_ms=-1),
    "transfer.keep_raw": lambda s, who, x: s.transfer.keep_raw(who, x, "", b""),
    "forks.fork": lambda s, who, x: s.fork(who, x, cwd="relative"),
    "turns.retitle": lambda s, who, x: s.turns.retitle(who, x, "x" * 10_000),
    "catalog.set_directories": lambda s, who, x: s.catalog.set_directories(who, x, ["relative"]),
    "channels.start_anew": lambda s, who, x: s.channels.start_anew(who, x, title="x" * 10_000),
    "channels.amend": lambda s, who, x: s.channels.amend(who, x, tags=["\0"]),
    "projects.assign": lambda s, who, x: s.projects.assign(who, x, "\0"),
}
"""The same with arguments that are wrong: that is said only to the owner."""

OWN_ONLY = {
    *(
        "catalog.create",
        "catalog.find",
        "catalog.count",
        "index.search",
        "index.narrowed",
        "index.facets",
        "statistics.stats",
        "changes.since",
        "changes.newest",
        "changes.watch",
        "admin.prune",
    ),
    *(
        "catalog.move_folder",
        "catalog.moved_to",
        "transfer.import_",
        "transfer.migrate",
        "transfer.already_there",
        "transfer.sync",
        "transfer.sync_packed",
        "memory.forget",
        "memory.known",
        "memory.update",
        "resets.due",
        "resets.run",
    ),
    *(
        "identities.link",
        "identities.unlink",
        "identities.linked",
        "identities.accounts",
        "idempotency.answered_before",
        "changes.wait",
    ),
    *(
        "statistics.facets",
        "statistics.overview",
        "spending.count",
        "spending.count_for",
        "spending.report",
        "projects.place",
        "projects.place_folder",
        "projects.placeless",
        "projects.called",
        "projects.counts",
        "projects.rename",
    ),
    *(
        "presence.remove_drafts",
        "transfer.trim_raw",
        "transfer.bereft",
        "tokens.page",
        "people.export",
        "people.erase",
    ),
    *("channels.begin_with", "changes.cursor", "changes.position", "catalog.every"),
    *("edits.refresh", "edits.rebuild", "edits.trace", "edits.why", "edits.touched", "edits.recent"),
}
"""Methods that name no session, or only narrow by it: they answer from the caller's own sessions alone."""

SILENT: dict[str, Call] = {
    "presence.attend": lambda s, who, x: s.presence.attend(who, "me", opened=[x]),
    "transfer.mark_source": lambda s, who, x: s.transfer.mark_source(who, x, gone=True),
    "catalog.known": lambda s, who, x: s.catalog.known(who, [x]),
    "edits.counts": lambda s, who, x: s.edits.counts(who, [x]),
    "memory.search": lambda s, who, x: s.memory.search(who, session_id=x),
    "catalog.used": lambda s, who, x: s.catalog.used(who, [x]),
    "spending.numbers": lambda s, who, x: s.spending.numbers(who, [x]),
}
"""Methods that name a session and answer, without an error, the same for a foreign one as for a missing one."""

WHOLE_STORE = {
    *(
        "admin.about",
        "admin.backup",
        "admin.check",
        "admin.collect",
        "admin.forget_notes",
        "admin.owners",
        "admin.put_back",
        "admin.unordered",
        "admin.quarantined",
        "admin.quarantined_messages",
        "admin.take_duty",
        "admin.distribute",
    ),
    "resets.sweep",
    # Who somebody is, is what these are asked: they come before there is a principal, or manage who may be one.
    *("tokens.create", "tokens.verify", "tokens.is_good", "tokens.all", "tokens.revoke", "tokens.rotate"),
    *("tokens.note_use", "tokens.generation"),
    *("signin.invite", "signin.sign_in", "signin.admit", "signin.visitor", "signin.sign_out"),
    # Where something waits, for a server that looks after all inboxes.
    "inbox.everywhere",
    "turns.close_interrupted",
    # Says where a session would be kept, by the form of its key alone.
    "at",
    # The same sessions, or a part of them.
    "limited_to",
    "close",
}
"""Care of the store itself: no principal, and nothing of a session in the answer."""


def public_functions(kind: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


def public_methods() -> dict[str, Any]:
    """All of every room, and what `Sessions` has besides."""
    rooms = {
        f"{name}.{method}": member
        for name, room in ROOMS.items()
        for method, member in public_functions(room).items()
    }
    known = {inspect.unwrap(member) for member in rooms.values()}
    flat = public_functions(Sessions).items()
    return rooms | {name: member for name, member in flat if inspect.unwrap(member) not in known}


def test_every_public_method_has_a_ruling() -> None:
    assert set(public_methods()) == {*BY_ID, *SILENT, *OWN_ONLY, *WHOLE_STORE}


def test_every_method_that_names_a_session_is_among_those_that_are_tried() -> None:
    named = {
        name
        for name, method in public_methods().items()
        if "session_id" in inspect.signature(method).parameters
    }
    # `create` makes one of this id, `watch` listens to it, `cursor` and `position` seal it: none of them tells whether
    # another owner has it.
    elsewhere = {"catalog.create", "changes.watch", "changes.cursor", "changes.position"}
    assert named - elsewhere <= {*BY_ID, *SILENT}


def test_every_method_takes_a_principal_but_those_that_care_for_the_store() -> None:
    without = {
        name for name, method in public_methods().items() if "who" not in inspect.signature(method).parameters
    }
    assert without == WHOLE_STORE


async def refusal(call: Call, sessions: Sessions, who: Principal, session_id: str) -> tuple[object, ...]:
    with pytest.raises(HithertoError) as caught:
        await call(sessions, who, session_id)
    error = caught.value
    return type(error), error.code, error.message, error.args, vars(error)


async def rich(sessions: Sessions, who: Principal, session_id: str) -> None:
    """A session with an entry `e`, a checkpoint, a fact, a raw copy, live text, a key and a lease."""
    await sessions.create(who, session_id=session_id, key=session_id, title="Secret title")
    await sessions.append(who, session_id, say("secret words", id="e"))
    await sessions.compact(who, session_id, say("secret summary"))
    await sessions.memory.add(who, [Fact(id="f", at=1, text="secret fact", session=session_id)])
    await sessions.transfer.keep_raw(who, session_id, "n", b"secret bytes")
    await sessions.changes.put_live(who, session_id, b"secret text")
    await sessions.leases.acquire(who, session_id, "secret holder")
    await sessions.presence.attend(who, "secret holder", opened=[session_id])


@pytest.mark.parametrize("calls", [BY_ID, INVALID], ids=["valid", "invalid"])
async def test_foreign_is_answered_exactly_like_missing(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, calls: dict[str, Call]
) -> None:
    await started(sessions, ann, "Mine", session_id="mine")
    mine = await everything(reader, ann)
    missing = {name: await refusal(call, reader, ann, "x") for name, call in calls.items()}
    await rich(sessions, bob, "x")
    theirs = await everything(reader, bob)
    foreign = {name: await refusal(call, reader, ann, "x") for name, call in calls.items()}
    assert foreign == missing
    assert {error[1] for error in missing.values()} <= {"session_not_found", "invalid_input", "invalid_cwd"}
    assert await everything(reader, ann) == mine
    assert await everything(reader, bob) == theirs


async def test_methods_that_raise_no_error_answer_the_same_for_foreign_as_for_missing(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    missing = {name: await call(reader, ann, "x") for name, call in SILENT.items()}
    await rich(sessions, bob, "x")
    theirs = await everything(reader, bob)
    assert {name: await call(reader, ann, "x") for name, call in SILENT.items()} == missing
    assert await everything(reader, bob) == theirs


async def test_wrong_arguments_for_a_foreign_session_are_not_looked_at(
    sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    await rich(sessions, bob, "x")
    for name in sorted(INVALID.keys() - {"catalog.set_meta"}):
        assert (await refusal(INVALID[name], sessions, ann, "x"))[1] == "session_not_found", name


async def test_a_foreign_session_s_checkpoint_facts_and_keys_are_not_reached_through_an_own_one(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    await rich(sessions, bob, "x")
    (checkpoint,) = await sessions.checkpoints(bob, "x")
    await started(sessions, ann, "Mine", session_id="x")
    missing = await outcome(reader.restore(ann, "x", "no such"))
    foreign = await outcome(reader.restore(ann, "x", checkpoint.id))
    assert (
        (missing[0], missing[1]) == (foreign[0], foreign[1]) == ("CheckpointNotFound", "checkpoint_not_found")
    )
    assert (await outcome(reader.entry(ann, "x", "e")))[1] == "entry_not_found"
    assert (await outcome(reader.get_by_key(ann, "x")))[1] == "session_not_found"
    assert await reader.memory.facts(ann) == []


SHORT = CompactionPolicy(kept_tokens=1)
WORDS = ["alpha", "beta", "gamma", "delta"]
IDS = ["s1", "s2", "s3", "s4", "s5"]


class Actor:
    """One owner who does things at random; what it does depends only on its dice and on the answers it gets."""

    def __init__(self, sessions: Sessions, who: Principal, seed: int) -> None:
        self.sessions = sessions
        self.who = who
        self.dice = random.Random(seed)
        self.cursors: dict[str, str | None] = {}

    def text(self) -> str:
        return " ".join(self.dice.choices(WORDS, k=self.dice.randint(1, 4)))

    async def act(self) -> Any:
        """Do one thing; returns what it came to."""
        name = self.dice.choice(sorted(ACTIONS))
        return name, await outcome(ACTIONS[name](self, self.dice.choice(IDS)))

    async def append(self, x: str) -> Any:
        return await self.sessions.append(self.who, x, say(self.text(), tokens=self.dice.randint(1, 9)))

    async def create(self, x: str) -> Any:
        tags = self.dice.sample(WORDS, 2)
        return await self.sessions.create(self.who, session_id=x, title=self.text(), tags=tags, cwd=f"/{x}")

    async def find(self, _: str) -> Any:
        given = self.dice.choice([Filter(archived="include"), Filter(tags=("alpha",)), Filter(text="beta")])
        return await self.paged(
            repr(given), lambda cursor: self.sessions.find(self.who, given, cursor=cursor, limit=2)
        )

    async def search(self, _: str) -> Any:
        text = self.dice.choice(
            [
                "alpha",
                "beta gamma",
                "al*",
                "role:user",
                "tag:beta delta",
                "title:alpha",
                "alpha -beta",
                "file:gamma",
                "-tag:alpha,beta",
                "delta has:tool,code",
            ]
        )
        return await self.paged(
            text, lambda cursor: self.sessions.search(self.who, text, cursor=cursor, limit=2, count=True)
        )

    async def paged(self, question: str, ask: Callable[[str | None], Awaitable[Any]]) -> Any:
        page = await ask(self.cursors.get(question))
        self.cursors[question] = page.cursor
        return page

    async def at_an_entry(self, x: str) -> Any:
        page = await self.sessions.history(self.who, x, view="conversation", limit=1_000)
        entry = self.dice.choice([None, *(each.id for each in page.entries)])
        calls: list[Callable[[Principal, str, str], Awaitable[Any]]]
        calls = [self.sessions.rewind, self.sessions.erase, self.fork_at]
        call = self.dice.choice(calls)
        return None if entry is None else await call(self.who, x, entry)

    async def fork_at(self, who: Principal, x: str, entry: str) -> Any:
        fork = await self.sessions.fork(who, x, at=entry)
        return fork, await self.sessions.delete(who, fork.id)

    async def restore(self, x: str) -> Any:
        known = await self.sessions.checkpoints(self.who, x)
        if not known:
            return known
        return await self.sessions.restore(
            self.who, x, self.dice.choice(known).id, since=self.dice.random() < 0.5
        )

    async def tell(self, x: str) -> Any:
        text = f"The {self.dice.choice(WORDS)} port is {self.dice.randint(1, 99)}."
        return await self.sessions.append(self.who, x, [say(text, tokens=500), say("ok")])

    async def forget(self, _: str) -> Any:
        known = [*await self.sessions.memory.facts(self.who), Fact(id="nothing", at=1, text="")]
        return await self.sessions.memory.forget(self.who, self.dice.choice(known).id)

    async def lease(self, x: str) -> Any:
        lease = await self.sessions.leases.acquire(self.who, x, self.who.owner, ttl_ms=2_000)
        return lease, await self.sessions.append(self.who, x, say(self.text()), fence=lease.fence)

    async def round_trip(self, x: str) -> Any:
        lines = await exported(self.sessions, self.who, x)
        await self.sessions.delete(self.who, x)
        return lines, await self.sessions.import_(self.who, lines, include_deleted=True)


ACTIONS: dict[str, Callable[[Actor, str], Awaitable[Any]]] = {
    "append": Actor.append,
    "append again": Actor.append,
    "append more": Actor.append,
    "create": Actor.create,
    "create another": Actor.create,
    "find": Actor.find,
    "search": Actor.search,
    "search again": Actor.search,
    "at an entry": Actor.at_an_entry,
    "restore": Actor.restore,
    "lease": Actor.lease,
    "round trip": Actor.round_trip,
    "get": lambda actor, x: actor.sessions.get(actor.who, x),
    "resolve": lambda actor, x: actor.sessions.resolve(actor.who, x[:1]),
    "history": lambda actor, x: actor.sessions.history(actor.who, x),
    "rename": lambda actor, x: actor.sessions.rename(actor.who, x, actor.text()),
    "tag": lambda actor, x: actor.sessions.tag(
        actor.who, x, add=[actor.dice.choice(WORDS)], remove=WORDS[:1]
    ),
    "archive": lambda actor, x: actor.sessions.archive(actor.who, x, archived=actor.dice.random() < 0.5),
    "compact": lambda actor, x: actor.sessions.compact(actor.who, x, say(actor.text()), keep=1),
    "shrink": lambda actor, x: actor.sessions.compaction.shrink(actor.who, x, policy=SHORT),
    "tell": Actor.tell,
    "recall": lambda actor, _: actor.sessions.memory.search(actor.who, actor.text()),
    "forget": Actor.forget,
    "reset": lambda actor, x: actor.sessions.reset(actor.who, x),
    "delete": lambda actor, x: actor.sessions.delete(actor.who, x),
    "count": lambda actor, _: actor.sessions.count(actor.who, Filter(tags=("beta",))),
    "stats": lambda actor, _: actor.sessions.statistics.stats(actor.who),
    "changes": lambda actor, _: actor.sessions.changes.since(actor.who),
    "newest": lambda actor, _: actor.sessions.changes.newest(actor.who),
    "facts": lambda actor, _: actor.sessions.memory.facts(actor.who),
    "prune": lambda actor, _: actor.sessions.admin.prune(actor.who, Policy(keep_newest=3)),
    "move folder": lambda actor, x: actor.sessions.catalog.move_folder(actor.who, f"/{x}", f"/{x}/moved"),
}


async def played(
    home: Home, owners: list[Principal], plan: list[Principal], seed: int
) -> dict[str, list[Any]]:
    """What each of these owners saw, when only they act out their part of a plan."""
    clock = Clock()
    seen: dict[str, list[Any]] = {who.owner: [] for who in owners}
    async with AsyncExitStack() as opened:
        # Each has a connection and ids of its own, so that all of them have sessions of the same ids.
        actors = {}
        for who in owners:
            store = await opened.enter_async_context(connector(home.url)(home.url, clock))
            actors[who] = Actor(Sessions(store, now=clock, new_id=counting().__next__), who, seed)
        for who in plan:
            clock.advance()
            if who in actors:
                seen[who.owner].append(await actors[who].act())
        for who in owners:
            seen[who.owner].append(await everything(actors[who].sessions, who))
    return seen


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_an_owner_sees_the_same_whether_or_not_others_are_there(
    homes: Callable[[], Home], seed: int
) -> None:
    owners = [Principal(owner=name) for name in ("ann", "bob", "an")]
    dice = random.Random(seed)
    plan = dice.choices(owners, k=450)
    together = await played(homes(), owners, plan, seed)
    for who in owners:
        alone = await played(homes(), [who], plan, seed)
        assert plain(alone[who.owner]) == together[who.owner]


async def test_a_foreign_session_is_never_forked(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    await rich(sessions, bob, "x")
    (checkpoint,) = await sessions.checkpoints(bob, "x")
    for call in (
        reader.fork(ann, "x"),
        reader.fork(ann, "x", at="e"),
        reader.branch(ann, "x", checkpoint.id),
    ):
        with pytest.raises(SessionNotFound):
            await call
    assert await reader.count(ann) == 0
    assert await reader.count(bob) == 1


async def test_a_search_of_the_store_finds_documents_of_one_owner(
    store: Store, sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    """The service looks at the owner once more; here the store alone is asked."""
    for who in (ann, bob, ann):
        await started(sessions, who, "needle", title="needle")
    without, ever = parse_words('absent "ne ver"'), Period(0, 1 << 60)
    for kind, number in ((None, 4), ("user", 2), ("title", 2), ("tool", 0)):
        for terms in (parse_words("needle"), ()):
            found = await store.read(lambda tx, t=terms, k=kind: tx.matches("ann", t, k, None, 50))  # type: ignore[misc]
            assert len(found) == number
            found = await store.read(
                lambda tx, t=terms, k=kind: tx.matches("ann", t, k, None, 50, without=without, during=ever)  # type: ignore[misc]
            )
            assert len(found) == number
    assert await store.read(lambda tx: tx.matches("nobody", (), None, None, 50)) == []


async def test_a_cursor_tells_nothing_to_whoever_holds_it(sessions: Sessions, ann: Principal) -> None:
    for number in range(3):
        await started(sessions, ann, "needle", session_id=f"session-{number}", title="T")
    page, found = await sessions.find(ann, limit=1), await sessions.search(ann, "needle", limit=1)
    for cursor in (page.cursor, found.cursor):
        assert cursor is not None
        state = base64.urlsafe_b64decode(cursor.partition(".")[0] + "==")
        assert b"session" not in state
        with pytest.raises(ValueError, match=r"."):
            json.loads(state)


async def test_an_owner_s_name_is_never_a_pattern(sessions: Sessions, reader: Sessions) -> None:
    names = ["a", "A", "a ", "ab", "%", "_", "a%", "a' or '1'='1", 'a"', "ä", "a\u0308", "😀", "a:b", "a*"]
    for number, name in enumerate(names):
        who = Principal(owner=name)
        await started(sessions, who, f"needle {number}", session_id=f"s{number}", title=f"T{number}")
    for number, name in enumerate(names):
        who = Principal(owner=name)
        assert [each.id for each in (await reader.find(who)).sessions] == [f"s{number}"]
        assert [hit.session.id for hit in (await reader.search(who, "needle")).hits] == [f"s{number}"]
        assert await reader.count(who) == 1
        assert (await reader.statistics.stats(who))["sessions"] == 1
        assert len(await reader.changes.since(who)) == 1
