"""`hitherto acp`: parses its arguments without importing anything slow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hitherto.acp.agent.stdio import run_made
from hitherto.acp.protocol.initialize import About
from hitherto.engines.capabilities import reads_of

if TYPE_CHECKING:
    from hitherto.acp.agent.connection import Offer
    from hitherto.engine import Engine

OPTIONS = ("--store", "--model", "--agent")
SIGN_IN = "--sign-in"
MODEL = "HITHERTO_MODEL"
"""As `settings` reads it, with all the others, once the client has been greeted."""


def run_plain(arguments: Sequence[str]) -> bool:
    """Run as an agent if all arguments are known options. Returns False otherwise: the command line then shows help or the
    error."""
    given: dict[str, str] = {}
    rest = [argument for argument in arguments if argument != SIGN_IN]
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in OPTIONS or not (equals or rest):
            return False
        given[name] = value if equals else rest.pop(0)
    if "--agent" in given and "--model" in given:
        return False
    if SIGN_IN in arguments:
        sign_in()
    else:
        run_agent(given.get("--store"), given.get("--model"), given.get("--agent"))
    return True


def sign_in() -> None:
    """Ask for a model and its key in the terminal, and keep them."""
    from hitherto.acp.sign_in import ask_sign_in
    from hitherto.errors import HithertoError
    from hitherto.settings import read_settings

    try:
        ask_sign_in(read_settings().data_dir)
    except (HithertoError, OSError) as error:
        raise SystemExit(f"hitherto: {error}") from None


def run_agent(store: str | None, model: str | None, agent: str | None = None) -> None:
    """Run as an agent with this store and model (default: from the settings), or as a proxy for the agent that this command
    starts."""
    if agent is not None:
        from hitherto.acp.proxy.start import run_text

        run_text(agent, store)
        return
    reads = reads_of(model or os.environ.get(MODEL) or None)
    run_made(lambda: _make_agent(store, model), reads, About(), signs_in=True)


def _make_agent(store: str | None, model: str | None) -> tuple[Engine, str, Offer]:
    from hitherto import composition
    from hitherto.acp.agent.connection import Offer
    from hitherto.acp.sign_in import use_sign_in
    from hitherto.errors import HithertoError
    from hitherto.settings import read_settings, store_url

    settings = read_settings(model=model)
    kept = None
    with suppress(HithertoError):  # without a data folder of one's own nothing was kept
        kept = use_sign_in(settings.data_dir)
    chosen = settings.model or (None if kept is None else kept.model)
    models = () if chosen is None else (chosen, *settings.models)
    offer = Offer(models=models, imported=settings.lists_imported, signs_in=True)
    return composition.engine(chosen), store_url(store), offer
