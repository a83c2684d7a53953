"""Every limit that the documentation publishes, and one more: the code that comes is the one that it promises."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any, NamedTuple

import hitherto
from hitherto.errors import HithertoError
from hitherto.gateway.transport.limits import MESSAGE_BYTES, STRANGER_BYTES, Limits
from hitherto.limits import (
    DIRECTORIES,
    ENTRIES_PER_APPEND,
    ENTRY_BYTES,
    FACT_CHARS,
    FACTS_PAGE,
    FACTS_PER_CALL,
    HISTORY_PAGE,
    LARGEST_NUMBER,
    LIST_PAGE,
    LIVE_BYTES,
    META_BYTES,
    RAW_BYTES,
    SEARCH_PAGE,
    SEARCH_WALK,
    TAG_CHARS,
    TAGS,
    TITLE_CHARS,
)
from hitherto.model import LOCAL, Draft, Fact, Filter, Text
from hitherto.rpc.errors import OVERLOADED
from hitherto.rpc.peer import WAITING_REQUESTS
from hitherto.service import Sessions
from tests.gateway.servers import Json, Server, serving
from tests.mutants import ROOT
from torture.trial import suites
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

PAGES = {"docs/storage.md": "## Limits", "docs/serving.md": "## Limits"}
"""Where limits are published."""
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \|$", re.M)
HELD = {
    "receiving the head of a request, its body": "tests/gateway/server/test_limits.py",
    "receiving a message on a socket in pieces": "tests/gateway/server/test_limits.py",
    "long responses (histories, exports) for one token that are in progress or not yet read": "tests/gateway/events/test_subscriptions.py"
    "::test_long_answers_that_are_not_read_are_not_piled_up",
    "a client that reads nothing": "tests/gateway/events/test_subscriptions.py::test_an_answer_that_is_not_read_is_given_up",
    "a page with Markdown, code and differences": "tests/gateway/page/test_bounded_work.py",
    "ephemeral sessions of an owner": "tests/service/test_ephemeral.py",
}
"""Limits of time and of room, beyond which nobody is refused but something waits, ends or makes room: by their tests."""
KEY = "agent:main:main"


def published() -> list[str]:
    """The names of all limits, as the documentation has them."""
    found: list[str] = []
    for page, title in PAGES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        part = text[text.index(title) :].split("\n\n## ")[0].split("\n## ", 2)
        found += [row for row in ROW.findall("\n## ".join(part[:2])) if row not in ("what", "---")]
    return found


class ProgramTrial(NamedTuple):
    """A limit: the code within it and beyond it, which are None and this."""

    name: str
    within: str | None
    beyond: str | None
    promised: str

    @property
    def right(self) -> bool:
        return self.within is None and self.beyond == self.promised


# Over the SDK


Call = Callable[[Sessions, int], Awaitable[Any]]
SAID = Draft(role="user", parts=(Text(text="x"),))


def _long(size: int) -> Draft:
    return Draft(role="user", parts=(Text(text="x" * size),))


async def _walk(sessions: Sessions, count: int) -> None:
    """All sessions that one search shows, of so many that have the word."""
    for number in range(await sessions.count(LOCAL, Filter(tags=("walked",))), count):
        made = await sessions.create(LOCAL, title=f"{number}", tags=["walked"])
        await sessions.append(LOCAL, made.id, Draft(role="user", parts=(Text(text="needle"),)))
    shown, cursor = 0, None
    while True:
        page = await sessions.search(LOCAL, "needle", limit=SEARCH_PAGE, cursor=cursor)
        shown += len(page.hits)
        if (cursor := page.cursor) is None:
            break
    if shown < count:
        raise _Unseen(f"{shown} of {count}")


class _Unseen(Exception):
    """Not all were shown. No error of the program's own, whose every code is documented."""

    code = "not shown"


ENTRY_AROUND = 400
"""What an entry has around its text, and some more."""
IN_PROCESS: dict[str, tuple[tuple[int, str, Call], ...]] = {
    "entry": (
        (
            ENTRY_BYTES,
            "too_large",
            lambda s, n: s.append(LOCAL, "s", _long(n - ENTRY_AROUND * (n <= ENTRY_BYTES))),
        ),
    ),
    "messages in one append": (
        (ENTRIES_PER_APPEND, "too_large", lambda s, n: s.append(LOCAL, "s", [SAID] * n)),
    ),
    "list page": ((LIST_PAGE, "invalid_limit", lambda s, n: s.find(LOCAL, limit=n)),),
    "history page": ((HISTORY_PAGE, "invalid_limit", lambda s, n: s.history(LOCAL, "s", limit=n)),),
    "search page": ((SEARCH_PAGE, "invalid_limit", lambda s, n: s.search(LOCAL, "x", limit=n)),),
    "title": ((TITLE_CHARS, "too_large", lambda s, n: s.rename(LOCAL, "s", "x" * n)),),
    "tags of a session": (
        (TAG_CHARS, "too_large", lambda s, n: s.create(LOCAL, tags=["x" * n])),
        (TAGS, "too_large", lambda s, n: s.create(LOCAL, tags=[f"t{each}" for each in range(n)])),
    ),
    "metadata of a session": (
        (META_BYTES, "too_large", lambda s, n: s.create(LOCAL, meta={"x": "x" * (n - 8)})),
    ),
    "additional directories": (
        (
            DIRECTORIES,
            "too_large",
            lambda s, n: s.create(LOCAL, additional_directories=[f"/{each}" for each in range(n)]),
        ),
    ),
    "live text of a running turn": (
        (LIVE_BYTES, "too_large", lambda s, n: s.changes.put_live(LOCAL, "s", b"x" * n)),
    ),
    "raw copy": ((RAW_BYTES, "too_large", lambda s, n: s.transfer.keep_raw(LOCAL, "s", "n", b"x" * n)),),
    "fact": (
        (
            FACT_CHARS,
            "too_large",
            lambda s, n: s.memory.add(LOCAL, [Fact(id="f", at=1, text="x" * n, session="s")]),
        ),
        (FACTS_PER_CALL, "too_large", lambda s, n: s.memory.add(LOCAL, _facts(n))),
    ),
    "memory page": ((FACTS_PAGE, "invalid_limit", lambda s, n: s.memory.search(LOCAL, "x", limit=n)),),
    "sessions shown by one search, page by page": ((SEARCH_WALK, "not shown", _walk),),
}
HEAVY = ("raw copy", "sessions shown by one search, page by page", "entry")
"""What the short form leaves out."""


def _facts(count: int) -> list[Fact]:
    return [Fact(id=f"f{number}", at=1, text="t", session="s") for number in range(count)]


def by_sdk(store: str, names: list[str]) -> list[list[str | None]]:
    """Each of these limits within a program: its name, what came within it and beyond it, and what was promised."""
    return asyncio.run(_by_sdk(store, names))


async def _by_sdk(store: str, names: list[str]) -> list[list[str | None]]:
    told: list[list[str | None]] = []
    async with hitherto.open(store) as sessions:
        await sessions.create(LOCAL, session_id="s")
        for name in names:
            for most, promised, call in IN_PROCESS[name]:
                codes = [await _code(call(sessions, number)) for number in (most, most + 1)]
                told.append([name, *codes, promised])
    return told


async def _code(call: Awaitable[Any]) -> str | None:
    try:
        await call
    except (HithertoError, _Unseen) as error:
        return error.code
    return None


# Over the gateway


def _of(answer: Json) -> str | None:
    code: str | None = answer.get("error", {}).get("data", {}).get("code")
    return code


def by_gateway(server: Server) -> Iterator[ProgramTrial]:
    """The limits of pages and of messages, by the methods that have them."""
    said = [{"role": "user", "content": "x"}]
    server.call("session.append", {"session_key": KEY, "messages": said, "create": True})
    pages: tuple[tuple[str, int, str, Json], ...] = (
        ("list page", LIST_PAGE, "session.list", {}),
        ("list page", LIST_PAGE, "sessions.list", {}),
        ("list page", LIST_PAGE, "store.find", {}),
        ("history page", HISTORY_PAGE, "session.history", {"session_key": KEY}),
        ("history page", HISTORY_PAGE, "store.history", {"session_key": KEY}),
        ("search page", SEARCH_PAGE, "session.search", {"query": "x"}),
        ("search page", SEARCH_PAGE, "store.search", {"text": "x"}),
        ("memory page", FACTS_PAGE, "memory.search", {"query": "x"}),
        ("memory page", FACTS_PAGE, "memory.list", {}),
    )
    for name, most, method, params in pages:
        within, beyond = (_of(server.rpc(method, {**params, "limit": number})) for number in (most, most + 1))
        yield ProgramTrial(name, within, beyond, "invalid_limit")
    for method, field in (("sessions.set_topic", "topic"), ("store.rename", "title")):
        within, beyond = (
            _of(server.rpc(method, {"session_key": KEY, field: "x" * n}))
            for n in (TITLE_CHARS, TITLE_CHARS + 1)
        )
        yield ProgramTrial("title", within, beyond, "too_large")
    within, beyond = (
        _of(server.rpc("session.append", {"session_key": KEY, "messages": said * n}))
        for n in (ENTRIES_PER_APPEND, ENTRIES_PER_APPEND + 1)
    )
    yield ProgramTrial("messages in one append", within, beyond, "too_large")


def _status(reply: int, good: int) -> str | None:
    return None if reply == good else str(reply)


LIST = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'


def by_bounds(server: Server) -> Iterator[ProgramTrial]:
    """The limits of size, on every way in."""
    bodies = [server.post(LIST.ljust(MESSAGE_BYTES)).status]
    told = {
        "Content-Type": "application/json",
        **server.bearer("ann"),
        "Content-Length": str(MESSAGE_BYTES + 1),
    }
    bodies.append(server.request("POST", "/rpc", told).status)
    yield ProgramTrial(
        "a request over HTTP, a message on a socket", _status(bodies[0], 200), str(bodies[1]), "413"
    )
    heads = [
        server.request("GET", "/metrics", {**server.bearer("ann"), "X": "x" * size}).status
        for size in (STRANGER_BYTES - 2_000, STRANGER_BYTES)
    ]
    name = "the head of a request; a message on a socket before its token is known"
    yield ProgramTrial(name, _status(heads[0], 200), str(heads[1]), "431")
    yield from asyncio.run(_on_sockets(server, name))


async def _on_sockets(server: Server, name: str) -> list[ProgramTrial]:
    asked = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "connect", "params": {"token": server.tokens["ann"].secret}}
    )
    async with server.socket(None) as client:
        await client.send(asked.ljust(STRANGER_BYTES))
        within = _of(await client.receive())
    async with server.socket(None) as client:
        await client.send(asked.ljust(STRANGER_BYTES + 1))
        beyond = str((await client.closed())[0])
    found = [ProgramTrial(name, within, beyond, "1009")]
    async with server.socket() as client:
        codes = [_of(await client.rpc("session.subscribe")) for _ in range(Limits().subscriptions + 1)]
    found.append(
        ProgramTrial(
            "subscriptions of one connection", next(filter(None, codes[:-1]), None), codes[-1], "too_large"
        )
    )
    found.append(await _at_once(server))
    return found


async def _at_once(server: Server) -> ProgramTrial:
    """Requests that wait for something that never happens: the first one too many is told so."""
    async with server.socket() as client:
        asked = [
            await client.begin("store.await_change", {"after": LARGEST_NUMBER})
            for _ in range(WAITING_REQUESTS + 1)
        ]
        refused = await client.answer(asked[-1])
        within = _of(await client.rpc("session.list"))
    return ProgramTrial(
        "requests running at once on one connection", within, str(refused["error"]["code"]), str(OVERLOADED)
    )


def by_rates(setting: Setting, environment: Environment) -> Iterator[ProgramTrial]:
    """The limits of number: requests, connections, sockets. Rates do not refill meanwhile."""
    few = setting.short
    limits = {
        "rate": 0.0,
        "stranger_rate": 0.0,
        "burst": 40 if few else Limits().burst,
        "peer_connections": 20 if few else Limits().peer_connections,
        "stranger_seconds": 60.0,
        "head_seconds": 60.0,
    }
    with serving(store_in(setting.folder, "rates"), limits=limits, environment=environment) as server:
        burst = Limits().stranger_burst
        bad = [
            server.request("GET", "/metrics", {"Authorization": "Bearer x"}).status for _ in range(burst + 1)
        ]
        name = "requests without a valid token, for each client address: with an invalid token, to `/health` and `/ready`, to the page, and for sockets, each counted separately"
        yield ProgramTrial(name, None if set(bad[:-1]) == {401} else str(bad), str(bad[-1]), "429")
        sockets = Limits().stranger_sockets
        yield asyncio.run(_strangers(server, sockets))
        yield asyncio.run(_requests(server, int(limits["burst"])))
        with ExitStack() as stack:
            for _ in range(int(limits["peer_connections"])):
                stack.enter_context(server.plain())
            with server.plain() as refused:
                line = refused.recv(12)
        yield ProgramTrial("connections", None, line.decode()[9:], "503")


async def _strangers(server: Server, count: int) -> ProgramTrial:
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(server.socket(None))
        beyond = server.upgrade("/ws").status
    return ProgramTrial("sockets that have not sent their token yet", None, str(beyond), "429")


async def _requests(server: Server, burst: int) -> ProgramTrial:
    async with server.socket("bob") as client:  # the upgrade is a request too
        codes = [_of(await client.rpc("session.list", {"limit": 1})) for _ in range(burst)]
    wrong = next(filter(None, codes[:-1]), None)
    return ProgramTrial("requests with one token", wrong, codes[-1], "rate_limited")


# All of it


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Every limit by every way that it can be reached, and none left out."""
    names = [name for name in IN_PROCESS if not (setting.short and name in HEAVY)]
    found = [
        ProgramTrial(*each)
        for each in apart(by_sdk, environment, store=store_in(setting.folder, "sdk"), names=names)
    ]
    with serving(store_in(setting.folder), environment=environment) as server:
        found += by_gateway(server)
        if not setting.short:
            found += by_bounds(server)
    if not setting.short:
        found += by_rates(setting, environment)
    held = _held(setting) if not setting.short else True
    left_out = set(published()) - {each.name for each in found} - HELD.keys()
    missing = set() if setting.short else left_out
    wrong = [each for each in found if not each.right]
    for each in (*wrong, *missing):
        setting.say(str(each))
    figure = (
        f"{len(found) - len(wrong)} of {len(found)} have their documented code one beyond the limit and none within it;"
        f" {len(missing)} of {len(published())} published limits untried; those of time and room by their tests"
    )
    return Outcome(met=not wrong and not missing and held, figure=figure, counts={"inputs": 2 * len(found)})


def _held(setting: Setting) -> bool:
    return suites.passing(*sorted(set(HELD.values())), figure="{passed}")(setting).met
