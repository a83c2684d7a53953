"""Passes the agent's messages on to the editor. Each line is parsed once; most are forwarded as their original bytes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from msgspec import Raw

from hitherto.acp.proxy.agent_process import AgentExited, AgentProcess
from hitherto.acp.proxy.agent_session import AgentSession, is_state
from hitherto.acp.proxy.frames import (
    Members,
    join_members,
    line,
    members_of,
    object_of,
    raw_json,
    text_of,
    value_of,
    with_session,
)
from hitherto.rpc import frames
from hitherto.rpc.errors import INVALID_REQUEST, Gone, failure_of
from hitherto.rpc.transport import LINE_BYTES, FrameTooLong

UPDATE = b'"session/update"'
PERMISSION = "session/request_permission"
OUTPUT = "terminal/output"
CANCEL = "$/cancel_request"
HELD = 10_000
"""How many updates of sessions that the editor does not know yet are held back."""
_END = b"}}\n"
_OWN = ("sessionId", "update")

log = logging.getLogger(__name__)
Out = list[bytes | Raw]


class Question(NamedTuple):
    """A request of the agent that the editor has not answered; `terminal` is the terminal whose output it requests."""

    process: AgentProcess
    number: Raw
    agent_session: AgentSession | None = None
    terminal: str | None = None


class Relay:
    """See the module. `send` sends lines to the editor; `send_now` does so only if it need not wait."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], send_now: Callable[[bytes], bool]) -> None:
        self._send, self._send_now = send, send_now
        self._agent_sessions: dict[bytes, AgentSession] = {}
        self._questions: dict[int, Question] = {}
        self._numbers = itertools.count(1)
        self._opening = 0
        self._held: list[tuple[bytes, Members, bytes]] = []

    # Sessions

    def register(self, agent_session: AgentSession) -> None:
        """Route updates of this session from now on."""
        self._agent_sessions[frames.encode(agent_session.agent_session_id)] = agent_session

    @contextmanager
    def opening(self) -> Iterator[None]:
        """While a session is being created: updates of unknown sessions are held back until `release`."""
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    async def release(self, agent_session: AgentSession) -> None:
        """The editor knows this session now: send its held-back updates, and those of sessions that are not ours."""
        agent_session.waiting = False
        held, self._held = self._held, []
        out: Out = []
        for name, message, data in held:
            if self._is_early(name):
                self._held.append((name, message, data))
            else:
                self._pass_update(name, message, data, out)
        await self._send_lines(out)

    def forget(self, agent_session_id: str) -> None:
        """Drop held-back messages of a session that the agent has just forked: they are a replay of stored ones."""
        name = frames.encode(agent_session_id)
        self._held = [
            held
            for held in self._held
            if held[0] != name or is_state(object_of(held[1], "params").get("update", Raw(b"{}")))
        ]

    def _is_early(self, name: bytes) -> bool:
        """Whether the editor does not know this session of the agent yet."""
        agent_session = self._agent_sessions.get(name)
        return self._opening > 0 if agent_session is None else agent_session.waiting

    # From the agent

    async def follow(self, process: AgentProcess) -> None:
        """Relay everything until the agent exits; then fail what waits for it."""
        try:
            await process.line.deliver(lambda lines: self._relay(process, lines))
        finally:
            process.end()
            await self._send_lines(list(self._exit_messages(process)))

    def _relay(self, process: AgentProcess, lines: list[bytes | FrameTooLong]) -> Awaitable[None] | None:
        """Relay lines. Returns an awaitable if that cannot be done at once. Answers to our own requests are resolved after
        everything sent before them."""
        out: Out = []
        answers: list[tuple[int, Members]] = []
        for data in lines:
            self._take(process, data, out, answers)
        if out and not self._send_now(b"".join(out)):
            return self._relay_later(process, out, answers)
        for number, message in answers:
            process.resolve(number, message)
        return None

    async def _relay_later(self, process: AgentProcess, out: Out, answers: list[tuple[int, Members]]) -> None:
        await self._send_lines(out)
        for number, message in answers:
            process.resolve(number, message)

    async def _send_lines(self, out: Out) -> None:
        with suppress(Gone):  # the task that reads the editor's requests notices it too
            await self._send(b"".join(out))

    def _take(
        self, process: AgentProcess, data: bytes | FrameTooLong, out: Out, answers: list[tuple[int, Members]]
    ) -> None:
        if isinstance(data, FrameTooLong):
            self._refuse_too_long(process, data, out, answers)
            return
        message = members_of(data)
        if message is None or not ("method" in message or "id" in message):
            log.warning("the agent %r sent a line that is not a message: %r", process.name, data[:200])
            return
        method = message.get("method")
        if method is None:
            self._answer(process, message, out, answers)
        elif bytes(method) == UPDATE and "id" not in message:
            self._take_update(message, data, out)
        elif "id" in message:
            self._question(process, message, out)
        else:
            self._notice(process, message, data, out)

    def _take_update(self, message: Members, data: bytes, out: Out) -> None:
        named = object_of(message, "params").get("sessionId")
        if named is None:
            out += (data, b"\n")
            return
        name = bytes(named)
        if name not in self._agent_sessions:
            name = frames.encode(value_of(named))  # the same id may be written differently
        if self._is_early(name) and len(self._held) < HELD:
            self._held.append((name, message, data))
        else:
            self._pass_update(name, message, data, out)

    def _pass_update(self, name: bytes, message: Members, data: bytes, out: Out) -> None:
        """Relay an update. Updates of other sessions, such as a subagent's, pass unchanged."""
        agent_session = self._agent_sessions.get(name)
        params = object_of(message, "params")
        if agent_session is None or "update" not in params:
            out += (data, b"\n")
            return
        plain = len(params) == 2
        beside = None if plain else {name: value_of(raw) for name, raw in params.items() if name not in _OWN}
        shown = agent_session.take_update(params["update"], beside)
        if shown is None:
            return
        if plain and len(message) == 3:
            out += (agent_session.begin, shown, _END)
        else:
            whole = {**message, "params": Raw(join_members({**params, "update": shown}))}
            out.append(line(with_session(whole, agent_session.session)))

    def _answer(
        self, process: AgentProcess, message: Members, out: Out, answers: list[tuple[int, Members]]
    ) -> None:
        number = value_of(message["id"])
        forwarded = process.forwarded.pop(number, None) if isinstance(number, int) else None
        if forwarded is not None:
            out.append(line({**message, "id": forwarded}))
        elif isinstance(number, int):
            process.note_answer(number, message)
            answers.append((number, message))

    def _question(self, process: AgentProcess, message: Members, out: Out) -> None:
        """Forward a request of the agent under a number of ours, so that no late answer reaches its next process."""
        params = object_of(message, "params")
        agent_session = self._agent_sessions.get(frames.encode(text_of(params, "sessionId")))
        method = text_of(message, "method")
        if agent_session is not None and method == PERMISSION:
            agent_session.ask(value_of(params.get("toolCall")))
        terminal = text_of(params, "terminalId") if method == OUTPUT else None
        number = next(self._numbers)
        self._questions[number] = Question(process, message["id"], agent_session, terminal)
        out.append(line(self._with_our_id({**message, "id": Raw(b"%d" % number)}, agent_session)))

    def _notice(self, process: AgentProcess, message: Members, data: bytes, out: Out) -> None:
        params = object_of(message, "params")
        if text_of(message, "method") == CANCEL and "requestId" in params:
            wanted = frames.key_of(params["requestId"])
            for number, asked in self._questions.items():
                if asked.process is process and frames.key_of(asked.number) == wanted:
                    ours = join_members({**params, "requestId": Raw(b"%d" % number)})
                    out.append(line({**message, "params": Raw(ours)}))
            return
        agent_session = self._agent_sessions.get(frames.encode(text_of(params, "sessionId")))
        out.append(data + b"\n" if agent_session is None else line(self._with_our_id(message, agent_session)))

    def _with_our_id(self, message: Members, agent_session: AgentSession | None) -> Members:
        return message if agent_session is None else with_session(message, agent_session.session)

    def _refuse_too_long(
        self, process: AgentProcess, dropped: FrameTooLong, out: Out, answers: list[tuple[int, Members]]
    ) -> None:
        """A message of the agent was too long: fail the request that it answers."""
        frame = frames.read_head(dropped.head)
        text = f"message too long: at most {LINE_BYTES} bytes"
        log.warning("the agent %r: %s", process.name, text)
        if frame.method is None and frames.has_id(frame):
            error = raw_json({"code": INVALID_REQUEST, "message": text})
            self._answer(process, {"jsonrpc": raw_json("2.0"), "id": frame.id, "error": error}, out, answers)

    def _exit_messages(self, process: AgentProcess) -> Iterator[bytes]:
        """Messages for the editor when the agent exits: its requests fail, the agent's requests are withdrawn."""
        failure = failure_of(AgentExited(process.name))
        for number in process.forwarded.values():
            yield frames.refusal(number, failure.code, failure.message, failure.data)
        process.forwarded.clear()
        for ours in [number for number, asked in self._questions.items() if asked.process is process]:
            del self._questions[ours]
            yield frames.notification(CANCEL, {"requestId": ours})

    # From the editor

    async def answer(self, message: Members) -> None:
        """Forward the editor's answer to the agent that asked; unknown ids are ignored."""
        number = value_of(message["id"])
        asked = self._questions.pop(number, None) if isinstance(number, int) else None
        if asked is None:
            return
        if asked.agent_session is not None and asked.terminal is not None:
            output = text_of(object_of(message, "result"), "output")
            asked.agent_session.collector.terminals[asked.terminal] = output or ""
        with suppress(AgentExited):
            await asked.process.send(line({**message, "id": asked.number}))
