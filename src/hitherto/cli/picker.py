"""Choosing a session on the terminal: type to find it, read it beside the list, and do something with it.

The list is looked up in a thread with a store of its own, so that typing never waits for it; only the newest question is answered.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from hitherto.clean_text import clean, clean_lines
from hitherto.errors import HithertoError
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Filter, Session, plain_text
from hitherto.presentation import formats
from hitherto.projects import checkout_of
from hitherto.service import Sessions
from hitherto.service.catalog.projects import folder_name

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.layout import Layout

Open = Callable[[], AbstractAsyncContextManager[Sessions]]
Action = Literal["resume", "read", "export", "tag"]
SHOWN = 200
FOUND = 50
PREVIEW_MESSAGES = 6
PREVIEW_CHARS = 2_000
WIDE = 110
KEYS = (
    ("type", "find"),
    ("↑ ↓", "move"),
    ("Enter", "resume"),
    ("→ Ctrl-R", "read"),
    ("Tab", "select"),
    ("Ctrl-E", "export"),
    ("Ctrl-T", "tag"),
    ("Ctrl-P", "this project"),
    ("Esc", "leave"),
)
BRIEF = "Enter resume · → read · Tab select · Ctrl-G keys"
_WORD = re.compile(r"\w{2,}\Z")


class Choice(NamedTuple):
    """What was chosen, and of which sessions; and what was typed to find them."""

    action: Action
    sessions: tuple[str, ...]
    query: str = ""


class Question(NamedTuple):
    """What to look up: sessions for what was typed, or a preview."""

    text: str = ""
    project_of: str | None = None
    """Only sessions of the project of this folder."""
    preview: str | None = None


class Answer(NamedTuple):
    """The sessions that were found, with the message that was; or the lines of a preview; or why there are none."""

    question: Question
    sessions: Sequence[Session] = ()
    lines: Sequence[tuple[str, str]] = ()
    failure: str = ""


class Finder:
    """Answers the newest question in a thread of its own; those before it are dropped."""

    def __init__(self, open_store: Open, told: Callable[[Answer], None]) -> None:
        self._open, self._told = open_store, told
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._waiting: dict[bool, Question] = {}
        self._over = False
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    async def opened(self) -> None:
        """Wait until the store is open. Raises why it cannot be opened."""
        await self._opened

    def ask(self, question: Question) -> None:
        """Look this up instead of what still waits of its kind."""
        with self._changed:
            self._waiting[question.preview is not None] = question
            self._changed.notify()

    async def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._over = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        asyncio.run(self._answer_all())

    async def _answer_all(self) -> None:
        try:
            await self._answer_questions()
        except Exception as error:  # noqa: BLE001 - raised where the picker runs
            self._loop.call_soon_threadsafe(self._tell_failure, error)

    def _tell_failure(self, error: Exception) -> None:
        if not self._opened.done():
            self._opened.set_exception(error)

    def _tell_opened(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    async def _answer_questions(self) -> None:
        async with self._open() as sessions:
            self._loop.call_soon_threadsafe(self._tell_opened)
            while (question := self._next()) is not None:
                try:
                    answer = await _answer(sessions, question)
                except HithertoError as error:
                    answer = Answer(question, failure=error.message)
                self._loop.call_soon_threadsafe(self._told, answer)

    def _next(self) -> Question | None:
        with self._changed:
            while not (self._waiting or self._over):
                self._changed.wait()
            return None if self._over else self._waiting.pop(min(self._waiting))


async def _answer(sessions: Sessions, question: Question) -> Answer:
    if question.preview is not None:
        return Answer(question, lines=await _preview(sessions, question.preview))
    given = Filter(subagents=False)
    if question.project_of is not None:
        given = replace(given, project=await _project(sessions, question.project_of))
    if len(question.text.strip()) < 2:
        page = await sessions.find(LOCAL, given, limit=SHOWN)
        typed = question.text.strip().lower()
        return Answer(question, [each for each in page.sessions if typed in (each.title or "").lower()])
    found = await sessions.search(
        LOCAL, _query(question.text), given=replace(given, archived="include"), limit=FOUND, order="best"
    )
    return Answer(question, [hit.session for hit in found.hits])


async def _project(sessions: Sessions, folder: str) -> str:
    """The project of a folder of this machine: that of the last session there or at the top of its repository, else by its name.
    Nothing is stored, unlike when a session is placed."""
    seen = checkout_of(folder)
    for cwd in (folder, *(() if seen is None else (seen.top,))):
        page = await sessions.find(LOCAL, Filter(cwd=cwd, archived="include"), limit=1)
        if page.sessions and (project := page.sessions[0].project) is not None:
            return project
    return await sessions.projects.called(LOCAL, folder_name(folder) if seen is None else seen.project)


def _query(text: str) -> str:
    """The query for what was typed so far: the last word may not be complete."""
    typed = text.strip()
    return f"{typed}*" if _WORD.search(typed) and not text.endswith(" ") else typed


async def _preview(sessions: Sessions, session_id: str) -> list[tuple[str, str]]:
    """The last messages of a session, by role."""
    page = await sessions.history(LOCAL, session_id, last=True, limit=PREVIEW_MESSAGES)
    said = ((entry.role, clean_lines(plain_text(entry)[:PREVIEW_CHARS]).strip()) for entry in page.entries)
    return [(role, text) for role, text in said if text]


class Picker:
    """The screen: what is typed, the list, a preview, the keys."""

    def __init__(self, open_store: Open, folder: str, *, query: str = "", acts: bool = True) -> None:
        self._open, self._folder, self._acts = open_store, folder, acts
        self._here = self._help = False
        self._sessions: Sequence[Session] = ()
        self._lines: Sequence[tuple[str, str]] = ()
        self._failure = ""
        self._place = 0
        self._selected: dict[str, None] = {}
        self._begin = query

    async def choose(self) -> Choice | None:
        """What the user chooses; None if they leave."""
        from prompt_toolkit.application import Application
        from prompt_toolkit.buffer import Buffer
        from prompt_toolkit.document import Document

        self._buffer = Buffer(
            document=Document(self._begin), multiline=False, on_text_changed=lambda _: self._look_up()
        )
        self._app: Application[Choice | None] = Application(
            layout=self._layout(), key_bindings=self._keys(), full_screen=True, mouse_support=False
        )
        self._finder = Finder(self._open, self._show)
        try:
            self._look_up()
            await self._finder.opened()
            return await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            await self._finder.close()

    def _look_up(self) -> None:
        self._finder.ask(Question(self._buffer.text, self._folder if self._here else None))

    def _show(self, answer: Answer) -> None:
        if answer.question.preview is not None:
            if self._current is not None and answer.question.preview == self._current.id:
                self._lines = answer.lines
        else:
            self._failure = answer.failure
            if not answer.failure:
                self._sessions, self._place = answer.sessions, 0
                self._moved()
        self._app.invalidate()

    @property
    def _current(self) -> Session | None:
        return self._sessions[self._place] if self._sessions else None

    def _move(self, by: int) -> None:
        self._place = max(0, min(len(self._sessions) - 1, self._place + by))
        self._moved()

    def _moved(self) -> None:
        self._lines = ()
        if self._current is not None:
            self._finder.ask(Question(preview=self._current.id))

    def _choose(self, action: Action) -> None:
        chosen = tuple(self._selected) or (() if self._current is None else (self._current.id,))
        if action in ("resume", "read"):
            chosen = () if self._current is None else (self._current.id,)
        if chosen and not self._app.is_done:
            self._app.exit(result=Choice(action, chosen, self._buffer.text))

    def _select(self) -> None:
        if self._current is not None:
            if self._current.id in self._selected:
                del self._selected[self._current.id]
            else:
                self._selected[self._current.id] = None
            self._move(1)

    def _keys(self) -> KeyBindings:
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()
        at_end = Condition(lambda: self._buffer.document.is_cursor_at_the_end)

        def on(*names: str, do: Callable[[], object], when: Condition | None = None) -> None:
            def handle(_: KeyPressEvent) -> None:
                do()

            for name in names:
                keys.add(name, filter=True if when is None else when)(handle)

        on("up", do=lambda: self._move(-1))
        on("down", do=lambda: self._move(1))
        on("pageup", do=lambda: self._move(-10))
        on("pagedown", do=lambda: self._move(10))
        on("enter", do=lambda: self._choose("resume"))
        on("escape", "c-c", "c-d", do=self._leave)
        on("c-g", do=lambda: setattr(self, "_help", not self._help))
        on("c-p", do=self._limit)
        if self._acts:
            on("right", do=lambda: self._choose("read"), when=at_end)
            on("c-r", do=lambda: self._choose("read"))
            on("c-e", do=lambda: self._choose("export"))
            on("c-t", do=lambda: self._choose("tag"))
            on("tab", do=self._select)
        return keys

    def _leave(self) -> None:
        if not self._app.is_done:
            self._app.exit(result=None)

    def _limit(self) -> None:
        self._here = not self._here
        self._look_up()

    # What is drawn

    def _layout(self) -> Layout:
        from prompt_toolkit.layout import HSplit, Layout, VSplit, Window
        from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
        from prompt_toolkit.layout.processors import BeforeInput

        typed = Window(BufferControl(self._buffer, input_processors=[BeforeInput("> ")]), height=1)
        found = Window(
            FormattedTextControl(self._rows, get_cursor_position=self._cursor), always_hide_cursor=True
        )
        preview = Window(FormattedTextControl(self._preview), wrap_lines=True)
        foot = Window(FormattedTextControl(self._foot), height=1)
        middle: HSplit | VSplit
        if self._width() >= WIDE:
            middle = VSplit([found, Window(width=1, char="│", style="class:line"), preview])
        else:
            middle = HSplit([found, Window(height=1, char="─", style="class:line"), preview])
        return Layout(HSplit([typed, middle, foot]), focused_element=typed)

    def _width(self) -> int:
        return shutil.get_terminal_size().columns

    def _cursor(self) -> Any:
        from prompt_toolkit.data_structures import Point

        return Point(0, self._place)

    def _rows(self) -> StyleAndTextTuples:
        now, wide = now_ms(), self._width()
        room = (wide - 1) // 2 if wide >= WIDE else wide
        rows: StyleAndTextTuples = []
        for place, each in enumerate(self._sessions):
            mark = "✓" if each.id in self._selected else " "
            agent = clean(each.source or each.agent_id or "hitherto")[:8]
            about = f"{mark} {formats.brief_age(each.updated_at, now):>4} {agent:<8} "
            project = clean(formats.project(each))[:12]
            line = f"{about}{project:<12} {clean(formats.title(each))}"
            rows.append(("reverse" if place == self._place else "", f"{_cut(line, room)}\n"))
        return rows or [("class:dim", self._failure or "No session matches.\n")]

    def _preview(self) -> StyleAndTextTuples:
        if self._help:
            return [("", f"{keys:>10}  {what}\n") for keys, what in KEYS]
        drawn: StyleAndTextTuples = []
        for role, text in self._lines:
            drawn += [("bold", f"{role}\n"), ("", f"{text}\n\n")]
        return drawn

    def _foot(self) -> StyleAndTextTuples:
        here = " · this project" if self._here else ""
        selected = f" · {len(self._selected)} selected" if self._selected else ""
        return [("class:dim", self._failure or f"{len(self._sessions)}{here}{selected} · {BRIEF}")]


def _cut(line: str, room: int) -> str:
    """The line filled or cut to so many columns, whatever is in it."""
    from prompt_toolkit.utils import get_cwidth

    used = 0
    for place, char in enumerate(line):
        used += get_cwidth(char)
        if used > room - 1:
            return f"{line[:place]}…"
    return line + " " * (room - used)
