"""The store in a PostgreSQL database: for many machines, or many people. Needs PostgreSQL 14 or newer."""

from hitherto.stores.postgres.store import connect

__all__ = ["connect"]
