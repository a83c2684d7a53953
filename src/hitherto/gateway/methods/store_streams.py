"""What remote calls of the service also need: long arguments in pieces, waiting for changes, files and turns as streams."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, Self

from hitherto.engine import Choices, Setup
from hitherto.errors import InvalidInput
from hitherto.gateway.dispatch.connection import OpenConnection
from hitherto.gateway.dispatch.method import Call, Method, Owns
from hitherto.gateway.dispatch.schema import Named, NamedWriting, Params
from hitherto.gateway.methods.store import Exact, Result, require_connection, result, with_uploads
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
"""Not longer: a server that shuts down waits for running requests."""
NOTIFICATION = f"{PREFIX}told"


class UploadPiece(Params, frozen=True, kw_only=True):
    """A piece of an argument. The next request passes the name instead of the argument."""

    name: str
    data: bytes


class Await(Params, frozen=True, kw_only=True):
    """The position up to which the changes are known."""

    after: str


class ExportFile(Named, frozen=True, kw_only=True):
    """The name of the stream that carries the pieces of the file, and the format of the file."""

    stream: str
    format: str = "json"
    raw: bool = False


class Window(Params, frozen=True, kw_only=True):
    """What is chosen for a turn."""

    choices: Exact


class Prompt(NamedWriting, frozen=True, kw_only=True):
    """The prompt, the choices for the turn, and the name of the stream that carries its events.

    With `ask`, a client that may start programs is asked for permission to run tools, and answers with `session.answer`.
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


async def upload(call: Call[UploadPiece]) -> Result:
    """Upload an argument that is too long for one message, in pieces. Gives `int`, the bytes received so far."""
    name = checked_length(call.params.name, NAME_CHARS, "a name")
    return result(require_connection(call).upload(call.context.token, name, call.params.data))


async def await_change(call: Call[Await]) -> Result:
    """Wait a short while for a change. Gives `str`, the position after all changes."""
    require_connection(call)
    after = call.params.after
    return result(await call.sessions.wait(call.who, after=after, seconds=WAIT_SECONDS))


async def export_file(call: Call[ExportFile]) -> Result:
    """Export one session as a file, in pieces that arrive as `store.told`. Gives nothing."""
    given, connection, waiting = call.params, require_connection(call), bytearray()
    async for piece in call.sessions.transfer.export_file(
        call.who, call.session.id, given.format, raw=given.raw, beside=call.context.files
    ):
        waiting += piece
        while len(waiting) >= PIECE_BYTES:
            await connection.notify(
                NOTIFICATION, {"stream": given.stream, "data": bytes(waiting[:PIECE_BYTES])}
            )
            del waiting[:PIECE_BYTES]
    await connection.notify(NOTIFICATION, {"stream": given.stream, "data": bytes(waiting)})
    return result(None)


async def window(call: Call[Window]) -> Result:
    """Get the window of the model that would answer, in tokens. Fails if there is none. Gives `int` or nothing."""
    call = with_uploads(call)
    choices = from_bytes(_bytes(call.params.choices), Choices)
    async with engine_of(call).open(Setup(session_id="", local=False)) as conversation:
        return result(await conversation.window(choices))


async def prompt(call: Call[Prompt]) -> Result:
    """Send a prompt and run the turn. Its events arrive as `store.told`. Gives `Outcome`."""
    call, connection = with_uploads(call), require_connection(call)
    given = call.params
    parts = from_bytes(_bytes(given.parts), tuple[Part, ...])
    choices = from_bytes(_bytes(given.choices), Choices)
    may_answer = given.ask and "commands" in call.context.token.scopes
    async with TurnStream(connection, given.stream) as stream:
        outcome = await run_turn(
            call,
            parts,
            choices,
            ask=stream.ask if may_answer else None,
            emit=stream.emit,
            key=given.idempotency_key,
        )
    return result(outcome)


class TurnStream:
    """Sends the events of a turn, in order. For a client that reads slowly, pieces of text are merged."""

    def __init__(self, connection: OpenConnection, stream: str) -> None:
        self._connection, self._stream = connection, stream
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
        """Send this update."""
        last = self._waiting[-1] if self._waiting else None
        if isinstance(update, Said) and isinstance(last, Said) and _continues(last, update):
            self._waiting[-1] = Said(entry=last.entry, text=last.text + update.text, thought=last.thought)
        else:
            self._waiting.append(update)
        self._more.set()

    async def ask(self, call: ToolCall) -> Choice | Verdict:
        """Send the tool call that needs permission; the answer comes by another request."""
        self._waiting.append(call)
        self._more.set()
        return await elsewhere(call)

    async def _run(self) -> None:
        while self._waiting or not self._over:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                await self._connection.notify(
                    NOTIFICATION, {"stream": self._stream, "data": encode_event(self._waiting.pop(0))}
                )


def _continues(last: Said, update: Said) -> bool:
    return (last.entry, last.thought) == (update.entry, update.thought)


def _bytes(given: Any) -> bytes:
    if not isinstance(given, bytes):
        raise InvalidInput("the value must be the base64 of its JSON")
    return given


STREAM_METHODS: dict[str, Method] = {
    PREFIX + "about": Method(about, Params, Result, "read", Owns.NOTHING),
    PREFIX + "hand_over": Method(upload, UploadPiece, Result, "write", Owns.NOTHING),
    PREFIX + "await_change": Method(await_change, Await, Result, "read", Owns.OWN, waits=True),
    PREFIX + "export_file": Method(
        export_file, ExportFile, Result, "read", Owns.SESSION, needs={"raw": "raw"}, waits=True
    ),
    PREFIX + "window": Method(window, Window, Result, "read", Owns.NOTHING, waits=True),
    PREFIX + "prompt": Method(prompt, Prompt, Result, "run", Owns.SESSION, waits=True),
}
