"""Values of the model without their secrets, and the list of what was replaced. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from hitherto.exports.lines import Replaced
from hitherto.model import Entry, Fact, Session
from hitherto.secrets import ENCODED, RANDOM, find, redact_value, without_half_a_word

S = TypeVar("S", bound=msgspec.Struct)

# By these a program knows what it has before it, and by its ids what belongs together.
_KEPT = frozenset({"role", "kind"})
_IDS = frozenset({"id", "entries"})
_SESSION = (
    "title", "earlier_titles", "tags", "meta", "cwd", "earlier_cwds", "additional_directories", "project", "branch",
)  # fmt: skip
_FACT = ("text", "subject", "entries", "cwd")

RAW_COPY = "raw copy"


class Redactor:
    """Replaces secrets and remembers where; seeing something twice counts once.

    `entries` are those in which something was replaced, by their ids, as they are now: the first `keep` of them.
    """

    def __init__(self, keep: int = 0) -> None:
        self.entries: dict[str, Entry] = {}
        self._keep = keep
        self._ids: dict[str, str] = {}
        self._seen: dict[tuple[str | None, str | None], Counter[str]] = {}

    @property
    def replaced(self) -> tuple[Replaced, ...]:
        """The replacements, in order of appearance."""
        return tuple(
            Replaced(kind=kind, count=count, entry=entry, where=where)
            for (entry, where), counts in self._seen.items()
            for kind, count in sorted(counts.items())
        )

    def part(self) -> Redactor:
        """One for the next entries; then `join` it. It can go to another process and come back."""
        other = Redactor(self._keep - len(self.entries))
        other._ids = self._ids
        return other

    def join(self, other: Redactor) -> None:
        """Remember what it has replaced too."""
        self.entries.update(other.entries)
        self._ids = other._ids
        self._seen.update(other._seen)

    def entry(self, entry: Entry) -> Entry:
        """The entry; one without secrets is the same object."""
        cleaned = self._cleaned(
            entry, ("id", "parts", "meta", "model", "origin"), entry=self._named(entry.id, Counter())
        )
        if cleaned is not entry and len(self.entries) < self._keep:
            self.entries[entry.id] = cleaned
        return cleaned

    def session(self, session: Session) -> Session:
        """The session's metadata. What a title breaks off in may be the beginning of a secret: too little of one to be known."""
        cleaned = self._cleaned(session, _SESSION, where="session")
        titles = [without_half_a_word(title) for title in (cleaned.title or "", *cleaned.earlier_titles)]
        return replace(cleaned, title=titles[0] or cleaned.title, earlier_titles=tuple(titles[1:]))

    def fact(self, fact: Fact) -> Fact:
        """The fact."""
        return self._cleaned(fact, _FACT, where="facts", adding=True)

    def left_out(self, raw_copies: int) -> None:
        """Note that the bytes of source files, in which nothing can be replaced, are left out."""
        if raw_copies:
            self._seen[None, "raw copies"] = Counter({RAW_COPY: raw_copies})

    def _cleaned(
        self,
        value: S,
        fields: tuple[str, ...],
        *,
        entry: str | None = None,
        where: str | None = None,
        adding: bool = False,
    ) -> S:
        seen: Counter[str] = Counter()
        changes = {name: self._field(name, getattr(value, name), seen) for name in fields}
        if not seen:
            return value
        self._seen[entry, where] = (self._seen.get((entry, where)) or Counter()) + seen if adding else seen
        return replace(value, **changes)

    def _field(self, name: str, value: Any, seen: Counter[str]) -> Any:
        if name in _IDS:
            one = isinstance(value, str)
            return self._named(value, seen) if one else tuple(self._named(each, seen) for each in value)
        return value if name in _KEPT else self._walked(value, seen)

    def _walked(self, value: Any, seen: Counter[str]) -> Any:
        """A value of the model: structs by their fields, everything else as JSON."""
        if isinstance(value, msgspec.Struct):
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            return replace(value, **{name: self._field(name, each, seen) for name, each in fields})
        if isinstance(value, tuple):
            return tuple(self._walked(item, seen) for item in value)
        return redact_value(value, seen)

    def _named(self, text: str, seen: Counter[str]) -> str:
        """An id; one that holds a secret is the same other one wherever it stands. One that is only random is none."""
        found = [each.kind for each in find(text) if each.kind not in (RANDOM, ENCODED)]
        if not found:
            return text
        seen.update(found)
        return self._ids.setdefault(text, f"[redacted: {found[0]}] {len(self._ids) + 1}")
