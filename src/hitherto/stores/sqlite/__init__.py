"""The store in one SQLite file: WAL, `synchronous=FULL`, one writer thread with group commit, search beside it."""

from __future__ import annotations

from hitherto.stores.sqlite.store import connect

__all__ = ["connect"]
