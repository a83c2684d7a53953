"""Frames of JSON-RPC 2.0 as bytes, in and out. Pure, and light enough to be imported before anything else.

Ids and parameters stay the bytes they came as: an id is given back exactly, and parameters are decoded by whoever
knows their shape. Whatever a peer sends, reading it raises nothing but `BadFrame`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec
from msgspec import Raw

from hitherto.errors import InvalidInput
from hitherto.rpc.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Failure

ABSENT = Raw(b"")
NULL = Raw(b"null")
NO_PARAMS = Raw(b"{}")
ID_STARTS = frozenset(b'"-0123456789n')
TEXT_MEMBERS = frozenset(
    [
        "_meta",
        "arguments",
        "content",
        "description",
        "error",
        "input",
        "label",
        "message",
        "metadata",
        "name",
        "output",
        "prompt",
        "query",
        "rawInput",
        "rawOutput",
        "result",
        "text",
        "thought",
        "title",
        "topic",
    ]
)
"""Members whose texts are what somebody said or calls something. All others are names, and no two may become one."""

Key = str | int | float | bytes
"""What an id is compared by."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One message. A request has a method and an id, a notification no id, a response no method."""

    jsonrpc: str = ""
    id: Raw = ABSENT
    method: str | None = None
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


class _Numbered(msgspec.Struct):
    id: Raw = NULL


class BadFrame(Exception):
    """A line that is no message; `answer` is the answer to the peer."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(answer)
        self.answer = answer


_OPEN = re.compile(rb"\s*\{")
_MEMBER = re.compile(
    rb'\s*"(?P<name>jsonrpc|id|method)"\s*:\s*(?P<value>"(?:[^"\\]|\\.)*"|[0-9.eE+-]+|null)\s*,'
)
"""A member of a message that is small, and has another one after it."""

_frames = msgspec.json.Decoder(Frame)
_numbered = msgspec.json.Decoder(_Numbered)
_encode = msgspec.json.Encoder().encode


# In


def read_frame(line: bytes) -> Frame:
    """The message in a line; `BadFrame` if there is none."""
    try:
        frame = _frames.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        frame = _repair(line, error)
    if _is_empty(frame.id) and frame.method is None:
        raise BadFrame(refusal(NULL, INVALID_REQUEST, "a message needs a method or an id"))
    if not _is_empty(frame.id) and not _is_id(frame.id):
        raise BadFrame(refusal(NULL, INVALID_REQUEST, "an id must be a string, a number or null"))
    if frame.jsonrpc != "2.0":
        answered = NULL if _is_empty(frame.id) else frame.id
        raise BadFrame(refusal(answered, INVALID_REQUEST, 'a message must have "jsonrpc": "2.0"'))
    return frame


def read_head(head: bytes) -> Frame:
    """What the beginning of a message says of it: id and method, if they stand before anything that is large."""
    members: dict[str, Any] = {}
    at = _OPEN.match(head)
    while at is not None and (member := _MEMBER.match(head, at.end())) is not None:
        members[member["name"].decode()] = member["value"]
        at = member
    number = members.get("id", b"")
    try:
        msgspec.json.decode(number)
    except (msgspec.MsgspecError, ValueError):
        number = b""
    return Frame(id=Raw(number), method="" if "method" in members else None)  # nobody needs to know which


def has_id(frame: Frame) -> bool:
    """Whether the message has an id, null included."""
    return not _is_empty(frame.id)


def key_of(number: Raw) -> Key:
    """The id as a value: `1` and `1.0`, or two spellings of one text, are the same id."""
    try:
        value = msgspec.json.decode(number)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = None
    return value if isinstance(value, str | int | float) else bytes(number)


def params_of(frame: Frame) -> Raw:
    """The parameters; left out or null, they are an object without members."""
    return NO_PARAMS if _is_empty(frame.params) or bytes(frame.params) == b"null" else frame.params


def decode_params(decoder: msgspec.json.Decoder[Any], params: Raw) -> Any:
    """Parameters in the shape of a method; anything else is `INVALID_PARAMS`, in words that say where."""
    try:
        return decoder.decode(params)
    except msgspec.ValidationError as error:
        raise invalid(f"{error}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise invalid("cannot be decoded") from None


def invalid(text: str) -> Failure:
    """The answer to parameters that a method cannot take."""
    return Failure(INVALID_PARAMS, f"Invalid params: {text}", {"code": InvalidInput.code})


def _repair(line: bytes, error: Exception) -> Frame:
    """A message that the strict decoder refuses for a lone surrogate in what was said, with the surrogate replaced.

    JavaScript writes such texts when it cuts an emoji in two; no answer at all would leave its request open.
    """
    if isinstance(error, msgspec.ValidationError):
        _refuse_shape(line)
    plain: Any = None
    try:
        plain = json.loads(line, parse_constant=_refuse_constant)
        return _frames.decode(_encode(_scrub_texts(plain)))
    except _LoneSurrogateInName:
        text = "Invalid params: a name contains a lone surrogate"
        number = encode(plain.get("id")) if isinstance(plain, dict) else b"null"
        raise BadFrame(refusal(Raw(number), INVALID_PARAMS, text, {"code": "invalid_input"})) from None
    except msgspec.ValidationError:
        _refuse_shape(line)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
        raise BadFrame(refusal(NULL, PARSE_ERROR, "Parse error: this is not JSON")) from None


def _refuse_shape(line: bytes) -> NoReturn:
    """JSON that is no message: a batch, another value, or members of the wrong type."""
    if line.lstrip()[:1] == b"[":
        raise BadFrame(refusal(NULL, INVALID_REQUEST, "batches are not supported: send one message per line"))
    try:
        number = _numbered.decode(line).id
    except (msgspec.MsgspecError, ValueError, RecursionError):
        number = NULL
    known = number if _is_id(number) else NULL
    raise BadFrame(refusal(known, INVALID_REQUEST, "Invalid request: not a JSON-RPC 2.0 message"))


class _LoneSurrogateInName(Exception):
    """A name that would not be the same when it is mended."""


def _scrub_texts(value: Any) -> Any:
    """The value, with lone surrogates replaced in what was said. Raises `_LoneSurrogateInName` for one anywhere else."""
    if isinstance(value, dict):
        return {_require_whole(name): _scrub_member(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_scrub_texts(item) for item in value]
    return _require_whole(value)


def _scrub_member(name: str, value: Any) -> Any:
    return scrub(value) if name in TEXT_MEMBERS else _scrub_texts(value)


def _require_whole(value: Any) -> Any:
    if scrub(value) != value:
        raise _LoneSurrogateInName
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _is_empty(raw: Raw) -> bool:
    return not memoryview(raw)


def _is_id(number: Raw) -> bool:
    data = bytes(number)
    if data[0] not in ID_STARTS:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# Out


def encode(value: Any) -> bytes:
    """JSON that every reader accepts: what has no place in it, such as half of a surrogate pair, is replaced."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(
            scrub(msgspec.to_builtins(value)), separators=(",", ":"), ensure_ascii=False
        ).encode()


def scrub(value: Any) -> Any:
    """The value with every lone surrogate in its texts replaced."""
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {scrub(name): scrub(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(item) for item in value]
    return value


def answer(number: Raw, result: bytes) -> bytes:
    """The line that answers a request."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (bytes(number), result)


def refusal(number: Raw, code: int, message: str, data: Mapping[str, Any] | None = None) -> bytes:
    """The line that answers a request with an error."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (bytes(number), encode(error))


def request(number: int, method: str, params: Any) -> bytes:
    """The line of a request of our own."""
    return b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}\n' % (number, encode(method), encode(params))


def notification(method: str, params: Any) -> bytes:
    """The line of a notification."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (encode(method), encode(params))
