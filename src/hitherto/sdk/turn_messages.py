"""The account of one turn: what happens in it as messages, and at its end the result."""

from __future__ import annotations

from collections.abc import Callable

from hitherto.engine import Notice
from hitherto.errors import EngineError
from hitherto.model import Compaction, Entry, Json, Usage, plain_text
from hitherto.sdk.blocks import blocks, usage_of
from hitherto.sdk.messages import (
    SDKAssistantMessage,
    SDKCompactBoundaryMessage,
    SDKMessage,
    SDKNoticeMessage,
    SDKPartialAssistantMessage,
    SDKResultMessage,
    SDKUserMessage,
    Subtype,
)
from hitherto.service.turns.context import sum_usage
from hitherto.updates import Compacted, Outcome, Said, Stored, Update

SUCCESS: tuple[Subtype, str | None] = ("success", None)
UNFINISHED: dict[str, tuple[Subtype, str | None]] = {
    "max_turn_requests": ("error_max_turns", "the turn needed more requests than max_turns allows"),
    "cancelled": ("error_during_execution", "the turn was interrupted"),
}
"""Stop reasons that are no success → the result's subtype, and what it says."""


class TurnReport:
    """Makes messages of the updates of a turn, in order; `clock` gives seconds that only go forward."""

    def __init__(self, session_id: str, clock: Callable[[], float], *, partial: bool) -> None:
        self._session_id, self._clock, self._partial = session_id, clock, partial
        self._began = clock()
        self._text = ""
        self._usages: list[Usage] = []
        self._notices: list[str] = []
        self._block: tuple[str, bool] | None = None
        self._index = 0

    def message_for(self, update: Update) -> SDKMessage | None:
        """The message for an update; None if there is none for it."""
        match update:
            case Stored(entry=entry):
                return self._stored(entry)
            case Said() if self._partial:
                return self._delta(update)
            case Notice():
                return self._notice(update)
            case Compacted(compaction=done):
                return self._compacted(done)
        return None

    def result(self, outcome: Outcome) -> SDKResultMessage:
        """The result of a turn that ended."""
        subtype, wrong = UNFINISHED.get(outcome.stop_reason, SUCCESS)
        return SDKResultMessage(
            session_id=self._session_id,
            subtype=subtype,
            is_error=wrong is not None,
            result=self._text or outcome.text,
            stop_reason=outcome.stop_reason,
            usage=usage_of(outcome.usage),
            total_cost_usd=None if outcome.usage is None else outcome.usage.cost,
            num_turns=outcome.requests,
            duration_ms=self._duration(),
            errors=() if wrong is None else (wrong,),
            notices=tuple(self._notices),
        )

    def failure(self, error: EngineError) -> SDKResultMessage:
        """The result of a turn that failed."""
        used = sum_usage(self._usages)
        return SDKResultMessage(
            session_id=self._session_id,
            subtype="error_during_execution",
            is_error=True,
            result=error.message,
            stop_reason=None,
            usage=usage_of(used),
            total_cost_usd=None if used is None else used.cost,
            num_turns=len(self._usages),
            duration_ms=self._duration(),
            errors=(error.message,),
            error_code=error.code,
            notices=tuple(self._notices),
        )

    def _stored(self, entry: Entry) -> SDKMessage | None:
        if entry.role == "tool":
            message: Json = {"role": "user", "content": blocks(entry.parts)}
            return SDKUserMessage(session_id=self._session_id, uuid=entry.id, message=message)
        if entry.role != "assistant":
            return None
        self._text = plain_text(entry)
        self._usages.append(entry.usage or Usage())
        message = {
            "id": entry.id,
            "role": "assistant",
            "model": entry.model,
            "content": blocks(entry.parts),
            "usage": usage_of(entry.usage),
        }
        return SDKAssistantMessage(session_id=self._session_id, uuid=entry.id, message=message)

    def _delta(self, said: Said) -> SDKMessage:
        """Text and thought are blocks of their own, counted anew in each message."""
        block = (said.entry, said.thought)
        if self._block is not None and self._block != block:
            self._index = self._index + 1 if self._block[0] == said.entry else 0
        self._block = block
        kind = "thinking" if said.thought else "text"
        event: Json = {
            "type": "content_block_delta",
            "index": self._index,
            "delta": {"type": f"{kind}_delta", kind: said.text},
        }
        return SDKPartialAssistantMessage(session_id=self._session_id, uuid=said.entry, event=event)

    def _notice(self, notice: Notice) -> SDKMessage:
        if notice.severity != "info":
            self._notices.append(notice.text)
        return SDKNoticeMessage(session_id=self._session_id, text=notice.text, severity=notice.severity)

    def _compacted(self, done: Compaction) -> SDKMessage:
        metadata: Json = {
            "trigger": "auto",
            "pre_tokens": done.tokens_before,
            "post_tokens": done.tokens_after,
        }
        return SDKCompactBoundaryMessage(session_id=self._session_id, compact_metadata=metadata)

    def _duration(self) -> int:
        return round((self._clock() - self._began) * 1000)
