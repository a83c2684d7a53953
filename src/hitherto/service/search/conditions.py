"""What the fields of a query ask of a message, and of the files that a session changed or named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hitherto.edits.changes import ends_with
from hitherto.edits.lines import name_mark
from hitherto.edits.repositories import full_path
from hitherto.model import (
    Audio,
    Condition,
    Entry,
    Image,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Session,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    decode_entry,
    is_error,
)
from hitherto.ports import Reader
from hitherto.values import words
from hitherto.values.filters import is_like
from hitherto.values.query.language import Query
from hitherto.values.spans import EntryPlace, Stretch
from hitherto.values.words import Term, bounded, term_of

CALL_REACH = 48
"""So many entries before a result its call is looked for."""


class Sought(NamedTuple):
    """The words by which messages are looked for: all of them, or any."""

    terms: tuple[Term, ...]
    every: bool = True


def sought(query: Query) -> Sought:
    """What the index is asked for: without words, what a file is called; or a tool, if it is a call that is looked for, and not
    what came of it."""
    is_called = all(each.field in ("model", "role", "tool") for each in query.message)
    tools = [each for each in query.message if each.field == "tool" and is_called]
    names = next((each.values for each in (*query.files, *tools) if not each.out), ())
    if query.terms or not names:
        return Sought(query.terms)
    return Sought(bounded(filter(None, map(term_of, names))), every=False)


class Conditions:
    """What one query asks, inside one transaction. `secret` is what the marks of edits are made with."""

    def __init__(self, tx: Reader, owner: str, secret: bytes, query: Query) -> None:
        self._tx, self._owner, self._secret = tx, owner, secret
        self._message, self._files = query.message, query.files
        self._edited: dict[int, frozenset[int]] = {}
        self.read_bytes = 0
        """How much was read to find out."""

    @property
    def of_messages(self) -> bool:
        """Whether anything is asked of messages."""
        return bool(self._message)

    @property
    def of_files(self) -> bool:
        """Whether anything is asked of files."""
        return bool(self._files)

    async def hold(self, entry: Entry | None, place: EntryPlace | None) -> bool:
        """Whether a message is as asked; a title is none."""
        if not self._message:
            return True
        if entry is None or place is None:
            return False
        return all([await self._holds(each, entry, place) for each in self._message])

    async def files_hold(self, session: Session, said: Iterable[Stretch]) -> bool:
        """Whether all that was said in a session, and its edits, are about the files asked for."""
        stretches = list(dict.fromkeys(said)) if self._files else []
        for each in self._files:
            about = [value for value in each.values if await self._is_about(value, session, stretches)]
            if bool(about) == each.out:
                return False
        return True

    async def _holds(self, condition: Condition, entry: Entry, place: EntryPlace) -> bool:
        found = [await self._has(condition.field, value, entry, place) for value in condition.values]
        return any(found) != condition.out

    async def _has(self, field: str, value: str, entry: Entry, place: EntryPlace) -> bool:
        if field == "tool":
            return await self._is_of_tool(value, entry, place)
        if (field, value) == ("has", "edit"):
            return any(isinstance(part, ToolCall) for part in entry.parts) and await self._is_edit(place)
        return _HAS[value](entry) if field == "has" else _IS[field](entry, value)

    async def _is_of_tool(self, value: str, entry: Entry, place: EntryPlace) -> bool:
        """Whether the tool was called in this message, or what it answered is in it."""
        if any(isinstance(part, ToolCall) and is_tool(value, part.name) for part in entry.parts):
            return True
        answered = [part.id for part in entry.parts if isinstance(part, ToolResult)]
        names = [await self._called(call, place) for call in answered]
        return any(name is not None and is_tool(value, name) for name in names)

    async def _called(self, call: str, place: EntryPlace) -> str | None:
        """The tool of a call that stands before a place."""
        first = max(0, place.seq - 1 - CALL_REACH)
        before = await self._tx.log_after(self._owner, place.log, first, place.seq - 1 - first)
        self.read_bytes += sum(len(payload) for _, payload in before)
        mark = call.encode("utf-8", "surrogatepass")
        for _, payload in reversed(before):
            # Only what has its id is read: most of these are other messages.
            for part in decode_entry(payload).parts if mark in payload else ():
                if isinstance(part, ToolCall) and part.id == call:
                    return part.name
        return None

    async def _is_edit(self, place: EntryPlace) -> bool:
        if place.log not in self._edited:
            batches = await self._tx.edits(self._owner, [place.log])
            seqs = (record.seq for batch in batches for record in batch.records() if not record.failed)
            self._edited[place.log] = frozenset(seqs)
        return place.seq in self._edited[place.log]

    async def _is_about(self, file: str, session: Session, said: list[Stretch]) -> bool:
        """Whether a file whose path ends so was named, or changed."""
        term = term_of(file)
        for stretch in said if term else ():
            if term and await self._tx.within(self._owner, stretch, [term], None, 1):
                return True
        wanted = frozenset([name_mark(self._secret, file)])
        for log in sorted({stretch.log for stretch in said}):
            for batch in await self._tx.edits_marked(self._owner, wanted, log):
                for record, _ in batch.marked(wanted):
                    paths = [full_path(path, session.cwd) for path in (record.path, record.to) if path]
                    if any(ends_with(path, file) for path in paths):
                        return True
        return False


def is_tool(value: str, name: str) -> bool:
    """Whether a tool goes by this name: its own, or that of its MCP server, in any case."""
    value, name = value.casefold(), name.casefold()
    return is_like(value, name) or any(is_like(value, part) for part in name.split("__"))


def _is_from(entry: Entry, value: str) -> bool:
    sender = None if entry.origin is None else entry.origin.sender
    if sender is None:
        return False
    named = words.parse_words(f'"{value}"')
    name = words.tokens(words.searchable(sender.name or ""))
    return is_like(value, sender.id) or (bool(named) and words.matches(named, name))


_IS: dict[str, Callable[[Entry, str], bool]] = {
    "from": _is_from,
    "model": lambda entry, value: value.rstrip("*").casefold() in (entry.model or "").casefold(),
    "role": lambda entry, value: entry.role == value,
}
"""What each field asks of a message, but for tools."""


def _has_part(*kinds: type[Part]) -> Callable[[Entry], bool]:
    return lambda entry: any(isinstance(part, kinds) for part in _parts(entry.parts))


def _parts(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, and those in what tools answered."""
    for part in parts:
        yield part
        if isinstance(part, ToolResult):
            yield from part.content


_HAS: dict[str, Callable[[Entry], bool]] = {
    "attachment": _has_part(Image, Audio, Resource, ResourceLink),
    "audio": _has_part(Audio),
    "code": lambda entry: any(isinstance(part, Text) and "```" in part.text for part in entry.parts),
    "error": is_error,
    "image": _has_part(Image),
    "plan": _has_part(Plan),
    "thought": _has_part(Thought),
    "tool": _has_part(ToolCall, ToolResult),
}
"""What a message can have, but for edits, which the store knows."""
