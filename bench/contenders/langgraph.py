"""langgraph-checkpoint-sqlite: each step stores a checkpoint that holds the whole list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.contenders.port import Contender
from bench.workloads.messages import Message


class SqliteSaver(Contender):
    """What a graph with a `messages` channel does after every step, without the cost of the graph."""

    async def open(self, place: str) -> None:
        self._stack = ExitStack()
        saver = import_module("langgraph.checkpoint.sqlite").SqliteSaver
        self._saver = self._stack.enter_context(saver.from_conn_string(str(Path(place) / "langgraph.db")))
        self._empty = import_module("langgraph.checkpoint.base").empty_checkpoint
        kinds = import_module("langchain_core.messages")
        self._kinds = {"user": kinds.HumanMessage, "assistant": kinds.AIMessage}
        self._threads: dict[str, tuple[dict[str, Any], list[Any]]] = {}

    async def append(self, session: str, message: Message) -> None:
        self._put(session, [message])

    async def fill(self, session: str, messages: Sequence[Message]) -> None:
        self._put(session, messages)

    async def history(self, session: str) -> Sequence[object]:
        config = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        found: list[object] = self._saver.get_tuple(config).checkpoint["channel_values"]["messages"]
        return found

    async def last(self, session: str, count: int) -> Sequence[object]:
        return (await self.history(session))[-count:]

    async def close(self) -> None:
        self._stack.close()

    def _put(self, session: str, messages: Sequence[Message]) -> None:
        fresh = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        config, kept = self._threads.get(session, (fresh, []))
        kept += [self._kinds[message.role](message.text) for message in messages]
        version = f"{len(kept):032}"
        checkpoint = self._empty()
        checkpoint["channel_values"] = {"messages": kept}
        checkpoint["channel_versions"] = {"messages": version}
        metadata = {"source": "loop", "step": len(kept)}
        config = self._saver.put(config, checkpoint, metadata, {"messages": version})
        self._threads[session] = (config, kept)
