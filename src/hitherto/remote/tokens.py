"""The token that a server is shown: from the environment or from a file, and from nowhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from hitherto.errors import InvalidInput
from hitherto.remote.addresses import Address
from hitherto.settings import TOKEN, TOKEN_FILE, read_settings

_SECRET = re.compile(r"[!-~]{1,500}", re.ASCII)
OTHERS = 0o077


def token_for(address: Address, environ: Mapping[str, str] = os.environ) -> str:
    """The secret for this server. What is wrong with it is told without it."""
    if given := environ.get(TOKEN, "").strip():
        return _checked(given, TOKEN)
    path = _file(address, environ)
    if path is None:
        raise InvalidInput(
            f"{address.shown} wants a token: set {TOKEN}, or {TOKEN_FILE} to a file that holds it;"
            " `hitherto token create` makes one where the server runs"
        )
    return _checked(_kept(path), str(path))


def _file(address: Address, environ: Mapping[str, str]) -> Path | None:
    """The file that is named; for a server on this machine, else the one that it keeps for its own user."""
    if named := environ.get(TOKEN_FILE):
        return Path(named)
    if not address.on_this_machine:
        return None
    folder = read_settings(environ).data_dir
    own, others = folder / "token", sorted(folder.glob("token-*"))
    if own.exists() or len(others) > 1:
        return own
    return others[0] if others else None


def _kept(path: Path) -> str:
    try:
        if path.stat().st_mode & OTHERS:
            raise InvalidInput(f"others can read the token in {path}: chmod 600 it, or make a new token")
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise InvalidInput(
            f"the token in {path} cannot be read: {error.strerror or 'it is no file'}"
        ) from None


def _checked(secret: str, where: str) -> str:
    if not _SECRET.fullmatch(secret):
        raise InvalidInput(f"what {where} holds is no token")
    return secret
