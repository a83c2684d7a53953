"""The local owner's token: made at the first start, and kept in a file that only its user can read."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from hitherto.model import LOCAL
from hitherto.service import Sessions

LABEL = "local token of the server, stored in a file"


def token_file(folder: Path, store: str, default: str) -> Path:
    """Where the token for a store is kept; stores other than the default one have files of their own."""
    if store == default:
        return folder / "token"
    return folder / f"token-{hashlib.sha256(store.encode()).hexdigest()[:12]}"


async def local_token(sessions: Sessions, path: Path) -> bool:
    """Make sure that the file holds a valid token of the local owner; True if it was created now."""
    if await sessions.tokens.verify(_kept(path)) is not None:
        return False
    _, secret = await sessions.tokens.create(LOCAL.owner, label=LABEL)
    _keep(path, secret)
    return True


async def invitation(sessions: Sessions) -> str | None:
    """A code that signs the local owner in to the page; None if the server has made no token yet."""
    own = [
        token
        for token in await sessions.tokens.all(LOCAL.owner)
        if token.label == LABEL and token.revoked_at is None
    ]
    return await sessions.signin.invite(own[-1]) if own else None


def page_address(address: str, code: str, path: str = "/") -> str:
    """The sign-in link. The code is in the fragment, which browsers send to no server."""
    return f"{address.rstrip('/')}{path}#code={code}"


def _kept(path: Path) -> str:
    with suppress(OSError):
        path.chmod(0o600)
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""


def _keep(path: Path, secret: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        fresh.unlink()
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f"{secret}\n")
    fresh.replace(path)
