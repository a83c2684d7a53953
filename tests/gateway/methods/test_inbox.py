"""The inbox over the gateway: nobody who writes while a turn runs is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from hitherto.engine import Delta, Event, Message, Turn
from hitherto.gateway.dispatch.inboxes import COMMANDS, Inboxes
from hitherto.model import Principal, Text
from hitherto.service import Runner, Sessions
from hitherto.values.scopes import SCOPES
from tests.gateway.methods.asker import KEY, Asker
from tests.support.scripted_engine import Scripted, prompt
from tests.support.waits import arrives, until

GROUP, DM = "agent:main:telegram:group:g", "agent:main:telegram:dm:u"


class Gated:
    """A turn that speaks, and ends when it may."""

    def __init__(self) -> None:
        self.speaking, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG002 - the engine's
        yield Delta(text="…")
        self.speaking.set()
        await arrives(self.go.wait(), "leave to end")
        yield Message(parts=(Text(text="First"),))


@pytest.mark.parametrize(
    ("key", "mode", "said"),
    [
        (GROUP, "collect", ["hello", "One", "First", "Two", "Three", "Noted.", "Four"]),
        (DM, "steer", ["hello", "One", "First", "Two", "Noted.", "Three", "Noted.", "Four"]),
        (KEY, "followup", ["hello", "One", "First", "Two", "Noted.", "Three", "Noted.", "Four"]),
    ],
)
async def test_what_is_sent_while_a_turn_runs_is_stored_listed_and_answered(
    sessions: Sessions, key: str, mode: str, said: list[str]
) -> None:
    gated = Gated()
    asker = Asker(sessions, engine=Scripted(gated))
    await asker.say("hello", session_key=key)
    assert (await asker.ask("session.get", session_key=key))["queue_mode"] == mode
    first = asyncio.create_task(asker.ask("session.send", session_key=key, content="One"))
    await arrives(gated.speaking.wait(), "the first words")
    kept = await asker.ask("session.send", session_key=key, content="Two", wait=False)
    assert (kept["place"], kept["stop_reason"]) == (1, None)
    third = asyncio.create_task(asker.ask("session.send", session_key=key, content="Three"))

    async def is_third() -> bool:
        return len((await asker.ask("session.inbox", session_key=key))["waiting"]) == 2

    await until(is_third, "the third prompt to wait")
    fourth = await asker.ask(
        "session.append", session_key=key, messages=[{"role": "user", "content": "Four"}]
    )
    assert fourth["place"] == 3
    waiting = (await asker.ask("session.inbox", session_key=key))["waiting"]
    told = [(each["place"], each["queue_mode"], each["messages"][0]["content"]) for each in waiting]
    assert told == [(1, mode, "Two"), (2, mode, "Three"), (3, None, "Four")]
    gated.go.set()
    assert (await arrives(first, "the first answer"))["message"]["content"] == "First"
    last = await arrives(third, "the third answer")
    assert (last["message"]["content"], last["stop_reason"]) == ("Noted.", "end_turn")

    async def is_done() -> bool:
        return await asker.said(key) == said

    await until(is_done, "all of it to be in the session")
    history = await asker.ask("session.history", session_key=key)
    ids = {each["content"]: each["message_id"] for each in history["messages"]}
    assert (ids["Two"], ids["Four"]) == (kept["prompt_id"], fourth["message_ids"][0])


async def test_what_waits_is_cancelled_and_moved_and_the_mode_is_the_session_s_own(
    sessions: Sessions,
) -> None:
    gated = Gated()
    asker = Asker(sessions, engine=Scripted(gated))
    await asker.say("hello")
    await asker.ask("sessions.patch", session_key=KEY, queue_mode="collect")
    first = asyncio.create_task(asker.ask("session.send", session_key=KEY, content="One"))
    await arrives(gated.speaking.wait(), "the first words")
    ids = [
        (await asker.ask("session.send", session_key=KEY, content=text, wait=False))["prompt_id"]
        for text in ("Two", "Three", "Four")
    ]
    gone = await asker.ask("session.inbox.cancel", session_key=KEY, message_id=ids[1])
    assert gone["cancelled"] is True
    moved = await asker.ask("session.inbox.move", session_key=KEY, message_id=ids[2], place=1)
    assert moved["place"] == 1
    waiting = (await asker.ask("session.inbox", session_key=KEY))["waiting"]
    assert [each["messages"][0]["content"] for each in waiting] == ["Four", "Two"]
    missing = {"session_key": KEY, "message_id": "x", "place": 1}
    assert await asker.code("session.inbox.move", **missing) == "entry_not_found"
    gated.go.set()
    await arrives(first, "the first answer")

    async def is_done() -> bool:
        return await asker.said() == ["hello", "One", "First", "Four", "Two", "Noted."]

    await until(is_done, "what was left to be answered")
    await asker.ask("sessions.patch", session_key=KEY, queue_mode=None)
    assert (await asker.ask("session.get", session_key=KEY))["queue_mode"] == "followup"


async def test_a_server_answers_what_another_has_left_with_the_rights_of_its_sender(
    sessions: Sessions, ann: Principal
) -> None:
    asker = Asker(sessions)
    made = await asker.say("hello")
    lease = await sessions.leases.acquire(ann, made["session_id"], "dying")
    for scopes in (SCOPES, ("read", "run")):
        kind = "server" if "commands" not in scopes else COMMANDS
        runner = Runner(kind, lambda: None)
        async with sessions.opened(ann, made["session_id"], Scripted(), runner=runner) as opened:
            task = asyncio.create_task(opened.prompt(prompt(kind), queue="followup"))
            await until(partial(_waits, sessions, ann, made["session_id"], kind), "the prompt to wait")
        await arrives(asyncio.wait([task]), "its waiter to leave")
    await sessions.leases.release(ann, made["session_id"], lease.fence)
    engine, inboxes = Scripted(), Inboxes(asker.context.turns)
    await inboxes.sweep(sessions, engine)

    async def is_done() -> bool:
        return len(await asker.said()) == 5

    await until(is_done, "both to be answered")
    assert await asker.said() == ["hello", COMMANDS, "Noted.", "server", "Noted."]
    assert [setup.local for setup in engine.setups] == [True, False]
    await inboxes.end()


async def _waits(sessions: Sessions, who: Principal, session_id: str, kind: str) -> bool:
    return any(row.by == kind for row in await sessions.inbox.waiting(who, session_id))
