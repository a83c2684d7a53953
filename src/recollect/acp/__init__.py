"""The Agent Client Protocol: Recollect as an agent that editors can list, load, resume and fork sessions of.

    import recollect.acp
    recollect.acp.run(engine, "sqlite:///sessions.db")

makes a complete agent of any engine; `serve` does so on any transport; `Client` speaks to any agent. The names are
imported at their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.acp.agent import serve as serve
    from recollect.acp.client import Client as Client
    from recollect.acp.client_abilities import Abilities as Abilities
    from recollect.acp.door import Offer as Offer
    from recollect.acp.greeting import About as About
    from recollect.acp.pipes import Pipes as Pipes
    from recollect.acp.stdio import run as run
    from recollect.engines.readable import Reads as Reads

_HOMES = {
    "About": "recollect.acp.greeting",
    "Abilities": "recollect.acp.client_abilities",
    "Client": "recollect.acp.client",
    "Offer": "recollect.acp.door",
    "Reads": "recollect.engines.readable",
    "Pipes": "recollect.acp.pipes",
    "run": "recollect.acp.stdio",
    "serve": "recollect.acp.agent",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'recollect.acp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
