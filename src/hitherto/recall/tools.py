"""Lookups for agents: bounded, redacted, and only in the owner's sessions. Independent of any protocol.

Every answer fits a model's context and says how to get more. Secrets are redacted before anything is returned.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from hitherto.edits.edit import lines_of
from hitherto.edits.origins import Repository, SourceLine
from hitherto.errors import EntryNotFound, InvalidInput, SessionNotFound
from hitherto.exports.redaction import Redactor
from hitherto.model import (
    Entry,
    Filter,
    Hit,
    Part,
    Principal,
    Session,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Value,
    decode_entry,
    plain_text,
    search_text,
)
from hitherto.presentation import formats
from hitherto.secrets import BEYOND, CUT, redact, without_half_a_word
from hitherto.service import Sessions
from hitherto.service.memory.facts import EVERYONE
from hitherto.service.search.question import looked_for
from hitherto.service.search.sessions import Order
from hitherto.service.transfer.export import Beside
from hitherto.values import words
from hitherto.values.words import Term

T = TypeVar("T")
HITS, RECENT, FACTS, MESSAGES, PROMPTS = 20, 50, 50, 50, 5
"""The most items in one answer."""
ANSWER_CHARS = 40_000
READ_BYTES = 1_000_000
"""About ten thousand tokens: more of a session comes with the next call."""
MESSAGE_CHARS = 8_000
TOOL_CHARS = 1_000
"""The most of a tool's input or output; the rest is seldom useful."""
_LAST_WORD = re.compile(r"\S*$")


class SessionRow(Value, frozen=True, omit_defaults=True):
    """A session. Times are in ms since 1970; messages are those of the conversation."""

    session_id: str
    title: str | None
    updated_at: int
    messages: int
    link: str
    agent: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()


class FoundMessage(Value, frozen=True, omit_defaults=True):
    """The best message of a session, or the newest; `more` is the number of other matching messages."""

    session_id: str
    title: str | None
    link: str
    message_id: str | None
    role: str | None
    at: int | None
    snippet: str
    more: int = 0


class SearchAnswer(Value, frozen=True):
    """Best match first, or newest. Pass `cursor` to get the next page; null at the end. `found` says how much there is in all, with the
    first page."""

    hits: tuple[FoundMessage, ...]
    cursor: str | None
    found: str | None = None


class RecentAnswer(Value, frozen=True):
    """Newest activity first. Pass `cursor` to get the next page; null at the end."""

    sessions: tuple[SessionRow, ...]
    cursor: str | None


class ReadMessage(Value, frozen=True):
    """A message as text. `cut`: the message is longer."""

    message_id: str
    role: str
    at: int
    text: str
    link: str
    cut: bool = False


class ReadAnswer(Value, frozen=True):
    """Messages in order. Pass `before` or `after` to read on in that direction; null at the ends."""

    session: SessionRow
    messages: tuple[ReadMessage, ...]
    before: str | None
    after: str | None


class RememberedFact(Value, frozen=True):
    """A fact from a session that is still current: since when, about what and whom, and from which message."""

    fact: str
    kind: str
    at: int
    about: str | None
    person: str | None
    message_id: str | None
    session_id: str | None
    link: str | None


class FactsAnswer(Value, frozen=True):
    """Best first."""

    facts: tuple[RememberedFact, ...]


class WroteLine(Value, frozen=True):
    """Lines of a file, from `line` to `last`, with the message that wrote them, the prompt that led to it, and how sure that is."""

    line: int
    last: int
    session_id: str
    message_id: str
    link: str
    confidence: float
    prompt: str | None


class BlameAnswer(Value, frozen=True):
    """In order. Lines that no session is known to have written are left out. `cut`: there is more."""

    lines: tuple[WroteLine, ...]
    cut: bool = False


class MadeBy(Value, frozen=True):
    """A session that made part of a change, its share of the added lines, how sure that is, and the prompts that led there."""

    session_id: str
    link: str
    share: float
    confidence: float
    prompts: tuple[str, ...]


class WhyAnswer(Value, frozen=True):
    """The largest share first; empty if no session is known to have made it."""

    sessions: tuple[MadeBy, ...]


class TouchedBy(Value, frozen=True):
    """A session that changed a file, when it last did, and how many lines it added and removed."""

    session_id: str
    link: str
    at: int
    path: str
    added: int
    removed: int


class TouchedAnswer(Value, frozen=True):
    """The session that changed it last comes first."""

    sessions: tuple[TouchedBy, ...]


async def _here(work: Callable[..., T], *given: object) -> T:
    return work(*given)


class Recall:
    """Lookups for one owner; `page` is the base URL of links. `beside` makes what takes long: leaving out secrets does. `person` is
    as whom the caller is known in sessions of their own."""

    def __init__(
        self, sessions: Sessions, who: Principal, page: str, beside: Beside = _here, person: str = "owner"
    ) -> None:
        self._sessions, self._who, self._page = sessions, who, page.rstrip("/")
        self._beside, self._own = beside, (person,)

    async def search(
        self, query: str, limit: int = 10, cursor: str | None = None, order: Order = "best"
    ) -> SearchAnswer:
        """Messages that answer a question best, or the newest that have all the words."""
        if not query.strip():
            raise InvalidInput("the query is empty: give the words to search for")
        found = await self._sessions.search(
            self._who,
            query,
            cursor=cursor,
            limit=_bounded(limit, HITS),
            order=order,
            count=cursor is None,
        )
        entries = [await self._found(hit) for hit in found.hits]
        snippets = await self._beside(_snippets, entries, looked_for(query, order))
        hits = [
            FoundMessage(
                session_id=hit.session.id,
                title=_title(hit.session.title),
                link=self._link(hit.session.id, hit.entry),
                message_id=hit.entry,
                role=hit.role,
                at=hit.at,
                snippet=(_title(hit.snippet) or "") if hit.entry is None else snippet,
                more=hit.more,
            )
            for hit, snippet in zip(found.hits, snippets, strict=True)
        ]
        total = None if found.found is None else formats.found(found.found)
        return SearchAnswer(hits=tuple(hits), cursor=found.cursor, found=total)

    async def recent(
        self, folder: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> RecentAnswer:
        """Sessions, those of one folder or all."""
        page = await self._sessions.find(
            self._who, Filter(cwd=folder), cursor=cursor, limit=_bounded(limit, RECENT)
        )
        used = await self._sessions.spending.numbers(self._who, [each.id for each in page.sessions])
        rows = [
            self._row(each, used[each.id].messages if each.id in used else each.message_count)
            for each in page.sessions
        ]
        return RecentAnswer(sessions=tuple(rows), cursor=page.cursor)

    async def read(
        self,
        session_id: str,
        around: str | None = None,
        before: str | None = None,
        after: str | None = None,
        limit: int = 20,
    ) -> ReadAnswer:
        """A part of a session: its end, or around, before or after one of its messages."""
        known = await self._sessions.resolve(self._who, session_id)
        session = await self._sessions.get(self._who, known)
        page = await self._sessions.history(
            self._who,
            known,
            view="conversation",
            around=around,
            before=before,
            after=after,
            last=around is None and before is None and after is None,
            limit=_bounded(limit, MESSAGES),
            max_bytes=READ_BYTES,
        )
        from_end = around is None and after is None
        fitting: list[ReadMessage] = await self._beside(_fitting_messages, page.raw, from_end)
        whole = len(fitting) == len(page.raw)
        return ReadAnswer(
            session=self._row(session, page.total),
            messages=tuple(replace(each, link=self._link(known, each.message_id)) for each in fitting),
            before=page.previous if whole or not from_end else fitting[0].message_id,
            after=page.next if whole or from_end else fitting[-1].message_id,
        )

    async def changes(self, file: str | None = None, limit: int = 20) -> TouchedAnswer:
        """Sessions that changed a file, or the files that sessions changed last."""
        edits, most = self._sessions.edits, _bounded(limit, RECENT)
        found = await (
            edits.recent(self._who, limit=most)
            if file is None
            else edits.touched(self._who, file, limit=most)
        )
        return TouchedAnswer(
            sessions=tuple(
                TouchedBy(
                    session_id=each.session,
                    link=self._link(each.session, None),
                    at=each.at,
                    path=_clean(each.path),
                    added=each.added,
                    removed=each.removed,
                )
                for each in found
            )
        )

    async def why(self, diff: str, project: str | None = None) -> WhyAnswer:
        """Sessions that made a change, given as a diff."""
        found = await self._sessions.edits.why(self._who, diff, _repository(project))
        return WhyAnswer(
            sessions=tuple(
                MadeBy(
                    session_id=each.session,
                    link=self._link(each.session, None),
                    share=each.share,
                    confidence=each.confidence,
                    prompts=tuple((_title(prompt) or "")[:TOOL_CHARS] for prompt in each.prompts[:PROMPTS]),
                )
                for each in found[:HITS]
            )
        )

    async def blame(self, path: str, text: str, project: str | None = None) -> BlameAnswer:
        """Messages that wrote the lines of a file, given as its text."""
        lines = [
            SourceLine(path=path, number=number, text=each) for number, each in enumerate(lines_of(text), 1)
        ]
        found = await self._sessions.edits.trace(self._who, lines, _repository(project))
        wrote: list[WroteLine] = []
        for line, origin in zip(lines, found, strict=True):
            last = wrote[-1] if wrote else None
            if origin is None:
                continue
            if last is not None and last.message_id == origin.message and last.last == line.number - 1:
                wrote[-1] = replace(last, last=line.number)
                continue
            wrote.append(
                WroteLine(
                    line=line.number,
                    last=line.number,
                    session_id=origin.session,
                    message_id=origin.message,
                    link=self._link(origin.session, origin.message),
                    confidence=origin.confidence,
                    prompt=(_title(origin.prompt) or "")[:TOOL_CHARS] or None,
                )
            )
        return BlameAnswer(lines=tuple(wrote[:MESSAGES]), cut=len(wrote) > MESSAGES)

    async def facts(self, query: str, limit: int = 10, person: str | None = None) -> FactsAnswer:
        """Facts with these words: those of the caller's own, or of the person that is named; never of several people."""
        people = (None, EVERYONE, *self._own) if person is None else (person,)
        found = await self._sessions.memory.known(
            self._who, people, query.strip() or None, limit=_bounded(limit, FACTS)
        )
        return FactsAnswer(
            facts=tuple(
                RememberedFact(
                    fact=_clean(fact.text),
                    kind=fact.kind,
                    at=fact.at,
                    about=fact.subject,
                    person=fact.identity_id,
                    message_id=fact.entries[-1] if fact.entries else None,
                    session_id=fact.session,
                    link=None if fact.session is None else self._link(fact.session, None),
                )
                for fact in found
            )
        )

    async def _found(self, hit: Hit) -> Entry | None:
        """The message that was found, without text far behind the words."""
        if hit.entry is None:
            return None
        try:
            entry = await self._sessions.entry(self._who, hit.session.id, hit.entry)
        except (SessionNotFound, EntryNotFound):  # gone since it was found
            return None
        return replace(entry, parts=tuple(map(_shorter, entry.parts)))

    def _row(self, session: Session, messages: int) -> SessionRow:
        return SessionRow(
            session_id=session.id,
            title=_title(session.title),
            updated_at=session.updated_at,
            messages=messages,
            link=self._link(session.id, None),
            agent=session.source or session.agent_id,
            folder=session.cwd,
            tags=session.tags,
        )

    def _link(self, session_id: str, entry: str | None) -> str:
        place = f"{self._page}/s/{quote(session_id, safe=':')}"
        return place if entry is None else f"{place}?at={quote(entry, safe='')}"


def _snippets(entries: Sequence[Entry | None], terms: Sequence[Term]) -> list[str]:
    """The text around the words in each. It is redacted first and cut afterwards: half a secret cannot be recognised."""
    return [
        "" if entry is None else words.snippet(search_text(Redactor().entry(entry)), terms)
        for entry in entries
    ]


def _fitting_messages(raw: Sequence[bytes], from_end: bool) -> list[ReadMessage]:
    """The messages that fit into an answer, counted from the requested end; at least one."""
    messages, room = list[ReadMessage](), ANSWER_CHARS
    for each in reversed(raw) if from_end else raw:
        message = _message(decode_entry(each))
        room -= len(message.text)
        if messages and room < 0:
            break
        messages.append(message)
    return messages[::-1] if from_end else messages


def _message(entry: Entry) -> ReadMessage:
    said = "\n".join(filter(None, (_beginning(plain_text(entry), MESSAGE_CHARS + 1), *_tools(entry))))
    return ReadMessage(
        message_id=entry.id,
        role=entry.role,
        at=entry.at,
        text=said[:MESSAGE_CHARS],
        link="",
        cut=len(said) > MESSAGE_CHARS,
    )


def _tools(entry: Entry) -> Iterator[str]:
    """Tool calls and results, in a line or a few each."""
    for part in entry.parts:
        if isinstance(part, ToolCall):
            yield f"[{_clean(part.name)}: {_call_summary(part)}]"
        elif isinstance(part, ToolResult):
            said = plain_text(Entry(id="", at=0, role="tool", parts=part.content))
            yield f"[{'failed' if part.is_error else 'result'}: {_beginning(said, TOOL_CHARS)}]"


def _call_summary(call: ToolCall) -> str:
    """A tool call in short: its title, unless that is cut, else its input."""
    if call.title and not call.title.endswith(CUT):
        return _clean(call.title)
    return "" if call.input is None else _beginning(str(call.input), TOOL_CHARS)


def _beginning(text: str, most: int) -> str:
    """The redacted beginning of a text. More than is returned is searched for secrets, because half a secret cannot be
    recognised."""
    looked_at = text[: most + BEYOND]
    clean = redact(looked_at, Counter())
    if len(looked_at) < len(text) and len(clean) <= most:
        clean = _LAST_WORD.sub("", clean)
    return clean[:most]


def _shorter(part: Part) -> Part:
    """A part for a snippet, without text far behind the words, and without a title that is cut."""
    match part:
        case Text() | Thought():
            return replace(part, text=part.text[: words.MAX_CHARS + BEYOND])
        case ToolResult():
            return replace(part, content=tuple(map(_shorter, part.content)), output=None)
        case ToolCall(title=str(title)) if title.endswith(CUT):
            return replace(part, title=None)
    return part


def _title(text: str | None) -> str | None:
    return None if text is None else without_half_a_word(_clean(text))


def _clean(text: str) -> str:
    return redact(text, Counter())


def _bounded(limit: int, most: int) -> int:
    return max(1, min(limit, most))


def _repository(project: str | None) -> Repository:
    """The repository that a project names: by its remote or its folder."""
    return Repository(names=(project,) if project else ())
