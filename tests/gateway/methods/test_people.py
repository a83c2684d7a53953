"""Everything of one person is taken along, and erased, and nothing of anybody else's."""

from __future__ import annotations

import json
from typing import Any

from hitherto.model import Principal
from hitherto.service import Sessions
from tests.gateway.methods.asker import KEY, Asker
from tests.support.conversations import everything

FACT = "We decided that the staging database is called {}."
DIRECT = "agent:main:irc:dm:ann"
LINKED, ACCOUNT = "agent:main:sms:dm:77", "agent:main:irc:account:bot:dm:ann"
GROUP, OTHER, ELSEWHERE = "agent:main:irc:group:all", "agent:main:irc:dm:bob", "agent:main:xmpp:dm:ann"


def by(sender: str, text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "sender": {"id": sender, "name": sender.title()}}


async def lived(asker: Asker) -> None:
    """Ann has chats on two channels and writes in a group and in the main session; so does Bob; another Ann is on xmpp."""
    for key, sender in (
        (DIRECT, "ann"), (ACCOUNT, "ann"), (LINKED, "77"), (OTHER, "bob"), (ELSEWHERE, "ann"),
    ):  # fmt: skip
        said = [by(sender, FACT.format(f"secret-{key.replace(':', '-')}"))]
        await asker.ask("session.append", session_key=key, messages=said, create=True)
        await asker.ask("sessions.reset", session_key=key)
        await asker.ask("session.append", session_key=key, messages=[by(sender, f"later in {key}")])
    for key, one, two in ((GROUP, "ann", "bob"), (KEY, "irc:ann", "irc:bob")):
        said = [by(one, f"ours in {key}"), by(two, f"theirs in {key}"), by(one, "again ours")]
        await asker.ask("session.append", session_key=key, messages=said, create=True)
        await asker.ask("sessions.reset", session_key=key)
    await asker.ask(
        "identity.link", channel="sms", peer_id="77", canonical={"channel": "irc", "peer_id": "ann"}
    )


async def test_all_of_a_person_is_exported_and_nothing_of_others(sessions: Sessions) -> None:
    asker = Asker(sessions)
    await lived(asker)
    found = await asker.ask("identity.export", channel="sms", peer_id="77")
    assert {account["channel"] for account in found["accounts"]} == {"irc", "sms"}
    theirs = {each["session_key"]: len(each["messages"]) for each in found["sessions"] if each["theirs"]}
    assert theirs == {DIRECT: 2, ACCOUNT: 2, LINKED: 2}
    written = {each["session_key"]: len(each["messages"]) for each in found["sessions"] if not each["theirs"]}
    assert written == {GROUP: 2, KEY: 2}
    assert len(found["facts"]) == 3
    told = json.dumps(found)
    for foreign in ("theirs in", "irc-dm-bob", "xmpp-dm-ann"):
        assert foreign not in told
    assert (await Asker(sessions, "bob").ask("identity.export", channel="irc", peer_id="ann"))[
        "sessions"
    ] == []


async def test_all_of_a_person_is_erased_and_nothing_of_others(sessions: Sessions, reader: Sessions) -> None:
    asker, bob = Asker(sessions), Asker(sessions, "bob")
    await lived(asker)
    await bob.say("mine", session_key=DIRECT)
    before = await everything(reader, Principal(owner="bob"))
    done = await asker.ask("identity.erase", channel="irc", peer_id="ann")
    assert (done["sessions_deleted"], done["messages_erased"], done["links_removed"]) == (3, 4, 1)
    for key in (DIRECT, ACCOUNT, LINKED):
        assert await asker.code("session.get", session_key=key) == "session_not_found"
    for key in (GROUP, KEY):
        whole = await asker.ask("session.history", session_key=key, view="conversation")
        said = [message["content"] for message in whole["messages"] if "episode" not in message]
        assert said == ["", f"theirs in {key}", ""]
    left = json.dumps(
        [await asker.ask("memory.list"), await asker.ask("session.search", query="secret ours")]
    )
    for gone in ("irc-dm-ann", "sms-dm-77", "bot-dm-ann"):
        assert gone not in left
    for kept in ("irc-dm-bob", "xmpp-dm-ann"):
        assert kept in left
    again = await asker.ask("identity.erase", channel="irc", peer_id="ann")
    assert (again["sessions_deleted"], again["messages_erased"], again["facts_forgotten"]) == (0, 0, 0)
    assert await everything(reader, Principal(owner="bob")) == before
    assert (await sessions.core.store.check(repair=False)).problems == ()
