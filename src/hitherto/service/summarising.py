"""One summary at a time for a session: nobody pays for a second that would be thrown away.

Nothing is locked by it. Whoever asks while a summary is made, in whichever process, is told so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hitherto.errors import Busy
from hitherto.holders import is_gone, new_holder
from hitherto.model import Principal, decode_json, encode
from hitherto.ports import Memo, Reader, Store, Writer
from hitherto.service.core import checked_owner

METHOD = "summarising"
LONGEST_MS = 10 * 60_000
"""Whoever has not ended by then is taken to be gone."""
NOBODY = b"null"


@asynccontextmanager
async def alone(store: Store, who: Principal, session_id: str) -> AsyncIterator[None]:
    """While this runs, no other summary of the session is begun. Raises `Busy` if one is being made."""
    holder, owner = new_holder(), checked_owner(who)

    async def begin(tx: Writer) -> None:
        await _check(tx, owner, session_id)
        await tx.put_memo(owner, METHOD, session_id, Memo(b"", encode(holder), await tx.now()))

    async def end(tx: Writer) -> None:
        memo = await tx.memo(owner, METHOD, session_id)
        if memo is not None and memo.answer == encode(holder):
            await tx.put_memo(owner, METHOD, session_id, memo._replace(answer=NOBODY))

    await store.write(begin)
    try:
        yield
    finally:
        await store.write(end)


async def _check(tx: Reader, owner: str, session_id: str) -> None:
    memo = await tx.memo(owner, METHOD, session_id)
    if memo is None or memo.answer == NOBODY:
        return
    holder, age = decode_json(memo.answer), await tx.now() - memo.at
    if age < LONGEST_MS and not is_gone(holder):
        raise Busy(holder, age)
