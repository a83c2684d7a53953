"""Cursors: signed, bound to an owner and to what was asked for, opaque to everybody else. Pure.

A cursor is `base64url(hidden state) . base64url(mac)`. The key lives in the store, so a cursor outlives the process and
is worthless in another store. Age never invalidates one. The state is hidden because it holds numbers of the store,
which rise with what other owners write.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any, TypeVar

import msgspec

from hitherto.errors import InvalidCursor
from hitherto.model import encode

T = TypeVar("T")

MAC_BYTES = 16
CURSOR_CHARS = 64_000


def seal_cursor(secret: bytes, owner: str, question: Any, state: Any) -> str:
    """A cursor that carries `state` and is good only for this owner and this question."""
    body = encode(state)
    mac = _mac(secret, owner, question, body)
    return f"{_text(_masked(secret, mac, body))}.{_text(mac)}"


def open_cursor(secret: bytes, owner: str, question: Any, cursor: str, shape: type[T]) -> T:
    """The state that `seal_cursor` put in; anything else is an `InvalidCursor`."""
    try:
        if not isinstance(cursor, str) or len(cursor) > CURSOR_CHARS:
            raise ValueError
        hidden, mac = map(_bytes, cursor.split("."))
        body = _masked(secret, mac, hidden)
        if not hmac.compare_digest(mac, _mac(secret, owner, question, body)):
            raise ValueError
        return msgspec.json.decode(body, type=shape)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise InvalidCursor(
            "this cursor was altered, or belongs to another owner or another query; start again without it"
        ) from None


def _mac(secret: bytes, owner: str, question: Any, body: bytes) -> bytes:
    about = encode([owner, question])
    return hmac.digest(secret, len(about).to_bytes(8) + about + body, "sha256")[:MAC_BYTES]


def _masked(secret: bytes, mac: bytes, data: bytes) -> bytes:
    """The data under a mask that only the key and this very mac give; a second time takes the mask off."""
    mask = hashlib.shake_256(b"cursor" + secret + mac).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(mask)).to_bytes(len(data))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _text(data) != text:  # one spelling only: unused bits and paddings must not make a second valid cursor
        raise ValueError
    return data
