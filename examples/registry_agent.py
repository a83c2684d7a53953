"""A whole ACP agent. It repeats what it is told, and forgets sessions that nobody has touched for 30 days.

Hitherto does the rest: the registry of sessions, in memory unless a store is named; list with pages and filters, load,
resume, fork, delete, titles from the first prompt.

    python examples/registry_agent.py [--store sqlite:////tmp/sessions.db] [--days 30]
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import hitherto
import hitherto.acp
from hitherto.engine import Choices, Conversation, Delta, Event, Message, Setup, Turn
from hitherto.model import Entry, Text, plain_text

DAY_MS = 24 * 60 * 60 * 1000


async def clean_up(sessions: hitherto.Sessions, days: float) -> int:
    """Delete what nobody has touched for so long; returns how many sessions that were."""
    policy = hitherto.Policy(older_than_ms=round(days * DAY_MS), delete=True)
    return len(await sessions.admin.prune(hitherto.LOCAL, policy, dry_run=False))


class Parrot:
    """The engine, and each of its conversations: it has nothing to remember of its own."""

    def __init__(self, store: str, days: float) -> None:
        self.store, self.days = store, days

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:  # noqa: ARG002 - no tools, no folders
        async with hitherto.open(self.store) as sessions:
            await clean_up(sessions, self.days)
        yield self

    async def run(self, turn: Turn) -> AsyncIterator[Event]:
        answer = "You said: " + plain_text(turn.history[-1])
        yield Delta(text=answer)
        yield Message(parts=(Text(text=answer),))

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
        return " ".join(plain_text(history[0]).split()[:4]).capitalize()

    async def window(self, choices: Choices) -> int | None:  # noqa: ARG002
        return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An ACP agent that repeats what it is told.")
    parser.add_argument("--store", default="memory:registry")
    parser.add_argument("--days", type=float, default=30)
    given = parser.parse_args()
    hitherto.acp.run(Parrot(given.store, given.days), given.store)
