"""Questions about tools and of tool servers, which any process can answer; the first answer counts.

A question is open while its turn waits for it. It is kept in notes and does not change the session; its status does.
"""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.engine import Elicitation, Reply
from hitherto.model import Principal, ToolCall
from hitherto.permissions import Choice
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Room
from hitherto.service.notes import NO_CALL, QUESTIONS, Note, Question
from hitherto.service.records import active_lease, change_session, require_session, require_writable


class Questions(Room):
    """Questions, and answers from elsewhere."""

    async def ask(
        self, who: Principal, session_id: str, call: ToolCall, *, fence: int, alone: bool = False
    ) -> None:
        """Let everybody see that the turn of this lease waits for an answer about the call; if only whoever prompted may give
        it, `alone`, nobody else is asked."""
        await self._wait_for(who, session_id, Question(fence=fence, call=call, alone=alone))

    async def elicit(self, who: Principal, session_id: str, asked: Elicitation, *, fence: int) -> None:
        """Let everybody see that the turn of this lease waits for what a tool server wants to know."""
        await self._wait_for(who, session_id, Question(fence=fence, call=NO_CALL, elicitation=asked))

    async def pending(self, who: Principal, session_id: str) -> ToolCall | None:
        """The call that the session's running turn waits for an answer about."""
        question = await self._asked(who, session_id)
        if question is None or question.answer is not None or question.elicitation is not None:
            return None
        if question.alone:
            return None
        return question.call

    async def elicitation(self, who: Principal, session_id: str) -> Elicitation | None:
        """What a tool server of the session's running turn wants to know."""
        question = await self._asked(who, session_id)
        return question.elicitation if question is not None and question.reply is None else None

    async def reply(self, who: Principal, session_id: str, elicitation_id: str, reply: Reply) -> bool:
        """Reply to a tool server; False if its question does not stand (any more)."""

        async def work(tx: Writer) -> bool:
            record = await require_session(tx, who, session_id)
            question = await _standing(tx, record)
            if not _is_about(question, elicitation_id) or question is None or question.reply is not None:
                return False
            await _put(tx, record, replace(question, reply=reply), self._now())
            return True

        return await self._store.write(work)

    async def replied(self, who: Principal, session_id: str, elicitation_id: str) -> Reply | None:
        """What was replied to this question of a tool server, if anything was."""
        question = await self._asked(who, session_id)
        return question.reply if question is not None and _is_about(question, elicitation_id) else None

    async def answer(self, who: Principal, session_id: str, call_id: str, choice: Choice) -> bool:
        """Answer the question about this call; False if it does not stand (any more)."""

        async def work(tx: Writer) -> bool:
            record = await require_session(tx, who, session_id)
            question = await _standing(tx, record)
            if question is None or question.call.id != call_id or question.answer is not None:
                return False
            if question.alone:
                return False
            await _put(tx, record, replace(question, answer=choice), self._now())
            return True

        return await self._store.write(work)

    async def answered(self, who: Principal, session_id: str, call_id: str) -> Choice | None:
        """What was answered to the question about this call, if it was."""
        question = await self._asked(who, session_id)
        return question.answer if question is not None and question.call.id == call_id else None

    async def _wait_for(self, who: Principal, session_id: str, question: Question) -> None:
        async def work(tx: Writer) -> None:
            record = await require_session(tx, who, session_id)
            await require_writable(tx, record, question.fence)
            await _put(tx, record, question, self._now())
            await change_session(tx, record, "status", status="waiting")

        await self._store.write(work)

    async def _asked(self, who: Principal, session_id: str) -> Question | None:
        async def work(tx: Reader) -> Question | None:
            return await _standing(tx, await require_session(tx, who, session_id))

        return await self._store.read(work)


async def _put(tx: Writer, record: Record, question: Question, now: int) -> None:
    await QUESTIONS.put(tx, record.owner, record.session.id, Note(question, now))


def _is_about(question: Question | None, elicitation_id: str) -> bool:
    return (
        question is not None
        and question.elicitation is not None
        and question.elicitation.id == elicitation_id
    )


async def _standing(tx: Reader, record: Record) -> Question | None:
    """The question of the turn that runs now, while that waits."""
    asked = await QUESTIONS.get(tx, record.owner, record.session.id)
    held = active_lease(record.lease, await tx.now())
    if asked is None or held is None or record.session.status != "waiting":
        return None
    return asked.value if asked.value.fence == held.fence else None
