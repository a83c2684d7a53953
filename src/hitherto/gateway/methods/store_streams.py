"""What the service's own calls need besides, over a wire: long arguments, waiting, files and turns told as they come."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, Self

from hitherto.engine import Choices, Setup
from hitherto.errors import InvalidInput
from hitherto.gateway.dispatch.connection import Held
from hitherto.gateway.dispatch.method import Call, Method, Owns
from hitherto.gateway.dispatch.schema import Named, NamedWriting, Number, Params
from hitherto.gateway.methods.store import Exact, Result, held, put_together, result
from hitherto.gateway.methods.turns import engine_of, run_turn
from hitherto.limits import NAME_CHARS, checked_length
from hitherto.model import Part, ToolCall, Value
from hitherto.permissions import Choice, Verdict
from hitherto.remote.calls import PREFIX
from hitherto.remote.turns import encode_event
from hitherto.remote.values import from_bytes
from hitherto.updates import Said, Update, elsewhere

PIECE_BYTES = 512 * 1024
WAIT_SECONDS = 2.0
"""Not longer: a server that ends waits for what was asked of it."""
TOLD = f"{PREFIX}told"


class HandOver(Params, frozen=True, kw_only=True):
    """More of an argument, under a name that the next request gives in its place."""

    name: str
    data: bytes


class Await(Params, frozen=True, kw_only=True):
    """The number of the last change that is known."""

    after: Number


class ExportFile(Named, frozen=True, kw_only=True):
    """The name of the stream under which the pieces of the file are told, and the form of the file."""

    stream: str
    format: str = "json"
    raw: bool = False


class Window(Params, frozen=True, kw_only=True):
    """What is chosen for a turn."""

    choices: Exact


class Prompt(NamedWriting, frozen=True, kw_only=True):
    """What is said, what is chosen, and the name of the stream under which everything is told as it happens.

    With `ask`, whoever may have programs started is told which tool needs a permission, and gives `session.answer`.
    """

    stream: str
    parts: Exact
    choices: Exact
    ask: bool = False


class About(Value, frozen=True):
    """A name for the owner's part of the store, and who the token is."""

    id: str
    owner: str
    scopes: tuple[str, ...]


async def about(call: Call[Params]) -> Result:
    """Describe the token. Gives `id`, which no other owner and no other store has, `owner` and `scopes`."""
    token, store = call.context.token, call.context.sessions.admin.store_id
    name = hashlib.blake2b(f"{store}\n{token.owner}".encode(), digest_size=8).hexdigest()
    return result(About(id=name, owner=token.owner, scopes=token.scopes))


async def hand_over(call: Call[HandOver]) -> Result:
    """Upload an argument that is too long for one message, in pieces. Gives `int`, the bytes received so far."""
    name = checked_length(call.params.name, NAME_CHARS, "a name")
    return result(held(call).hand_over(call.context.token, name, call.params.data))


async def await_change(call: Call[Await]) -> Result:
    """Wait a short while for a change. Gives `int`, the number of the newest change."""
    held(call)
    after = call.params.after
    return result(await call.sessions.wait(call.who, after=after, seconds=WAIT_SECONDS))


async def export_file(call: Call[ExportFile]) -> Result:
    """Export one session as a file, in pieces that arrive as `store.told`. Gives nothing."""
    given, line, waiting = call.params, held(call), bytearray()
    async for piece in call.sessions.transfer.export_file(
        call.who, call.session.id, given.format, raw=given.raw
    ):
        waiting += piece
        while len(waiting) >= PIECE_BYTES:
            await line.tell(TOLD, {"stream": given.stream, "data": bytes(waiting[:PIECE_BYTES])})
            del waiting[:PIECE_BYTES]
    await line.tell(TOLD, {"stream": given.stream, "data": bytes(waiting)})
    return result(None)


async def window(call: Call[Window]) -> Result:
    """Get the window of the model that would answer, in tokens. Fails if there is none. Gives `int` or nothing."""
    call = put_together(call)
    choices = from_bytes(_bytes(call.params.choices), Choices)
    async with engine_of(call).open(Setup(session_id="", local=False)) as conversation:
        return result(await conversation.window(choices))


async def prompt(call: Call[Prompt]) -> Result:
    """Send a prompt and run the turn. Its events arrive as `store.told`. Gives `Outcome`."""
    call, line = put_together(call), held(call)
    given = call.params
    parts = from_bytes(_bytes(given.parts), tuple[Part, ...])
    choices = from_bytes(_bytes(given.choices), Choices)
    may_answer = given.ask and "commands" in call.context.token.scopes
    async with Telling(line, given.stream) as telling:
        outcome = await run_turn(
            call,
            parts,
            choices,
            ask=telling.ask if may_answer else None,
            emit=telling.emit,
            key=given.idempotency_key,
        )
    return result(outcome)


class Telling:
    """Tells what happens in a turn, in order. To one who is slow to listen, what was said meanwhile is told at once."""

    def __init__(self, line: Held, stream: str) -> None:
        self._line, self._stream = line, stream
        self._waiting: list[Update | ToolCall] = []
        self._more, self._over = asyncio.Event(), False

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._over = True
        self._more.set()
        if kind is not None and not issubclass(kind, Exception):
            self._task.cancel()
        await asyncio.wait([self._task])

    def emit(self, update: Update) -> None:
        """Tell this."""
        last = self._waiting[-1] if self._waiting else None
        if isinstance(update, Said) and isinstance(last, Said) and _goes_on(last, update):
            self._waiting[-1] = Said(entry=last.entry, text=last.text + update.text, thought=last.thought)
        else:
            self._waiting.append(update)
        self._more.set()

    async def ask(self, call: ToolCall) -> Choice | Verdict:
        """Tell which tool is asked about; the answer comes from elsewhere."""
        self._waiting.append(call)
        self._more.set()
        return await elsewhere(call)

    async def _run(self) -> None:
        while self._waiting or not self._over:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                await self._line.tell(
                    TOLD, {"stream": self._stream, "data": encode_event(self._waiting.pop(0))}
                )


def _goes_on(last: Said, update: Said) -> bool:
    return (last.entry, last.thought) == (update.entry, update.thought)


def _bytes(given: Any) -> bytes:
    if not isinstance(given, bytes):
        raise InvalidInput("the value must be the base64 of its JSON")
    return given


HOLDING: dict[str, Method] = {
    PREFIX + "about": Method(about, Params, Result, "read", Owns.NOTHING),
    PREFIX + "hand_over": Method(hand_over, HandOver, Result, "write", Owns.NOTHING),
    PREFIX + "await_change": Method(await_change, Await, Result, "read", Owns.OWN, waits=True),
    PREFIX + "export_file": Method(
        export_file, ExportFile, Result, "read", Owns.SESSION, needs={"raw": "raw"}, waits=True
    ),
    PREFIX + "window": Method(window, Window, Result, "read", Owns.NOTHING, waits=True),
    PREFIX + "prompt": Method(prompt, Prompt, Result, "run", Owns.SESSION, waits=True),
}
