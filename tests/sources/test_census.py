"""The census: of every agent, each record is shown, or of a named kind that deliberately is not; every planted word is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hitherto
from hitherto.model import LOCAL, encode, plain_text
from hitherto.sources import AGENTS
from hitherto.sources.port import Census
from tests.claude import transcripts
from tests.sources.agent_home import House
from tests.sources.codex.codex_files import CodexWriter
from tests.sources.gemini.gemini_files import GeminiWriter, call, mark
from tests.sources.goose import goose_files as goose
from tests.sources.openclaw.openclaw_files import OpenclawWriter
from tests.sources.opencode import opencode_files as opencode
from tests.sources.pi.pi_files import PiWriter

PICTURE = "data:image/png;base64,aGk="


def _claude(home: Path) -> None:
    made = transcripts.Writer(transcripts.session_id(1))
    first = made.user("wordprompt")
    made.say("wordrewound")
    made.user("wordedited", parentUuid=first["uuid"])
    _, id = made.call("Bash", {"command": "wordcommand"})
    made.result(id, "wordoutput")
    made.attach("hook_success", hookName="Stop", content="wordhook")
    made.attach("skill_listing", content="not shown")
    made.attach("hologram", content="wordhologram")
    made.note("mode", mode="plan")
    made.note("novelty", said="kept in the raw copy")
    made.title("Named")
    made.say("wordanswer")
    made.save(home / "projects")


def _codex(home: Path) -> None:
    made = CodexWriter()
    made.message("developer", "not shown")
    made.user("It is found by its title, too")
    made.end()
    made.user("wordrewound")
    made.end()
    made.event("thread_rolled_back", num_turns=1)
    made.begin()
    content = [{"type": "input_image", "image_url": PICTURE}, {"type": "input_text", "text": "wordprompt"}]
    made.item("message", role="user", content=content)
    shown = [{"type": "local_image", "path": "/wordpath.png"}, {"type": "text", "text": "wordprompt"}]
    made.shown("UserMessage", id="u", content=shown)
    made.think("wordthought")
    made.run("c1", "wordcommand", "wordoutput")
    made.line("hologram", {"said": "wordhologram"})
    made.say("wordanswer")
    made.end()
    made.save(home)


def _gemini(home: Path) -> None:
    made = GeminiWriter()
    made.user("wordprompt")
    back = made.user("wordrewound")
    made.rewind(back)
    made.say("", id="a", toolCalls=[call("run_shell_command", {"command": "wordcommand"}, "wordoutput")])
    answered = {"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {}}}
    made.add("user", [answered])
    made.say("wordanswer", thoughts=[{"subject": "wordthought"}])
    made.set(messages=made.messages[:1] + made.messages[2:])
    made.add("hologram", "wordhologram")
    mark(home)
    made.save(home)


def _goose(home: Path) -> None:
    made = goose.GooseWriter(home)
    made.session()
    made.user("wordprompt")
    made.message("assistant", goose.request("shell", {"command": "wordcommand"}))
    made.message("user", goose.response("wordoutput"))
    made.message("assistant", {"type": "actionRequired"})
    made.message("assistant", {"type": "hologram", "said": "wordhologram"})
    made.say("wordanswer")
    made.used()
    made.close()


def _opencode(home: Path) -> None:
    made = opencode.OpencodeWriter(home)
    made.session()
    made.user("wordprompt")
    step = {"type": "step-start"}
    run = opencode.tool("bash", {"command": "wordcommand"}, output="wordoutput")
    made.answer(step, run, {"type": "hologram", "said": "wordhologram"}, opencode.text("wordanswer"))
    back = made.user("wordrewound")
    made.run("UPDATE session SET revert = ?", f'{{"messageID": "{back}"}}')
    made.close()


def _tree() -> PiWriter:
    made = PiWriter()
    first = made.user("wordprompt")
    made.say("wordrewound")
    made.leaf = first
    made.add("model_change", modelId="m")
    made.answer({"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "wordcommand"}})
    output = [{"type": "text", "text": "wordoutput"}]
    made.add("message", message={"role": "toolResult", "toolCallId": "c1", "content": output})
    made.add("hologram", said="wordhologram")
    made.say("wordanswer")
    return made


def _pi(home: Path) -> None:
    _tree().save(home)


def _openclaw(home: Path) -> None:
    database = OpenclawWriter(home)
    database.node(PiWriter().session_id)
    database.window(PiWriter().session_id)
    database.write(_tree())
    database.close()


class Told(NamedTuple):
    """How an agent's sample is written, and what must become of its records."""

    write: Callable[[Path], None]
    census: Census


AGAIN = "message that was written again"
SAMPLES = {
    "claude": Told(
        _claude, Census(8, {"attachment skill_listing": 1, "mode": 1, "novelty": 1, "custom-title": 1})
    ),
    "codex": Told(
        _codex,
        Census(
            8,
            {
                "session_meta": 1, "message developer": 1, "event task_started": 3, "turn_context": 3, "message user": 3,
                "event task_complete": 3, "event thread_rolled_back": 1, "item reasoning": 1, "event token_count": 2,
                "item function_call_output": 1, "message assistant": 1,
            },
        ),
    ),
    "gemini": Told(
        _gemini,
        Census(5, {"session": 1, "$set": 7, "$rewindTo": 1, "message that repeats a result": 1, AGAIN: 4}),
    ),
    "goose": Told(_goose, Census(5, {"message without text": 1, "usage": 1})),
    "opencode": Told(_opencode, Census(8, {"part step-start": 1})),
    "pi": Told(_pi, Census(6, {"session": 1, "model_change": 1})),
    "openclaw": Told(_openclaw, Census(6, {"session": 1, "model_change": 1})),
}  # fmt: skip
WORDS = ("prompt", "answer", "command", "output", "rewound")


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_record_is_shown_or_left_out_by_name_and_every_word_is_found(
    tmp_path: Path, agent: str
) -> None:
    SAMPLES[agent].write(tmp_path / "agent")
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        house = House(tmp_path, sessions, AGENTS[agent].at(tmp_path / "agent"))
        await house.sync()
        (found,) = house.source.find()
        reading = house.source.read(found, None)
        assert reading.census == SAMPLES[agent].census
        assert sum(reading.unknown.values()) == 1 + (agent == "claude")
        assert b"wordhologram" in encode(reading.entries)
        for word in WORDS:
            hits = (await sessions.search(LOCAL, f"word{word}")).hits
            expected = agent != "goose" or word != "rewound"  # goose rewinds by deleting
            assert len(hits) == expected, word
        await _nothing_is_lost_when_read_again(house, agent)


async def _nothing_is_lost_when_read_again(house: House, agent: str) -> None:
    """A newer reader reads everything once more: nothing of it is there twice, and nothing that was done here is undone."""
    (session,) = (await house.sessions.find(LOCAL)).sessions
    await house.sessions.rename(LOCAL, session.id, "Mine")
    await house.sessions.tag(LOCAL, session.id, add=["kept"])
    (answer,) = (entry for entry in await house.entries(session.id) if "wordanswer" in plain_text(entry))
    fork = await house.sessions.fork(LOCAL, session.id)
    await house.sessions.entries.erase(LOCAL, session.id, answer.id)
    before, forked = await house.entries(session.id), await house.entries(fork.id)
    newer: Any = AGENTS[agent].at(house.folder / "agent")
    again = House(house.folder, house.sessions, _Newer(newer))
    report = await again.sync()
    assert (report.new, report.updated, report.parsed_files) == (0, 0, 1)
    after = await house.sessions.get(LOCAL, session.id)
    assert (after.id, after.title, after.tags) == (session.id, "Mine", ("kept",))
    assert await house.entries(session.id) == before
    assert await house.entries(fork.id) == forked
    assert (await house.sessions.get(LOCAL, fork.id)).parent == session.id
    assert (await house.sessions.search(LOCAL, "wordanswer")).hits == ()


class _Newer:
    """A source as the next version of Hitherto has it."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.version = source.version + 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)
