"""Text as PostgreSQL can keep it: it has no NUL and no lone surrogates, which real transcripts hold.

Each of them becomes U+001A and four hexadecimal digits, as does U+001A itself; everything else stays readable. The
adapters do it for every text that goes in and out, so no statement has to think of it.
"""

from __future__ import annotations

import re

from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

_REFUSED = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def escaped(text: str) -> str:
    """The text in a form that PostgreSQL takes."""
    return _REFUSED.sub(lambda found: f"\x1a{ord(found[0]):04x}", text)


def restored(text: str) -> str:
    """The text that `escaped` was given."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\x1a" in text else text


class TextDumper(Dumper):
    """Of no declared type, so that PostgreSQL takes it for what the place needs."""

    def dump(self, obj: str) -> Buffer:
        return escaped(obj).encode()


class TextLoader(Loader):
    """Text in the text format."""

    def load(self, data: Buffer) -> str:
        return restored(str(data, "utf-8"))


class BinaryTextLoader(TextLoader):
    """Text in the binary format, which is the same."""

    format = Format.BINARY


def adapt(connection: AsyncConnection[object]) -> None:
    """Let this connection escape and restore every text."""
    connection.adapters.register_dumper(str, TextDumper)
    connection.adapters.register_loader("text", TextLoader)
    connection.adapters.register_loader("text", BinaryTextLoader)
