"""The store in plain dicts and lists: the reference for the others, simple and obviously right before fast."""

from hitherto.stores.memory.store import connect

__all__ = ["connect"]
