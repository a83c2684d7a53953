"""Settings → store → `Sessions`, and settings → engine: the composition root, and the front door of the SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from hitherto.engine import Engine
from hitherto.ids import now_ms, uuid7
from hitherto.service import Sessions
from hitherto.service.ephemeral import EphemeralHome
from hitherto.settings import read_settings
from hitherto.stores import connector
from hitherto.summariser import CompactionPolicy

MEMORY = "memory:"


@asynccontextmanager
async def open(
    url: str | None = None,
    *,
    now: Callable[[], int] | None = None,
    new_id: Callable[[], str] = uuid7,
    ephemeral: bool = False,
) -> AsyncIterator[Sessions]:
    """All sessions of the store at `url`: `sqlite:///file.db`, `memory:`, `postgresql://…`; None for the default one.

    The object that comes out is the service itself; it is what every door of Hitherto uses. A given clock (in ms)
    and maker of ids replace the real ones. With `ephemeral`, sessions with an ephemeral key can be made: they live in
    this process's memory, where `Sessions.at` finds them, until it closes the store.
    """
    settings, clock, passing = read_settings(store=url), now or now_ms, None
    policy = CompactionPolicy(at=settings.compact_at, kept_tokens=settings.compact_keep_tokens)
    store_url = settings.store
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(connector(store_url)(store_url, now))
        if ephemeral:
            memory = await opened.enter_async_context(connector(MEMORY)(MEMORY, now))
            passing = Sessions(memory, now=clock, new_id=new_id, compaction=policy, home=EphemeralHome())
        yield Sessions(
            store,
            now=clock,
            new_id=new_id,
            ephemeral=passing,
            compaction=policy,
            close=opened.aclose,
        )


def engine(model: str | None = None) -> Engine:
    """What answers prompts: the model of this name, else that of the settings. Nothing heavy is imported yet."""
    from hitherto.engines.model import ModelEngine  # here: most who open a store prompt nothing

    return ModelEngine(read_settings(model=model).model)
