"""The examples that the gateway was asked for: what there is before, the request as it stands, and its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from hitherto.model import Draft, Entry, Text
from hitherto.summariser import CompactionPolicy, Finding, Summary
from tests.gateway.methods.asker import KEY, Asker
from tests.support.conversations import say
from tests.support.homes import Clock

BORN, COMPACTED, NOW = 1706313600000, 1706356800000, 1706400000000


class Summariser:
    """Says what it is told to, and finds eight facts."""

    async def summarise(
        self,
        retired: Sequence[Entry],
        kept: Sequence[Entry],  # noqa: ARG002 - the port's
        policy: CompactionPolicy,  # noqa: ARG002
    ) -> Summary:
        facts = (Finding(text=f"Fact {number}.", entries=(retired[0].id,)) for number in range(8))
        return Summary(text="x " * 2_854, facts=tuple(facts))


async def main_session(asker: Asker, clock: Clock) -> None:
    """42 messages of 12,840 tokens, the first of them the summary of a compaction."""
    sessions, who = asker.context.sessions, asker.context.who
    clock.now = BORN
    made = await asker.ask("session.create", session_key=KEY)
    clock.now = COMPACTED
    await sessions.append(who, made["session_id"], say("What was said before", tokens=100))
    await sessions.compact(who, made["session_id"], say("...", role="system", tokens=840))
    clock.now = NOW
    await sessions.append(who, made["session_id"], [say(f"{number}", tokens=300) for number in range(40)])
    await sessions.append(who, made["session_id"], say("40", tokens=0))


async def two_peers(asker: Asker, clock: Clock) -> None:
    """Two people on Telegram, the first heard of later than the second."""
    sessions, who = asker.context.sessions, asker.context.who
    for user, born, at, count, tokens in (
        ("user456", 1706350000000, 1706398000000, 8, 2100),
        ("user123", BORN, 1706399000000, 15, 4200),
    ):
        clock.now = born
        made = await asker.ask("session.create", session_key=f"agent:main:telegram:dm:{user}")
        clock.now = at
        drafts = [say("Hi", tokens=tokens if number == 0 else 0) for number in range(count)]
        await sessions.append(who, made["session_id"], drafts)
    await asker.ask("session.create", session_key="agent:main:discord:dm:user123")
    await asker.ask("session.create", session_key="agent:other:telegram:dm:user123")


async def short_talk(asker: Asker, clock: Clock) -> None:
    """A summary, a question, an answer."""
    sessions, who = asker.context.sessions, asker.context.who
    clock.now = COMPACTED
    made = await asker.ask("session.create", session_key=KEY)
    await sessions.append(who, made["session_id"], say("What was said before"))
    summary = Draft(role="system", parts=(Text(text="[Compacted summary from 2024-01-27]..."),), tokens=500)
    await sessions.compact(who, made["session_id"], summary)
    clock.now = NOW
    await sessions.append(who, made["session_id"], say("What did we discuss yesterday?", tokens=190))
    clock.now = NOW + 3000
    await sessions.append(
        who, made["session_id"], say("Based on our conversation history...", role="assistant", tokens=200)
    )


async def long_talk(asker: Asker, clock: Clock) -> None:
    """120 messages of 48,000 tokens, of which the last 14 are nearly a tenth."""
    sessions, who = asker.context.sessions, asker.context.who
    clock.now = NOW
    made = await asker.ask("session.create", session_key=KEY)
    tokens = [505, *[407] * 105, *[340] * 14]
    drafts = [
        say("well", role="assistant" if number % 2 else "user", tokens=each)
        for number, each in enumerate(tokens)
    ]
    await sessions.append(who, made["session_id"], drafts)


Prepare = Callable[[Asker, Clock], Awaitable[None]]


class Example(NamedTuple):
    """`then` is asked afterwards, of whichever server, and answered with `afterwards`; else the same is, again."""

    prepare: Prepare
    request: str
    answer: str
    then: str = ""
    afterwards: str = ""


EXAMPLES: dict[str, Example] = {
    "session.get": Example(
        main_session,
        """{"jsonrpc": "2.0", "id": 1, "method": "session.get", "params": {"session_key": "agent:main:main"}}""",
        """{"session_key": "agent:main:main", "agent_id": "main", "channel": "gateway", "message_count": 42,
            "token_count": 12840, "created_at": 1706313600000, "updated_at": 1706400000000,
            "last_compaction": 1706356800000,
            "identity": {"role": "owner", "identity_id": "owner", "source_channel": "gateway"}}""",
    ),
    "session.list": Example(
        two_peers,
        """{"jsonrpc": "2.0", "id": 2, "method": "session.list",
            "params": {"filter": {"agent_id": "main", "channel": "telegram"}, "limit": 20, "offset": 0}}""",
        """{"sessions": [
            {"session_key": "agent:main:telegram:dm:user123", "agent_id": "main", "channel": "telegram",
             "message_count": 15, "token_count": 4200, "created_at": 1706313600000, "updated_at": 1706399000000},
            {"session_key": "agent:main:telegram:dm:user456", "agent_id": "main", "channel": "telegram",
             "message_count": 8, "token_count": 2100, "created_at": 1706350000000, "updated_at": 1706398000000}
           ], "total": 2}""",
    ),
    "session.history": Example(
        short_talk,
        """{"jsonrpc": "2.0", "id": 3, "method": "session.history",
            "params": {"session_key": "agent:main:main", "limit": 100}}""",
        """{"session_key": "agent:main:main", "messages": [
             {"role": "system", "content": "[Compacted summary from 2024-01-27]...", "timestamp": 1706356800000},
             {"role": "user", "content": "What did we discuss yesterday?", "timestamp": 1706400000000},
             {"role": "assistant", "content": "Based on our conversation history...", "timestamp": 1706400003000,
              "tool_calls": []}
           ], "total": 3, "token_count": 890}""",
    ),
    "session.compact": Example(
        long_talk,
        """{"jsonrpc": "2.0", "id": 4, "method": "session.compact", "params": {"session_key": "agent:main:main"}}""",
        """{"session_key": "agent:main:main", "compacted": true, "messages_before": 120, "messages_after": 15,
            "tokens_before": 48000, "tokens_after": 6200, "facts_extracted": 8}""",
        """{"jsonrpc": "2.0", "id": 1, "method": "session.get", "params": {"session_key": "agent:main:main"}}""",
        """{"message_count": 15, "token_count": 6200, "last_compaction": 1706400003000}""",
    ),
    "session.delete": Example(
        two_peers,
        """{"jsonrpc": "2.0", "id": 5, "method": "session.delete",
            "params": {"session_key": "agent:main:telegram:dm:user123"}}""",
        """{"deleted": true, "session_key": "agent:main:telegram:dm:user123", "messages_removed": 15}""",
        "",
        """{"code": -32002, "data": {"code": "session_not_found",
            "session_key": "agent:main:telegram:dm:user123"}}""",
    ),
    "session.export": Example(
        short_talk,
        """{"jsonrpc": "2.0", "id": 6, "method": "session.export",
            "params": {"session_key": "agent:main:main", "format": "json"}}""",
        """{"session_key": "agent:main:main", "format": "json", "data": {
             "session_key": "agent:main:main", "agent_id": "main",
             "messages": [
               {"role": "user", "content": "What was said before", "timestamp": 1706356800000},
               {"role": "system", "content": "[Compacted summary from 2024-01-27]...", "timestamp": 1706356800000},
               {"role": "user", "content": "What did we discuss yesterday?", "timestamp": 1706400000000},
               {"role": "assistant", "content": "Based on our conversation history...",
                "timestamp": 1706400003000, "tool_calls": []}],
             "metadata": {"created_at": 1706356800000, "message_count": 4, "token_count": 890},
             "exported_at": 1706400003000}}""",
    ),
}


def differences(expected: Any, actual: Any, path: str = "$") -> list[str]:
    """Where the answer is not what it should be; it may tell more than was asked for. A type stands for any such value."""
    if isinstance(expected, type):
        return [] if type(actual) is expected else [f"{path} is {actual!r}, not of {expected}"]
    if isinstance(expected, dict) and isinstance(actual, dict):
        missing = [f"{path}.{name} is missing" for name in expected.keys() - actual.keys()]
        shared = (name for name in expected if name in actual)
        return missing + [
            found for name in shared for found in differences(expected[name], actual[name], f"{path}.{name}")
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [found for at, (one, other) in pairs for found in differences(one, other, f"{path}[{at}]")]
    if type(expected) is type(actual) and expected == actual:
        return []
    return [f"{path} is {actual!r}, not {expected!r}"]
