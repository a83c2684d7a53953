"""Memory, SQLite and PostgreSQL driven side by side: whatever is done, they answer the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from hitherto.model import ROLES, STATUSES, Draft, Entry, Fact, Filter, Principal, Text, ToolResult, Usage
from hitherto.service import Imported, Policy, Sessions
from hitherto.values.days import DAY_MS
from tests.support.conversations import exported, hits, say, walk
from tests.support.homes import MemoryHome, PostgresHome, SqliteHome
from tests.support.postgres_server import PostgresServer
from tests.support.worlds import Ask, Worlds

STEPS = int(os.environ.get("HITHERTO_TEST_STEPS", "600"))
"""How many steps all stores are driven through."""
SEED = os.environ.get("TORTURE_SEED")
"""Where chance starts from; without it, the same steps are taken every time, and what fails is made shorter."""
STEPS_EACH = 50
"""How many of them follow upon each other in one example."""

WORDS = ["alpha", "beta", "gamma", "alphabet", "parseFile", "naïve", "漢字", "it's", "foo_bar.py"]
ODD = ["", "\0", "a\0alpha", "\ud800 beta", "x" * 70, "/clear", "<env>alpha</env> gamma", "<<>>", "a\u0301"]
IDS = ["s1", "s2", "s3"]
TAGS = ["t1", "t2", "ä b"]
FOLDERS = ["/a", "/b", "/a/b"]
PROJECTS = ["p", "host/ann/p", "host/bob/q"]
DAYS = ["2025-06-15", "2025-06-16"]

LAST_PICK = 15
a_pick = st.integers(0, LAST_PICK)
some_texts = st.lists(
    st.one_of(st.sampled_from(ODD), st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)),
    min_size=1,
    max_size=3,
)
a_title = st.one_of(
    st.none(),
    st.sampled_from(["", "  "]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
)
some_tags = st.lists(st.sampled_from(TAGS), max_size=3)
a_name = st.one_of(st.none(), st.sampled_from(["x", "y"]))
a_key = st.one_of(st.none(), st.none(), st.sampled_from(["k1", "k2"]))
a_limit = st.sampled_from([1, 2, 3, 50])
a_time = st.integers(0, 60).map(lambda seconds: 1_750_000_000_000 + seconds * 1_000)
maybe_time = st.one_of(st.none(), st.none(), a_time, a_time.map(lambda at: at + DAY_MS))
a_project = st.one_of(st.none(), st.sampled_from(PROJECTS))
a_word = st.sampled_from(
    [
        "alpha",
        "beta",
        *WORDS,
        "alp*",
        '"alpha alpha"',
        '"alpha bet"*',
        "parse",
        "file",
        "NAIVE",
        "字",
        "missing",
    ]
)
an_operator = st.sampled_from(
    [
        "title:alpha",
        "title:be*",
        "tag:t1",
        'tag:"ä b"',
        "cwd:/a",
        "project:p",
        "project:q",
        "agent:x",
        "role:user",
        "role:tool",
        "role:user,tool",
        "-role:user",
        "-alpha",
        '-"alpha beta" beta',
        "project:p,q -tag:t1",
        "is:archived",
        "has:tool",
        "file:alpha",
        "on:2025-06-15",
        "before:2025-06-15T15:07:00Z",
        "after:2025-06-15T15:06:50Z",
    ]
)
a_query = st.one_of(
    a_word,
    st.tuples(a_word, a_word).map(" ".join),
    st.tuples(a_word, an_operator).map(" ".join),
    an_operator,
    st.text(max_size=12),
)


def named(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Any]]:
    return values.map(lambda value: (name, value))


a_condition = st.one_of(
    named("cwd", st.sampled_from(FOLDERS)),
    named("project", st.sampled_from(PROJECTS)),
    named("day", st.sampled_from(DAYS)),
    named("agent_id", st.sampled_from(["x", "y"])),
    named("channel", st.just("irc")),
    named("source", st.just("claude")),
    named("native", st.booleans()),
    named("status", st.sampled_from(STATUSES)),
    named("tags", st.lists(st.sampled_from(TAGS), max_size=2).map(tuple)),
    named("text", a_word),
    named("archived", st.sampled_from(["include", "only"])),
    named("pinned", st.booleans()),
    named("created_after", a_time),
    named("created_before", a_time),
    named("updated_after", a_time),
    named("updated_before", a_time),
)
a_filter = st.lists(a_condition, max_size=2).map(lambda conditions: Filter(**dict(conditions)))


class Agreement(RuleBasedStateMachine):
    """Two owners who do at random whatever can be done."""

    worlds: ClassVar[Worlds]
    steps: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        self.owners = self.worlds.begin()
        self.who = self.owners[0]
        self.fences: dict[tuple[Principal, str], int] = {}
        self.erased = set[str]()
        for who in self.owners:
            for number in range(2):
                self.worlds.agree(lambda s, who=who, n=number: _begun(s, who, n))  # type: ignore[misc]

    @invariant()
    def counted(self) -> None:
        type(self).steps += 1

    def ids(self) -> list[str]:
        """The ids of the present owner's sessions; at least one."""
        if not (found := self.worlds.look(lambda s: _ids(s, self.who))):
            found = [self.worlds.agree(lambda s: _begun(s, self.who, 0))]
        return sorted(found)

    def session(self, pick: int) -> str:
        return _picked(self.ids(), pick, "nowhere")

    def entry(self, session_id: str, pick: int) -> str:
        found = self.worlds.look(lambda s: _entries(s, self.who, session_id))
        return _picked(found, pick, "no such entry")

    def checkpoint(self, session_id: str, pick: int) -> str:
        found = self.worlds.look(lambda s: _checkpoints(s, self.who, session_id))
        return _picked(found, pick, "no such checkpoint")

    @rule(second=st.booleans(), ms=st.sampled_from([0, 1, 1_000, 40_000]))
    def another_moment(self, second: bool, ms: int) -> None:
        self.who = self.owners[second]
        self.worlds.clock.advance(ms)

    @rule(title=a_title, tags=some_tags, cwd=st.one_of(st.none(), st.sampled_from(FOLDERS)), agent=a_name,
          channel=st.sampled_from([None, "irc"]), project=a_project, session_id=st.one_of(st.none(), st.sampled_from(IDS)), key=a_key)  # fmt: skip
    def create(self, **given: Any) -> None:
        agent, key = given.pop("agent"), given.pop("key")
        self.worlds.agree(
            lambda s: s.create(
                self.who, agent_id=agent, idempotency_key=key, meta={"m": [1, "\ud800"]}, **given
            )
        )

    @rule(pick=a_pick, texts=some_texts, role=st.sampled_from(ROLES), tokens=st.sampled_from([None, 0, 5]), key=a_key,
          cost=st.sampled_from([None, 0.1, 0.000001]), at=maybe_time, fenced=st.booleans(), model=a_name)  # fmt: skip
    def append(self, pick: int, texts: list[str], key: str | None, fenced: bool, **given: Any) -> None:
        session_id, cost = self.session(pick), given.pop("cost")
        usage = None if cost is None else Usage(cost=cost)
        drafts = [say(text, usage=usage, **given) for text in texts]
        fence = self.fences.get((self.who, session_id)) if fenced else None
        self.worlds.agree(lambda s: s.append(self.who, session_id, drafts, idempotency_key=key, fence=fence))

    @rule(pick=a_pick, revision=st.integers(0, 6), failed=st.booleans())
    def append_as_expected(self, pick: int, revision: int, failed: bool) -> None:
        session_id = self.session(pick)
        draft = Draft(role="tool", parts=(ToolResult(id="c", content=(Text(text="beta"),), is_error=failed),))
        self.worlds.agree(lambda s: s.append(self.who, session_id, draft, expected_revision=revision))

    @rule(pick=a_pick, title=a_title, revision=st.one_of(st.none(), st.integers(1, 4)))
    def rename(self, pick: int, title: str | None, revision: int | None) -> None:
        session_id = self.session(pick)
        self.worlds.agree(lambda s: s.rename(self.who, session_id, title, expected_revision=revision))

    @rule(pick=a_pick, add=some_tags, remove=some_tags)
    def tag(self, pick: int, add: list[str], remove: list[str]) -> None:
        session_id = self.session(pick)
        self.worlds.agree(lambda s: s.tag(self.who, session_id, add=add, remove=remove))

    @rule(pick=a_pick, on=st.booleans(), status=st.sampled_from(STATUSES), which=st.integers(0, 4))
    def edit(self, pick: int, on: bool, status: Any, which: int) -> None:
        session_id = self.session(pick)
        calls: list[Ask] = [
            lambda s: s.archive(self.who, session_id, archived=on),
            lambda s: s.pin(self.who, session_id, pinned=on),
            lambda s: s.catalog.set_status(self.who, session_id, status),
            lambda s: s.set_meta(self.who, session_id, {"m": None, "n": {"on": on}}),
            lambda s: s.move(self.who, session_id, "/b"),
        ]
        self.worlds.agree(calls[which])

    @rule(pick=a_pick, project=a_project, folder=st.sampled_from(FOLDERS))
    def place(self, pick: int, project: str | None, folder: str) -> None:
        session_id = self.session(pick)
        self.worlds.agree(lambda s: s.projects.assign(self.who, session_id, project))
        self.worlds.agree(lambda s: s.projects.placeless(self.who))
        self.worlds.agree(lambda s: s.projects.place_folder(self.who, folder, "p"))

    @rule(old=st.sampled_from(FOLDERS), new=st.sampled_from(FOLDERS))
    def move_folder(self, old: str, new: str) -> None:
        self.worlds.agree(lambda s: s.catalog.move_folder(self.who, old, new))

    @rule(pick=a_pick, at=st.one_of(st.none(), a_pick), title=a_title)
    def fork(self, pick: int, at: int | None, title: str | None) -> None:
        session_id = self.session(pick)
        entry = None if at is None else self.entry(session_id, at)
        self.worlds.agree(lambda s: s.fork(self.who, session_id, at=entry, title=title))

    @rule(pick=a_pick, at=a_pick)
    def rewind(self, pick: int, at: int) -> None:
        session_id = self.session(pick)
        entry = self.entry(session_id, at)
        self.worlds.agree(lambda s: s.rewind(self.who, session_id, entry))

    @rule(pick=a_pick)
    def reset(self, pick: int) -> None:
        session_id = self.session(pick)
        self.worlds.agree(lambda s: s.reset(self.who, session_id))

    @rule(pick=a_pick, keep=st.integers(0, 3))
    def compact(self, pick: int, keep: int) -> None:
        session_id = self.session(pick)
        summary = say("summary of alpha", "system", tokens=2)
        self.worlds.agree(lambda s: s.compact(self.who, session_id, summary, keep=keep))

    @rule(pick=a_pick, which=a_pick, since=st.booleans())
    def restore(self, pick: int, which: int, since: bool) -> None:
        session_id = self.session(pick)
        checkpoint = self.checkpoint(session_id, which)
        self.worlds.agree(lambda s: s.restore(self.who, session_id, checkpoint, since=since))

    @rule(pick=a_pick, which=a_pick)
    def branch(self, pick: int, which: int) -> None:
        session_id = self.session(pick)
        checkpoint = self.checkpoint(session_id, which)
        self.worlds.agree(lambda s: s.branch(self.who, session_id, checkpoint))

    @rule(pick=a_pick, at=a_pick)
    def erase(self, pick: int, at: int) -> None:
        session_id = self.session(pick)
        entry = self.entry(session_id, at)
        self.worlds.agree(lambda s: s.erase(self.who, session_id, entry))
        self.erased.add(entry)

    @rule(pick=a_pick)
    def delete(self, pick: int) -> None:
        session_id = self.session(pick)
        self.worlds.agree(lambda s: s.delete(self.who, session_id))

    @rule(pick=a_pick, new_id=st.booleans())
    def round_trip(self, pick: int, new_id: bool) -> None:
        session_id = self.session(pick)
        lines = self.worlds.agree(lambda s: exported(s, self.who, session_id))
        if isinstance(lines, tuple):
            return
        if not new_id:
            self.worlds.agree(lambda s: s.delete(self.who, session_id))
        self.worlds.agree(lambda s: s.import_(self.who, lines, new_id=new_id, include_deleted=True))
        # What was erased in a copy of the session does not come back with it.
        if not new_id and not any(entry.encode() in line for entry in self.erased for line in lines):
            assert self.worlds.agree(lambda s: exported(s, self.who, session_id)) == lines

    @rule(pick=a_pick)
    def give(self, pick: int) -> None:
        """Import one owner's export as the other."""
        session_id = self.session(pick)
        lines = self.worlds.agree(lambda s: exported(s, self.who, session_id))
        taker = self.owners[self.who == self.owners[0]]
        if not isinstance(lines, tuple):
            self.worlds.agree(lambda s: s.import_(taker, lines))

    @rule(number=st.integers(0, 2), texts=some_texts, at=a_time, archived=st.booleans())
    def take_in(self, number: int, texts: list[str], at: int, archived: bool) -> None:
        """What another agent has written."""
        given = Imported(
            id=f"claude:{number}", source="claude", created_at=at, updated_at=at, archived=archived
        )
        entries = [
            Entry(id=f"c{place}", at=at, role="user", parts=(Text(text=text),))
            for place, text in enumerate(texts)
        ]
        self.worlds.agree(lambda s: s.transfer.sync(self.who, given, entries))

    @rule(pick=a_pick, which=st.integers(0, 2))
    def lease(self, pick: int, which: int) -> None:
        session_id = self.session(pick)
        fence = self.fences.get((self.who, session_id), 1)
        calls: list[Ask] = [
            lambda s: s.leases.acquire(self.who, session_id, "h", ttl_ms=30_000),
            lambda s: s.leases.renew(self.who, session_id, fence, ttl_ms=30_000),
            lambda s: s.leases.release(self.who, session_id, fence),
        ]
        lease = self.worlds.agree(calls[which])
        if which == 0 and not isinstance(lease, tuple):
            self.fences[self.who, session_id] = lease.fence
        self.worlds.agree(lambda s: s.leases.current(self.who, session_id))

    @rule(pick=a_pick, data=st.sampled_from([None, b"", b"\0\xff"]), number=st.integers(0, 5))
    def beside(self, pick: int, data: bytes | None, number: int) -> None:
        """Live text, raw copies and facts."""
        session_id = self.session(pick)
        fact = Fact(id=f"f{number}", at=number, text="\0 fact", session=session_id)
        self.worlds.agree(lambda s: s.changes.put_live(self.who, session_id, data))
        self.worlds.agree(lambda s: s.transfer.keep_raw(self.who, session_id, f"n{number}", data or b"x"))
        self.worlds.agree(lambda s: s.memory.add(self.who, [fact]))
        self.worlds.agree(lambda s: s.changes.live(self.who, session_id))
        self.worlds.agree(lambda s: s.transfer.raw(self.who, session_id))
        self.worlds.agree(lambda s: s.memory.facts(self.who))

    @rule(given=a_filter, limit=a_limit)
    def find(self, given: Filter, limit: int) -> None:
        self.worlds.agree(lambda s: _found(s, self.who, given, limit))
        self.worlds.agree(lambda s: s.count(self.who, given))

    @rule(pick=a_pick, at=a_pick, view=st.sampled_from(["context", "conversation"]), limit=a_limit,
          way=st.sampled_from(["after", "before", "around", "last", "start"]))  # fmt: skip
    def history(self, pick: int, at: int, view: Any, limit: int, way: str) -> None:
        session_id = self.session(pick)
        anchor: dict[str, Any] = {}
        if way == "last":
            anchor = {"last": True}
        elif way != "start":
            anchor = {way: self.entry(session_id, at)}
        self.worlds.agree(lambda s: s.history(self.who, session_id, view=view, limit=limit, **anchor))
        self.worlds.agree(lambda s: s.checkpoints(self.who, session_id))

    @rule(query=a_query, given=st.one_of(st.none(), st.none(), a_filter), limit=a_limit)
    def search(self, query: str, given: Filter | None, limit: int) -> None:
        self.worlds.agree(lambda s: hits(s, self.who, query, given=given, limit=limit))

    @rule(query=a_query, given=st.one_of(st.none(), a_filter))
    def count_what_is_found(self, query: str, given: Filter | None) -> None:
        self.worlds.agree(lambda s: _amounts(s, self.who, query, given))

    @rule(word=a_word, limit=a_limit)
    def search_a_word(self, word: str, limit: int) -> None:
        for who in self.owners:
            self.worlds.agree(lambda s, who=who: hits(s, who, word, limit=limit))  # type: ignore[misc]

    @rule(pick=a_pick)
    def look_around(self, pick: int) -> None:
        session_id = self.session(pick)
        self.worlds.agree(lambda s: s.get(self.who, session_id))
        self.worlds.agree(lambda s: s.resolve(self.who, session_id[:2]))
        self.worlds.agree(lambda s: s.statistics.stats(self.who))
        self.worlds.agree(lambda s: _counted(s, self.who))
        self.worlds.agree(lambda s: _changes(s, self.who))

    @rule(policy=st.builds(Policy, keep_newest=st.integers(0, 4), delete=st.booleans(), agent_id=a_name,
                           spare_read_ms=st.sampled_from([0, 10_000])), dry_run=st.booleans())  # fmt: skip
    def prune(self, policy: Policy, dry_run: bool) -> None:
        self.worlds.agree(lambda s: s.admin.prune(self.who, policy, dry_run=dry_run))

    def teardown(self) -> None:
        """At the end of each example everything is compared once more."""
        for who in getattr(self, "owners", ()):
            self.who = who
            for session_id in self.ids():
                self.worlds.agree(lambda s, x=session_id: exported(s, self.who, x))  # type: ignore[misc]
            self.worlds.agree(lambda s: _found(s, self.who, Filter(archived="include"), 2))
            self.worlds.agree(lambda s: _changes(s, self.who))
            self.worlds.agree(lambda s: hits(s, self.who, "role:user", limit=3))
            self.worlds.agree(lambda s: _counted(s, self.who))


def _picked(found: list[str], pick: int, missing: str) -> str:
    """One of what there is; now and then one that is not there."""
    return missing if pick == LAST_PICK or not found else found[pick % len(found)]


async def _begun(sessions: Sessions, who: Principal, number: int) -> str:
    """A session in which something was said."""
    tags, agent_id = TAGS[number : number + 1], "xy"[number % 2]
    session = await sessions.create(who, tags=tags, cwd=FOLDERS[number], agent_id=agent_id)
    drafts = [say(f"{WORDS[at]} {WORDS[at + number]}", ROLES[at % 2], tokens=at) for at in range(5)]
    await sessions.append(who, session.id, drafts)
    return session.id


async def _ids(sessions: Sessions, who: Principal) -> list[str]:
    given = Filter(archived="include")
    return [session.id async for page in walk(sessions, who, given, limit=500) for session in page]


async def _entries(sessions: Sessions, who: Principal, session_id: str) -> list[str]:
    return [] if session_id == "nowhere" else await _conversation(sessions, who, session_id)


async def _conversation(sessions: Sessions, who: Principal, session_id: str) -> list[str]:
    """Read from an export, because reading a history is noted in the session."""
    lines = await exported(sessions, who, session_id)
    return [
        line.split(b'"id":"')[1].split(b'"')[0].decode() for line in lines if line.startswith(b'{"entry"')
    ]


async def _checkpoints(sessions: Sessions, who: Principal, session_id: str) -> list[str]:
    return (
        [] if session_id == "nowhere" else [each.id for each in await sessions.checkpoints(who, session_id)]
    )


async def _found(sessions: Sessions, who: Principal, given: Filter, limit: int) -> list[Any]:
    """The whole list; where its pages end is a store's own business, as long as none is too long."""
    pages = [page async for page in walk(sessions, who, given, limit=limit)]
    assert max(map(len, pages)) <= limit
    return [session for page in pages for session in page]


async def _counted(sessions: Sessions, who: Principal) -> list[Any]:
    """All counters, but for what a store says about itself."""
    overview = await sessions.statistics.overview(who, since_day="2025-06-01", until_day="2025-07-01")
    return [await sessions.statistics.facets(who), replace(overview, store={})]


async def _changes(sessions: Sessions, who: Principal) -> list[Any]:
    """The feed without its positions and its order, which are the store's own."""
    return sorted(
        (change.session, change.kind, change.revision or 0)
        for change in await sessions.changes.since(who, limit=1_000)
    )


@pytest.fixture
def worlds(tmp_path: Path, postgres_database: PostgresHome) -> Iterator[Worlds]:
    postgres_database.empty()
    with Worlds([MemoryHome(), SqliteHome(tmp_path), postgres_database]) as opened:
        yield opened


@pytest.mark.limit(1_800 + STEPS // 10)
def test_all_stores_agree_whatever_is_done(worlds: Worlds) -> None:
    agree(worlds, STEPS)


@pytest.fixture
def partitioned_worlds(postgres_server: PostgresServer) -> Iterator[Worlds]:
    """The model beside a database whose tables are split into parts."""
    home = PostgresHome(postgres_server, "agreement_in_parts", template="template1")
    home.url += "&partitions=3"
    with Worlds([MemoryHome(), home]) as opened:
        yield opened
    postgres_server.drop_database("agreement_in_parts")


def test_tables_in_partitions_agree_with_the_model(partitioned_worlds: Worlds) -> None:
    agree(partitioned_worlds, STEPS // 10)


async def _amounts(
    sessions: Sessions, who: Principal, query: str, given: Filter | None
) -> tuple[object, object, object]:
    """How much a search finds, in both orders, and of which kinds."""
    newest = await sessions.search(who, query, given=given, count=True)
    best = await sessions.search(who, query, given=given, count=True, order="best")
    return newest.found, best.found, await sessions.index.facets(who, query, given=given)


def agree(worlds: Worlds, steps: int) -> None:
    """Drive these stores through so many steps."""
    Agreement.worlds = worlds
    Agreement.steps = 0
    run_state_machine_as_test(
        seed(int(SEED))(Agreement) if SEED else Agreement,
        settings=settings(
            # Some examples are shorter than they may be.
            max_examples=2 + steps * 5 // 4 // STEPS_EACH,
            stateful_step_count=STEPS_EACH,
            deadline=None,
            derandomize=SEED is None,
            phases=tuple(Phase) if SEED is None else (Phase.generate,),
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Agreement.steps >= steps
