"""A line that a server has printed, as the message that it is, or that stands for it."""

from __future__ import annotations

import json
import re

import mcp_types
from mcp_types import JSONRPCMessage, RequestId

UNREADABLE = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message="something that cannot be read")

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"(?P<colon>\s*:)?|[{}\[\]]')
_ID = re.compile(rb'\s*(-?\d{1,18}|"[\w-]{0,100}")\s*[,}]')
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message; None if it is none. An answer that cannot be read becomes an error, so that nobody waits for it."""
    try:
        return _read(line)
    except ValueError:
        return _mended(line) or _failed(line)


def _read(line: bytes) -> JSONRPCMessage:
    return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)


def _mended(line: bytes) -> JSONRPCMessage | None:
    """The message without halves of characters, which JSON can name and no text can hold."""
    try:
        values = json.loads(line.decode("utf-8", "replace"))
        return _read(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _failed(line: bytes) -> JSONRPCMessage | None:
    id = _answered(line)
    return None if id is None else mcp_types.JSONRPCError(jsonrpc="2.0", id=id, error=UNREADABLE)


def _answered(line: bytes) -> RequestId | None:
    """The request that this line answers, by the id at its outermost level."""
    depth, found = 0, None
    for token in _TOKENS.finditer(line):
        depth += _STEPS.get(token[0], 0)
        if depth != 1 or not token["colon"]:
            continue
        if token[0].startswith(b'"method"'):  # it is a request itself
            return None
        if token[0].startswith(b'"id"') and (id := _ID.match(line, token.end())):
            found = json.loads(id[1])
    return found
