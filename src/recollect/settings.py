"""Settings, read once from the environment. Each has a row in docs/settings.md."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

STORE = "RECOLLECT_STORE"
DATA_DIR = "RECOLLECT_DATA_DIR"
MODEL = "RECOLLECT_MODEL"
MODELS = "RECOLLECT_MODELS"
LIST_IMPORTED = "RECOLLECT_LIST_IMPORTED"

_NO = ("0", "false", "no", "off")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller and the environment say; the rest follows when it is asked for."""

    given_store: str | None = None
    folder: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    lists_imported: bool = True

    @property
    def data_dir(self) -> Path:
        """Where everything is that is kept on this machine."""
        return Path(self.folder) if self.folder else _user_data_dir()

    @property
    def store(self) -> str:
        """The URL of the store."""
        return self.given_store or f"sqlite:///{self.data_dir / 'recollect.db'}"


def read_settings(
    environ: Mapping[str, str] = os.environ, *, store: str | None = None, model: str | None = None
) -> Settings:
    """The settings in force; a given store or model goes before the environment's."""
    return Settings(
        given_store=store or environ.get(STORE),
        folder=environ.get(DATA_DIR),
        model=model or environ.get(MODEL) or None,
        models=tuple(environ.get(MODELS, "").replace(",", " ").split()),
        lists_imported=environ.get(LIST_IMPORTED, "").strip().lower() not in _NO,
    )


def store_url(given: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The URL of the store that is meant; a path, as people name one on a command line, is the SQLite file there."""
    named = given or environ.get(STORE)
    if not named:
        return read_settings(environ).store
    return named if _SCHEME.match(named) else f"sqlite:///{os.path.abspath(named)}"


def _user_data_dir() -> Path:
    import platformdirs  # here: nobody who names a store has to wait for it

    return Path(platformdirs.user_data_dir("recollect", appauthor=False))
