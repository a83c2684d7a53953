"""Rows about killed programs: acknowledged messages, retried requests, interrupted turns."""

from __future__ import annotations

from torture.kills.agents import agents_killed
from torture.kills.commands import commands_killed
from torture.kills.outcome import KillTally
from torture.kills.server import Plan, kill_repeatedly
from torture.kills.turns import turns_killed
from torture.trial.program import Environment, ProgramTrial, broken, whole
from torture.trial.row import Outcome, Row, Setting
from torture.trial.stores import FILES, StoreProvider, databases

ACKNOWLEDGED, ACKNOWLEDGED_THERE = 200_000, 20_000
MANY, FEW = (100, 350), (5, 60)
"""After how many acknowledgements a server is killed, at least and at most."""


def _counted(found: KillTally, figure: str, *, met: bool) -> Outcome:
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
    found = kill_repeatedly(setting, environment, plan)
    found += commands_killed(setting, environment, setting.of(short=2, full=200))
    if not setting.short:
        found += agents_killed(setting, environment, 200)
    enough = setting.short or found.acknowledged["socket"] + found.acknowledged["HTTP"] >= ACKNOWLEDGED
    return _counted(found, _by_door(found), met=found.whole and enough)


def _lost_by_server(
    setting: Setting, environment: Environment, store_provider: StoreProvider = FILES
) -> Outcome:
    """R1 in small: the server alone."""
    plan = Plan(kills=setting.of(short=2, full=40), acknowledged=FEW)
    found = kill_repeatedly(setting, environment, plan, store_provider)
    return _counted(found, _by_door(found), met=found.whole)


def _lost_on_postgres(setting: Setting, environment: Environment) -> Outcome:
    """R1b: every door."""
    plan = Plan(
        kills=setting.of(short=3, full=200),
        acknowledged=FEW if setting.short else MANY,
        stillborn=setting.of(short=3, full=10),
    )
    with databases() as store_provider:
        found = kill_repeatedly(setting, environment, plan, store_provider)
        found += commands_killed(setting, environment, setting.of(short=1, full=50), store_provider)
        found += agents_killed(setting, environment, setting.of(short=2, full=50), store_provider)
    enough = setting.short or found.acknowledged.total() >= ACKNOWLEDGED_THERE
    return _counted(found, _by_door(found), met=found.whole and enough)


def _lost_by_server_on_postgres(setting: Setting, environment: Environment) -> Outcome:
    with databases() as store_provider:
        return _lost_by_server(setting, environment, store_provider)


def _by_door(found: KillTally) -> str:
    kills = ", ".join(f"{count:,} of `{door}`" for door, count in found.kills.items() if count)
    acknowledged = ", ".join(f"{count:,} by {door}" for door, count in found.acknowledged.items())
    return (
        f"kills: {kills}; acknowledged: {acknowledged}; {found.lost:,} lost, {found.faults()};"
        f" {found.examinations:,} examinations"
    )


def _repeated(*, keyed: bool, full: int) -> ProgramTrial:
    """R3: what was left without an answer is asked again, with its key or without."""

    def run_trial(setting: Setting, environment: Environment) -> Outcome:
        plan = Plan(kills=setting.of(short=3, full=full), acknowledged=FEW, keyed=keyed, unheard=True)
        found = kill_repeatedly(setting, environment, plan)
        figure = (
            f"{found.kills.total():,} kills: {found.unknown:,} requests were left without an answer and made again,"
            f" {found.kept:,} of them had been stored; {found.twice:,} messages stored twice, {found.lost:,} lost"
        )
        return _counted(found, figure, met=found.whole and found.kept > 0)

    return run_trial


def _interrupted(*, short: int, full: int) -> ProgramTrial:
    """R5: turns."""

    def run_trial(setting: Setting, environment: Environment) -> Outcome:
        found = turns_killed(setting, environment, setting.of(short=short, full=full))
        return Outcome(met=found.whole, figure=found.told(), counts={"faults": found.kills})

    return run_trial


R1 = Row(
    key="R1",
    promise="No acknowledged message is lost when a process is killed",
    target="0 lost in 1,000 kills of the server and at least 200,000 acknowledgements",
    how="Four WebSocket clients, each with four requests in flight, and four HTTP clients append to eight sessions of `hitherto "
    "serve`. At a random acknowledgement the server is killed with SIGKILL and restarted, and sometimes killed while it "
    "starts. After every start the program's own check examines the store, including the integrity of the file, while the "
    "server has it open. Then `hitherto append` is killed at random moments while two other processes append to the same "
    "store, and `hitherto acp` while it answers prompts in three sessions at once (nine of ten are forks of a process that "
    "has imported everything, one is started fresh). The clients record every acknowledgement; in the end every message "
    "must be in the store word for word, once, and no message that nobody sent. A program that logs anything, or needs "
    "help to start, fails the row. Stores are small: a new one after every 20 kills of the server.",
    run=whole(_lost),
    control=broken(_lost_by_server, "acknowledged-before-commit"),
    broken="messages are acknowledged before the commit",
)
R1B = Row(
    key="R1b",
    promise="No acknowledged message is lost when a process is killed, with PostgreSQL as the store",
    target="0 lost in 200 kills of the server and at least 20,000 acknowledgements",
    how="As R1, with a PostgreSQL database for each store; `hitherto serve`, `hitherto append` and `hitherto acp` are killed. A "
    "request that a killed process had in flight may still be committed after its death: it counts as unknown, and is "
    "retried with its key. R4 kills PostgreSQL itself.",
    run=whole(_lost_on_postgres),
    control=broken(_lost_by_server_on_postgres, "acknowledged-before-commit-postgres"),
    broken="messages are acknowledged before the commit",
    in_tests=False,  # R1 goes through the doors; what they stand on is killed on PostgreSQL too
    short_forms=(
        "tests/stores/test_processes.py::test_what_was_acknowledged_outlives_the_process_that_was_told_so",
    ),
)
R3 = Row(
    key="R3",
    promise="A request that is retried with its idempotency key is carried out once",
    target="0 duplicates in 1,000 kills with a retry of every unknown outcome",
    how="As R1, with a kill of `hitherto serve` after 5 to 60 acknowledgements. After the restart, every unanswered request is "
    "retried with the same key until it is acknowledged; then every message must be there once. The answer at which the "
    "server is killed never reaches its client, so with every kill at least one stored request is retried.",
    run=whole(_repeated(keyed=True, full=1_000)),
    control=whole(_repeated(keyed=False, full=50)),
    broken="clients that retry without a key",
)
R5 = Row(
    key="R5",
    promise="A killed turn leaves no open tool call and no unreachable record",
    target="500 kills mid-tool: 0 orphaned calls, 100 % of records reachable",
    how="A local model asks `hitherto acp` for three tool calls at once. The agent is killed with SIGKILL while a tool runs, at a "
    "random message; the next agent loads the session, gets a prompt, and is killed in turn. In the end every stored call "
    "must have its result, also in every request to the model, and reading all sessions must reach every row of the store. "
    "All agents are forks of a process that has imported everything.",
    run=whole(_interrupted(short=2, full=500)),
    control=broken(_interrupted(short=1, full=50), "dead-turn-left-open"),
    broken="open tool calls of a dead turn are not closed",
)
