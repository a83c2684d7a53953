"""Rows about programs that are killed: what was acknowledged, what is asked again, what a turn leaves behind."""

from __future__ import annotations

from torture.kills.agents import agents_killed
from torture.kills.commands import commands_killed
from torture.kills.outcome import Reckoning
from torture.kills.server import Plan, hammered
from torture.kills.turns import turns_killed
from torture.trial.program import Environment, Tried, broken, whole
from torture.trial.row import Outcome, Row, Setting
from torture.trial.stores import FILES, Ground, databases

ACKNOWLEDGED, ACKNOWLEDGED_THERE = 200_000, 20_000
MANY, FEW = (100, 350), (5, 60)
"""After how many acknowledgements a server is killed, at least and at most."""


def _counted(found: Reckoning, figure: str, *, met: bool) -> Outcome:
    counts = {
        "faults": found.kills.total(),
        "acknowledged": found.acknowledged.total(),
        "lost": found.lost,
    }
    return Outcome(met=met, figure=figure, counts=counts)


def _lost(setting: Setting, environment: Environment) -> Outcome:
    """R1: every door."""
    plan = Plan(
        kills=setting.of(short=5, full=1_000),
        acknowledged=FEW if setting.short else MANY,
        stillborn=setting.of(short=5, full=10),
    )
    found = hammered(setting, environment, plan)
    found += commands_killed(setting, environment, setting.of(short=2, full=200))
    if not setting.short:
        found += agents_killed(setting, environment, 200)
    enough = setting.short or found.acknowledged["socket"] + found.acknowledged["HTTP"] >= ACKNOWLEDGED
    return _counted(found, _by_door(found), met=found.whole and enough)


def _lost_by_server(setting: Setting, environment: Environment, ground: Ground = FILES) -> Outcome:
    """R1 in small: the server alone."""
    plan = Plan(kills=setting.of(short=2, full=40), acknowledged=FEW)
    found = hammered(setting, environment, plan, ground)
    return _counted(found, _by_door(found), met=found.whole)


def _lost_on_postgres(setting: Setting, environment: Environment) -> Outcome:
    """R1b: every door."""
    plan = Plan(
        kills=setting.of(short=3, full=200),
        acknowledged=FEW if setting.short else MANY,
        stillborn=setting.of(short=3, full=10),
    )
    with databases() as ground:
        found = hammered(setting, environment, plan, ground)
        found += commands_killed(setting, environment, setting.of(short=1, full=50), ground)
        found += agents_killed(setting, environment, setting.of(short=2, full=50), ground)
    enough = setting.short or found.acknowledged.total() >= ACKNOWLEDGED_THERE
    return _counted(found, _by_door(found), met=found.whole and enough)


def _lost_by_server_on_postgres(setting: Setting, environment: Environment) -> Outcome:
    with databases() as ground:
        return _lost_by_server(setting, environment, ground)


def _by_door(found: Reckoning) -> str:
    kills = ", ".join(f"{count:,} of `{door}`" for door, count in found.kills.items() if count)
    acknowledged = ", ".join(f"{count:,} by {door}" for door, count in found.acknowledged.items())
    return (
        f"kills: {kills}; acknowledged: {acknowledged}; {found.lost:,} lost, {found.faults()};"
        f" {found.examinations:,} examinations"
    )


def _repeated(*, keyed: bool, full: int) -> Tried:
    """R3: what was left without an answer is asked again, with its key or without."""

    def tried(setting: Setting, environment: Environment) -> Outcome:
        plan = Plan(kills=setting.of(short=3, full=full), acknowledged=FEW, keyed=keyed, unheard=True)
        found = hammered(setting, environment, plan)
        figure = (
            f"{found.kills.total():,} kills: {found.unknown:,} requests were left without an answer and made again,"
            f" {found.kept:,} of them had been stored; {found.twice:,} messages stored twice, {found.lost:,} lost"
        )
        return _counted(found, figure, met=found.whole and found.kept > 0)

    return tried


def _interrupted(*, short: int, full: int) -> Tried:
    """R5: turns."""

    def tried(setting: Setting, environment: Environment) -> Outcome:
        found = turns_killed(setting, environment, setting.of(short=short, full=full))
        return Outcome(met=found.whole, figure=found.told(), counts={"faults": found.kills})

    return tried


R1 = Row(
    key="R1",
    promise="What was acknowledged is there, whatever is killed",
    target="0 lost in 1,000 kills of the server and at least 200,000 acknowledgements",
    how="Four clients on WebSockets, each with four requests on its way, and four over HTTP append to eight sessions of "
    "`hitherto serve`; at a random acknowledgement it is killed with SIGKILL and started again, and sometimes killed while "
    "it starts. After every start the store is examined by the program's own check, integrity of the file included, while "
    "the server has it open. Then `hitherto append` is killed at random moments, while two other processes append to the "
    "same store, and `hitherto acp` while it answers prompts in three sessions at once (nine of ten are forks of a process that has imported all, one is started from "
    "nothing). The clients write down every acknowledgement; in the end every message must be in the store word for word, "
    "once, and nothing that nobody said. A program that logs anything, or needs help to start, fails the row. Small stores: a new one after every 20 kills of the server.",
    run=whole(_lost),
    control=broken(_lost_by_server, "acknowledged-before-commit"),
    broken="an acknowledgement before the commit",
)
R1B = Row(
    key="R1b",
    promise="The same with PostgreSQL as the store",
    target="0 lost in 200 kills of the server and at least 20,000 acknowledgements",
    how="As R1, with a database of PostgreSQL for each store; `hitherto serve`, `hitherto append` and `hitherto acp` are "
    "killed. What a killed process had on its way may still be committed after it has died: it counts as unknown, and is said "
    "again with its key. That PostgreSQL itself is killed is R4.",
    run=whole(_lost_on_postgres),
    control=broken(_lost_by_server_on_postgres, "acknowledged-before-commit-postgres"),
    broken="an acknowledgement before the commit",
    in_tests=False,  # R1 goes through the doors; what they stand on is killed on PostgreSQL too
    short_forms=(
        "tests/stores/test_processes.py::test_what_was_acknowledged_outlives_the_process_that_was_told_so",
    ),
)
R3 = Row(
    key="R3",
    promise="A request that is made again with its idempotency key is done once",
    target="0 duplicates in 1,000 kills with a retry of every unknown outcome",
    how="As R1, with a kill of `hitherto serve` after 5 to 60 acknowledgements. Whatever the kill left without an answer is "
    "asked again with the same key after the start, until it is acknowledged; then every message must be there once. The answer "
    "at which the server is killed never reaches its client, so that with every kill one request that was stored is made again.",
    run=whole(_repeated(keyed=True, full=1_000)),
    control=whole(_repeated(keyed=False, full=50)),
    broken="clients that ask again without a key",
)
R5 = Row(
    key="R5",
    promise="A turn that is killed leaves no tool call open and no record out of reach",
    target="500 kills mid-tool: 0 orphaned calls, 100 % of records reachable",
    how="A model on the loopback interface asks `hitherto acp` for three tools at once. The agent is killed with SIGKILL when "
    "a tool is running, at a random message; the next one loads the session and is prompted, and killed in turn. In the end "
    "every stored call must have its result, every request that the model got too, and the conversation as it is read from "
    "session to session must reach every row of the store. All agents are forks of a process that has imported everything.",
    run=whole(_interrupted(short=2, full=500)),
    control=broken(_interrupted(short=1, full=50), "dead-turn-left-open"),
    broken="what a dead turn left open stays so",
)
