"""The scopes of tokens. No scope includes another. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hitherto.errors import InvalidInput

MEANINGS: Mapping[str, str] = {
    "read": "read sessions and memory",
    "write": "create, change and delete sessions",
    "run": "run prompts",
    "raw": "export with secrets included",
    "commands": "start programs on the server",
    "admin": "manage tokens, identities and the whole store",
}
SCOPES = tuple(MEANINGS)
USUAL = ("read", "write", "run")
"""The default scopes of a token: its owner's sessions, and nothing of the machine."""


def checked_scopes(given: Sequence[str]) -> tuple[str, ...]:
    """The scopes in the order of the table, each once. Raises `InvalidInput` for none, and for an unknown one."""
    if isinstance(given, str) or not given:
        raise InvalidInput(f"a token needs a list of scopes, some of {', '.join(SCOPES)}")
    unknown = [scope for scope in given if scope not in SCOPES]
    if unknown:
        raise InvalidInput(f"a scope is one of {', '.join(SCOPES)}, not {unknown[0]!r:.40}")
    return tuple(scope for scope in SCOPES if scope in given)
