"""Records histories of eight clients on both kinds of store, and has each explained."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.homes import CARELESS
from tests.support.postgres_server import PostgresServer
from torture.histories.calls import Event
from torture.histories.checker import Model, Undecided
from torture.histories.clients import CLIENTS, Task, record
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

LINES, LONGEST = 5, 300


class Found(NamedTuple):
    """What was recorded on a kind of store."""

    store: str
    histories: int
    calls: int
    overlapping: int
    """Calls during which another of the same session was made."""
    unexplained: list[str]
    undecided: int

    def told(self) -> str:
        """In words, for the scorecard."""
        return (
            f"{self.store}: {self.histories:,} histories of {CLIENTS} clients, {self.calls:,} calls, {self.overlapping:,} of"
            f" them beside another call to the same session: {len(self.unexplained):,} not explained,"
            f" {self.undecided:,} undecided"
        )


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """SQLite, then PostgreSQL; in the short form fewer histories."""
    found = [_on_sqlite(setting, environment), _on_postgres(setting, environment)]
    return _outcome(setting, found)


def run_on_sqlite(setting: Setting, environment: Environment) -> Outcome:
    """SQLite alone."""
    return _outcome(setting, [_on_sqlite(setting, environment)])


def run_on_postgres(setting: Setting, environment: Environment) -> Outcome:
    """PostgreSQL alone."""
    return _outcome(setting, [_on_postgres(setting, environment)])


def _outcome(setting: Setting, found: Sequence[Found]) -> Outcome:
    wrong = [line for each in found for line in each.unexplained]
    for line in wrong[:LINES]:
        setting.say(line)
    return Outcome(
        met=not wrong and not any(each.undecided for each in found),
        figure="; ".join(each.told() for each in found),
        counts={"lost": len(wrong)},
    )


def _on_sqlite(setting: Setting, environment: Environment) -> Found:
    return asyncio.run(_found("SQLite", store_in(setting.folder), setting, environment))


def _on_postgres(setting: Setting, environment: Environment) -> Found:
    with PostgresServer() as server:
        url = server.create_database("histories") + CARELESS
        return asyncio.run(_found("PostgreSQL", url, setting, environment))


async def _found(store: str, url: str, setting: Setting, environment: Environment) -> Found:
    # A broken program need not be tried for long.
    full = 40 if environment else 400
    task = Task(url, setting.seed, setting.of(short=4, full=full), setting.of(short=5, full=6))
    folder = Path(setting.folder) / store
    folder.mkdir()
    histories = await record(url, folder, task, environment)
    unexplained, undecided = list[str](), 0
    for number, events in enumerate(histories):
        model = Model(events)
        try:
            if await model.explained() is None:
                unexplained.append(f"{store}, history {number}: none of these fits: {_told(model.stuck())}")
        except Undecided:
            undecided += 1
    return Found(
        store=store,
        histories=len(histories),
        calls=sum(map(len, histories)),
        overlapping=sum(_overlapping(events) for events in histories),
        unexplained=unexplained,
        undecided=undecided,
    )


def _overlapping(events: Sequence[Event]) -> int:
    return sum(
        any(
            other is not event
            and other.call.session == event.call.session
            and other.began < event.ended
            and event.began < other.ended
            for other in events
        )
        for event in events
    )


def _told(events: Sequence[Event]) -> str:
    return "; ".join(f"{each.call} was answered {each.answer[:LONGEST]}" for each in events)
