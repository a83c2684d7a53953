"""`initialize`: the version, and the capabilities of agent and client. Pure, and light: it is answered before anything
else is imported."""

from __future__ import annotations

from typing import Any

import msgspec

from hitherto import __version__
from hitherto.engines.capabilities import Reads
from hitherto.rpc.frames import invalid

PROTOCOL_VERSION = 1
NEWEST_NUMBER = 65_535

CAPABILITIES: dict[str, Any] = {
    "loadSession": True,
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        "list": {},
        "resume": {},
        "close": {},
        "delete": {},
        "additionalDirectories": {},
        "systemPrompt": {"mode": {"override": {}}},
        "fork": {},
        "archive": {},
        "title": {},
        "status": {},
    },
    "_meta": {
        "hitherto": {
            "forkAtMessage": True,
            "methods": [
                "_hitherto/session/search",
                "_hitherto/session/batch_get",
                "_hitherto/session/list/subscribe",
                "_hitherto/session/list/unsubscribe",
            ],
        }
    },
}


ELICITS = ("form", "url")
SIGN_IN = "sign-in"
ENVIRONMENT = "environment"
AUTH_METHODS: list[dict[str, Any]] = [
    {
        "type": "terminal",
        "id": SIGN_IN,
        "name": "Sign in to a model provider",
        "description": "Asks for a provider, a model and a key in a terminal, and keeps them in a file that only you can read.",
        "args": ["--sign-in"],
    },
    {
        "id": ENVIRONMENT,
        "name": "Use keys of the environment",
        "description": "Set the variable of your provider, such as ANTHROPIC_API_KEY, where your editor starts Hitherto. It is "
        "never stored.",
    },
]
"""How a user can give this program what its model needs. The first only for clients that can run it in a terminal."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent identifies itself to clients."""

    name: str = "hitherto"
    title: str = "Hitherto"
    version: str = __version__


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of a client; none until it has called `initialize`."""

    reads_files: bool = False
    writes_files: bool = False
    terminals: bool = False
    notices: bool = False
    compaction: bool = False
    plans: bool = False
    signs_in: bool = False
    subagents: bool = False
    elicits: frozenset[str] = frozenset()


class InitializeParams(msgspec.Struct, frozen=True, rename="camel"):
    """A capability of the wrong type counts as absent, as the protocol requires; so they are checked one by one."""

    protocol_version: int
    client_capabilities: Any = None


def answer_initialize(
    params: InitializeParams, reads: Reads, about: About, *, signs_in: bool = False
) -> tuple[Client, dict[str, Any]]:
    """The client's capabilities, and the answer. There is one version; a client that asks for another is offered this one.

    `reads` is what prompts may contain. `signs_in`: the model is that of this program, and users can sign in to it.
    """
    if not 0 <= params.protocol_version <= NEWEST_NUMBER:
        raise invalid(f"protocolVersion must be 0 to {NEWEST_NUMBER}")
    able = params.client_capabilities
    client = Client(
        reads_files=has_capability(able, "fs", "readTextFile"),
        writes_files=has_capability(able, "fs", "writeTextFile"),
        terminals=has_capability(able, "terminal"),
        notices=has_capability(able, "session", "notices"),
        compaction=has_capability(able, "session", "compaction"),
        plans=has_capability(able, "plan"),
        signs_in=has_capability(able, "auth", "terminal"),
        subagents=has_capability(able, "subagents"),
        elicits=frozenset(way for way in ELICITS if has_capability(able, "elicitation", way)),
    )
    return client, {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            **CAPABILITIES,
            "auth": {"logout": {}} if signs_in else {},
            "promptCapabilities": {
                "image": reads.image,
                "audio": reads.audio,
                "embeddedContext": reads.embedded,
            },
        },
        "agentInfo": {"name": about.name, "title": about.title, "version": about.version},
        "authMethods": auth_methods(client) if signs_in else [],
    }


def auth_methods(client: Client) -> list[dict[str, Any]]:
    """The auth methods that this client can use."""
    return [method for method in AUTH_METHODS if client.signs_in or method.get("type") != "terminal"]


def has_capability(value: Any, *path: str) -> bool:
    """Whether a capability is present: `true`, or an object, at the end of the path."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value is True or isinstance(value, dict)
