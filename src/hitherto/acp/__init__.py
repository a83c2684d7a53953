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
    from hitherto.acp.agent import serve as serve
    from hitherto.acp.client import Client as Client
    from hitherto.acp.client_abilities import Abilities as Abilities
    from hitherto.acp.door import Offer as Offer
    from hitherto.acp.greeting import About as About
    from hitherto.acp.pipes import Pipes as Pipes
    from hitherto.acp.stdio import run as run
    from hitherto.engines.readable import Reads as Reads

_HOMES = {
    "About": "hitherto.acp.greeting",
    "Abilities": "hitherto.acp.client_abilities",
    "Client": "hitherto.acp.client",
    "Offer": "hitherto.acp.door",
    "Reads": "hitherto.engines.readable",
    "Pipes": "hitherto.acp.pipes",
    "run": "hitherto.acp.stdio",
    "serve": "hitherto.acp.agent",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hitherto.acp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
