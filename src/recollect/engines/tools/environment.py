"""The variables that a command gets: those of this process, without what looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping

SECRET_NAME = re.compile(
    r"(?:^|_)(?:API)?KEYS?(?:_|$)|TOKEN(?:_|$)|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|_PWD$|_AUTH$|AUTH_CONFIG",
    re.IGNORECASE,
)
"""As in ANTHROPIC_API_KEY, AWS_ACCESS_KEY_ID, GITHUB_TOKEN, CLIENT_SECRET, PGPASSWORD; not TOKENIZERS_PARALLELISM."""
SECRET_VALUE = re.compile(r"://[^/\s@]*:[^/\s@]+@")
"""An address with a password in it, whatever it is called: a database, a proxy."""


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables whose name does not say that they hold a secret, and whose value holds no password.

    A command that prints its environment must not tell the model the keys that the model is paid with. This is no
    sandbox: a command runs as the user, and can read whatever the user can.
    """
    return {
        name: value
        for name, value in variables.items()
        if not SECRET_NAME.search(name) and not SECRET_VALUE.search(value)
    }
