"""Pi's transcripts: bytes in, entries out. Pure. OpenClaw keeps the same records.

A transcript is a tree; the conversation is the path from its root to its newest leaf. The other paths are branches beside
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hitherto.claude.lines import Damage, decode_object, read_records
from hitherto.model import (
    Entry,
    Image,
    Json,
    Part,
    Role,
    Text,
    Thought,
    ToolResult,
    Unknown,
    Usage,
    Value,
    encode,
)
from hitherto.service.compaction.imported import Branch, Summarised
from hitherto.sources.port import Census
from hitherto.sources.shared.conversation import KIND_CHARS, LONGEST, fit_entry, moment
from hitherto.sources.shared.depth import is_deep
from hitherto.sources.shared.tool_kinds import call_of
from hitherto.values.titles import opening

PROMPT_CHARS = 1_000
"""How much of the first prompt is kept for a title."""
LEAF = "leaf"
"""A record that only names the current leaf."""
HEADER = "session"
QUIET = frozenset({"label", "session_info", "model_change", "thinking_level_change", "custom"})
"""Records about the conversation that are not part of it."""


class Info(Value, frozen=True):
    """The metadata of a transcript."""

    session_id: str | None = None
    cwd: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    name: str | None = None
    first_prompt: str | None = None
    forked_from: str | None = None
    version: int = 1
    models: tuple[str, ...] = ()
    labels: dict[str, str] = {}  # noqa: RUF012 - frozen, and msgspec copies a default that is empty


class Parsed(Value, frozen=True):
    """The conversation of a transcript, and behind its entries those of the branches beside it; with counts of unknown and
    damaged records, and of what became of all others."""

    info: Info
    entries: tuple[Entry, ...]
    compactions: tuple[Summarised, ...] = ()
    branches: tuple[Branch, ...] = ()
    unknown: dict[str, int] = {}  # noqa: RUF012 - as above
    damage: Damage = Damage()
    census: Census = Census()


def parse(data: bytes) -> Parsed:
    """The conversation in a transcript. Damage costs only the damaged records."""
    lines, damage = read_records(data)
    parsed = conversation([decode_object(line) for line in lines], damage)
    if any(len(line) > LONGEST or is_deep(line) for line in lines):
        return replace(parsed, entries=tuple(fit_entry(entry, encode(entry)) for entry in parsed.entries))
    return parsed


def conversation(records: Sequence[Json], damage: Damage = Damage()) -> Parsed:  # noqa: B008 - a frozen value
    """The conversation of these records, which include the header."""
    header = next((record for record in records if record.get("type") == HEADER), {})
    linked = _linked([record for record in records if record.get("type") != HEADER])
    leaf = _leaf(linked)
    linked = [record for record in linked if record.get("type") != LEAF]
    tree = _Tree(linked)
    builder = _ConversationBuilder()
    builder.add_all(tree.path(leaf))
    compactions, first_prompt = tuple(builder.compactions), builder.first_prompt
    branches = tuple(builder.add_branches(tree))
    builder.left_out[HEADER] = sum(record.get("type") == HEADER for record in records)
    builder.left_out[LEAF] = len(records) - builder.left_out[HEADER] - len(linked)
    # A record that is there again under the same id.
    builder.left_out["record that was written again"] = len(linked) - len(tree.seen)
    return Parsed(
        info=_info(header, linked, first_prompt, builder.entries),
        entries=tuple(builder.entries),
        compactions=compactions,
        branches=branches,
        unknown=dict(builder.unknown),
        damage=damage,
        census=Census(builder.shown, dict(+builder.left_out)),
    )


def _linked(records: Sequence[Json]) -> list[Json]:
    """The records with ids; those of the first version have none and are linked in order."""
    linked, last = list[Json](), None
    for number, record in enumerate(records):
        own = record.get("id")
        if not isinstance(own, str):
            record = {**record, "id": f"line-{number}", "parentId": last}
        last = record["id"]
        linked.append(record)
    return linked


def _leaf(records: Sequence[Json]) -> str | None:
    """The id of the current leaf: the one that a last `leaf` record names, else the newest record."""
    last = records[-1] if records else {}
    place = last.get("targetId") if last.get("type") == LEAF else last.get("id")
    return place if isinstance(place, str) else None


class _Tree:
    """The records, and which of them were walked."""

    def __init__(self, records: Sequence[Json]) -> None:
        self._records = records
        self._places = {record["id"]: place for place, record in enumerate(records)}
        self.seen = set[str]()

    def path(self, leaf: str | None) -> list[Json]:
        """The path to the leaf from the root, or from a record that was walked before."""
        path, at = list[Json](), self._places.get(leaf or "", -1)
        while at >= 0 and self._records[at]["id"] not in self.seen:
            self.seen.add(self._records[at]["id"])
            path.append(self._records[at])
            at = self._parent(at)
        return path[::-1]

    def others(self) -> Iterator[list[Json]]:
        """The paths that were not walked yet, those of the newest leaves first."""
        for record in reversed(self._records):
            if path := self.path(record["id"]):
                yield path

    def before(self, record: Json) -> Iterator[Json]:
        """The records that this one follows, the nearest first."""
        at, known = self._parent(self._places[record["id"]]), set[int]()
        while at >= 0 and at not in known:
            known.add(at)
            yield self._records[at]
            at = self._parent(at)

    def _parent(self, at: int) -> int:
        """The place of a record's parent; a record whose parent is missing continues from the one before it."""
        parent = self._records[at].get("parentId")
        return self._places.get(parent, at - 1) if isinstance(parent, str) else -1


def _info(header: Json, linked: Sequence[Json], first_prompt: str | None, entries: Sequence[Entry]) -> Info:
    names = [record.get("name") for record in linked if record.get("type") == "session_info"]
    times = [at for record in linked if (at := moment(record.get("timestamp"))) is not None]
    labels = {
        record["targetId"]: record["label"]
        for record in linked
        if record.get("type") == "label" and _are_texts(record, "targetId", "label")
    }
    return Info(
        session_id=_text(header, "id"),
        cwd=_text(header, "cwd"),
        created_at=moment(header.get("timestamp")) or min(times, default=None),
        updated_at=max(times, default=moment(header.get("timestamp"))),
        name=names[-1] if names and isinstance(names[-1], str) else None,
        first_prompt=first_prompt,
        forked_from=_text(header, "parentSession"),
        version=header["version"] if isinstance(header.get("version"), int) else 1,
        models=tuple(dict.fromkeys(filter(None, (entry.model for entry in entries)))),
        labels=labels,
    )


class _ConversationBuilder:
    """Builds the entries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.compactions: list[Summarised] = []
        self.unknown = Counter[str]()
        self.shown = 0
        self.left_out = Counter[str]()
        self.first_prompt: str | None = None
        self._at = 0

    def add_all(self, records: Iterable[Json]) -> None:
        """Add these records, and count what became of each."""
        for record in records:
            before = len(self.entries)
            self._add(record)
            if len(self.entries) > before:
                self.shown += 1
            else:
                self.left_out[str(record.get("type"))[:KIND_CHARS]] += 1

    def add_branches(self, tree: _Tree) -> Iterator[Branch]:
        """Add the paths beside the conversation."""
        known = {entry.id for entry in self.entries}
        for path in tree.others():
            before, self.compactions = len(self.entries), []
            self.add_all(path)
            if size := len(self.entries) - before:
                after = next((each["id"] for each in tree.before(path[0]) if each["id"] in known), None)
                yield Branch(after, size, tuple(self.compactions))
                known.update(entry.id for entry in self.entries[before:])

    def _add(self, record: Json) -> None:
        kind = _text(record, "type")
        if kind in QUIET:
            return
        self._at = moment(record.get("timestamp")) or self._at
        makers: dict[object, Callable[[Json], None]] = {
            "message": self._message,
            "compaction": self._compaction,
            "reset": self._reset,
            "branch_summary": self._note,
            "custom_message": self._note,
        }
        makers.get(kind, self._unknown)(record)

    def _message(self, record: Json) -> None:
        message = record.get("message")
        reader = MESSAGES.get(str(message.get("role"))) if isinstance(message, dict) else None
        if message is None or reader is None:
            self._unknown(record)
            return
        role, parts_of = reader
        parts = tuple(parts_of(message, self.unknown))
        if role == "user" and self.first_prompt is None:
            openings = (opening(part.text, PROMPT_CHARS) for part in parts if isinstance(part, Text))
            self.first_prompt = next(filter(None, openings), None)
        usage = usage_of(message.get("usage"))
        self._add_entry(record, role, parts, model=_model(message), usage=usage, meta=_meta(message))

    def _compaction(self, record: Json) -> None:
        parts = (Text(text=_text(record, "summary") or ""),)
        self._add_entry(record, "system", parts, meta={"compact_summary": True})
        kept = record.get("firstKeptEntryId")
        self.compactions.append(
            Summarised(summary=record["id"], kept=(kept,) if isinstance(kept, str) else ())
        )

    def _reset(self, record: Json) -> None:
        """The conversation was reset: its context starts empty."""
        reason = _text(record, "reason")
        note = f"Begun anew ({reason})." if reason else "Begun anew."
        self._add_entry(record, "system", (Text(text=note),), meta={"compact_summary": True})
        self.compactions.append(Summarised(summary=record["id"]))

    def _note(self, record: Json) -> None:
        content = record.get("summary") if "summary" in record else record.get("content")
        self._add_entry(
            record, "system", tuple(_content(content, self.unknown)), meta={"kind": record["type"]}
        )

    def _unknown(self, record: Json) -> None:
        self.unknown[str(record.get("type") or "?")[:KIND_CHARS]] += 1
        self._add_entry(record, "system", (Unknown(raw=record),))

    def _add_entry(
        self,
        record: Json,
        role: Role,
        parts: tuple[Part, ...],
        *,
        model: str | None = None,
        usage: Usage | None = None,
        meta: Json | None = None,
    ) -> None:
        if parts:
            tokens = usage.output if usage else None
            self.entries.append(
                Entry(
                    id=record["id"],
                    at=self._at,
                    role=role,
                    parts=parts,
                    model=model,
                    usage=usage,
                    tokens=tokens,
                    meta=meta or {},
                )
            )


# Messages

Unknowns = Counter[str]


def _spoken(message: Json, unknown: Unknowns) -> Iterator[Part]:
    yield from _content(message.get("content"), unknown)


def _result(message: Json, unknown: Unknowns) -> Iterator[Part]:
    yield ToolResult(
        id=_text(message, "toolCallId") or "",
        content=tuple(_content(message.get("content"), unknown)),
        is_error=message.get("isError") is True,
        output=message.get("details"),
    )


def _command(message: Json, unknown: Unknowns) -> Iterator[Part]:  # noqa: ARG001 - the others need it
    """A command that the user ran within the conversation."""
    code = message.get("exitCode")
    ended = f"\n(exit code {code})" if isinstance(code, int) and code else ""
    yield Text(text=f"$ {_text(message, 'command') or ''}\n{_text(message, 'output') or ''}{ended}")


def _summary(message: Json, unknown: Unknowns) -> Iterator[Part]:
    yield from _content(message.get("summary", message.get("content")), unknown)


MESSAGES: dict[str, tuple[Role, Callable[[Json, Unknowns], Iterator[Part]]]] = {
    "user": ("user", _spoken),
    "assistant": ("assistant", _spoken),
    "toolResult": ("tool", _result),
    "bashExecution": ("user", _command),
    "custom": ("system", _spoken),
    "branchSummary": ("system", _summary),
    "compactionSummary": ("system", _summary),
}
"""Role of a message → our role, and the function that reads its parts."""


def _content(content: Any, unknown: Unknowns) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Text(text=content)
        return
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield _part(block, unknown)


def _part(block: Json, unknown: Unknowns) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "thinking", "thinking": str(text)}:
            return Thought(text=text, signature=_text(block, "thinkingSignature"))
        case {"type": "toolCall", "id": str(id), "name": str(name)}:
            return call_of(id, name, block.get("arguments"))
        case {"type": "image", "data": str(data)}:
            return Image(mime_type=_text(block, "mimeType") or "image/png", data=data)
    unknown[f"block {block.get('type')}"[:80]] += 1
    return Unknown(raw=block)


def _model(message: Json) -> str | None:
    provider, model = _text(message, "provider"), _text(message, "model")
    return f"{provider}:{model}" if provider and model else model


def _meta(message: Json) -> Json:
    stop, error = message.get("stopReason"), message.get("errorMessage")
    failed = {"error": str(error)[:1_000]} if stop == "error" and error else {}
    aborted = {"stop_reason": stop} if stop in ("aborted", "length") else {}
    return {**failed, **aborted}


COUNTED = ("input", "output", "cacheRead", "cacheWrite")


def usage_of(usage: Any) -> Usage | None:
    """The usage of an answer; input includes the cache."""
    if not isinstance(usage, dict):
        return None
    known = {name: number for name in COUNTED if (number := _count(usage.get(name))) is not None}
    inputs = [known[name] for name in ("input", "cacheRead", "cacheWrite") if name in known]
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    return Usage(
        input=sum(inputs) if inputs else None,
        output=known.get("output"),
        cache_read=known.get("cacheRead"),
        cache_write=known.get("cacheWrite"),
        cost=float(total) if isinstance(total, int | float) and 0 <= total < 1e6 else None,
    )


def _count(number: Any) -> int | None:
    counts = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 40
    return number if counts else None


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) and value else None


def _are_texts(record: Json, *names: str) -> bool:
    return all(isinstance(record.get(name), str) for name in names)
