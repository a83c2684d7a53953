"""What others say, without the keys in it."""

from __future__ import annotations

import os
from collections import Counter

from hitherto.engines.tools.environment import secret_values
from hitherto.secrets import redacted


def without_keys(text: str) -> str:
    """The text without what looks like a secret, and without the very keys that this process has."""
    for value in secret_values(os.environ):
        text = text.replace(value, "[redacted]")
    return redacted(text, Counter())
