"""Settings, read once from the environment. Each has a row in docs/settings.md."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

STORE = "RECOLLECT_STORE"
DATA_DIR = "RECOLLECT_DATA_DIR"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`store` is the URL of the store; `data_dir` the folder for everything that is kept on this machine."""

    store: str
    data_dir: Path


def read_settings(environ: Mapping[str, str] = os.environ, *, store: str | None = None) -> Settings:
    """The settings in force; a given store goes before the environment's."""
    folder = environ.get(DATA_DIR)
    data_dir = Path(folder) if folder else _user_data_dir()
    url = store or environ.get(STORE) or f"sqlite:///{data_dir / 'recollect.db'}"
    return Settings(store=url, data_dir=data_dir)


def _user_data_dir() -> Path:
    import platformdirs  # here: nobody who names a store has to wait for it

    return Path(platformdirs.user_data_dir("recollect", appauthor=False))
