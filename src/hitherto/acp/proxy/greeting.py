"""`initialize`: what the agent can do, joined with what is added to it. Pure."""

from __future__ import annotations

from msgspec import Raw

from hitherto.acp.greeting import CAPABILITIES
from hitherto.acp.proxy.agent import VERSION
from hitherto.acp.proxy.frames import Members, joined, object_of, value_of, written

ADDED = ("list", "resume", "close", "delete", "fork", "archive", "title", "status")
"""Capabilities of sessions that the editor gets whether the agent has them or not."""


def asked(params: Members) -> Members:
    """The editor's greeting as the agent gets it: in the version that is spoken here, and else as it is."""
    version = value_of(params.get("protocolVersion"))
    newer = isinstance(version, int) and version > VERSION
    return {**params, "protocolVersion": written(VERSION)} if newer else params


def answered(greeting: Members) -> Members:
    """The agent's greeting as the editor gets it."""
    able = object_of(greeting, "agentCapabilities")
    sessions = object_of(able, "sessionCapabilities")
    for name in ADDED:
        if value_of(sessions.get(name)) is None:
            sessions[name] = Raw(b"{}")
    meta = {
        **object_of(able, "_meta"),
        **{name: written(value) for name, value in CAPABILITIES["_meta"].items()},
    }
    able |= {
        "loadSession": Raw(b"true"),
        "sessionCapabilities": Raw(joined(sessions)),
        "_meta": Raw(joined(meta)),
    }
    return {**greeting, "agentCapabilities": Raw(joined(able))}
