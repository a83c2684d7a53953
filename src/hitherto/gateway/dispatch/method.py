"""How a request is answered, whatever carried it: rights first, then ownership, then parameters, then the method.

Whether a session is there is said before anything else about the request, and for somebody else's session it is said
that there is none, in the same bytes: a refusal never reveals what exists.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from hitherto.engine import Engine
from hitherto.errors import HithertoError, InvalidInput, OutOfReach, SessionNotFound, StoreUnavailable
from hitherto.gateway.dispatch.connection import OpenConnection, Subscriptions, Turns
from hitherto.gateway.dispatch.errors import failure, failure_of, internal, invalid
from hitherto.gateway.dispatch.inboxes import Inboxes
from hitherto.limits import KEY_CHARS
from hitherto.model import Principal, Session, Token
from hitherto.rpc import frames
from hitherto.rpc.errors import Failure
from hitherto.rpc.order import Place
from hitherto.service import Guard, Sessions
from hitherto.service.transfer.export import Beside as Files
from hitherto.service.transfer.export import in_export_thread
from hitherto.updates import Update
from hitherto.values.keys import DmScopes
from hitherto.values.scopes import matches_any

P_co = TypeVar("P_co", covariant=True)
T = TypeVar("T")
A = TypeVar("A")
log = logging.getLogger(__name__)


class Owns(StrEnum):
    """What of the caller's a method is about. There is no other: a method answers nothing of anybody else's."""

    SESSION = "session"
    """Names one of the caller's sessions; without one there is nothing to answer."""
    SESSION_OR_NEW = "session or new"
    """The same, but with `create` it may be made."""
    SESSION_IF_NAMED = "session, if named"
    """Names one of the caller's sessions, or none at all."""
    OWN = "own"
    """Looks among all that the caller has, or adds to it."""
    NOTHING = "nothing"
    """Is about no session at all."""


NAMED = frozenset((Owns.SESSION, Owns.SESSION_OR_NEW, Owns.SESSION_IF_NAMED))
"""Those by which the session that a request names is looked up before anything else."""


def ignore_updates(session_id: str, update: Update) -> None:
    """Ignore updates of a turn: they are stored, and the change feed shows them."""


Beside = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]
"""Starts a task that outlives its request."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The context of one request. Its rights are those of `token`, as the server's record has them now.

    `subscriptions` and `open_connection` are None where nothing can be sent later, as over plain HTTP. `emit` gets the
    updates of a turn at once, for clients of this process. `models` are the models that may be chosen; None allows any.
    `inboxes` answers what has to wait for a turn. `beside` starts a task that continues after its request is answered. `files` makes the pages of exported files.
    """

    sessions: Sessions
    token: Token
    engine: Engine | None = None
    models: tuple[str, ...] | None = None
    dm_scopes: DmScopes = field(default_factory=DmScopes)
    turns: Turns = field(default_factory=Turns)
    inboxes: Inboxes = field(default_factory=lambda: Inboxes(Turns()))
    subscriptions: Subscriptions | None = None
    open_connection: OpenConnection | None = None
    emit: Callable[[str, Update], None] = ignore_updates
    beside: Beside = asyncio.create_task
    files: Files = in_export_thread

    def offered(self, model: str) -> str:
        """The model, if this server offers it: the operator pays for it. Raises `InvalidInput`."""
        if self.models is not None and model not in self.models:
            raise InvalidInput(f"this server does not offer the model {model!r:.100}")
        return model

    @property
    def who(self) -> Principal:
        """The owner on whose behalf the request runs."""
        return Principal(owner=self.token.owner, local="commands" in self.token.scopes)


class Method(msgspec.Struct, frozen=True):
    """A row of the table. `needs` names parameters that take a further scope; `waits` says that it may take long.

    `lasts`: it continues when the client leaves, which may get the answer later by its idempotency key.
    `final`: the session is gone afterwards, and whoever asks again is still answered by what is remembered. `most` is
    how many bytes an answer may have, of a method whose answers are long. `reached`: also for restricted tokens, since it
    asks for nothing but what the store shows them.
    """

    handle: Callable[[Call[Any]], Awaitable[Any]]
    params: type[Any]
    result: Any
    scope: str
    owns: Owns
    needs: Mapping[str, str] = {}
    waits: bool = False
    lasts: bool = False
    final: bool = False
    most: int = 0
    reached: bool = True

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return (self.handle.__doc__ or "").partition("\n\n")[0].replace("\n    ", " ")

    @property
    def writes(self) -> bool:
        """Whether it takes an idempotency key."""
        return "idempotency_key" in self.params.__struct_fields__

    @property
    def in_order(self) -> bool:
        """Whether it waits for what the same connection has sent to the same session before. Whatever stores something
        does, prompts too; what is said to a running turn does not."""
        return self.scope == "write" or (self.scope == "run" and self.waits)


@dataclass(frozen=True, slots=True)
class Call(Generic[P_co]):
    """A request on its way: rights and ownership are checked, the parameters have their shape."""

    context: Context
    method: str
    params: P_co
    found: Session | None = None
    place: Place | None = None

    @property
    def who(self) -> Principal:
        """On whose behalf."""
        return self.context.who

    @property
    def session(self) -> Session:
        """The session that the request names."""
        return cast("Session", self.found)

    @property
    def sessions(self) -> Sessions:
        """Where that session is kept; without one, where all are that last."""
        home = self.context.sessions
        return home if self.found is None else home.at(self.found.key or self.found.id)

    def let_others_pass(self) -> None:
        """Let requests that came later change the session from now on."""
        if self.place is not None:
            self.place.leave()

    async def once(
        self,
        effect: Callable[[Sessions], Awaitable[T]],
        answer: Callable[[T], A],
        *,
        at: Sessions | None = None,
        noted: Callable[[T], Any] | None = None,
    ) -> A:
        """Write, at most once for an idempotency key and only at the expected revision; `answer` makes the result.

        What was answered before comes back as plain values: its ids and numbers as they were, or those of what `noted`
        makes; what its sessions are called as it is now.
        """
        guarded = (at or self.sessions).idempotency.guarded
        return cast("A", await guarded(self.who, self.guard(), effect, answer, noted or answer))

    def guard(self) -> Guard:
        """What the write depends on."""
        given: Any = self.params
        return Guard(
            method=self.method,
            asked=replace(given, idempotency_key=None),
            key=given.idempotency_key,
            session_id="" if self.found is None else self.found.id,
            expected_revision=getattr(given, "expected_revision", None),
        )


class _Names(msgspec.Struct):
    session_key: Any = None
    session_id: Any = None
    create: Any = False


_names = msgspec.json.Decoder(_Names)
_decoders: dict[object, msgspec.json.Decoder[Any]] = {}
FLOAT = "got `float`"
_PATH = re.compile(r" - at `(\$.*)`$")


async def answer(
    methods: Mapping[str, Method],
    context: Context,
    name: str,
    params: Raw | bytes,
    place: Place | None = None,
) -> bytes:
    """The result of a method as JSON; whatever goes wrong comes out as a `Failure`. With a `place`, it waits for what came
    before to the same session."""
    method = methods.get(name)
    if method is None:
        raise failure("method_not_found", f"Method not found: {name:.100}", method=name[:100])
    named = _Names()
    try:
        _permit(context, method.scope)
        _check_reach(context.token, name, method)
        named = _decode(_names, params)
        return frames.encode(await _handle(context, name, method, params, named, place))
    except SessionNotFound as error:
        # By the name that the caller knows it by, also if it was deleted only now.
        name_given = _name(named) if method.owns in NAMED else None
        reported = error if name_given is None else SessionNotFound(name_given)
        raise failure_of(reported, session_key=name_given) from error
    except HithertoError as error:
        raise failure_of(error) from error
    except Failure:
        raise
    except Exception as error:
        log.exception("%s failed", name)
        raise internal() from error


async def _handle(
    context: Context, name: str, method: Method, params: Raw | bytes, named: _Names, place: Place | None
) -> Any:
    try:
        found = await _find_in_order(context, method, named, place)
    except SessionNotFound:
        if (known := await _earlier_answer(context, name, method, params)) is None:
            raise
        return known
    given = _decode(_decoder(method.params), params)
    for parameter, scope in method.needs.items():
        if getattr(given, parameter):
            _permit(context, scope)
    return await method.handle(Call(context, name, given, found, place))


def _check_reach(token: Token, name: str, method: Method) -> None:
    """Raise `OutOfReach` if the token is restricted and this method is not for it."""
    if token.reach is not None and not (method.reached and matches_any(name, token.reach.methods)):
        raise OutOfReach(f"this token is restricted, and {name} is not among what it is for")


def _permit(context: Context, scope: str) -> None:
    if scope not in context.token.scopes:
        raise failure("forbidden", f"this needs a token with the scope {scope}", scope=scope)


async def _find_in_order(
    context: Context, method: Method, named: _Names, place: Place | None
) -> Session | None:
    """The same as `_find_session`, once all that was sent before to the same session is done."""
    name = named.session_id if named.session_key is None else named.session_key
    if place is None or not isinstance(name, str):
        return await _find_session(context, method, named)
    try:
        await place.reached(name)
        while True:
            found = await _find_session(context, method, named)
            if not await place.found(() if found is None else filter(None, (found.id, found.key))):
                return found
    except TimeoutError:
        raise StoreUnavailable(
            "what was sent to this session before is not done yet, so this was not begun: try again"
        ) from None


async def _find_session(context: Context, method: Method, named: _Names) -> Session | None:
    """The session that the request is about, if it may be about one."""
    if method.owns not in NAMED:
        return None
    name = _name(named)
    if name is None:
        if method.owns is Owns.SESSION_IF_NAMED:
            return None
        raise invalid("session_key is missing", "$.session_key")
    try:
        return await _resolve_session(context, name, by_id=named.session_key is None)
    except SessionNotFound:
        if method.owns is Owns.SESSION_OR_NEW and named.create is True:
            return None
        raise


def _name(named: _Names) -> str | None:
    given = [name for name in (named.session_key, named.session_id) if name is not None]
    if not given:
        return None
    if len(given) > 1:
        raise invalid("give session_key or session_id, not both", "$.session_id")
    if not isinstance(given[0], str):
        raise invalid("session_key must be a string", "$.session_key")
    return given[0] if len(given[0]) <= KEY_CHARS else f"{given[0][:KEY_CHARS]}…"


async def _resolve_session(context: Context, name: str, *, by_id: bool) -> Session:
    try:
        sessions = context.sessions.at(name)
    except InvalidInput:
        raise SessionNotFound(name) from None
    return await (sessions.get(context.who, name) if by_id else sessions.channels.resolve(context.who, name))


async def _earlier_answer(context: Context, name: str, method: Method, params: Raw | bytes) -> Any:
    """What was answered when the session was still there, for a method that ends it."""
    if not method.final:
        return None
    try:
        given = _decode(_decoder(method.params), params)
    except Failure:
        return None
    call: Call[Any] = Call(context, name, given)
    return await context.sessions.idempotency.answered_before(context.who, call.guard())


def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    if shape not in _decoders:
        _decoders[shape] = msgspec.json.Decoder(shape)
    return _decoders[shape]


def _with_integers(params: Raw | bytes) -> bytes:
    """The same, in which numbers without a fraction are written without a point: some clients know only one kind."""

    def number(text: str) -> int | float:
        value = float(text)
        return int(value) if value.is_integer() else value

    return json.dumps(json.loads(bytes(params), parse_float=number)).encode()


def _decode(decoder: msgspec.json.Decoder[T], params: Raw | bytes, *, whole: bool = False) -> T:
    try:
        return decoder.decode(params)
    except msgspec.ValidationError as error:
        text = str(error)
        if not whole and FLOAT in text:
            return _decode(decoder, _with_integers(params), whole=True)
        place = _PATH.search(text)
        raise invalid(_PATH.sub("", text), place[1] if place else None) from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise invalid("the parameters cannot be decoded") from None
