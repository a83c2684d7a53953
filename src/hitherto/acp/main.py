"""`hitherto acp`: parses its arguments without importing anything slow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hitherto.acp.agent.stdio import run_made
from hitherto.acp.protocol.initialize import About
from hitherto.engines.capabilities import reads_of

if TYPE_CHECKING:
    from hitherto.acp.agent.connection import Offer
    from hitherto.engine import Engine

OPTIONS = ("--store", "--model", "--agent")
MODEL = "HITHERTO_MODEL"
"""As `settings` reads it, with all the others, once the client has been greeted."""


def run_plain(arguments: Sequence[str]) -> bool:
    """Run as an agent if all arguments are known options. Returns False otherwise: the command line then shows help or the
    error."""
    given: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in OPTIONS or not (equals or rest):
            return False
        given[name] = value if equals else rest.pop(0)
    if "--agent" in given and "--model" in given:
        return False
    run_agent(given.get("--store"), given.get("--model"), given.get("--agent"))
    return True


def run_agent(store: str | None, model: str | None, agent: str | None = None) -> None:
    """Run as an agent with this store and model (default: from the settings), or as a proxy for the agent that this command
    starts."""
    if agent is not None:
        from hitherto.acp.proxy.start import run_text

        run_text(agent, store)
        return
    run_made(lambda: _make_agent(store, model), reads_of(model or os.environ.get(MODEL) or None), About())


def _make_agent(store: str | None, model: str | None) -> tuple[Engine, str, Offer]:
    from hitherto import composition
    from hitherto.acp.agent.connection import Offer
    from hitherto.settings import read_settings, store_url

    settings = read_settings(model=model)
    models = () if settings.model is None else (settings.model, *settings.models)
    return composition.engine(model), store_url(store), Offer(models=models, imported=settings.lists_imported)
