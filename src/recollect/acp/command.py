"""`recollect acp`: its arguments, read without anything that takes time to import."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.acp.stdio import run_making

if TYPE_CHECKING:
    from recollect.acp.door import Offer
    from recollect.engine import Engine

OPTIONS = ("--store", "--model")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def run_plain(arguments: Sequence[str]) -> bool:
    """Be the agent if there is nothing but the known options; False leaves help and mistakes to the command line."""
    given: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in OPTIONS or not (equals or rest):
            return False
        given[name] = value if equals else rest.pop(0)
    run_agent(given.get("--store"), given.get("--model"))
    return True


def run_agent(store: str | None, model: str | None) -> None:
    """Be the agent of a store and a model, each as given or as the settings say."""
    run_making(lambda: _made(model), _url(store or os.environ.get("RECOLLECT_STORE")))


def _made(model: str | None) -> tuple[Engine, Offer]:
    from recollect import wiring
    from recollect.acp.door import Offer
    from recollect.settings import read_settings

    settings = read_settings(model=model)
    models = () if settings.model is None else (settings.model, *settings.models)
    return wiring.engine(model), Offer(models=models, imported=settings.lists_imported)


def _url(named: str | None) -> str | None:
    """The URL of the store; a path is the SQLite file there."""
    if not named or _SCHEME.match(named):
        return named or None
    return f"sqlite:///{os.path.abspath(named)}"
