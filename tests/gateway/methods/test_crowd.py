"""Many people write at once, to two servers, while turns run: each message is stored once, in its sender's order."""

from __future__ import annotations

import asyncio

from hitherto.service import Sessions
from tests.gateway.methods.asker import Asker
from tests.support.scripted_engine import Scripted
from tests.support.waits import until

CHATS = (
    "agent:main:telegram:group:g",
    "agent:main:telegram:group:g:thread:1",
    "agent:main:irc:dm:u",
)
PEOPLE, EACH = 4, 3


async def test_a_crowd_is_never_refused_and_every_message_is_stored_once_in_order(
    sessions: Sessions, other: Sessions
) -> None:
    servers = [Asker(each, engine=Scripted()) for each in (sessions, other)]
    for chat in CHATS:
        await servers[0].say("hello", session_key=chat)

    async def talk(chat: str, person: int) -> None:
        for number in range(EACH):
            asker = servers[(person + number) % len(servers)]
            words, sender = f"{person}.{number}", {"id": str(person)}
            if number == 1:
                said = [{"role": "user", "content": words, "sender": sender}]
                await asker.ask("session.append", session_key=chat, messages=said)
            else:
                await asker.ask("session.send", session_key=chat, content=words, sender=sender, wait=False)

    await asyncio.gather(*(talk(chat, person) for chat in CHATS for person in range(PEOPLE)))

    async def is_over() -> bool:
        inboxes = [await servers[0].ask("session.inbox", session_key=chat) for chat in CHATS]
        shown = [await servers[0].ask("session.get", session_key=chat) for chat in CHATS]
        return not any(each["waiting"] for each in inboxes) and all(
            each["status"] == "idle" for each in shown
        )

    await until(is_over, "all that waits to be answered")
    for chat in CHATS:
        history = (await servers[1].ask("session.history", session_key=chat, limit=200))["messages"]
        for person in range(PEOPLE):
            said = [each["content"] for each in history if each.get("sender", {}).get("id") == str(person)]
            assert said == [f"{person}.{number}" for number in range(EACH)]
        assert history[-1]["role"] == "assistant" or history[-1]["content"].endswith(".1")
