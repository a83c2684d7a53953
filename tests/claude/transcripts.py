"""Transcripts as Claude Code writes them today, made up: single records, whole files, and trees of thousands.

A tenth of the bytes is conversation. The rest is what the program keeps beside it: snapshots of its prompt, a log of
requests, bookkeeping. The same seed makes the same tree.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hitherto.claude.paths import folder_name

Record = dict[str, Any]

VERSION = "2.1.325"
MORNING = 1_760_000_000_000
"""The first stamp of a transcript, in ms, unless it is told another."""
SMALLEST, MEDIAN, LARGEST = 20_000, 100_000, 20_000_000
# How far sizes spread around the median: with it a tenth is above 380 KB.
SPREAD = 1.04
# One file in so many is large.
LARGE_EVERY = 400
SNAPSHOT = 53_000
WORDS = (  # noqa: SIM905  read as words
    "the a of to and in is it for on with as this that be are from or by at file line test path error value name type "
    "function return import class list string number result output input command run build check change read write "
    "add remove update move copy session message tool model prompt token branch merge commit parser cache index query"
).split()
TOOLS = ("Bash", "Read", "Edit", "Grep", "Write")


def compact(record: Mapping[str, Any]) -> bytes:
    """A record as one line, with its line end."""
    return (
        json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
    )


def iso(ms: int) -> str:
    """A time as transcripts write it."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


@dataclass(slots=True)
class Writer:
    """Writes the records of one session, each linked to the one before unless told otherwise."""

    session_id: str
    cwd: str = "/home/ann/project"
    branch: str = "main"
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    entrypoint: str = "cli"
    now: int = MORNING
    last: str | None = None
    records: list[Record] = field(default_factory=list)

    def uuid(self) -> str:
        """An id that nobody else has."""
        digits = f"{self.rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def link(self, kind: str, said: Mapping[str, Any] | None = None, **values: Any) -> Record:
        """A record that is part of the chain, with what is `said` where the program writes it.

        A given `parentUuid`, `uuid` or other value goes before the usual one.
        """
        self.now += self.rng.randrange(50, 5_000)
        # A prompt's type comes before what it says, all others' after it.
        typed = {"type": kind, **(said or {})} if kind == "user" else {**(said or {}), "type": kind}
        record: Record = {
            "parentUuid": self.last,
            "isSidechain": False,
            **typed,
            "uuid": self.uuid(),
            "timestamp": iso(self.now),
            "userType": "external",
            "entrypoint": self.entrypoint,
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": VERSION,
            "gitBranch": self.branch,
        }
        record |= values
        self.last = record["uuid"]
        self.records.append(record)
        return record

    def note(self, kind: str, **values: Any) -> Record:
        """A record beside the chain."""
        record = {"type": kind, **values, "sessionId": self.session_id}
        self.records.append(record)
        return record

    def user(self, content: Any, **values: Any) -> Record:
        """A prompt."""
        return self.link("user", {"message": {"role": "user", "content": content}}, **values)

    def assistant(self, *blocks: Record, message_id: str | None = None, **values: Any) -> Record:
        """A part of a response; parts with one id are one response."""
        message = {
            "id": message_id or f"msg_{self.rng.getrandbits(64):016x}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": list(blocks),
            "stop_reason": None,
            "usage": {"input_tokens": 9, "output_tokens": 21, "cache_read_input_tokens": 12_000},
        }
        return self.link("assistant", {"message": message}, **values)

    def say(self, text: str, **values: Any) -> Record:
        """A response that is a text."""
        return self.assistant({"type": "text", "text": text}, **values)

    def call(self, name: str, given: Record, **values: Any) -> tuple[Record, str]:
        """A response that calls a tool, and the id of the call."""
        call = f"toolu_{self.rng.getrandbits(64):016x}"
        return self.assistant({"type": "tool_use", "id": call, "name": name, "input": given}, **values), call

    def result(self, call: str, text: str, **values: Any) -> Record:
        """What a tool answered."""
        block = {"tool_use_id": call, "type": "tool_result", "content": text, "is_error": False}
        said = {"message": {"role": "user", "content": [block]}}
        return self.link("user", said, **{"toolUseResult": {"stdout": text}, **values})

    def attach(self, kind: str, **values: Any) -> Record:
        """Something the program adds to the conversation."""
        return self.link("attachment", {"attachment": {"type": kind, **values}})

    def title(self, text: str) -> Record:
        """A title as a user gives it."""
        return self.note("custom-title", customTitle=text)

    def ai_title(self, text: str) -> Record:
        """A title as the program makes it."""
        return self.note("ai-title", aiTitle=text)

    def tag(self, text: str) -> Record:
        """A tag; an empty one takes it away."""
        return self.note("tag", tag=text)

    def last_prompt(self, text: str | None = None, leaf: str | None = None, **values: Any) -> Record:
        """Where the command line stands."""
        given = {} if text is None else {"lastPrompt": text}
        return self.note("last-prompt", **given, leafUuid=leaf or self.last, **values)

    def compact(self, *, keep: list[str] | None = None, summary: str = "What was said before.") -> Record:
        """A compaction: a boundary and a summary, which is returned; `keep` are the uuids that stay in the context."""
        before, own = self.last, self.uuid()
        kept = {} if not keep else {
            "preservedSegment": {"headUuid": keep[0], "anchorUuid": own, "tailUuid": keep[-1]},
            "preservedMessages": {"anchorUuid": own, "uuids": keep, "allUuids": keep},
        }  # fmt: skip
        metadata = {"trigger": "manual", "preTokens": 90_000, "postTokens": 4_000, **kept}
        self.link(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            parentUuid=None,
            logicalParentUuid=before,
            compactMetadata=metadata,
        )
        flags = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        return self.user(summary, uuid=own, **flags)

    def summarize(self, direction: str, pivot: str, *, summary: str = "What was said there.") -> Record:
        """A partial compaction, `from` a record or `up_to` it: as the program writes it. Returns the summary."""
        uuids = self.line_to(self.last)
        before, rest = uuids[: uuids.index(pivot)], uuids[uuids.index(pivot) :]
        own, boundary = self.uuid(), self.uuid()
        kept, anchor = (rest, own) if direction == "up_to" else (before, boundary)
        self.link(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            uuid=boundary,
            parentUuid=None,
            logicalParentUuid=before[-1] if before else None,
            compactMetadata={
                "trigger": "manual",
                "preTokens": 90_000,
                "messagesSummarized": len(uuids) - len(kept),
                "preservedSegment": {"headUuid": kept[0], "anchorUuid": anchor, "tailUuid": kept[-1]},
                "preservedMessages": {"anchorUuid": anchor, "uuids": kept, "allUuids": kept},
            },
        )
        flags = {"isCompactSummary": True, "summarizeMetadata": {"direction": direction}}
        return self.user(summary, uuid=own, **flags)

    def line_to(self, uuid: str | None) -> list[str]:
        """The uuids of the records that lead to this one, and its own."""
        parents = {record["uuid"]: record["parentUuid"] for record in self.records if record.get("uuid")}
        line: list[str] = []
        while uuid is not None and uuid not in line:
            line.append(uuid)
            uuid = parents.get(uuid)
        return line[::-1]

    def data(self) -> bytes:
        """All records as the bytes of a transcript."""
        return b"".join(map(compact, self.records))

    def save(self, projects: Path, *, mtime_ms: int | None = None) -> Path:
        """Write the transcript where Claude Code would have."""
        return save(projects, self.cwd, self.session_id, self.data(), mtime_ms=mtime_ms)


def save(projects: Path, cwd: str, session_id: str, data: bytes, *, mtime_ms: int | None = None) -> Path:
    """Write bytes as the transcript of a session."""
    folder = projects / folder_name(cwd)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session_id}.jsonl"
    path.write_bytes(data)
    path.chmod(0o600)
    if mtime_ms is not None:
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
    return path


def session_id(number: int) -> str:
    """The id of a session by its number."""
    return f"{number:08x}-0000-4000-8000-{number * 7_919:012x}"


class Babble:
    """Text that costs nothing to make: pieces of one long text."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        # Lines, quotes and signs beyond ASCII are as frequent as in prompts, code and what models say.
        signs = ["\n", "\n", "\n", '"quoted"', "→", "—", "✓", "é"]
        self._text = " ".join(rng.choices(WORDS + signs, [12] * len(WORDS) + [10] * len(signs), k=60_000))
        properties = {"path": {"type": "string"}, "limit": {"type": "number", "minimum": 1}}
        schema = {
            "type": "object",
            "properties": properties,
            "required": ["path"],
            "additionalProperties": False,
        }
        self._tools = [
            {
                "name": f"Tool{number}",
                "description": self.text(rng.randrange(300, 8_000)),
                "input_schema": schema,
            }
            for number in range(200)
        ]

    def text(self, size: int) -> str:
        """About `size` characters."""
        start = self._rng.randrange(max(1, len(self._text) - size))
        return self._text[start : start + size]

    def texts(self, size: int) -> list[str]:
        """The same, in pieces as prompts are made of."""
        return [self.text(min(size, 1_500)) for _ in range(max(1, size // 1_500))]

    def tools(self, size: int) -> list[Record]:
        """Descriptions of tools, `size` characters or a little more."""
        chosen: list[Record] = []
        while size > 0:
            chosen.append(self._rng.choice(self._tools))
            size -= len(chosen[-1]["description"]) + 200
        return chosen


def size_of(rng: random.Random, number: int) -> int:
    """The size of a transcript: log-normal, and every so often a large one."""
    if number % LARGE_EVERY == LARGE_EVERY // 2:
        return rng.randrange(5_000_000, LARGEST)
    return min(2_000_000, max(SMALLEST, int(MEDIAN * math.exp(rng.gauss(0, SPREAD)))))


def fill(writer: Writer, size: int, babble: Babble) -> bytes:
    """A transcript of about `size` bytes."""
    rng = writer.rng
    written = bytearray()

    def flush() -> None:
        for record in writer.records:
            written.extend(compact(record))
        writer.records.clear()

    writer.note("queue-operation", operation="enqueue", timestamp=iso(writer.now), content=babble.text(40))
    writer.note("queue-operation", operation="dequeue", timestamp=iso(writer.now))
    said = 0
    while len(written) < size:
        begun = len(written)
        prompt = babble.text(rng.randrange(20, 300))
        writer.user(prompt, promptId=writer.uuid(), permissionMode="default")
        _turn(writer, babble)
        flush()
        said += len(written) - begun
        # Nine bytes beside the conversation for each byte of it.
        while len(written) < min(size, said * 10):
            _bookkeeping(writer, babble, min(SNAPSHOT, max(2_000, size // 4)))
            flush()
        writer.last_prompt(prompt)
        writer.note("cost-state", totalCostUSD=0.02, modelUsage={})
        flush()
    _names(writer, babble)
    flush()
    return bytes(written)


def _turn(writer: Writer, babble: Babble) -> None:
    rng = writer.rng
    for _ in range(rng.randrange(1, 5)):
        if rng.random() < 0.15:
            _side_by_side(writer, babble)
            continue
        _, call = writer.call(rng.choice(TOOLS), {"command": babble.text(60), "description": babble.text(30)})
        writer.result(call, babble.text(rng.randrange(50, 600)))
    writer.say(babble.text(rng.randrange(100, 1_500)))


def _side_by_side(writer: Writer, babble: Babble) -> None:
    """A response with several calls: each result hangs on its own call."""
    response = f"msg_{writer.rng.getrandbits(64):016x}"
    calls = [writer.call("Read", {"path": babble.text(20)}, message_id=response) for _ in range(3)]
    for made, call in calls:
        writer.result(call, babble.text(200), parentUuid=made["uuid"], sourceToolAssistantUUID=made["uuid"])


def _bookkeeping(writer: Writer, babble: Babble, size: int) -> None:
    """What the program keeps of a request: its prompt, or its shape and the messages in it."""
    if writer.rng.random() < 0.6:
        prompt, tools = babble.texts(size // 3), babble.tools(size * 2 // 3)
        writer.attach("prompt_snapshot", systemPrompt=prompt, tools=tools, contextRendering="inline")
        return
    digest = f"{writer.rng.getrandbits(256):064x}"
    blocks = [{"type": "text", "text": text} for text in babble.texts(size // 6)]
    shape = {"system": [{"type": "text", "text": babble.text(60)}], "tools": babble.tools(size)}
    writer.note(
        "api-request-shape", shapeHash=digest, timestamp=iso(writer.now), version=VERSION, shape=shape
    )
    writer.note("api-request-blob", hash=digest, message={"role": "user", "content": blocks})
    writer.note("api-request", id=writer.uuid(), shapeHash=digest, keep=0, tail=[digest])


def _names(writer: Writer, babble: Babble) -> None:
    rng = writer.rng
    if rng.random() < 0.5:
        writer.ai_title(babble.text(40).strip())
    if rng.random() < 0.2:
        writer.title(babble.text(30).strip())
    if rng.random() < 0.1:
        writer.tag(rng.choice(("later", "bug", "demo")))


def grow(projects: Path, count: int, *, seed: int = 3, per_project: int = 50) -> Iterator[Path]:
    """Write `count` transcripts below `projects`, the first the oldest, and yield each as it is done."""
    rng = random.Random(seed)
    babble = Babble(rng)
    for number in range(count):
        cwd = f"/home/ann/code/project-{rng.randrange(max(1, count // per_project)):04d}"
        writer = Writer(session_id(number), cwd, rng=rng, now=MORNING + number * 60_000)
        data = fill(writer, size_of(rng, number), babble)
        yield save(projects, cwd, writer.session_id, data, mtime_ms=writer.now)


def large(projects: Path, size: int = LARGEST, *, number: int = 0xFFFFFF, seed: int = 5) -> str:
    """Write one transcript of about `size` bytes and return its session's id."""
    rng = random.Random(seed)
    writer = Writer(session_id(number), "/home/ann/code/large", rng=rng)
    save(projects, writer.cwd, writer.session_id, fill(writer, size, Babble(rng)), mtime_ms=writer.now)
    return writer.session_id
