"""Owners as numbers: rows name them so."""

from __future__ import annotations

from collections.abc import MutableMapping

import apsw

from hitherto.stores.sqlite.connection import fetch

OWNER = "SELECT num FROM owner WHERE name = ?"


class OwnerReading:
    """What reads rows of an owner; `_owners` are those whose numbers are known."""

    _db: apsw.Connection
    _owners: MutableMapping[str, int]

    def _owner(self, owner: str) -> int:
        """The owner's number; 0, which nobody has, if there is none. Numbers stay, so they are looked up once."""
        known = self._owners.get(owner)
        if known is None:
            rows = fetch(self._db, OWNER, (owner,))
            if not rows:
                return 0
            known = self._owners[owner] = rows[0][0]
        return known
