"""The variables that a command gets: those of this process, without what looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hitherto.secrets import find

SECRET_NAME = re.compile(
    r"(?:^|_)(?:API)?KEYS?_|KEYS?$|TOKEN(?:_|$)|SECRET|PASSW(?:OR)?D|PASSPHRASE|PASS$|CREDENTIAL|_CREDS?$|_PWD$|(?:^|_)PAT$"
    r"|_AUTH$|AUTH_CONFIG|BEARER|COOKIE|WEBHOOK",
    re.IGNORECASE,
)
"""As in ANTHROPIC_API_KEY, AWS_ACCESS_KEY_ID, GITHUB_TOKEN, CLIENT_SECRET, PGPASSWORD; not TOKENIZERS_PARALLELISM."""
SECRET_VALUE = re.compile(
    r"://[^/\s@]*:[^/\s@]+@|(?:password|pwd|passwd|(?:account|access|shared)\w*key|sig|token|secret)\s*=\s*[^\s;&]",
    re.IGNORECASE,
)
"""An address with a password in it, whatever it is called: a database, a proxy, an account."""
PLACES = re.compile(r"PATH$")
"""Variables with folders in them, whose names may look random; without them hardly a command works."""
SHORTEST = 8
"""Below this many characters, a value is not looked for elsewhere: it may be a word."""


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables whose name does not say that they hold a secret, and whose value holds none.

    A command that prints its environment must not tell the model the keys that the model is paid with. This is no
    sandbox: a command runs as the user, and can read whatever the user can.
    """
    return {name: value for name, value in variables.items() if not _is_secret(name, value)}


def secret_values(variables: Mapping[str, str]) -> Iterator[str]:
    """The values of those that are called secrets, the longest first."""
    values = {value for name, value in variables.items() if SECRET_NAME.search(name)}
    return (value for value in sorted(values, key=len, reverse=True) if len(value) >= SHORTEST)


def _is_secret(name: str, value: str) -> bool:
    if SECRET_NAME.search(name) or SECRET_VALUE.search(value):
        return True
    return not PLACES.search(name) and bool(find(value))
