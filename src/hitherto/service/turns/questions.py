"""Questions about tools, which any process can answer; the first answer counts.

A question is open while its turn waits for it. It is kept in notes and does not change the session; its status does.
"""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.model import Principal, ToolCall
from hitherto.permissions import Choice
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Room
from hitherto.service.notes import QUESTIONS, Note, Question
from hitherto.service.records import active_lease, change_session, require_session, require_writable


class Questions(Room):
    """Questions, and answers from elsewhere."""

    async def ask(self, who: Principal, session_id: str, call: ToolCall, *, fence: int) -> None:
        """Let everybody see that the turn of this lease waits for an answer about the call."""

        async def work(tx: Writer) -> None:
            record = await require_session(tx, who, session_id)
            await require_writable(tx, record, fence)
            await _put(tx, record, Question(fence=fence, call=call), self._now())
            await change_session(tx, record, "status", status="waiting")

        await self._store.write(work)

    async def pending(self, who: Principal, session_id: str) -> ToolCall | None:
        """The call that the session's running turn waits for an answer about."""
        question = await self._asked(who, session_id)
        return question.call if question is not None and question.answer is None else None

    async def answer(self, who: Principal, session_id: str, call_id: str, choice: Choice) -> bool:
        """Answer the question about this call; False if it does not stand (any more)."""

        async def work(tx: Writer) -> bool:
            record = await require_session(tx, who, session_id)
            question = await _standing(tx, record)
            if question is None or question.call.id != call_id or question.answer is not None:
                return False
            await _put(tx, record, replace(question, answer=choice), self._now())
            return True

        return await self._store.write(work)

    async def answered(self, who: Principal, session_id: str, call_id: str) -> Choice | None:
        """What was answered to the question about this call, if it was."""
        question = await self._asked(who, session_id)
        return question.answer if question is not None and question.call.id == call_id else None

    async def _asked(self, who: Principal, session_id: str) -> Question | None:
        async def work(tx: Reader) -> Question | None:
            return await _standing(tx, await require_session(tx, who, session_id))

        return await self._store.read(work)


async def _put(tx: Writer, record: Record, question: Question, now: int) -> None:
    await QUESTIONS.put(tx, record.owner, record.session.id, Note(question, now))


async def _standing(tx: Reader, record: Record) -> Question | None:
    """The question of the turn that runs now, while that waits."""
    asked = await QUESTIONS.get(tx, record.owner, record.session.id)
    held = active_lease(record.lease, await tx.now())
    if asked is None or held is None or record.session.status != "waiting":
        return None
    return asked.value if asked.value.fence == held.fence else None
