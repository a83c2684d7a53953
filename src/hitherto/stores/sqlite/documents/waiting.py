"""Documents that were committed in this process and are not fed yet: what is still in memory need not be read back."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from hitherto.model import Entry
from hitherto.stores.sqlite.documents.document import Document

MOST = 20_000
MOST_BYTES = 32 * 1024 * 1024
"""Beyond this nothing is kept in memory: all of it is read from the file."""


class Written(NamedTuple):
    """An entry as it was written at `pos`, and the size of its bytes; `words` are those that it is found by, if they are known."""

    owner: int
    pos: int
    entry: Entry
    size: int
    words: str | None = None


class Waiting:
    """Documents by their numbers. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, Written | Document] = {}
        self._bytes = 0

    def add(self, documents: Mapping[int, Written | Document]) -> None:
        """Keep documents that are committed."""
        with self._lock:
            self._known.update(documents)
            self._bytes += sum(map(_size, documents.values()))
            if len(self._known) > MOST or self._bytes > MOST_BYTES:
                self._known.clear()
                self._bytes = 0

    def take(self, numbers: range) -> dict[int, Written | Document] | None:
        """The documents of these numbers; None if one of them is not known here. All up to the last are forgotten."""
        with self._lock:
            known = self._known
            found = {number: known[number] for number in numbers if number in known}
            for number in [number for number in known if number < numbers.stop]:
                self._bytes -= _size(known.pop(number))
        return found if len(found) == len(numbers) else None


def _size(document: Written | Document) -> int:
    return document.size if isinstance(document, Written) else len(document.text)
