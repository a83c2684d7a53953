"""Running the server: where it listens, how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import re
import resource
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp

from hitherto.errors import InvalidInput
from hitherto.gateway.app import application
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.limits import MESSAGE_BYTES
from hitherto.gateway.transport.origin import checked_host, checked_origin, places
from hitherto.gateway.transport.protocols import protocols
from hitherto.model import Value
from hitherto.remote.address import is_loopback

BACKLOG = 1_024
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - whoever starts it says so
LOOPBACK = "127.0.0.1"
PING_SECONDS = 20.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
LAST_SECONDS = 10.0
"""After the grace period, for what was said to be stored and the store to be closed."""

log = logging.getLogger(__name__)


class ListenAddress(Value, frozen=True):
    """Where a server listens, and its names for clients. `grace`: how many seconds turns may continue at shutdown."""

    host: str = "127.0.0.1"
    port: int = 8787
    tls_cert: str | None = None
    tls_key: str | None = None
    origins: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    grace: float = 30.0

    @property
    def tls(self) -> bool:
        """Whether it speaks TLS itself."""
        return self.tls_cert is not None


def checked_address(where: ListenAddress) -> ListenAddress:
    """The same, if a server may listen there: beyond this machine only with TLS, its own or that of a proxy."""
    if (where.tls_cert is None) != (where.tls_key is None):
        raise InvalidInput("give both --tls-cert and --tls-key, or neither")
    for path in filter(None, (where.tls_cert, where.tls_key)):
        if not Path(path).is_file():
            raise InvalidInput(f"no such file: {path}")
    if where.tls_cert is not None and where.tls_key is not None:
        _check_certificate(where.tls_cert, where.tls_key)
    for name in where.names:
        checked_host(name)
    origins = [checked_origin(origin) for origin in where.origins]
    behind_tls = origins and all(origin.startswith("https://") for origin in origins)
    if not (is_loopback(where.host) or where.tls or behind_tls):
        raise InvalidInput(
            f"{where.host} is reachable from other machines, and traffic would not be encrypted: give"
            " --tls-cert and --tls-key, or --behind-proxy ORIGIN if a proxy terminates TLS"
        )
    return where


def _check_certificate(cert: str, key: str) -> None:
    """Raise `InvalidInput` that names the file which is no good."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(cafile=cert)
    except (ssl.SSLError, OSError) as error:
        raise InvalidInput(f"{cert} is not a PEM certificate{_because(error)}") from None
    try:
        context.load_cert_chain(cert, key, password="")  # nobody is asked for one
    except (ssl.SSLError, OSError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            raise InvalidInput(f"the key in {key} does not match the certificate in {cert}") from None
        raise InvalidInput(f"{key} is not a PEM private key without a password{_because(error)}") from None


def _because(error: OSError) -> str:
    return "" if isinstance(error, ssl.SSLError) else f": {error.strerror}"


def listen(where: ListenAddress) -> socket.socket:
    """A socket that listens there; `InvalidInput` says why there cannot be one."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    try:
        return socket.create_server((where.host, where.port), family=family, backlog=BACKLOG)
    except OSError as error:
        failure = f"cannot listen on {where.host} port {where.port}: {error.strerror or error}"
        raise InvalidInput(f"{failure}; is another server running? Choose another port with --port") from None


def address(where: ListenAddress, port: int) -> str:
    """What to open in a browser: a name of the machine, if it has one, and never "everywhere", which is no place."""
    host = where.names[0] if where.names else LOOPBACK if where.host in EVERYWHERE else where.host
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if where.tls else 'http'}://{host}:{port}"


async def run(
    state: ServerState,
    where: ListenAddress,
    listener: socket.socket,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal: then running turns finish within the grace period, or are ended and stored.

    A second signal ends running turns at once; further signals are ignored. Whatever else still runs when all of this
    should have been done, `LAST_SECONDS` after the grace period, ends with the process.
    """
    _allow_files(state.limits.connections + 256)
    known = places(listener.getsockname()[1], tls=where.tls, declared=where.origins, names=where.names)
    server = _Server(_config(application(state, known), state, where), started)
    ending = Ending(state, server, where.grace)
    async with state.watching_tokens():
        with ending.on_signals():
            await server.serve(sockets=[listener])
            await ending.finished()


class _Server(uvicorn.Server):
    """Calls `started` when it accepts connections, and does not handle signals itself."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # what is there by now stays for good: looking through it again and again costs a tenth of a request
        self._on_started()


class Ending:
    """How the server ends. First politely: nothing new is taken, what runs is finished."""

    def __init__(self, state: ServerState, server: uvicorn.Server, grace: float) -> None:
        self._state, self._server, self._grace = state, server, grace

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Begin to end at a signal, and end at the second; from then on signals are ignored, until the process is gone."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            _ignore_signals()

    async def finished(self) -> None:
        """All that was begun has come to its end, and what was said is stored."""
        tasks = self._server.server_state.tasks
        for task in tuple(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tuple(tasks))

    def _on_signal(self) -> None:
        if not self._server.should_exit:
            self._server.should_exit = True
            self._state.end()
            _end_within(self._grace + LAST_SECONDS)
        else:
            _end_within(LAST_SECONDS)
            for task in self._server.server_state.tasks:
                task.cancel()
            _ignore_signals()


def _end_within(seconds: float) -> None:
    """End the process then, if it is still there: a thread that does not end would keep it for ever."""

    def end() -> None:
        log.error("something is still running after the grace period; ending without it")
        logging.shutdown()
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _ignore_signals() -> None:
    """One more would kill the process before what was said is stored: that is a signal's action when nobody handles it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _config(app: ASGIApp, state: ServerState, where: ListenAddress) -> uvicorn.Config:
    http, ws = protocols(state.limits, state.room, state.incoming)
    return uvicorn.Config(
        app,
        http=http,
        ws=ws,
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=MESSAGE_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=PING_SECONDS,
        # Who does not read answers no ping, and is given up no sooner for that.
        ws_ping_timeout=max(PING_SECONDS, state.limits.stall_seconds),
        timeout_graceful_shutdown=math.ceil(where.grace),
        ssl_certfile=where.tls_cert,
        ssl_keyfile=where.tls_key,
    )


def _allow_files(most: int) -> None:
    """Let the process have as many connections as the limits say, if the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < most and hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


T = TypeVar("T")


def run_quickly(work: Coroutine[Any, Any, T]) -> T:
    """Run this to its end, on the quicker event loop where there is one."""
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.run(work)
    return uvloop.run(work)


_SECRET = re.compile(r"(?:hth|rcl)_[A-Za-z0-9_-]{8,}|(?i:bearer\s+)\S+")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class SafeFormatter(logging.Formatter):
    """Removes tokens, terminal sequences and line breaks from log records."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as it is written."""
        record.message = _CONTROL.sub(" ", record.getMessage().replace("\n", " "))
        record.msg, record.args = record.message, None
        return _SECRET.sub("(secret)", _CONTROL.sub(" ", super().format(record)))


def start_logging() -> None:
    """Write warnings and worse to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter("hitherto: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
