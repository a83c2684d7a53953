"""Notes: small values beside the sessions that are kept for some days. A note does not change a session.

Each kind has a namespace of its own, in which the notes of an owner go by a key. Nobody else reads or writes them.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from hitherto.engine import Elicitation, Reply
from hitherto.limits import LARGEST_NUMBER
from hitherto.model import Appended, ToolCall, Value, decode_json, encode
from hitherto.permissions import Choice
from hitherto.ports import Memo, Reader, Writer
from hitherto.updates import Outcome
from hitherto.values.days import DAY_MS

V = TypeVar("V")
KEPT_MS = 7 * DAY_MS
"""How long a note is kept at least."""
FOR_EVER = LARGEST_NUMBER
"""The time of a note that is never forgotten."""


class Note(NamedTuple, Generic[V]):
    """What was noted, and when. `digest` is that of the request, or of the secret, that the note is about."""

    value: V
    at: int
    digest: bytes = b""


class Notes(Generic[V]):
    """The notes of one kind. Their values are of this shape, and kept as JSON."""

    def __init__(self, namespace: str, shape: Any) -> None:
        self._namespace, self._shape = namespace, shape

    async def get(self, tx: Reader, owner: str, key: str) -> Note[V] | None:
        """The owner's note of this key, however old."""
        memo = await tx.memo(owner, self._namespace, key)
        return None if memo is None else Note(self._decoded(memo.answer), memo.at, memo.digest)

    async def put(self, tx: Writer, owner: str, key: str, note: Note[V]) -> None:
        """Write a note; one of the same key is replaced."""
        memo = Memo(note.digest, self._encoded(note.value), note.at)
        await tx.put_memo(owner, self._namespace, key, memo)

    def _decoded(self, data: bytes) -> V:
        value: V = msgspec.convert(decode_json(data), self._shape)
        return value

    def _encoded(self, value: V) -> bytes:
        return encode(value)


class TextNotes(Notes[str]):
    """Notes whose value is a plain text."""

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace, str)

    def _decoded(self, data: bytes) -> str:
        return data.decode()

    def _encoded(self, value: str) -> bytes:
        return value.encode()


async def forget_old(tx: Writer, now: int) -> int:
    """Forget all notes that need not be kept any longer; returns how many."""
    return await tx.forget_memos(now - KEPT_MS)


CREATED: Notes[str] = Notes("create", str)
"""The session that was made, by idempotency key."""
APPENDED: Notes[Appended] = Notes("append", Appended)
"""What an append has answered, by idempotency key."""
TURNS: Notes[Outcome | None] = Notes("prompt", Outcome | None)
"""How a turn ended, by idempotency key; None while it runs, and if it was interrupted."""


class Run(Value, frozen=True):
    """What became of a prompt that waited in an inbox: the turn that took it in, and how that ended once it has; `code`
    and `message` are those of the error if it failed."""

    fence: int
    outcome: Outcome | None = None
    code: str | None = None
    message: str = ""


RUNS: Notes[Run] = Notes("inbox", Run)
"""What became of prompts that waited, by the id of the prompt."""
QUEUED: Notes[str] = Notes("queued", str)
"""The prompt that waits, or waited, by idempotency key."""


def answers_to(method: str) -> Notes[Any]:
    """The outline of what a method of a server has answered, by idempotency key: see `outlines`."""
    return Notes(method, Any)


class Question(Value, frozen=True):
    """A question about a tool, or of a tool server; the turn that it is part of, and the answer once there is one. `alone`:
    only whoever prompted may answer it."""

    fence: int
    call: ToolCall
    answer: Choice | None = None
    elicitation: Elicitation | None = None
    reply: Reply | None = None
    alone: bool = False


NO_CALL = ToolCall(id="", name="")
QUESTIONS: Notes[Question] = Notes("question", Question)
"""What a turn waits for, by session."""


async def forget_question(tx: Writer, owner: str, session_id: str) -> None:
    """Keep nothing of the call that a session's turn asked about."""
    asked = await QUESTIONS.get(tx, owner, session_id)
    if asked is not None and asked.value != Question(fence=0, call=NO_CALL):
        await QUESTIONS.put(tx, owner, session_id, asked._replace(value=Question(fence=0, call=NO_CALL)))


END_REQUESTS: Notes[int] = Notes("call_off", int)
"""The fencing number of the turn that is to end, by session."""
PRESENCE: Notes[dict[str, int]] = Notes("presence", dict[str, int])
"""Who has a session open, and when each said so, by session."""
DRAFTS: Notes[dict[str, int]] = Notes("drafts", dict[str, int])
"""When an owner's drafts were last opened or left, by session, all in one note."""
MOVED_TO: Notes[str] = Notes("moved", str)
"""Where a folder is now, by where it was."""
SUMMARISING: Notes[str | None] = Notes("summarising", str | None)
"""Who summarises a session, by session; None if they have ended."""
COUNTED_TO = TextNotes("usage")
"""The position in the change feed up to which requests and sessions were counted."""
ENDED: Notes[list[str]] = Notes("ended", list[str])
"""The checkpoints of episodes that have ended and of which no facts are remembered yet, by session."""
FORGOTTEN: Notes[int] = Notes("forgotten", int)
"""When a fact was forgotten, by a digest of the fact."""
OF_SESSIONS = frozenset(
    (
        "inbox",
        "question",
        "call_off",
        "presence",
        "drafts",
        "moved",
        "summarising",
        "requests",
        "ended",
        "forgotten",
    )
)
"""The namespaces of notes about sessions, or about all of an owner's; the others go by idempotency keys."""
SIGN_IN_CODES = TextNotes("page.code")
"""The token that a code is for, by digest of the code."""
USED_CODES = TextNotes("page.used")
"""Which codes were used, by digest of the code."""
PASSES = TextNotes("page.pass")
"""The token that a pass belongs to, by digest of the pass; nothing if it was given back."""
