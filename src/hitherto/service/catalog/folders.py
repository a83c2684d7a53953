"""Folders of this machine: one folder under all its names.

Only for the person at this machine: a folder that somebody elsewhere has named is never looked at.
"""

from __future__ import annotations

import asyncio
import os

from hitherto.model import Principal, Session
from hitherto.service.catalog.sessions import Catalog
from hitherto.values.filters import normal_cwd


async def folder_of(catalog: Catalog, who: Principal, cwd: str) -> str:
    """The one name of a folder: its path without links, or where it was moved to if it is no longer there.

    Sessions that were made under another name of it go by this one from then on.
    """
    given = normal_cwd(cwd)
    real, is_there = await asyncio.to_thread(_look, given)
    if not is_there:
        return await catalog.moved_to(who, real)
    if real != given:
        await catalog.move_folder(who, given, real, is_gone=False)
    return real


async def name_within(catalog: Catalog, who: Principal, session: Session, cwd: str) -> str | None:
    """The name under which the session's own folder is used by somebody who gives it this one; None if that is another."""
    given = normal_cwd(cwd)
    if session.cwd is None or given == session.cwd:
        return given
    folder = await folder_of(catalog, who, given)
    own, _ = await asyncio.to_thread(_look, session.cwd)
    if folder not in (session.cwd, own):
        return None
    return given if (await asyncio.to_thread(_look, given)) == (own, True) else session.cwd


def _look(folder: str) -> tuple[str, bool]:
    """A folder without links, and whether it is there."""
    try:
        real = os.path.realpath(folder)
    except (OSError, ValueError):
        return folder, False
    return real, os.path.isdir(real)
