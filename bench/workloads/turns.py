"""Streams one answer after the other in the environment that Hitherto runs in: `python -m bench.workloads.turns CHUNKS ROUNDS FOLDER`.

Prints, for each wire, the CPU of bare pydantic-ai and of a turn, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path

import hitherto
from bench.workloads.provider import streaming
from hitherto.engines.model import ModelEngine
from hitherto.model import LOCAL, Text
from hitherto.service import Sessions
from hitherto.updates import Said, Update

MODELS = {"Anthropic Messages": "anthropic:claude-sonnet-5", "OpenAI chat": "openai-chat:gpt-5"}


def main(chunks: int, rounds: int, folder: Path) -> None:
    """Measure every wire."""
    with streaming(chunks) as environ:
        os.environ.update(environ)
        figures = {wire: asyncio.run(measured(name, chunks, rounds, folder)) for wire, name in MODELS.items()}
    json.dump(figures, sys.stdout)


async def measured(name: str, chunks: int, rounds: int, folder: Path) -> tuple[float, float]:
    url = f"sqlite:///{folder / 'turns.db'}"
    bare, ours = list[float](), list[float]()
    async with hitherto.open(url) as sessions, hitherto.open(url) as second:
        for _ in range(rounds + 1):
            bare.append(await _bare(name, chunks))
            ours.append(await _turn(name, chunks, sessions, second))
    return statistics.median(bare[1:]), statistics.median(ours[1:])


async def _bare(name: str, chunks: int) -> float:
    from pydantic_ai import direct
    from pydantic_ai.messages import ModelRequest, PartDeltaEvent, PartStartEvent, UserPromptPart
    from pydantic_ai.models import infer_model

    began, seen = time.process_time(), 0
    async with infer_model(name) as model:
        request = ModelRequest(parts=[UserPromptPart("Go")])
        async with direct.model_request_stream(model, [request]) as stream:
            async for event in stream:
                seen += isinstance(event, PartStartEvent | PartDeltaEvent)
        assert len(stream.get().parts) == 1
    assert seen >= chunks
    return time.process_time() - began


async def _turn(name: str, chunks: int, sessions: Sessions, second: Sessions) -> float:
    seen = 0

    def count(update: Update) -> None:
        nonlocal seen
        seen += type(update) is Said

    session = await sessions.create(LOCAL, title="A long answer")
    began = time.process_time()
    watching = asyncio.create_task(_watch(second, session.id))
    async with sessions.opened(LOCAL, session.id, ModelEngine(name)) as opened:
        outcome = await opened.prompt((Text(text="Go"),), emit=count)
    spent = time.process_time() - began
    watching.cancel()
    assert seen >= chunks
    assert outcome.text.count("word") == chunks
    return spent


async def _watch(sessions: Sessions, session_id: str) -> None:
    async for _ in sessions.watch(LOCAL, session_id=session_id):
        await sessions.changes.live(LOCAL, session_id)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
