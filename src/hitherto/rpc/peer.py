"""One end of a JSON-RPC connection: serves the requests of the other end, and makes requests of its own.

Requests run side by side, each in a task that the connection owns. Short ones are bounded by not reading on; those that
may wait for the peer itself (a prompt that asks for permission) are bounded by refusing more of them, since not reading
would keep the very answer out that they wait for.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

from hitherto.errors import HithertoError
from hitherto.rpc import frames
from hitherto.rpc.errors import (
    CODES,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    OVERLOADED,
    REQUEST_CANCELLED,
    Failure,
    Gone,
    Refused,
    failure_of,
)
from hitherto.rpc.frames import BadFrame, Frame, Key
from hitherto.rpc.transport import LINE_BYTES, FrameTooLong, Transport

SHORT_REQUESTS = 32
WAITING_REQUESTS = 256
CANCEL = "$/cancel_request"

C = TypeVar("C")
log = logging.getLogger(__name__)


class Method(msgspec.Struct, Generic[C], frozen=True):
    """How a method is served. `waits`: it may wait for the peer, and so must not keep the peer from being heard. `whole`:
    it makes something that only its answer names, so it is not cancelled once it has started."""

    handle: Callable[[C, Any], Awaitable[Any]]
    params: type[Any]
    waits: bool = False
    whole: bool = False


class Then(msgspec.Struct, frozen=True):
    """An answer, and what is to be done once it is on its way."""

    result: Any
    after: Callable[[], Awaitable[None]]


class _Cancelled(msgspec.Struct, frozen=True, rename="camel"):
    request_id: Raw


class _Request:
    """A request that is being served. It can be called off until its handler has returned: after that the answer is on
    its way, and nothing cuts its task until that is sent."""

    task: asyncio.Task[None]
    begun = answered = sent = cancelled = False

    def cancel(self) -> None:
        """Have it answered as cancelled; one whose handler has not begun yet sees that by itself."""
        if self.begun and not self.answered and not self.cancelled:
            self.task.cancel()
        self.cancelled = True


class _Error(msgspec.Struct, frozen=True):
    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


class Peer(Generic[C]):
    """A connection. `context` is handed to every handler; `to_failure` words an error for the method it came from."""

    def __init__(
        self,
        transport: Transport,
        requests: Mapping[str, Method[C]],
        notifications: Mapping[str, Method[C]],
        context: C,
        *,
        to_failure: Callable[[HithertoError, Any], Failure] = lambda error, _: failure_of(error, CODES),
    ) -> None:
        self._transport = transport
        self._requests = requests
        self._notifications = notifications
        self._context = context
        self._to_failure = to_failure
        self._decoders = {
            method: msgspec.json.Decoder(method.params)
            for method in (*requests.values(), *notifications.values())
        }
        self._cancelling = msgspec.json.Decoder(_Cancelled)
        self._errors = msgspec.json.Decoder(_Error)
        self._turn = asyncio.Lock()
        self._short = asyncio.Semaphore(SHORT_REQUESTS)
        self._waiting: set[_Request] = set()
        self._running: dict[Key, set[_Request]] = {}
        self._pending: dict[int, asyncio.Future[Raw]] = {}
        self._numbers = itertools.count(1)
        self._left = False

    async def run(self) -> None:
        """Serve until the peer leaves: then what waits for it ends, and what does not is finished."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while (frame := await self._receive()) is not None:
                    await self._take(tasks, frame)
                self._leave()
        except* Gone:
            pass
        finally:
            self._leave()

    @property
    def left(self) -> bool:
        """Whether the peer has left."""
        return self._left

    @property
    def sending(self) -> bool:
        """Whether somebody is sending something."""
        return self._turn.locked()

    async def send(self, data: bytes) -> None:
        """Hand over whole lines, in the order in which they were sent; waits for a peer that is slow to read."""
        if data:
            async with self._turn:
                try:
                    await self._transport.send(data)
                except Gone:
                    self._left = True  # before whoever notices it cancels anything
                    raise

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Callable[[bytes], Awaitable[None]]]:
        """Nobody else sends anything while this block runs; what it yields does."""
        async with self._turn:
            yield self._transport.send

    async def notify(self, method: str, params: Any) -> None:
        """Send the peer a notification. Raises `Gone` if it has left."""
        if self._left:
            raise Gone
        await self.send(frames.notification(method, params))

    async def ask(self, method: str, params: Any) -> Raw:
        """Make a request and return its result. Raises `Refused` if the peer answers with an error, `Gone` if it has
        left; when the caller is cancelled, so is the request."""
        if self._left:
            raise Gone
        number = next(self._numbers)
        answered: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._pending[number] = answered
        try:
            await self.send(frames.request(number, method, params))
            return await answered
        except asyncio.CancelledError:
            if not self._left:
                await self.notify(CANCEL, {"requestId": number})
            raise
        finally:
            del self._pending[number]

    # What comes in

    async def _receive(self) -> Frame | None:
        """The next message that is one; others are answered here."""
        while True:
            try:
                line = await self._transport.receive()
                return None if line is None else frames.read_frame(line)
            except FrameTooLong as dropped:
                await self._refuse_too_long(frames.read_head(dropped.head))
            except BadFrame as bad:
                await self.send(bad.answer)

    async def _refuse_too_long(self, frame: Frame) -> None:
        """A message was dropped: whoever waits for it here, or for its answer there, hears of that."""
        text = f"message too long: at most {LINE_BYTES} bytes"
        asked = self._pending_request(frame) if frame.method is None else None
        if asked is not None:
            asked.set_exception(Refused(INVALID_REQUEST, text))
        else:
            number = frame.id if frames.has_id(frame) else frames.NULL
            await self.send(frames.refusal(number, INVALID_REQUEST, text))

    async def _take(self, tasks: asyncio.TaskGroup, frame: Frame) -> None:
        if frame.method is None:
            self._resolve(frame)
        elif frame.method == CANCEL and not frames.has_id(frame):
            self._cancel_request(frame)
        elif frames.has_id(frame):
            await self._start(tasks, frame, frame.method)
        elif (method := self._notifications.get(frame.method)) is not None:
            await self._short.acquire()
            tasks.create_task(self._handle_notification(method, frame)).add_done_callback(
                lambda _: self._short.release()
            )

    async def _start(self, tasks: asyncio.TaskGroup, frame: Frame, name: str) -> None:
        method = self._requests.get(name)
        if method is None:
            text = f"Method not found: {name[:100]}"
            await self.send(frames.refusal(frame.id, METHOD_NOT_FOUND, text, {"method": name[:100]}))
        elif not method.waits:
            await self._short.acquire()
            self._begin(tasks, _Request(), method, frame, self._short.release)
        elif len(self._waiting) < WAITING_REQUESTS:
            request = _Request()
            self._waiting.add(request)
            self._begin(tasks, request, method, frame, lambda: self._waiting.discard(request))
        else:
            text = f"at most {WAITING_REQUESTS} requests of this kind may run at once"
            await self.send(frames.refusal(frame.id, OVERLOADED, text))

    def _begin(
        self,
        tasks: asyncio.TaskGroup,
        request: _Request,
        method: Method[C],
        frame: Frame,
        done: Callable[[], None],
    ) -> None:
        """Serve a request, which can be called off by its id. Two with one id are both served, and called off together:
        which one is meant only the peer could know."""
        key = frames.key_of(frame.id)
        self._running.setdefault(key, set()).add(request)

        def forget(_: asyncio.Task[None]) -> None:
            same = self._running[key]
            same.discard(request)
            if not same:
                del self._running[key]
            done()

        request.task = tasks.create_task(self._serve(request, method, frame))
        request.task.add_done_callback(forget)

    async def _serve(self, request: _Request, method: Method[C], frame: Frame) -> None:
        """Every request gets one answer, and then what follows from it happens."""
        after = None
        try:
            result = await self._run_handler(request, method, frame)
            if isinstance(result, Then):
                result, after = result.result, result.after
            line = frames.answer(frame.id, result if isinstance(result, bytes) else frames.encode(result))
        except Failure as failure:
            line = frames.refusal(frame.id, failure.code, failure.message, failure.data)
        await self.send(line)
        request.sent = True
        if after is not None:
            await after()

    async def _run_handler(self, request: _Request, method: Method[C], frame: Frame) -> Any:
        """What the handler returns, unless the request is called off first."""
        cancelled = Failure(REQUEST_CANCELLED, "Request cancelled")
        if request.cancelled:
            raise cancelled
        request.begun, request.answered = True, method.whole
        try:
            return await self._answer(method, frame)
        except asyncio.CancelledError:
            if not request.cancelled:
                raise
            raise cancelled from None
        finally:
            request.answered = True

    async def _handle_notification(self, method: Method[C], frame: Frame) -> None:
        """A notification is answered by nothing, whatever becomes of it."""
        try:
            await self._answer(method, frame)
        except Failure as failure:
            log.info("%s was ignored: %s", frame.method, failure.message)

    async def _answer(self, method: Method[C], frame: Frame) -> Any:
        """What the handler returns; whatever it raises comes out as a `Failure`."""
        params = frames.decode_params(self._decoders[method], frames.params_of(frame))
        try:
            return await method.handle(self._context, params)
        except HithertoError as error:
            raise self._to_failure(error, params) from error
        except (Failure, Gone):
            raise
        except Exception as error:
            log.exception("%s failed", frame.method)
            raise Failure(INTERNAL_ERROR, f"Internal error: {type(error).__name__}") from error

    def _cancel_request(self, frame: Frame) -> None:
        try:
            named: _Cancelled = frames.decode_params(self._cancelling, frames.params_of(frame))
        except Failure:
            return
        for request in self._running.get(frames.key_of(named.request_id), ()):
            request.cancel()

    def _resolve(self, frame: Frame) -> None:
        """An answer to a request of ours; one that nobody waits for is ignored."""
        answered = self._pending_request(frame)
        if answered is None:
            return
        if memoryview(frame.error):
            try:
                error = self._errors.decode(frame.error)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                error = _Error()
            answered.set_exception(Refused(error.code, error.message, error.data))
        else:
            answered.set_result(frame.result)

    def _pending_request(self, frame: Frame) -> asyncio.Future[Raw] | None:
        key = frames.key_of(frame.id)
        answered = self._pending.get(key) if isinstance(key, int) else None
        return None if answered is None or answered.done() else answered

    def _leave(self) -> None:
        """Nobody answers any more: end what would wait for that."""
        self._left = True
        for answered in self._pending.values():
            if not answered.done():
                answered.set_exception(Gone())
                answered.exception()  # seen, even if whoever waited is cancelled before it hears of it
        for request in self._waiting:
            if request.sent or not request.answered:
                request.task.cancel()
