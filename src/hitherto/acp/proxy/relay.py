"""What the agent says, passed on to the editor. Each line is looked at once; most go on as the bytes they came as."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from msgspec import Raw

from hitherto.acp.proxy.agent_process import Left, Life
from hitherto.acp.proxy.agent_session import Seat, is_state
from hitherto.acp.proxy.frames import (
    Members,
    joined,
    line,
    members_of,
    object_of,
    text_of,
    value_of,
    with_session,
    written,
)
from hitherto.rpc import frames
from hitherto.rpc.errors import INVALID_REQUEST, Gone, failure_of
from hitherto.rpc.transport import LINE_BYTES, FrameTooLong

UPDATE = b'"session/update"'
PERMISSION = "session/request_permission"
OUTPUT = "terminal/output"
CANCEL = "$/cancel_request"
HELD = 10_000
"""So many updates of sessions that the editor does not know yet are held back."""
_END = b"}}\n"

log = logging.getLogger(__name__)
Out = list[bytes | Raw]


class Question(NamedTuple):
    """A request of the agent's that the editor has not answered; `terminal` is the one whose output it wants."""

    life: Life
    number: Raw
    seat: Seat | None = None
    terminal: str | None = None


class Relay:
    """See the module. `send` hands lines to the editor; `send_now` does so if it can be done at once."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], send_now: Callable[[bytes], bool]) -> None:
        self._send, self._send_now = send, send_now
        self._seats: dict[bytes, Seat] = {}
        self._questions: dict[int, Question] = {}
        self._numbers = itertools.count(1)
        self._opening = 0
        self._held: list[tuple[bytes, Members, bytes]] = []

    # Who sits where

    def seat(self, seat: Seat) -> None:
        """From now on what the agent says of this session is passed on."""
        self._seats[frames.encode(seat.behind)] = seat

    @contextmanager
    def opening(self) -> Iterator[None]:
        """While a session is being made: what is said of one that nobody knows yet is held back until `release`."""
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    async def release(self, seat: Seat) -> None:
        """The editor knows this session now: pass on what was held back of it, and of sessions that are none of ours."""
        seat.waiting = False
        held, self._held = self._held, []
        out: Out = []
        for name, message, data in held:
            if self._is_early(name):
                self._held.append((name, message, data))
            else:
                self._update(name, message, data, out)
        await self._hand_over(out)

    def forget(self, behind: str) -> None:
        """What the agent has said so far in a session that it has just forked was said before: it is known."""
        name = frames.encode(behind)
        self._held = [
            held
            for held in self._held
            if held[0] != name or is_state(object_of(held[1], "params").get("update", Raw(b"{}")))
        ]

    def _is_early(self, name: bytes) -> bool:
        """Whether the editor is yet to hear of the agent's session of this name."""
        seat = self._seats.get(name)
        return self._opening > 0 if seat is None else seat.waiting

    # From the agent

    async def follow(self, life: Life) -> None:
        """Pass everything on until the agent leaves. Whoever waits for it hears of that."""
        try:
            await life.line.deliver(lambda lines: self._relayed(life, lines))
        finally:
            life.end()
            await self._hand_over(list(self._farewell(life)))

    def _relayed(self, life: Life, lines: list[bytes | FrameTooLong]) -> Awaitable[None] | None:
        """Pass lines on, at once if that can be; else it is to be waited for. Answers to our own requests come after all
        that was said before them."""
        out: Out = []
        answers: list[tuple[int, Members]] = []
        for data in lines:
            self._take(life, data, out, answers)
        if out and not self._send_now(b"".join(out)):
            return self._relayed_late(life, out, answers)
        for number, message in answers:
            life.resolve(number, message)
        return None

    async def _relayed_late(self, life: Life, out: Out, answers: list[tuple[int, Members]]) -> None:
        await self._hand_over(out)
        for number, message in answers:
            life.resolve(number, message)

    async def _hand_over(self, out: Out) -> None:
        with suppress(Gone):  # whoever reads the editor's requests notices it too
            await self._send(b"".join(out))

    def _take(
        self, life: Life, data: bytes | FrameTooLong, out: Out, answers: list[tuple[int, Members]]
    ) -> None:
        if isinstance(data, FrameTooLong):
            self._miss(life, data, out, answers)
            return
        message = members_of(data)
        if message is None or not ("method" in message or "id" in message):
            log.warning("the agent %r says something that is no message: %r", life.name, data[:200])
            return
        method = message.get("method")
        if method is None:
            self._answer(life, message, out, answers)
        elif bytes(method) == UPDATE and "id" not in message:
            self._hear(message, data, out)
        elif "id" in message:
            self._question(life, message, out)
        else:
            self._notice(life, message, data, out)

    def _hear(self, message: Members, data: bytes, out: Out) -> None:
        named = object_of(message, "params").get("sessionId")
        if named is None:
            out += (data, b"\n")
            return
        name = bytes(named)
        if name not in self._seats:
            name = frames.encode(value_of(named))  # maybe only written otherwise
        if self._is_early(name) and len(self._held) < HELD:
            self._held.append((name, message, data))
        else:
            self._update(name, message, data, out)

    def _update(self, name: bytes, message: Members, data: bytes, out: Out) -> None:
        """Pass an update on. One of a session that is none of ours, such as a subagent's, goes as it is."""
        seat = self._seats.get(name)
        params = object_of(message, "params")
        if seat is None or "update" not in params:
            out += (data, b"\n")
            return
        shown = seat.hear(params["update"])
        if shown is None:
            return
        if len(params) == 2 and len(message) == 3:
            out += (seat.begin, shown, _END)
        else:
            whole = {**message, "params": Raw(joined({**params, "update": shown}))}
            out.append(line(with_session(whole, seat.session)))

    def _answer(self, life: Life, message: Members, out: Out, answers: list[tuple[int, Members]]) -> None:
        number = value_of(message["id"])
        forwarded = life.forwarded.pop(number, None) if isinstance(number, int) else None
        if forwarded is not None:
            out.append(line({**message, "id": forwarded}))
        elif isinstance(number, int):
            answers.append((number, message))

    def _question(self, life: Life, message: Members, out: Out) -> None:
        """A request of the agent's goes under a number of ours, so that no late answer reaches its next life."""
        params = object_of(message, "params")
        seat = self._seats.get(frames.encode(text_of(params, "sessionId")))
        method = text_of(message, "method")
        if seat is not None and method == PERMISSION:
            seat.ask(value_of(params.get("toolCall")))
        terminal = text_of(params, "terminalId") if method == OUTPUT else None
        number = next(self._numbers)
        self._questions[number] = Question(life, message["id"], seat, terminal)
        out.append(line(self._ours({**message, "id": Raw(b"%d" % number)}, seat)))

    def _notice(self, life: Life, message: Members, data: bytes, out: Out) -> None:
        params = object_of(message, "params")
        if text_of(message, "method") == CANCEL and "requestId" in params:
            wanted = frames.key_of(params["requestId"])
            for number, asked in self._questions.items():
                if asked.life is life and frames.key_of(asked.number) == wanted:
                    ours = joined({**params, "requestId": Raw(b"%d" % number)})
                    out.append(line({**message, "params": Raw(ours)}))
            return
        seat = self._seats.get(frames.encode(text_of(params, "sessionId")))
        out.append(data + b"\n" if seat is None else line(self._ours(message, seat)))

    def _ours(self, message: Members, seat: Seat | None) -> Members:
        return message if seat is None else with_session(message, seat.session)

    def _miss(self, life: Life, dropped: FrameTooLong, out: Out, answers: list[tuple[int, Members]]) -> None:
        """A message was too long: whoever waits for it hears of that."""
        frame = frames.read_head(dropped.head)
        told = f"a message may have at most {LINE_BYTES} bytes"
        log.warning("the agent %r: %s", life.name, told)
        if frame.method is None and frames.has_id(frame):
            error = written({"code": INVALID_REQUEST, "message": told})
            self._answer(life, {"jsonrpc": written("2.0"), "id": frame.id, "error": error}, out, answers)

    def _farewell(self, life: Life) -> Iterator[bytes]:
        """What the editor is told when the agent leaves: its requests fail, what it was asked is withdrawn."""
        failure = failure_of(Left(life.name))
        for number in life.forwarded.values():
            yield frames.refusal(number, failure.code, failure.message, failure.data)
        life.forwarded.clear()
        for ours in [number for number, asked in self._questions.items() if asked.life is life]:
            del self._questions[ours]
            yield frames.notification(CANCEL, {"requestId": ours})

    # From the editor

    async def answer(self, message: Members) -> None:
        """Pass the editor's answer on to the agent that asked; one that nobody waits for is ignored."""
        number = value_of(message["id"])
        asked = self._questions.pop(number, None) if isinstance(number, int) else None
        if asked is None:
            return
        if asked.seat is not None and asked.terminal is not None:
            output = text_of(object_of(message, "result"), "output")
            asked.seat.collector.terminals[asked.terminal] = output or ""
        with suppress(Left):
            await asked.life.send(line({**message, "id": asked.number}))
