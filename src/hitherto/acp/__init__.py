"""The Agent Client Protocol: Hitherto as an agent that editors can list, load, resume and fork sessions of.

    import hitherto.acp
    hitherto.acp.run(engine, "sqlite:///sessions.db")

makes a complete agent of any engine; `serve` does so on any transport; `Client` speaks to any agent. The names are
imported at their first use.
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
