"""The stores, by the scheme of their URL. Each is imported only when its scheme is asked for."""

from __future__ import annotations

from importlib import import_module

from hitherto.errors import InvalidInput, StoreUnavailable, install_advice
from hitherto.ports import Connect

STORES = {
    "memory": "hitherto.stores.memory",
    "sqlite": "hitherto.stores.sqlite",
    "postgresql": "hitherto.stores.postgres",
    "postgres": "hitherto.stores.postgres",
}
"""Scheme → module with `connect(url, now)`."""


def connector(url: str) -> Connect:
    """How to open the store at this URL."""
    scheme, colon, _ = url.partition(":")
    if scheme in ("http", "https"):
        raise InvalidInput(
            "this needs the store itself, not the address of a server: run it on the server's machine"
        )
    module = STORES.get(scheme) if colon else None
    if module is None:
        raise InvalidInput(
            f"no store for {url!r}: use sqlite:////path/to/file.db, memory: or postgresql://user@host/database"
        )
    try:
        connect: Connect = import_module(module).connect
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("hitherto"):
            raise
        extra = module.rpartition(".")[2]
        raise StoreUnavailable(install_advice(f"a {scheme}: store", extra)) from error
    return connect
