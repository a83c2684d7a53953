"""One line of each kind that the agent writes, as it is on the wire. `python -m tests.acp.test_golden` writes them anew.

Ids, times and folders differ each time and are replaced by names.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import hitherto
from hitherto.model import LOCAL, Draft, Text
from tests.acp.wire import EVERYTHING, Json, Refusal, Talk, is_update, scripted, url_of

GOLDEN = Path(__file__).parent / "golden"
CALL = {
    "id": "t1",
    "name": "edit_file",
    "kind": "edit",
    "title": "Edit a.txt",
    "input": {"path": "/p/a.txt"},
    "locations": [{"path": "/p/a.txt", "line": 3}],
}
WORDS = "The service stores each event before the next one is asked for, and shows the rest. " * 20
RUN = {"id": "r1", "name": "run_command", "kind": "execute", "input": {"command": "sleep"}}
SCRIPT: list[Any] = [
    {"thought": "Hm."},
    "I will.",
    {"call": CALL},
    {"permit": True},
    {"progress": "half"},
    {"elicit": "Your name?"},
    {"result": "done", "output": {"diff": {"path": "/p/a.txt", "oldText": "old", "newText": "new"}}},
    {"plan": [{"content": "rest", "priority": "low", "status": "pending"}]},
    {"context": [120, 1000]},
    {"notice": "Trying again"},
    {"read": "/p/a.txt"},
    {"write": "/p/a.txt", "text": "new"},
    {"run": "make"},
    "Done.",
]
ANSWERS: dict[str, Json] = {
    "fs/read_text_file": {"content": "old"},
    "fs/write_text_file": {},
    "elicitation/create": {"action": "decline"},
    "terminal/create": {"terminalId": "a terminal"},
    "terminal/wait_for_exit": {"exitCode": 0},
    "terminal/output": {"output": "made", "truncated": False, "exitStatus": {"exitCode": 0}},
    "terminal/kill": {},
    "terminal/release": {},
}


async def conversation(folder: Path) -> dict[str, Json]:
    """A talk in which each kind of message occurs, by the name of its kind; the last one of each."""
    async with scripted(folder, EVERYTHING) as agent:
        await talk(agent, folder)
        lines = [json.loads(line) for line in agent.lines]
        return {kind_of(message, agent): message for message in lines}


async def talk(agent: Talk, folder: Path) -> None:
    for method, answer in ANSWERS.items():
        agent.on[method] = partial(answered, answer)
    await compacted(agent, folder)
    session = await agent.new(folder, additionalDirectories=["/q"])
    await cancelled(agent, session)
    await agent.prompt(session, SCRIPT)
    await agent.until(is_update(session, "plan"))
    where = {"sessionId": session, "cwd": str(folder), "mcpServers": []}
    await agent.call("session/set_mode", {"sessionId": session, "modeId": "plan"})
    await agent.call(
        "session/set_config_option", {"sessionId": session, "configId": "mode", "value": "default"}
    )
    await agent.call("session/set_title", {"sessionId": session, "title": "A title"})
    await agent.until(lambda _: agent.updates(session)[-1].get("title") == "A title")
    async with hitherto.open(url_of(folder)) as sessions:
        await sessions.compact(LOCAL, session, Draft(role="system", parts=(Text(text="The sum."),)), keep=1)
    await agent.call("session/load", where)
    await agent.call("session/resume", where)
    await agent.call("session/fork", where)
    await agent.call("session/status", {"sessionId": session})
    subscribed = await agent.call("_hitherto/session/list/subscribe")
    await agent.call("session/archive", {"sessionId": session})
    await agent.until(lambda message: message.get("method") == "_hitherto/session/list/changes")
    await agent.call("_hitherto/session/list/unsubscribe", subscribed)
    await agent.call("session/unarchive", {"sessionId": session})
    await agent.call("session/close", {"sessionId": session})
    await agent.call("session/list", {"cwd": str(folder)})
    await agent.call("_hitherto/session/search", {"query": "done"})
    await agent.call("_hitherto/session/batch_get", {"sessionIds": [session, "nowhere"]})
    await agent.call("session/delete", {"sessionId": session})
    for method in ("session/load", "authenticate", "no/such"):
        with contextlib.suppress(Refusal):
            await agent.call(method, where)
    await agent.write(b"no message\n")
    await agent.step()


async def compacted(agent: Talk, folder: Path) -> None:
    """A compaction that is shown while it goes on, in a session of its own, which is deleted again."""
    session = await agent.new(folder)
    async with hitherto.open(url_of(folder)) as sessions:
        said = [Draft(role=("user", "assistant")[at % 2], parts=(Text(text=WORDS),)) for at in range(10)]
        await sessions.append(LOCAL, session, said)
    await agent.prompt(session, "/compact")
    await agent.until(is_update(session, "compaction_summary_chunk"))
    await agent.call("session/delete", {"sessionId": session})


async def cancelled(agent: Talk, session: str) -> None:
    """A turn that is cancelled while a command runs in the client's terminal."""
    waiting = agent.on.pop("terminal/wait_for_exit")
    prompt = await agent.begin_prompt(session, [{"call": RUN}, {"permit": True}, {"run": "sleep"}])
    await agent.until(lambda message: message.get("method") == "terminal/wait_for_exit")
    await agent.send(method="session/cancel", params={"sessionId": session})
    await agent.answer(prompt)
    agent.on["terminal/wait_for_exit"] = waiting


def answered(answer: Json, _: Json) -> Json:
    """The same answer to every question."""
    return answer


def kind_of(message: Json, agent: Talk) -> str:
    """What kind of message it is."""
    if message.get("method") == "session/update":
        update = message["params"]["update"]
        content = update.get("content", ()) if "toolCallId" in update else ()
        embeds = any(each["type"] == "terminal" for each in content)
        return f"update {update['sessionUpdate']}{' terminal' if embeds else ''}"
    if "method" in message:
        return str(message["method"])
    return f"{'error' if 'error' in message else 'result'} {agent.methods.get(message['id'], 'of nothing')}"


def named(messages: dict[str, Json], folder: Path) -> dict[str, str]:
    """The messages as text, with names for what differs each time."""
    ids: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return ids.setdefault(match[0], f"id-{len(ids) + 1}")

    found = {}
    for kind, message in sorted(messages.items()):
        text = json.dumps({**message, "id": 0} if "id" in message else message, indent=1, ensure_ascii=False)
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", name, text)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME", text)
        text = re.sub(r"summary from \d{4}-\d\d-\d\d", "summary from DAY", text)
        text = re.sub(r'("durationMs": ?)\d+', r"\g<1>0", text)
        found[kind] = text.replace(str(folder), "/folder").replace(f'"{folder.name}"', '"folder"') + "\n"
    return found


def file_of(kind: str) -> Path:
    return GOLDEN / f"{kind.replace('/', '.').replace(' ', '-')}.json"


async def test_every_kind_of_message_is_what_it_was(tmp_path: Path) -> None:
    found = named(await conversation(tmp_path), tmp_path)
    assert {file_of(kind).name for kind in found} == {path.name for path in GOLDEN.iterdir()}
    for kind, text in found.items():
        assert text == file_of(kind).read_text(), kind


def write() -> None:
    """Write all of them."""
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        for kind, text in named(asyncio.run(conversation(Path(folder))), Path(folder)).items():
            file_of(kind).write_text(text)


if __name__ == "__main__":
    write()
