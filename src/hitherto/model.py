"""The values of the program: frozen, without I/O and without a clock.

A *session* is metadata and a list of spans over append-only logs; an *entry* is one complete message in such a
log. Times are milliseconds since the epoch. Unknown values are None, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

Role = Literal["user", "assistant", "system", "tool"]
ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")
Status = Literal["idle", "running", "waiting", "failed", "interrupted"]
STATUSES: tuple[Status, ...] = ("idle", "running", "waiting", "failed", "interrupted")
TitleBy = Literal["user", "auto", "source"]
Archived = Literal["exclude", "include", "only"]
View = Literal["context", "conversation"]
QueueMode = Literal["followup", "collect", "steer", "interrupt"]
"""What becomes of a prompt that arrives while a turn runs."""
Json = dict[str, Any]
OWN = "recollect/"
"""Keys of a session's meta that begin so are the program's own: no caller sets them. They are stored, under the first
name: stores of that time open unchanged."""
RESERVED = (OWN, "hitherto/")
"""How keys begin that no caller may set."""
CONTINUED_IN = f"{OWN}continued_in"
"""In a session's meta: the sessions of other agents that continue it, the newest last."""
CONTINUES = f"{OWN}continues"
"""In the meta of such a session: the session that it continues."""
RECORDS = f"{OWN}records"
"""In the meta of a session that was recorded while another agent had it: the ids that sync knows it by, the newest last."""
DRAFT = f"{OWN}draft"
"""Stands in the meta of a session that a client has opened and nobody has said anything in: no list shows it."""
RECORDED_IN = f"{OWN}recorded_in"
"""In the meta of what sync reads of such a one: the recording. While it has nothing else, it is archived."""
FORKED_FROM = "forked_from"
"""Where a source notes the session that one was forked from."""
EPISODE = "episode"
"""In the meta of an entry that is the heading of an episode: why the one before it ended."""
MIRRORED = "claude_sdk"
"""In a session's meta: as which transcript another program mirrors it here. In that of an entry: a record of the mirror, as it
came."""
MIRROR_RECORD = "hitherto/record:"
"""The beginning of the id of an entry that keeps such a record."""
MIRROR_READ = "claude_sdk_read"
"""In a session's meta: up to where its mirror was read, and by which version of the reader."""


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frozen value; fields that have their default are left out of its JSON."""


class Principal(Value, frozen=True):
    """Who is calling. Every call of the service takes one; owners are fully isolated.

    `local`: whoever calls has rights on this machine, so that folders that they name may be opened here.
    """

    owner: str
    local: bool = True


LOCAL = Principal(owner="local")
"""The owner of everything on one person's machine; all doors there share it."""


class Reach(Value, frozen=True):
    """What a token is restricted to: sessions of these agents, channels, session keys and people, and these methods. Keys and
    methods are patterns, in which `*` stands for anything. What is empty restricts nothing."""

    agents: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


class TokenRule(Value, frozen=True):
    """What a token is good for, beside its scopes: until when, and for which part of what its owner has."""

    expires_at: int | None = None
    reach: Reach | None = None


class Token(Value, frozen=True):
    """A right to call on behalf of an owner, for whoever holds its secret, which only the holder knows. `used_at` is when it
    was last used, about."""

    id: str
    owner: str
    scopes: tuple[str, ...]
    created_at: int
    role: str = "owner"
    label: str = ""
    revoked_at: int | None = None
    rule: TokenRule | None = None
    used_at: int | None = None

    @property
    def reach(self) -> Reach | None:
        """What it is restricted to; None if it is not."""
        return None if self.rule is None else self.rule.reach

    @property
    def expires_at(self) -> int | None:
        """Until when it is good."""
        return None if self.rule is None else self.rule.expires_at


class Account(NamedTuple):
    """A person as one channel knows them. The same id on two channels may be two people."""

    channel: str
    id: str


# Parts of an entry


class Text(Value, frozen=True, tag="text"):
    text: str


class Thought(Value, frozen=True, tag="thought"):
    text: str
    signature: str | None = None
    provider: str | None = None


class Image(Value, frozen=True, tag="image"):
    mime_type: str
    data: str | None = None
    uri: str | None = None


class Audio(Value, frozen=True, tag="audio"):
    mime_type: str
    data: str


class Resource(Value, frozen=True, tag="resource"):
    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class ResourceLink(Value, frozen=True, tag="resource_link"):
    uri: str
    name: str | None = None
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None


class ToolCall(Value, frozen=True, tag="tool_call"):
    id: str
    name: str
    input: Any = None
    kind: str | None = None
    title: str | None = None
    locations: tuple[Json, ...] = ()


class ToolResult(Value, frozen=True, tag="tool_result"):
    id: str
    content: tuple[Part, ...] = ()
    is_error: bool = False
    output: Any = None


class Plan(Value, frozen=True, tag="plan"):
    steps: tuple[Json, ...] = ()


class Unknown(Value, frozen=True, tag="unknown"):
    """A part of a kind this program does not know, kept as it came."""

    raw: Any


Part = Text | Thought | Image | Audio | Resource | ResourceLink | ToolCall | ToolResult | Plan | Unknown


class Usage(Value, frozen=True):
    """What one message cost, as far as it is known; `input` includes cached tokens.

    `request` is what the provider calls the request, where that is known: the same in every copy of the message.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost: float | None = None
    request: str | None = None


class Sender(Value, frozen=True):
    """Who wrote a message of a chat: an id that never changes, and the name that others see."""

    id: str
    name: str | None = None


class Origin(Value, frozen=True):
    """Where a message of a chat comes from: who wrote it, in reply to which message, and what its gateway notes about it."""

    sender: Sender | None = None
    reply_to: str | None = None
    metadata: Json = {}


class Entry(Value, frozen=True):
    """One complete message. Its id is unique within its log."""

    id: str
    at: int
    role: Role
    parts: tuple[Part, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    tokens: int | None = None
    meta: Json = {}
    origin: Origin | None = None


class Draft(Value, frozen=True):
    """A message to be appended; the service fills in what is left out."""

    role: Role
    parts: tuple[Part, ...] = ()
    id: str | None = None
    at: int | None = None
    model: str | None = None
    usage: Usage | None = None
    tokens: int | None = None
    meta: Json = {}
    origin: Origin | None = None


class Pending(Value, frozen=True):
    """Messages in a session's inbox: they came while a turn ran, together, and become entries as they are.

    `id` is that of the last. `mode` says by which turn they are answered, None that none has to. `by` is who may run that
    turn: a kind of process, or one process. `choices` and `ask` are what was chosen for it, `key` its idempotency key.
    """

    id: str
    at: int
    entries: tuple[Entry, ...]
    mode: QueueMode | None = None
    by: str = ""
    key: str | None = None
    ask: bool = False
    choices: Json = {}


class Identity(Value, frozen=True):
    """Who speaks in a session of a chat gateway."""

    role: str | None = None
    identity_id: str | None = None
    source_channel: str | None = None


class Address(Value, frozen=True):
    """The address of a session: its key, agent, channel, and who speaks in it."""

    key: str | None = None
    agent_id: str | None = None
    channel: str | None = None
    identity: Identity | None = None


class Session(Value, frozen=True):
    """A session's metadata: all that a list shows, without reading one entry.

    `project` is the repository (or folder) that it belongs to, by a short name: `github.com/ada/engine`. `earlier_cwds`
    are folders that it has been in beside the present one.
    """

    id: str
    revision: int
    created_at: int
    updated_at: int
    cwd: str | None = None
    earlier_cwds: tuple[str, ...] = ()
    additional_directories: tuple[str, ...] = ()
    project: str | None = None
    branch: str | None = None
    title: str | None = None
    title_by: TitleBy | None = None
    earlier_titles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    status: Status = "idle"
    archived: bool = False
    pinned: bool = False
    key: str | None = None
    agent_id: str | None = None
    channel: str | None = None
    identity: Identity | None = None
    message_count: int = 0
    token_count: int | None = None
    error_count: int = 0
    cost: float | None = None
    bytes: int = 0
    last_compaction: int | None = None
    parent: str | None = None
    parent_entry: str | None = None
    source: str | None = None
    read_at: int | None = None
    meta: Json = {}


class Condition(Value, frozen=True):
    """What a field of a query asks for: any of the values or, with `out`, none of them."""

    field: str
    values: tuple[str, ...]
    out: bool = False


class Filter(Value, frozen=True):
    """Which sessions to list; all that is given must hold. Bounds in time include `after` and exclude `before`.
    The status `running` also finds those whose turn waits for an answer (`waiting`). `day` (`2026-11-15`, in UTC) finds
    those in which something was said on that day.

    `native` sessions were not read from another agent: they have no `source`. Without `subagents`, those are left out that a
    call in another session started. `where` is what fields of a query ask of a session: several values, and what it must
    not be.
    """

    cwd: str | None = None
    project: str | None = None
    agent_id: str | None = None
    channel: str | None = None
    source: str | None = None
    native: bool | None = None
    status: Status | None = None
    tags: tuple[str, ...] = ()
    text: str | None = None
    archived: Archived = "exclude"
    pinned: bool | None = None
    created_after: int | None = None
    created_before: int | None = None
    updated_after: int | None = None
    updated_before: int | None = None
    day: str | None = None
    subagents: bool = True
    where: tuple[Condition, ...] = ()


class Page(Value, frozen=True):
    """Sessions, newest activity first, and the cursor of the next page (None: the end)."""

    sessions: tuple[Session, ...]
    cursor: str | None = None


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A stretch of one view of a session, as stored; `entries` decodes it.

    `marks` are the positions in `raw` of compaction summaries standing in the conversation view. `previous` and
    `next` are entry ids to pass as `before` and `after`; None means that the view ends there. `start` is the position
    in the view of the first of them; those before the position `past` have left the context. `branch` is the branch that this
    is a view of, because only it has the entry that was asked for.
    """

    raw: tuple[bytes, ...]
    total: int
    token_count: int | None
    marks: tuple[int, ...] = ()
    previous: str | None = None
    next: str | None = None
    start: int = 0
    past: int = 0
    branch: str | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, decoded at the first use."""
        known: tuple[Entry, ...] | None = self.__dict__.get("_entries")
        if known is None:
            known = self.__dict__["_entries"] = tuple(map(decode_entry, self.raw))
        return known


class Appended(Value, frozen=True):
    """The ids of the entries that were appended, and the session's revision and number of messages after that.

    `place` is their place in the inbox, from 1 on, if they wait there for a running turn.
    """

    entries: tuple[str, ...]
    revision: int
    message_count: int
    place: int | None = None


class Compaction(Value, frozen=True):
    """What a compaction did; `checkpoint` holds what the context was before."""

    checkpoint: str
    summary: str
    messages_before: int
    messages_after: int
    tokens_before: int | None
    tokens_after: int | None


class Shrunk(Value, frozen=True):
    """What came of making a session smaller; if nothing was changed, `reason` says why.

    `estimated` says that not all tokens were counted by a provider. `facts_extracted` counts what was added to the
    memory, `checkpoint` holds what the context was before, `summary` is the entry that stands for it. `fallback` says
    why the built-in summariser did it in place of the one that was asked.
    """

    compacted: bool
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    estimated: bool
    reason: str | None = None
    facts_extracted: int = 0
    checkpoint: str | None = None
    summary: str | None = None
    fallback: str | None = None


class Checkpoint(Value, frozen=True):
    """A span list that the session had once; it can be restored or branched from."""

    id: str
    at: int
    reason: str
    message_count: int = 0
    token_count: int | None = None


class Branch(Value, frozen=True):
    """What was said in a session beside its conversation: rewound, edited, or resumed elsewhere.

    `id` is that of the checkpoint that holds all of it. `message_count` counts what neither the conversation nor an older
    branch has: it begins with the entry `first`, behind `after`, and `text` is the beginning of its first prompt.
    """

    id: str
    at: int
    message_count: int = 0
    text: str = ""
    first: str | None = None
    after: str | None = None


class Episode(Value, frozen=True):
    """A part of a chat, from one reset to the next. The newest is the present one: it has no `checkpoint`, `ended_at` and `reason`.

    `number` counts from 1, the oldest. `checkpoint` holds what was there when it ended, `reason` says why it did. `heading` is
    the entry that it begins with, which the first one does not have; `first` its first message, and `text` the beginning of its first
    prompt.
    """

    number: int
    began_at: int
    message_count: int
    ended_at: int | None = None
    reason: str | None = None
    checkpoint: str | None = None
    heading: str | None = None
    first: str | None = None
    text: str = ""


class Hit(Value, frozen=True):
    """The best hit in one session. `more` counts further hits seen, at most 99: at least so many there are. `branch` is the
    branch that it stands in, if it is not in the conversation."""

    session: Session
    entry: str | None = None
    role: Role | None = None
    at: int | None = None
    snippet: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    more: int = 0
    branch: str | None = None


class Found(Value, frozen=True):
    """How much a search finds in all: messages and titles (`hits`), and the sessions that they are in.

    Up to 1,000 of each are counted exactly; with `more` there is more than that, or may be. A search that asks only for
    sessions has no hits.
    """

    hits: int
    sessions: int
    more: bool = False


class SearchPage(Value, frozen=True):
    """Hits, newest first, and the cursor of the next page (None: the end). `found` is there if it was asked for.

    `unindexed` is how many messages and titles the index lacks because the store cannot be written to: they were not searched.
    `unordered` is how many are still to be put in the order of time after an upgrade: until then, hits come in an earlier order.
    """

    hits: tuple[Hit, ...]
    cursor: str | None = None
    unindexed: int = 0
    found: Found | None = None
    unordered: int = 0


Counts = tuple[tuple[str, int], ...]
"""Names and how many sessions have each."""


class Facets(Value, frozen=True):
    """How many sessions there are: in all (`total`), archived, pinned, and of each agent, project, tag and source, the
    most frequent first, at most 50 of each. All but `archived` leave out archived sessions, unless these are those that a search
    or a filter finds. `more` names those fields of which there are more than were counted.

    An agent is what `agent_of` says.
    """

    total: int = 0
    archived: int = 0
    pinned: int = 0
    agents: Counts = ()
    projects: Counts = ()
    tags: Counts = ()
    sources: Counts = ()
    more: tuple[str, ...] = ()


class DayCount(Value, frozen=True):
    """What was said on a day, and in how many sessions. The cost is None if no message has one."""

    day: str
    sessions: int
    messages: int
    tokens: int
    cost: float | None = None


class Share(Value, frozen=True):
    """What one agent, or one model, has of a day; `name` is None for what is of none that is known."""

    day: str
    name: str | None
    messages: int
    tokens: int
    cost: float | None = None


class ProjectCount(Value, frozen=True):
    """What was said in the sessions of a project, and how many of them there were."""

    project: str
    sessions: int
    messages: int
    tokens: int
    cost: float | None = None


class Overview(Value, frozen=True):
    """Activity between two days, both included.

    `days` and the shares come in order of the day, and days without a message are left out. `projects` come busiest
    first, `longest` are the sessions with the most messages in that time; of both at most ten. A message counts in the
    session in which it was said, not in its forks. `store` says what kind of store it is, in which version, and how large.
    """

    days: tuple[DayCount, ...] = ()
    by_agent: tuple[Share, ...] = ()
    by_model: tuple[Share, ...] = ()
    projects: tuple[ProjectCount, ...] = ()
    longest: tuple[Session, ...] = ()
    store: Json = {}


class Change(Value, frozen=True):
    """The newest change of one session. `revision` is None for a deleted session, and `key` is the key that it had.

    `position` is where a reader has come to who has taken this change and all that were given before it.
    """

    session: str
    kind: str
    position: str
    revision: int | None = None
    key: str | None = None


class Lease(Value, frozen=True):
    """The right to write to a session until `expires_at`; `fence` rises with each new lease."""

    holder: str
    fence: int
    acquired_at: int
    expires_at: int


class LiveTool(Value, frozen=True):
    """A tool that runs, and its output so far."""

    id: str
    content: tuple[Part, ...] = ()


class Live(Value, frozen=True):
    """What a running turn has said so far of the message that will be stored as `entry`: the newest part, and what came
    before it in the same message.

    `starts` are the positions of all of them, the newest last, among the characters of the message: what is too long is not
    here whole. `tools` are those that run, `used` and `size` the tokens of the context and of the model's window.
    """

    entry: str
    parts: tuple[Part, ...] = ()
    earlier: tuple[Part, ...] = ()
    starts: tuple[int, ...] = ()
    tools: tuple[LiveTool, ...] = ()
    used: int | None = None
    size: int | None = None


class Fact(Value, frozen=True):
    """Something worth remembering, drawn from entries of a session.

    It is known to the agent, about the person (`identity_id`) and the folder of that session. `subject` names what it
    is about, if only one thing can be true of that; `invalidated_by` is the newer fact that took its place.
    """

    id: str
    at: int
    text: str
    kind: str = "fact"
    session: str | None = None
    entries: tuple[str, ...] = ()
    agent_id: str | None = None
    identity_id: str | None = None
    cwd: str | None = None
    confidence: float | None = None
    subject: str | None = None
    invalidated_by: str | None = None


def is_subagent(session: Session) -> bool:
    """Whether a call in another session started this one, and another agent wrote it: it belongs to that call."""
    forked = session.meta.get(FORKED_FROM)
    return session.source is not None and session.parent is not None and session.parent != forked


def is_mirror_record(entry: Entry) -> bool:
    """Whether an entry only keeps what another program mirrors here: what that says is read from it, and stands beside it."""
    return entry.id.startswith(MIRROR_RECORD)


def agent_of(session: Session) -> str | None:
    """The agent that a session is shown under: the one whose files it was read from, or the one it is with."""
    return session.source or session.agent_id


# Bytes


_encode = msgspec.json.Encoder().encode
_entry_decoder = msgspec.json.Decoder(Entry)


def encode(value: Any) -> bytes:
    """JSON of any value of this module.

    Real transcripts hold lone surrogates and integers beyond 64 bits, which msgspec refuses: such a value takes the
    standard library's way and comes back the same.
    """
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")


def decode_json(data: bytes) -> Any:
    """The plain value of some JSON, lone surrogates and all."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)


def decode_entry(data: bytes) -> Entry:
    """The entry that `encode` made these bytes from."""
    try:
        return _entry_decoder.decode(data)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), Entry)


# What an entry says


TOOL_INPUT_CHARS = 2_000
TOOL_OUTPUT_CHARS = 64_000
PERSISTED_OUTPUT = "persisted_output"
"""The field of a result's `output` with a text of which the model was only shown the beginning."""


def search_text(entry: Entry) -> str:
    """The text by which the entry is found: what was said and thought, tools' names, the beginning of their data."""
    return "\n".join(piece for part in entry.parts for piece in _part_text(part) if piece)


def plain_text(entry: Entry | Draft) -> str:
    """Only what was said, without thoughts and tools."""
    return "\n".join(part.text for part in entry.parts if isinstance(part, Text))


def is_error(entry: Entry) -> bool:
    """Whether the entry reports a failure: a failed tool, or an error noted by whoever wrote it."""
    failed = any(isinstance(part, ToolResult) and part.is_error for part in entry.parts)
    return failed or bool(entry.meta.get("error"))


def _part_text(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text) | Thought(text=text):
            yield text
        case ToolCall(name=name, title=title, input=given):
            yield name
            yield title or ""
            yield from _strings(given, TOOL_INPUT_CHARS)
        case ToolResult(content=content, output=output):
            for inner in content:
                yield from (piece[:TOOL_OUTPUT_CHARS] for piece in _part_text(inner))
            yield persisted_output(output)
        case Resource(uri=uri, text=text):
            yield uri
            yield text or ""
        case ResourceLink(uri=uri, name=name):
            yield uri
            yield name or ""
        case Plan(steps=steps):
            yield from (str(step.get("content", "")) for step in steps)


def persisted_output(output: Any) -> str:
    """The text of which the model was only shown the beginning; '' if there is none."""
    text = output.get(PERSISTED_OUTPUT) if isinstance(output, dict) else None
    return text if isinstance(text, str) else ""


def _strings(value: Any, budget: int) -> Iterator[str]:
    """The strings inside a JSON value, depth first, until the budget of characters is spent."""
    stack = [value]
    while stack and budget > 0:
        item = stack.pop()
        if isinstance(item, str):
            yield item[:budget]
            budget -= len(item)
        elif isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list | tuple):
            stack.extend(reversed(item))
