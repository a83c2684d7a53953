"""Settings, read once from the environment. Each has a row in docs/settings.md."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hitherto.errors import InvalidInput
from hitherto.limits import LARGEST_NUMBER
from hitherto.values.keys import DmScopes, parse_scopes

STORE = "HITHERTO_STORE"
DATA_DIR = "HITHERTO_DATA_DIR"
MODEL = "HITHERTO_MODEL"
MODELS = "HITHERTO_MODELS"
LIST_IMPORTED = "HITHERTO_LIST_IMPORTED"
COMPACT_AT = "HITHERTO_COMPACT_AT"
COMPACT_KEEP_TOKENS = "HITHERTO_COMPACT_KEEP_TOKENS"
WINDOWS = "HITHERTO_WINDOWS"
DM_SCOPE = "HITHERTO_DM_SCOPE"
RESET = "HITHERTO_RESET"
DETACHED_SECONDS = "HITHERTO_DETACHED_SECONDS"
RECAP_TOKENS = "HITHERTO_RECAP_TOKENS"
MEMORY_TOKENS = "HITHERTO_MEMORY_TOKENS"
PAGE = "HITHERTO_PAGE"
SOURCES = "HITHERTO_SOURCES"
RAW_BUDGET = "HITHERTO_RAW_BUDGET"
SYNC = "HITHERTO_SYNC"
TOKEN = "HITHERTO_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE = "HITHERTO_TOKEN_FILE"  # noqa: S105 - likewise
CA_FILE = "HITHERTO_CA_FILE"

ROOT = 0
WRITTEN_BY_OTHERS = 0o022

_NO = ("0", "false", "no", "off")
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,3})?)\s*([kmgt]?)b?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the caller and the environment. Properties compute the rest on access."""

    given_store: str | None = None
    folder: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    lists_imported: bool = True
    compact_at: float = 0.8
    compact_keep_tokens: int = 20_000
    windows: tuple[tuple[str, int], ...] = ()
    dm_scope: str = ""
    reset: str = ""
    recap_tokens: int = 0
    detached_seconds: int = 600
    memory_tokens: int = 1_000
    page: str = "http://127.0.0.1:8787"
    sources: str = ""
    raw_budget: int = 2_000_000_000
    syncs: bool = True

    @property
    def data_dir(self) -> Path:
        """The data folder. Raises `InvalidInput` if other users can write to it."""
        return own_folder(Path(self.folder) if self.folder else _user_data_dir(), os.geteuid())

    @property
    def store(self) -> str:
        """The URL of the store."""
        return self.given_store or f"sqlite:///{self.data_dir / 'hitherto.db'}"

    @property
    def dm_scopes(self) -> DmScopes:
        """Which direct messages share a session. Raises `InvalidInput`."""
        return parse_scopes(self.dm_scope)


def read_settings(
    environ: Mapping[str, str] = os.environ, *, store: str | None = None, model: str | None = None
) -> Settings:
    """The settings in force. A given store or model takes precedence over the environment."""
    return Settings(
        given_store=store or environ.get(STORE),
        folder=environ.get(DATA_DIR),
        model=model or environ.get(MODEL) or None,
        models=tuple(environ.get(MODELS, "").replace(",", " ").split()),
        lists_imported=environ.get(LIST_IMPORTED, "").strip().lower() not in _NO,
        compact_at=_share(environ, COMPACT_AT, 0.8),
        compact_keep_tokens=_number(environ, COMPACT_KEEP_TOKENS, 20_000),
        windows=tuple(_windows(environ)),
        dm_scope=environ.get(DM_SCOPE, ""),
        reset=environ.get(RESET, ""),
        recap_tokens=_number(environ, RECAP_TOKENS, 0),
        detached_seconds=_number(environ, DETACHED_SECONDS, 600),
        memory_tokens=_number(environ, MEMORY_TOKENS, 1_000),
        page=environ.get(PAGE) or Settings().page,
        sources=environ.get(SOURCES, ""),
        raw_budget=_size(environ, RAW_BUDGET, Settings().raw_budget),
        syncs=environ.get(SYNC, "").strip().lower() not in _NO,
    )


def _share(environ: Mapping[str, str], name: str, otherwise: float) -> float:
    """A fraction: `0.8` or `80%`."""
    text = environ.get(name, "").strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1) if text else otherwise
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InvalidInput(
            f"{name} must be a fraction above 0 and at most 1, such as 0.8 or 80%, not {text!a:.40}"
        )
    return share


def _number(environ: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environ.get(name, "").strip().replace("_", "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= LARGEST_NUMBER):
        raise InvalidInput(f"{name} must be a whole number above 0, not {text!a:.40}")
    return int(text)


def _windows(environ: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Models and how many tokens each sees: `ollama:qwen3:8b=32768, gpt-5=400k`."""
    for each in environ.get(WINDOWS, "").replace(",", " ").split():
        model, _, tokens = each.rpartition("=")
        match = _SIZE.fullmatch(tokens.replace("_", ""))
        window = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
        if not (model and 0 < window <= LARGEST_NUMBER):
            raise InvalidInput(
                f"{WINDOWS} must be models and their windows, such as ollama:qwen3:8b=32768, not {each!a:.80}"
            )
        yield model, window


def _size(environ: Mapping[str, str], name: str, otherwise: int) -> int:
    """A number of bytes: `2 GB`, `500MB`, `0`."""
    text = environ.get(name, "").strip()
    if not text:
        return otherwise
    match = _SIZE.fullmatch(text.replace("_", ""))
    size = float(match[1]) * _UNITS[match[2].lower()] if match else -1
    if not 0 <= size <= LARGEST_NUMBER:
        raise InvalidInput(f"{name} must be a size such as 500 MB or 2 GB, or 0, not {text!a:.40}")
    return int(size)


def store_url(given: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The URL of the store, given by URL or by the path of a SQLite file."""
    named = given or environ.get(STORE)
    if not named:
        return read_settings(environ).store
    return named if _SCHEME.match(named) else f"sqlite:///{os.path.abspath(named)}"


def earlier_store(given: str | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The default store under the program's former name, if there is no store or setting under the current name."""
    if given or environ.get(STORE) or environ.get(DATA_DIR) or _user_data_dir().exists():
        return None
    left = _user_data_dir("recollect") / "recollect.db"
    return left if left.exists() else None


def is_server(url: str) -> bool:
    """True if the URL is the address of a server, not of a store."""
    return url.startswith(("http://", "https://"))


def own_folder(folder: Path, user: int) -> Path:
    """The folder, if only this user can write to it or it does not exist yet. Raises `InvalidInput`."""
    try:
        found = folder.stat()
    except OSError:
        return folder  # creating or opening it reports the error
    if user != ROOT and found.st_uid not in (user, ROOT):
        raise InvalidInput(
            f"the data folder {folder} belongs to another user; set {DATA_DIR} to a folder of your own"
        )
    if found.st_mode & WRITTEN_BY_OTHERS:
        raise InvalidInput(
            f"other users can write to the data folder {folder}; run chmod 700 {shlex.quote(str(folder))},"
            f" or set {DATA_DIR} to a folder of your own"
        )
    return folder


def _user_data_dir(name: str = "hitherto") -> Path:
    import platformdirs  # imported here because it is slow and often not needed

    return Path(platformdirs.user_data_dir(name, appauthor=False))
