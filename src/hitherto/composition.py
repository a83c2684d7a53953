"""The composition root: opens the store of the settings as `Sessions`, and makes the engine of the settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hitherto.engine import Engine
from hitherto.errors import StoreError
from hitherto.ids import now_ms, uuid7
from hitherto.ports import Losses, Mode
from hitherto.service import Sessions
from hitherto.service.admin.losses import Lost, lose_again
from hitherto.service.ephemeral import EphemeralHome
from hitherto.settings import read_settings
from hitherto.stores import connector
from hitherto.summariser import CompactionPolicy

if TYPE_CHECKING:
    from hitherto.stores.sqlite.recovery import Recovered

MEMORY = "memory:"


@asynccontextmanager
async def open(
    url: str | None = None,
    *,
    now: Callable[[], int] | None = None,
    new_id: Callable[[], str] = uuid7,
    ephemeral: bool = False,
    mode: Mode = "make",
) -> AsyncIterator[Sessions]:
    """Open the store at `url`: `sqlite:///file.db`, `memory:` or `postgresql://…`; None opens the default store.

    Yields the service that every part of Hitherto uses. `now` (in ms) and `new_id` replace the real clock and id
    generator. With `ephemeral`, sessions with an ephemeral key can be created: they live in the memory of this process,
    where `Sessions.at` finds them, until the store is closed. Only the mode `make` makes a store that is not there; `change`
    and `read` raise `StoreNotFound`. With `read`, a store that this process may not write to can be read all the same.
    Turns whose process has died are closed first.
    """
    settings, clock, passing = read_settings(store=url), now or now_ms, None
    policy = CompactionPolicy(
        at=settings.compact_at,
        kept_tokens=settings.compact_keep_tokens,
        recap_tokens=settings.recap_tokens,
        memory_tokens=settings.memory_tokens,
    )
    store_url = settings.store
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(connector(store_url)(store_url, now, mode))
        if ephemeral:
            memory = await opened.enter_async_context(connector(MEMORY)(MEMORY, now))
            passing = Sessions(memory, now=clock, new_id=new_id, compaction=policy, home=EphemeralHome())
        sessions = Sessions(
            store,
            now=clock,
            new_id=new_id,
            ephemeral=passing,
            compaction=policy,
            close=opened.aclose,
        )
        # What cannot be written to, or is damaged, is opened all the same.
        with suppress(StoreError):
            await sessions.turns.close_interrupted()
        yield sessions


class Restored(NamedTuple):
    """A store that a backup took the place of; `replaced` is where the old one is now, None if there was none.

    `lost` is what the old one had deleted and erased, None if it cannot be read.
    """

    store: str
    backup: str
    replaced: str | None
    lost: Lost | None


def restore_backup(url: str, backup: str, *, include_deleted: bool = False) -> Restored:
    """Put a copy of a backup in place of the SQLite store at `url`; see `stores.sqlite.replacement`.

    What the old store had deleted or erased is deleted and erased in the copy before; see `service.admin.losses`.
    """
    if not url.startswith("sqlite:"):
        raise StoreError(
            f"a backup can only take the place of an SQLite file, not of {url!r}: use the tools of the database"
        )
    from hitherto.stores.sqlite.replacement import (
        restore_backup as restore,  # imported here because few need it
    )
    from hitherto.stores.sqlite.store import file_of

    path, source = file_of(url), Path(backup).expanduser().absolute()

    def lose(part: Path, losses: Losses) -> Lost:
        return asyncio.run(_lose(part, losses, include_deleted))

    done = restore(path, source, lose)
    return Restored(str(path), str(source), None if done.aside is None else str(done.aside), done.lost)


async def _lose(path: Path, losses: Losses, include_deleted: bool) -> Lost:
    if not losses.deleted and not losses.erased:
        return Lost()
    url = f"sqlite:///{path}"
    async with connector(url)(url, None, "change") as store:
        return await lose_again(store, losses, now_ms(), include_deleted=include_deleted)


def recover(url: str, new: str) -> Recovered:
    """Copy what can be read of the SQLite store at `url` into a new one; see `stores.sqlite.recovery`."""
    if not (url.startswith("sqlite:") and new.startswith("sqlite:")):
        raise StoreError("only an SQLite file can be recovered into another: use the tools of the database")
    from hitherto.stores.sqlite.recovery import recover as copy_readable  # imported here because few need it
    from hitherto.stores.sqlite.store import file_of

    return copy_readable(file_of(url), file_of(new), now_ms)


def engine(model: str | None = None) -> Engine:
    """The engine that answers prompts, with this model or that of the settings. It imports nothing slow yet."""
    from hitherto.engines.model import ModelEngine  # imported here because most callers run no prompts

    settings = read_settings(model=model)
    return ModelEngine(settings.model, windows=dict(settings.windows))
