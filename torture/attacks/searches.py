"""Searches that were never meant to be: of any characters, words of query languages, and very many of them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.gateway.servers import Server, serving
from tests.support.homes import CARELESS
from tests.support.postgres_server import PostgresServer
from torture.trial.program import Environment, ProgramTrial, broken, each, store_in
from torture.trial.row import Outcome, Setting

SLOW_MS = 200
KNOWN = ("invalid_input", "invalid_query", "too_large", "invalid_cursor", "invalid_limit", "search_too_broad")
"""What a search may be refused for."""
PIECES = (
    "alpha", "beta*", '"', "'", "(", ")", "*", "^", "-", "+", ":", "AND", "OR", "NOT", "NEAR", "NEAR/5", "NEAR(", "{", "}",
    "title:", "tag:", "role:", "is:", "before:", "after:", "text:", "own:", "rowid:", "\\", "%", "_", ";", "--", "/*", "*/",
    "&", "|", "!", "<->", ":*", "<", ">", "@@", "$1", "?", "\0", "\ud800", "\u202e", "é", "e\u0301", "漢字", "ß", "İ", "😀", "👩‍👩‍👧",
    "' OR 1=1 --", "'; DROP TABLE entry; --", "x" * 400, "a b " * 60, "snake_case.and/paths", "camelCase", "0x7f", "１２３",
    "\u200b", "\n", "\t", "\r\n", "co-op", "C++", "a.b.c", "http://x.example/?q=a&b=c", "(a+)+$", "[[:alpha:]]", "\\p{L}",
)  # fmt: skip
MANY_BEGINNINGS = (
    "A query may have eight beginnings, each shared by thousands of words; the engine collects the messages of every one of"
    " those words before it can compare the lists."
)
LETTERS = "abcdeéñø"
LONG_TEXT, LONG_EVERY = 40_000, 40
ENGINES = ("SQLite", "PostgreSQL")
METHODS = ("session.search", "sessions.list", "store.search", "memory.search")


def made_word(dice: random.Random) -> str:
    """One of many words of few letters: the same beginnings come again and again."""
    return "".join(dice.choices(LETTERS, k=dice.randrange(3, 9)))


def queries(dice: random.Random, count: int) -> Iterator[str]:
    """So many, most of a few pieces, some of very many, some of beginnings that thousands of words share."""
    for number in range(count):
        if number % 10 == 9:
            yield "".join(chr(dice.randrange(0x110000)) for _ in range(dice.randrange(1, 60)))
        elif number % 10 == 8:
            beginnings = (f"{made_word(dice)[: dice.randrange(1, 4)]}*" for _ in range(dice.randrange(1, 40)))
            yield " ".join(beginnings)
        else:
            most = 3_000 if number % 97 == 96 else 8
            glue = dice.choice(["", " ", " ", '"'])
            yield glue.join(dice.choices(PIECES, k=dice.randrange(1, most)))


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """So many searches are asked of SQLite, and as many of PostgreSQL; in the short form of SQLite alone."""
    return on(*ENGINES[: setting.of(short=1, full=2)])(setting, environment)


def noticed(setting: Setting) -> Outcome:
    """The control: words as they were typed, in each engine by itself, and queries of any length, which take too long; in
    the short form the first, in SQLite."""
    trials = (
        broken(on("SQLite"), "search-words-as-typed"),
        broken(on("PostgreSQL"), "search-words-unquoted"),
        broken(on("SQLite"), "queries-of-any-length"),
        broken(on("PostgreSQL"), "queries-of-any-length"),
    )
    return each(*trials[: setting.of(short=1, full=len(trials))])(setting)


def on(*engines: str) -> ProgramTrial:
    """The trial of these engines."""
    return lambda setting, environment: _run_trial(setting, environment, engines)


def _run_trial(setting: Setting, environment: Environment, engines: Sequence[str]) -> Outcome:
    count = setting.of(short=200, full=2_000 if environment else 10_000)
    with ExitStack() as stack:
        stores: dict[str, tuple[str, int | None]] = {}
        if "SQLite" in engines:
            stores["SQLite"] = (store_in(setting.folder), None)
        if "PostgreSQL" in engines:
            postgres = stack.enter_context(PostgresServer(fast=True))
            stores["PostgreSQL"] = (postgres.create_database("searched") + CARELESS, postgres.pid)
        told = {
            name: _asked(setting, environment, name, url, behind, count)
            for name, (url, behind) in stores.items()
        }
    figure = "; ".join(
        f"{name}: {len(bad)} engine errors in {count:,} searches, the slowest took {worst:.0f} ms of CPU"
        for name, (bad, worst) in told.items()
    )
    for bad, _ in told.values():
        setting.say("\n".join(bad[:5]))
    met = all(not bad and worst < SLOW_MS for bad, worst in told.values())
    slow = any(worst >= SLOW_MS for _, worst in told.values())
    return Outcome(
        met=met, figure=figure, counts={"inputs": count * len(told)}, missed=MANY_BEGINNINGS if slow else ""
    )


def _asked(
    setting: Setting, environment: Environment, name: str, url: str, behind: int | None, count: int
) -> tuple[list[str], float]:
    """The searches that ended in an error of the engine, and the most milliseconds of CPU that one took."""
    bad: list[str] = []
    worst, slowest, dice = 0.0, "", setting.dice(f"searches {name}")
    limits = {"rate": 1e6, "burst": 1_000_000}
    with serving(url, environment=environment, limits=limits, noisy=bool(environment)) as server:
        _filled(server, dice, setting.of(short=100, full=12_000))
        server.rpc("session.search", {"query": "alpha"})  # the index catches up
        for query in queries(dice, count):
            method = dice.choice(METHODS)
            field = {"sessions.list": "search", "store.search": "text"}.get(method, "query")
            before = spent(server.process.pid) + (spent(behind) if behind else 0.0)
            answer = server.rpc(method, {field: query})
            after = spent(server.process.pid) + (spent(behind) if behind else 0.0)
            if after - before > worst:
                worst, slowest = after - before, f"{method} {query!r:.300}"
            code = answer.get("error", {}).get("data", {}).get("code")
            if "error" in answer and code not in KNOWN:
                bad.append(f"{method} {query!r:.200}: {answer['error']}"[:500])
    setting.say(f"{name}, {worst:.0f} ms: {slowest}")
    return bad, worst


def _filled(server: Server, dice: random.Random, count: int) -> None:
    words = [piece for piece in PIECES if "\ud800" not in piece]

    def text(number: int) -> str:
        most = LONG_TEXT if number % LONG_EVERY == 0 else 2_000
        own = (made_word(dice) for _ in range(most // 100))
        return " ".join((*dice.choices(words, k=20), *own))[:most]

    for at in range(0, count, 100):
        said = [{"role": "user", "content": text(at + more)} for more in range(min(100, count))]
        key = f"agent:main:x:dm:u{at}"
        server.call("session.append", {"session_key": key, "messages": said, "create": True})


def spent(pid: int) -> float:
    """The milliseconds of CPU that a process and its children have had; PostgreSQL has one for each connection."""
    total = 0
    for process in (pid, *_children(pid)):
        with suppress(OSError):
            for task in os.listdir(f"/proc/{process}/task"):
                total += int(Path(f"/proc/{process}/task/{task}/schedstat").read_text().split()[0])
    return total / 1e6


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
