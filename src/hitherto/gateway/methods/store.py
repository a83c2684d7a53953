"""The service's own calls, for programs that want its values as they are: in nobody else's shapes, and without loss.

Each method is a call of the table `hitherto.remote.calls`: its parameters are those of the service's own function, its
result what that returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hitherto.errors import InvalidInput, TooLarge
from hitherto.gateway.dispatch.connection import OpenConnection
from hitherto.gateway.dispatch.method import Call, Method, Owns
from hitherto.gateway.dispatch.schema import Answer, Named, NamedWriting, Params, Writing
from hitherto.model import Draft, Json, encode
from hitherto.remote.calls import CALLS, PREFIX, RemoteCall
from hitherto.remote.values import Field, fields_of, from_bytes, result_of
from hitherto.service import Sessions
from hitherto.service.transfer.synced import BATCH
from hitherto.service.validation import OURS, SOURCES, check_meta_keys, foreign_keys

ANSWER_BYTES = 64 * 1024 * 1024
"""The longest result that is sent as one answer."""
HISTORY_BYTES = 8 * 1024 * 1024
"""A page of a history is cut at this size, and says where the next one starts."""
BASES: Mapping[tuple[bool, bool], type[Params]] = {
    (False, False): Params,
    (False, True): Writing,
    (True, False): Named,
    (True, True): NamedWriting,
}
"""What the parameters of a method begin with, by whether it names a session and whether it writes."""
NO_CONNECTION = "this method needs an open connection: use the WebSocket /ws"


class Uploaded(Params, frozen=True, kw_only=True):
    """The name of an argument that was uploaded in pieces, with `store.hand_over`."""

    handed_over: str


Exact = bytes | Uploaded
"""The bytes of a value's own JSON, in base64; or where they are."""


class Result(Answer, frozen=True, kw_only=True):
    """The value; as the bytes of its JSON if it holds what not every reader of JSON takes."""

    value: Raw | UnsetType = UNSET
    exact: bytes | UnsetType = UNSET


def result(value: Any) -> Result:
    """A value of the program, for the wire. Raises `TooLarge`."""
    try:
        encoded = Result(value=Raw(msgspec.json.encode(value)))
    except (UnicodeEncodeError, OverflowError):
        encoded = Result(exact=encode(value))
    if len(bytes(encoded.value or b"") if encoded.exact is UNSET else encoded.exact) > ANSWER_BYTES:
        raise TooLarge(f"the result exceeds {ANSWER_BYTES} bytes: request less at once")
    return encoded


def require_connection(call: Call[Any]) -> OpenConnection:
    """The connection. Raises `InvalidInput` where there is none that stays open."""
    if call.context.open_connection is None:
        raise InvalidInput(NO_CONNECTION)
    return call.context.open_connection


def with_uploads(call: Call[Any]) -> Call[Any]:
    """The call with its uploaded arguments in place. Each upload is used once."""
    fields = {name: getattr(call.params, name) for name in call.params.__struct_fields__}
    named = {name: value.handed_over for name, value in fields.items() if isinstance(value, Uploaded)}
    if not named:
        return call
    uploads = {name: require_connection(call).take_upload(each) for name, each in named.items()}
    if unknown := [each for name, each in named.items() if uploads[name] is None]:
        raise InvalidInput(f"no upload named {unknown[0]!r:.100}: send it with store.hand_over first")
    return replace(call, params=msgspec.structs.replace(call.params, **uploads))


def _method(name: str, offered: RemoteCall) -> Method:
    fields, owns, writes = fields_of(name), Owns(offered.about), offered.scope == "write"

    async def handle(call: Call[Any]) -> Result:
        call = with_uploads(call)
        given = {each: _value(getattr(call.params, each), field) for each, field in fields.items()}
        given = _bounded(name, given, call.params)

        async def effect(sessions: Sessions) -> Any:
            about = (call.session.id,) if owns is Owns.SESSION else ()
            return await offered.of(sessions)(call.who, *about, **given)

        if not writes:
            return result(await effect(call.sessions))
        answer: Any = await call.once(effect, result, noted=lambda value: {"value": value})
        # What was answered before comes back as plain values, which not every reader of JSON takes either.
        return result(answer.get("value")) if isinstance(answer, dict) else answer

    handle.__doc__ = f"{_sentence(name)} Gives {_worded(result_of(name))}."
    shape = msgspec.defstruct(
        f"Store{''.join(map(str.capitalize, name.split('_')))}",
        [(each, Exact if field.exact else field.type, field.default) for each, field in fields.items()],
        bases=(BASES[owns is Owns.SESSION, writes],),
        module=__name__,
        frozen=True,
        kw_only=True,
    )
    most = HISTORY_BYTES if name == "history" else 0
    return Method(
        handle, shape, Result, offered.scope, owns, needs=offered.needs, final=offered.final, most=most
    )


def _value(given: Any, field: Field) -> Any:
    return from_bytes(given, field.type) if isinstance(given, bytes) else given


def _bounded(name: str, given: Json, params: Any) -> Json:
    """The arguments, within what a server does at once and what it lets a caller say."""
    if name == "history" and given["around"] is None:
        return {**given, "max_bytes": HISTORY_BYTES}
    if name == "append":
        drafts = given["drafts"]
        check_meta_keys(
            (each.meta for each in ((drafts,) if isinstance(drafts, Draft) else drafts)), OURS | SOURCES
        )
    if name == "take_in":
        foreign_keys(given["imported"].meta)
        check_meta_keys((each.meta for each in (*given["entries"], *filter(None, [given["amended"]]))), OURS)
        if params.idempotency_key is not None and len(given["entries"]) > BATCH:
            raise InvalidInput(
                f"leave out the idempotency key for more than {BATCH} entries: repeating the sync has no further effect"
            )
    return given


def _sentence(name: str) -> str:
    text = (CALLS[name].function.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split())


def _worded(kind: Any) -> str:
    """A type, in words."""
    if kind is type(None):
        return "nothing"
    if isinstance(kind, UnionType):
        return " or ".join(map(_worded, get_args(kind)))
    if get_origin(kind) is list:
        return f"a list of {_worded(get_args(kind)[0])}"
    return f"`{kind.__name__}`"


SERVICE_METHODS: dict[str, Method] = {
    PREFIX + name: _method(name, offered) for name, offered in CALLS.items()
}
