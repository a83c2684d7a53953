"""The engine port: what runs a turn. The docstrings are the contract.

An engine answers a prompt. It is given the session's context and says, event by event, what happens; the service
stores each event that has to be stored before it asks for the next one, shows the rest to whoever watches, and decides
what a tool may do. So an engine never touches the store, and any engine gets all doors of Hitherto.

    @answering
    async def echo(turn: Turn) -> AsyncIterator[Event]:
        yield Delta(text="You said: ")
        yield Message(parts=(Text(text="You said: " + plain_text(turn.history[-1])),))

Cancelling a turn cancels the task that runs it: whatever the engine awaits ends with `CancelledError`, and the engine
ends what it has started. What was said until then is kept by the service, from the deltas it has seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Literal, Protocol, runtime_checkable

import msgspec

from hitherto.model import Entry, Fact, Json, Part, Session, ToolCall, ToolResult, Usage, Value
from hitherto.permissions import Mode, Verdict
from hitherto.summariser import Summariser
from hitherto.values.mcp_servers import HttpServer as HttpServer
from hitherto.values.mcp_servers import McpServer as McpServer
from hitherto.values.mcp_servers import SseServer as SseServer
from hitherto.values.mcp_servers import StdioServer as StdioServer

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
STOP_REASONS: tuple[StopReason, ...] = (
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled",
)  # fmt: skip


# What happens in a turn


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """Some more of the text, or of the thought, that is being said. Shown at once, stored with its `Message`."""

    text: str
    thought: bool = False


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A complete message of the assistant: all of its text, thoughts and tool calls. Stored before the next event
    is asked for, so a tool that the engine runs after yielding it is on record before it runs."""

    parts: tuple[Part, ...]
    model: str | None = None
    usage: Usage | None = None
    meta: Json = msgspec.field(default_factory=dict)


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A tool is running, and this is all of its output so far. Shown, not stored. The service shows one without content when
    a tool has been permitted."""

    id: str
    content: tuple[Part, ...] = ()
    meta: Json = msgspec.field(default_factory=dict)


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A tool has ended. Stored as an entry of its own; `extra` parts (such as a plan) stand beside the result."""

    result: ToolResult
    extra: tuple[Part, ...] = ()
    meta: Json = msgspec.field(default_factory=dict)


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """The user has said something while the turn ran, to the engine itself. Stored as an entry of the user."""

    parts: tuple[Part, ...]
    meta: Json = msgspec.field(default_factory=dict)


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """How full the model's window is, in tokens."""

    used: int
    size: int | None = None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something the user should know, such as that a request is tried again. Not stored."""

    text: str
    severity: Literal["info", "warning", "error"] = "info"


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """The end, and why; the last event. A turn whose events just end has ended with `end_turn`."""

    reason: StopReason


Event = Delta | Message | ToolProgress | ToolEnded | Heard | Context | Notice | Stopped


# What an engine is given


running_call: ContextVar[ToolCall | None] = ContextVar("running_call", default=None)
"""The call that the task of a tool runs, as it is stored: set when `Turn.permit` has allowed it."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A command that has ended: what it printed (its tail, if that was cut), and how it ended."""

    output: str
    exit_code: int | None = None
    signal: str | None = None
    cut: bool = False
    timed_out: bool = False


class Host(Protocol):
    """Where tools act: the machine itself, or an editor that knows unsaved files and shows terminals.

    Paths are absolute and have been checked against the roots already; a host on this machine checks again while
    opening, so that nothing swapped in between leads outside.
    """

    async def read_text(self, path: str) -> str:
        """The text of a file. Raises `OSError`, `ValueError` if it is no text."""

    async def write_text(self, path: str, text: str) -> None:
        """Replace or make a file."""

    async def run(
        self, command: str, cwd: str, *, seconds: float, output_bytes: int, show: Callable[[str], None]
    ) -> Finished:
        """Run a shell command to its end, showing all output so far now and then. When cancelled or timed out, the
        whole process group is ended before this returns."""


class Elicitation(Value, frozen=True):
    """What a tool server wants to know of the user while a tool of it runs: a few fields, as `schema` says, or a page to visit
    at `url`. `call` is the tool call that it is part of, as it is stored; empty if that is not known."""

    id: str
    server: str
    message: str
    schema: Json | None = None
    url: str | None = None
    call: str = ""


class Reply(Value, frozen=True):
    """What the user says to that: `content` has the fields, if they were filled in."""

    action: Literal["accept", "decline", "cancel"]
    content: Json | None = None


Elicit = Callable[[Elicitation], Awaitable[Reply]]


@runtime_checkable
class ClientHost(Host, Protocol):
    """A host on the machine of a client, who may not be on this one: it does no more than the client offers."""

    @property
    def reads_files(self) -> bool:
        """Whether it reads files."""

    @property
    def writes_files(self) -> bool:
        """Whether it writes files."""

    @property
    def runs_commands(self) -> bool:
        """Whether it runs commands."""

    def approves(self, call: ToolCall) -> bool:
        """Whether nobody but this client may permit the call, because it acts on the client's own machine."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """A session as an engine opens it. `roots` bound what tools may touch; the first is the working directory.

    `local` callers are people on this machine: they may have programs started, and reach their own network. The roots of
    others are on their own machine, where only a `ClientHost` acts. `report` gets a notice of something that failed while the
    rest continues. `elicits` has the ways in which tool servers may ask the user something: `form`, `url`.
    """

    session_id: str
    roots: tuple[str, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    local: bool = True
    host: Host | None = None
    elicits: frozenset[str] = frozenset()
    report: Callable[[Notice], None] = lambda _: None


class Choices(Value, frozen=True):
    """What a caller chooses for a turn; None leaves it to the engine."""

    model: str | None = None
    mode: Mode = "default"
    thinking: str | None = None
    max_requests: int | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    trace: Json = msgspec.field(default_factory=dict)


async def _nothing_said() -> tuple[Entry, ...]:
    return ()


async def nobody_asked(_: Elicitation) -> Reply:
    """The reply where there is nobody to ask."""
    return Reply(action="cancel")


class Notebook(Protocol):
    """The memory of whoever speaks in the session, as far as the session's agent knows it: nobody else's."""

    async def search(self, query: str, limit: int) -> list[Fact]:
        """Facts with words of the query, best first; without a query the newest."""

    async def add(self, text: str, about: str | None = None) -> Fact:
        """Remember something; it takes the place of what was known about the same."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt to be answered.

    `history` is the session's context; its last entry is the prompt, and no tool call in it is without a result at
    its end. `permit` says whether a tool call may run, asking whoever is there if need be; an engine that has tools
    awaits it before each. `steered` gives what was said to the running turn meanwhile, as entries that follow all that the
    engine has reported; an engine asks for it between its steps, when no tool runs. What it does not ask for waits for the
    turn's end. `elicit` asks the user what a tool server wants to know. `remembered` are facts from before that bear on the
    prompt: data, never instructions. `notebook` is where more is; None if nothing is to be remembered.
    """

    session: Session
    history: tuple[Entry, ...]
    choices: Choices
    permit: Callable[[ToolCall], Awaitable[Verdict]]
    steered: Callable[[], Awaitable[tuple[Entry, ...]]] = _nothing_said
    elicit: Elicit = nobody_asked
    remembered: tuple[Fact, ...] = ()
    notebook: Notebook | None = None


class Conversation(Protocol):
    """A session that an engine has open."""

    def run(self, turn: Turn) -> AsyncIterator[Event]:
        """Answer a prompt. Raises an `EngineError` if it cannot continue."""

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:
        """A short title for this beginning of a conversation; None if the engine has none to offer."""

    async def window(self, choices: Choices) -> int | None:
        """How many tokens the model can see; None if that is not known. Asked before anything of a prompt is stored:
        raises `ModelMissing` if there is nothing that could answer it."""


@runtime_checkable
class Summarises(Protocol):
    """What a conversation may offer besides: to make its context smaller in its own way."""

    def summariser(self, choices: Choices) -> Summariser | None:
        """What summarises, for as long as the conversation is open; None leaves it to the built-in summariser. Nothing
        is begun by asking."""


@runtime_checkable
class StartsServers(Protocol):
    """What a conversation may offer besides: to say when its tool servers can be used."""

    async def started(self) -> None:
        """Returns when each server is ready, has failed, or has run out of time."""


class ServerPrompt(Value, frozen=True):
    """A prompt that a tool server offers, under a name that no other has; `arguments` by name, in order, and whether each is
    required."""

    name: str
    description: str
    arguments: tuple[tuple[str, bool], ...] = ()


@runtime_checkable
class OffersPrompts(Protocol):
    """What a conversation may offer besides: the prompts of its tool servers."""

    async def prompts(self) -> tuple[ServerPrompt, ...]:
        """All of them, once each server is ready, has failed, or has run out of time."""

    async def expand(self, name: str, arguments: dict[str, str]) -> tuple[Part, ...]:
        """What a prompt says. Raises `InvalidInput` if there is none of this name, or the server refuses."""


@runtime_checkable
class WarmsUp(Protocol):
    """What an engine may offer besides: to get ready before the first prompt."""

    def warm_up(self) -> None:
        """Do what the first turn would wait for. It may take seconds: call it in a thread. Nothing fails because of it."""


class Engine(Protocol):
    """Something that answers prompts."""

    def open(self, setup: Setup) -> AbstractAsyncContextManager[Conversation]:
        """Get ready for a session: whatever it needs running (tool servers, an agent) is started, and ended with the
        block. Entering does not wait for what is slow to start, and does not fail because a part of it does."""


Answer = Callable[[Turn], AsyncIterator[Event]]


class _Answering:
    """The engine, and each of its conversations, that a plain function makes."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:  # noqa: ARG002 - it needs nothing of it
        yield self

    def run(self, turn: Turn) -> AsyncIterator[Event]:
        return self._answer(turn)

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
        return None

    async def window(self, choices: Choices) -> int | None:  # noqa: ARG002
        return None


def answering(answer: Answer) -> Engine:
    """An engine out of a function from a turn to its events, for those that need nothing opened."""
    return _Answering(answer)


def summariser_of(conversation: Conversation, choices: Choices) -> Summariser | None:
    """What the conversation offers for making its context smaller, if it does."""
    return conversation.summariser(choices) if isinstance(conversation, Summarises) else None
