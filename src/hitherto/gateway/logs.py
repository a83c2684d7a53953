"""What the server writes to its log: one line for each record, without secrets."""

from __future__ import annotations

import logging
import re
import sys

_SECRET = re.compile(r"(?:hth|rcl)_[A-Za-z0-9_-]{8,}|(?i:bearer\s+)\S+")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Calm(logging.Formatter):
    """Tokens are left out, and whatever would steer a terminal or forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as it is written."""
        record.message = _CONTROL.sub(" ", record.getMessage().replace("\n", " "))
        record.msg, record.args = record.message, None
        return _SECRET.sub("(secret)", _CONTROL.sub(" ", super().format(record)))


def start_logging() -> None:
    """Write warnings and worse to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Calm("hitherto: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
