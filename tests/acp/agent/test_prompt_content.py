"""Prompts hold what the model reads: editors are told so at the start, and nothing else is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto.acp import About, Offer, Reads
from hitherto.engine import Event, Message, Turn, answering
from hitherto.engines.capabilities import reads_of
from hitherto.model import LOCAL, Text
from tests.acp.agent.in_process import Json, Line, opened, serving

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
TEXT = {"type": "text", "text": "Hello"}


@answering
async def engine(_: Turn) -> AsyncIterator[Event]:
    yield Message(parts=(Text(text="Heard."),))


async def answered(line: Line, session: str, *prompt: Json) -> int | None:
    """The code of the error that a prompt is answered with, if it is."""
    number = line.begin("session/prompt", sessionId=session, prompt=list(prompt))
    at = await line.until(lambda message: message.get("id") == number)
    error: Json = line.seen[at].get("error", {})
    return error.get("code")


async def test_what_the_chosen_model_does_not_read_is_refused_and_not_stored() -> None:
    offer = Offer(models=("google:gemini-2.5-pro", "openai:gpt-3.5-turbo"))
    async with serving(engine, offer) as (line, sessions):
        session = await opened(line)
        assert await answered(line, session, TEXT, IMAGE, AUDIO) is None
        asked = {"sessionId": session, "configId": "model", "value": "openai:gpt-3.5-turbo"}
        await line.call("session/set_config_option", **asked)
        assert await answered(line, session, TEXT, IMAGE) == -32602
        assert await answered(line, session, AUDIO) == -32602
        assert await answered(line, session, TEXT) is None
        page = await sessions.history(LOCAL, session)
        assert [[part.__class__.__name__ for part in entry.parts] for entry in page.entries] == [
            ["Text", "Image", "Audio"],
            ["Text"],
            ["Text"],
            ["Text"],
        ]


async def test_an_engine_without_models_says_itself_what_it_reads() -> None:
    async with serving(engine, Offer(reading=Reads(image=False, audio=True))) as (line, _):
        told = line.seen[0]["result"]["agentCapabilities"]["promptCapabilities"]
        assert told == {"image": False, "audio": True, "embeddedContext": True}
        session = await opened(line)
        assert await answered(line, session, AUDIO) is None
        assert await answered(line, session, IMAGE) == -32602


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        ("anthropic:claude-sonnet-5", Reads(image=True, audio=False)),
        ("claude-2.1", Reads(image=False)),
        ("gemini-2.5-flash", Reads(image=True, audio=True)),
        ("google-cloud:gemini-3-pro", Reads(image=True, audio=True)),
        ("openai:gpt-5", Reads(image=True)),
        ("gpt-4", Reads(image=False)),
        ("gpt-4.1", Reads(image=True)),
        ("gpt-4o", Reads(image=True)),
        ("o3-mini", Reads(image=False)),
        ("ollama:llama3.2", Reads(image=False)),
        ("ollama:llama3.2-vision", Reads(image=True)),
        ("groq:qwen/qwen3-coder", Reads(image=False)),
        ("somebody:something", Reads(image=True)),
    ],
)
def test_the_name_of_a_model_tells_what_it_reads(model: str, reads: Reads) -> None:
    assert reads_of(model) == reads


async def test_an_agent_of_another_author_says_who_it_is_and_offers_what_its_engine_heeds() -> None:
    offer = Offer(
        about=About(name="barn", title="The barn", version="7"),
        options=("thinking",),
        reading=Reads(image=False, embedded=False),
    )
    async with serving(engine, offer) as (line, _):
        greeting = line.seen[0]["result"]
        assert greeting["agentInfo"] == {"name": "barn", "title": "The barn", "version": "7"}
        able = {"image": False, "audio": False, "embeddedContext": False}
        assert greeting["agentCapabilities"]["promptCapabilities"] == able
        made = await line.call("session/new", cwd="/p", mcpServers=[])
        session = made["sessionId"]
        assert made["modes"] is None
        assert [option["id"] for option in made["configOptions"]] == ["thinking"]
        resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}}
        assert await answered(line, session, resource) == -32602
        assert (await line.refusal("session/set_mode", sessionId=session, modeId="plan"))["code"] == -32602
        chosen = {"sessionId": session, "configId": "thinking", "value": "high"}
        answer = await line.call("session/set_config_option", **chosen)
        assert [option["currentValue"] for option in answer["configOptions"]] == ["high"]
