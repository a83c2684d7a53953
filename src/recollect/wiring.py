"""Settings → store → `Sessions`, and settings → engine: the composition root, and the front door of the SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from recollect.engine import Engine
from recollect.ids import now_ms, uuid7
from recollect.service import Sessions
from recollect.settings import read_settings
from recollect.stores import connector


@asynccontextmanager
async def open(
    url: str | None = None, *, now: Callable[[], int] | None = None, new_id: Callable[[], str] = uuid7
) -> AsyncIterator[Sessions]:
    """All sessions of the store at `url`: `sqlite:///file.db`, `memory:`, `postgresql://…`; None for the default one.

    The object that comes out is the service itself; it is what every door of Recollect uses. A given clock (in ms)
    and maker of ids replace the real ones.
    """
    store_url = read_settings(store=url).store
    async with connector(store_url)(store_url, now) as store:
        yield Sessions(store, now=now or now_ms, new_id=new_id)


def engine(model: str | None = None) -> Engine:
    """What answers prompts: the model of this name, else that of the settings. Nothing heavy is imported yet."""
    from recollect.engines.model import ModelEngine  # here: most who open a store prompt nothing

    return ModelEngine(read_settings(model=model).model)
