"""The state that all connections share: authentication, rate limits, and how a method is called."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from msgspec import Raw
from starlette.types import Scope

from hitherto.engine import Engine, WarmsUp
from hitherto.errors import HithertoError
from hitherto.gateway.auth.cookies import guest_of
from hitherto.gateway.auth.tokens import Caller, bearer, caller_of
from hitherto.gateway.dispatch.connection import OpenConnection, Subscriptions, Turns
from hitherto.gateway.dispatch.inboxes import Inboxes
from hitherto.gateway.dispatch.method import Context, answer
from hitherto.gateway.dispatch.uploads import Uploads
from hitherto.gateway.events.feeds import Feeds
from hitherto.gateway.methods import METHODS
from hitherto.gateway.server.background import BackgroundRequests
from hitherto.gateway.server.workers import Workers
from hitherto.gateway.transport.limits import Buckets, Incoming, Limits, Outgoing, Room, peer_name
from hitherto.gateway.transport.metrics import OTHER, Metrics
from hitherto.gateway.transport.responses import ending, rate_limited, unauthenticated, unavailable
from hitherto.ids import now_ms
from hitherto.remote.address import is_loopback
from hitherto.rpc.errors import Failure
from hitherto.rpc.order import Place
from hitherto.rpc.transport import Transport
from hitherto.service import Sessions
from hitherto.values.keys import DmScopes

REVOKED_SECONDS = 0.5
"""How long an idle socket may stay open after another process revoked its token."""

TURN_SECONDS = 2.0
"""How often to look for turns whose process has died."""

USES_SECONDS = 30.0
"""How often a server notes which tokens were used."""

INBOX_SECONDS = 2.0
"""How often a server looks for messages that wait although no turn runs."""

log = logging.getLogger(__name__)
Agent = Callable[[Transport, Caller], Awaitable[None]]
"""Serves the Agent Client Protocol to one caller."""


class ServedSocket(Protocol):
    """A socket that is being served."""

    async def check(self) -> None:
        """Close it if its token was revoked."""

    def drain(self) -> None:
        """Close it as soon as all its requests are answered."""


class ServerState:
    """What all connections share. `proxied`: trust `X-Forwarded-For` of a proxy on this machine, for limits only."""

    def __init__(
        self,
        sessions: Sessions,
        engine: Engine | None = None,
        agent: Agent | None = None,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        *,
        proxied: bool = False,
        dm_scopes: DmScopes = DmScopes(),  # noqa: B008 - a frozen value
        models: tuple[str, ...] | None = None,
    ) -> None:
        self.sessions, self.engine, self.agent, self.limits = sessions, engine, agent, limits
        self.room = Room(limits.connections, limits.peer_connections)
        self.waiting = Room(limits.connections, limits.stranger_sockets)
        self.sockets: set[ServedSocket] = set()
        self.feeds, self.turns, self.metrics, self.uploads = Feeds(), Turns(), Metrics(), Uploads()
        self.background, self.inboxes = BackgroundRequests(), Inboxes(self.turns)
        self.outgoing = Outgoing(limits.answer_bytes, limits.answer_bytes_each)
        self.incoming = Incoming(limits.receive_bytes, limits.receive_bytes_each)
        self.workers = Workers(limits.page_effort, limits.page_seconds)
        self.ending = False
        self._proxied, self._dm_scopes, self._models = proxied, dm_scopes, models
        self._answering = 0
        self._used: dict[str, int] = {}
        self._noted = time.monotonic()
        self._strangers = Buckets(limits.stranger_rate, limits.stranger_burst, time.monotonic)
        self._known = Buckets(limits.rate, limits.burst, time.monotonic)
        self._register_gauges()

    @asynccontextmanager
    async def watching_tokens(self) -> AsyncIterator[None]:
        """Close sockets whose token is revoked, by whichever process, answer what others have left in inboxes, and close the
        turns of those that have died, while the block runs. The engine gets ready meanwhile."""
        if isinstance(self.engine, WarmsUp):  # the server ends without waiting for it
            threading.Thread(target=self.engine.warm_up, daemon=True).start()
        watching = [
            asyncio.create_task(watch())
            for watch in (self._watch_tokens, self._watch_inboxes, self._watch_turns)
        ]
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            await self.background.end()
            await self.inboxes.end()
            await self.workers.close()

    def end(self) -> None:
        """Accept nothing new, and close each socket once its requests are answered."""
        self.ending = True
        self.inboxes.stop()
        for socket in tuple(self.sockets):
            socket.drain()

    # Ways in

    def peer(self, scope: Scope) -> str:
        """The address of the client. It is used for limits only and gives no rights."""
        address: str = (scope.get("client") or ("",))[0]
        if self._proxied and is_loopback(address):
            forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            address = forwarded[-1].decode("latin-1").rpartition(",")[2].strip() if forwarded else address
        return peer_name(address)

    def limit_stranger(self, scope: Scope, wish: str = "page") -> None:
        """Count a request without a token. Raises `Refusal` if a peer sends too many of this kind.

        Kinds are counted apart, so that bad tokens keep nobody on the same machine from the sign-in page or `/health`.
        """
        self.refuse_if_limited(self._strangers.take((wish, self.peer(scope))))

    def reject_token(self, scope: Scope) -> None:
        """Count a bad token. Raises `Refusal` if a peer sends too many."""
        self.metrics.refused.add(reason="unauthenticated")
        self.limit_stranger(scope, "token")

    def count(self, caller: Caller) -> float:
        """Count a request; returns the seconds to wait if there are too many."""
        return self._known.take(caller.token.id)

    def refuse_if_limited(self, wait: float) -> None:
        """Raise `Refusal` if the caller has to wait."""
        if wait:
            self.metrics.refused.add(reason="rate_limited")
            raise rate_limited(wait)

    async def authenticate(self, scope: Scope) -> Caller:
        """The caller of a request. Raises `Refusal` without a valid token or cookie.

        Bad tokens do not lock out a valid one from the same peer: they are counted only for requests without one.
        """
        caller = await self.caller_of_token(bearer(scope)) or await self.caller_of_cookie(scope)
        if caller is None:
            self.reject_token(scope)
            raise unauthenticated()
        self.refuse_if_limited(self.count(caller))
        if self.ending:
            raise ending()
        return caller

    async def caller_of_token(self, secret: str | None) -> Caller | None:
        """The caller with this token, if it is valid. Raises `Refusal` if the store is unavailable."""
        try:
            caller = await caller_of(self.sessions, secret)
        except HithertoError as error:
            raise unavailable(error) from error
        if caller is not None:
            self._used[caller.token.id] = now_ms()
        return caller

    async def caller_of_cookie(self, scope: Scope) -> Caller | None:
        """The caller with the page's cookie, if it is valid. Raises `Refusal` if the store is unavailable."""
        try:
            return await guest_of(self.sessions, scope)
        except HithertoError as error:
            raise unavailable(error) from error

    # Requests

    def context(
        self,
        caller: Caller,
        subscriptions: Subscriptions | None = None,
        open_connection: OpenConnection | None = None,
    ) -> Context:
        """The context for the requests of a caller."""
        return Context(
            sessions=caller.sessions,
            token=caller.token,
            engine=self.engine,
            models=self._models,
            turns=self.turns,
            inboxes=self.inboxes,
            subscriptions=subscriptions,
            open_connection=open_connection,
            dm_scopes=self._dm_scopes,
            beside=partial(self.background.start, caller),
            files=partial(self.workers.make, caller.who.owner),
        )

    async def call(
        self, context: Context, name: str, params: Raw, way: str, place: Place | None = None
    ) -> bytes:
        """The result of a method. Raises `Failure`."""
        began, outcome = time.monotonic(), "cancelled"
        self._answering += 1
        try:
            most = METHODS[name].most if name in METHODS else 0
            async with self.outgoing.making(context.token.id, most):
                result = await answer(METHODS, context, name, params, place)
            outcome = "ok"
            return result
        except Failure as failure:
            outcome = str((failure.data or {}).get("code", failure.code))
            raise
        finally:
            self._answering -= 1
            self.metrics.seconds.add(time.monotonic() - began, way=way)
            self.metrics.requests.add(method=name if name in METHODS else OTHER, outcome=outcome)

    # Beside

    async def _watch_tokens(self) -> None:
        known = -1
        while True:
            try:
                revoked = await self.sessions.tokens.generation()
                if revoked != known:
                    await self._close_revoked()
                    known = revoked
            except Exception as error:  # noqa: BLE001 - sockets of revoked tokens would stay open for good
                log.warning("cannot check for revoked tokens, retrying: %s", error)
            self.uploads.forget()
            await self._note_uses()
            await asyncio.sleep(REVOKED_SECONDS)

    async def _note_uses(self) -> None:
        """Note which tokens were used, from time to time."""
        if not self._used or time.monotonic() - self._noted < USES_SECONDS:
            return
        used, self._used, self._noted = self._used, {}, time.monotonic()
        try:
            await self.sessions.tokens.note_use(used)
        except HithertoError as error:
            log.warning("cannot note which tokens were used: %s", error.message)

    async def _watch_inboxes(self) -> None:
        """Answer what waits since a server was ended, and whatever else nobody looks after."""
        while self.engine is not None:
            try:
                await self.inboxes.sweep(self.sessions, self.engine)
            except Exception as error:  # noqa: BLE001 - what waits would wait for good
                log.warning("cannot look for messages that wait, retrying: %s", error)
            await asyncio.sleep(INBOX_SECONDS)

    async def _watch_turns(self) -> None:
        """Close turns whose process has died: an editor's, another server's."""
        while True:
            try:
                await self.sessions.turns.close_interrupted()
            except Exception as error:  # noqa: BLE001 - they would stay open until the next prompt
                log.warning("cannot look for interrupted turns, retrying: %s", error)
            await asyncio.sleep(TURN_SECONDS)

    async def _close_revoked(self) -> None:
        for socket in tuple(self.sockets):
            await socket.check()
        await self.background.check()

    def _register_gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge("hitherto_connections", "Open connections.", lambda: len(self.room))
        gauge("hitherto_sockets", "Open WebSockets.", lambda: len(self.sockets))
        gauge("hitherto_subscriptions", "Subscriptions.", lambda: len(self.feeds))
        gauge("hitherto_requests_running", "Requests being answered.", lambda: self._answering)
        gauge("hitherto_receiving_bytes", "Bytes of requests being received.", lambda: self.incoming.total)
        gauge(
            "hitherto_answer_bytes", "Bytes of long answers being made or sent.", lambda: self.outgoing.total
        )
        gauge("hitherto_pages_running", "Pages being made by workers.", lambda: len(self.workers))
