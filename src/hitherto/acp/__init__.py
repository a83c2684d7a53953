"""The Agent Client Protocol: Hitherto as an agent whose sessions editors can list, load, resume and fork.

    import hitherto.acp
    hitherto.acp.run(engine, "sqlite:///sessions.db")

turns any engine into a complete agent; `serve` does so on any transport; `Client` connects to any agent. Names are
imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitherto.acp.agent.connection import Offer as Offer
    from hitherto.acp.agent.serve import serve as serve
    from hitherto.acp.agent.stdio import run as run
    from hitherto.acp.client import Client as Client
    from hitherto.acp.client.callbacks import Abilities as Abilities
    from hitherto.acp.pipes import Pipes as Pipes
    from hitherto.acp.protocol.initialize import About as About
    from hitherto.engines.capabilities import Reads as Reads

_HOMES = {
    "About": "hitherto.acp.protocol.initialize",
    "Abilities": "hitherto.acp.client.callbacks",
    "Client": "hitherto.acp.client",
    "Offer": "hitherto.acp.agent.connection",
    "Reads": "hitherto.engines.capabilities",
    "Pipes": "hitherto.acp.pipes",
    "run": "hitherto.acp.agent.stdio",
    "serve": "hitherto.acp.agent.serve",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hitherto.acp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
