"""Random histories in which every message has a word that nothing else has, and all that is made of what is said."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from hitherto.errors import HithertoError
from hitherto.model import LOCAL, Draft, Entry, Fact, Filter, Text, Thought, ToolCall, ToolResult
from hitherto.ports import RawCopy
from hitherto.service import Imported, Sessions
from hitherto.service.compaction.imported import Summarised
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync, clear_ledger, find_all
from hitherto.values.scopes import SCOPES
from tests.gateway.methods.asker import Asker, token
from tests.gateway.methods.store_requests import exact
from tests.support.conversations import exported, listed, say, told

WORD = re.compile("planted[0-9]{4}x")
BYSTANDER = "bystander"
"""A session that nothing is planted in, and that stays."""
Request = Callable[[Sessions], Awaitable[Any]]


class Taken(NamedTuple):
    """What another agent's session said, as a source gives it."""

    imported: Imported
    entries: tuple[Entry, ...]
    compactions: tuple[Summarised, ...]
    raw: tuple[RawCopy, ...]


def asker(sessions: Sessions) -> Asker:
    """A caller of the gateway, for the owner of everything here."""
    return Asker(sessions, LOCAL.owner).with_(token=token(LOCAL.owner, SCOPES))


class Planted:
    """A history that grows at random. `places` has the session and the entry of each word that was said; `requests` are
    those with an idempotency key, to be repeated; `taken` and the files in `folder` are what can be read again."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng, self.folder = rng, folder
        self.places: dict[str, tuple[str, str]] = {}
        self.requests: list[Request] = []
        self.taken: dict[str, Taken] = {}
        self.own: list[str] = []
        self._count = 0

    async def grow(self, sessions: Sessions, steps: int) -> None:
        """Do so many things."""
        bystander = await sessions.create(LOCAL, session_id=BYSTANDER)
        await sessions.append(LOCAL, bystander.id, say("Somebody who stands by"))
        await sessions.memory.add(
            LOCAL, [Fact(id="by", at=1, text="Somebody stands by", session=bystander.id)]
        )
        await sessions.transfer.keep_raw(LOCAL, bystander.id, "by", b"Somebody stands by")
        await self._begin(sessions)
        await self._say(sessions)
        for _ in range(steps):
            step = self.rng.choices(list(self._steps), list(self._steps.values()))[0]
            try:
                await step(self, sessions)
            except HithertoError as error:  # such as nothing to compact
                if error.code not in ("invalid_input", "entry_not_found", "read_only"):
                    raise

    def word(self) -> str:
        """One that nothing else has."""
        self._count += 1
        return f"planted{self._count:04d}x"

    async def _begin(self, sessions: Sessions) -> None:
        name = f"s-{self.rng.getrandbits(64):x}"

        async def begin(sessions: Sessions) -> Any:
            return await sessions.create(LOCAL, session_id=name, idempotency_key=name)

        await begin(sessions)
        self.requests.append(begin)
        self.own.append(name)

    async def _say(self, sessions: Sessions) -> None:
        """One message, through any door, which may ask again."""
        word, current, key = self.word(), self.rng.choice(self.own), f"k-{self._count}"
        text = f"The word is {word}. " + "and so on " * self.rng.randrange(80)
        draft = self._draft(word, text)
        through = self.rng.choice(["sdk", "session.append", "store.append"])

        async def request(sessions: Sessions) -> Any:
            if through == "session.append":
                messages = [{"role": "user", "content": text}]
                return await asker(sessions).ask(
                    through, session_key=current, messages=messages, idempotency_key=key
                )
            if through == "store.append":
                return await asker(sessions).ask(
                    through, session_key=current, drafts=exact(draft), idempotency_key=key
                )
            return await sessions.append(LOCAL, current, draft, idempotency_key=key)

        await request(sessions)
        self.requests.append(request)
        newest = await sessions.history(LOCAL, current, view="conversation", limit=10_000)
        (entry,) = [each for each in newest.entries if word in str(each)]
        self.places[word] = (current, entry.id)

    def _draft(self, word: str, text: str) -> Draft:
        call = ToolCall(id=f"c-{word}", name="bash", input={"command": text})
        result = ToolResult(id=f"c-{word}", content=(Text(text=text),))
        return self.rng.choice(
            [
                say(text),
                say(text),
                say(text, "assistant", model="a:model"),
                Draft(role="assistant", parts=(Thought(text=text), Text(text="Hm."))),
                Draft(role="assistant", parts=(call,)),
                Draft(role="tool", parts=(result,)),
            ]
        )

    def _said(self) -> tuple[str, str, str]:
        """A word that was said here, its session and its entry."""
        word = self.rng.choice([word for word, place in self.places.items() if place[0] in self.own])
        return word, *self.places[word]

    async def _fact(self, sessions: Sessions) -> None:
        word, session, entry = self._said()
        fact = Fact(
            id=f"f-{word}", at=1, text=f"They said {word}", subject=word, session=session, entries=(entry,)
        )
        await sessions.memory.add(LOCAL, [fact])

    async def _raw(self, sessions: Sessions) -> None:
        word, session, _ = self._said()
        await sessions.transfer.keep_raw(LOCAL, session, word, f"raw {word}".encode())

    async def _title(self, sessions: Sessions) -> None:
        word, session, _ = self._said()
        await sessions.turns.retitle(LOCAL, session, f"About {word}")

    async def _fork(self, sessions: Sessions) -> None:
        source = self.rng.choice([*self.own, *self.taken])
        at = self.rng.choice([None, *(entry for session, entry in self.places.values() if session == source)])
        fork = await sessions.fork(LOCAL, source, at=at, before=bool(at) and self.rng.random() < 0.3)
        self.own.append(fork.id)

    async def _compact(self, sessions: Sessions) -> None:
        """A summary that quotes all that its writer saw."""
        current = self.rng.choice(self.own)
        seen = WORD.findall(" ".join(await told(sessions, LOCAL, current)))
        summary = say("Summary: " + " ".join(seen), "system")
        await sessions.compact(LOCAL, current, summary, keep=self.rng.randrange(4))

    async def _rewind(self, sessions: Sessions) -> None:
        _, session, entry = self._said()
        await sessions.rewind(LOCAL, session, entry)

    async def _restore(self, sessions: Sessions) -> None:
        current = self.rng.choice(self.own)
        known = await sessions.checkpoints(LOCAL, current)
        if known:
            await sessions.restore(LOCAL, current, self.rng.choice(known).id)

    async def _take(self, sessions: Sessions) -> None:
        """Another agent's session, anew or grown; its records have ids, or only numbers."""
        name = f"codex:{self.rng.randrange(3)}"
        before = self.taken.get(name)
        entries = list(before.entries if before else ())
        numbered = name.endswith("0")
        for _ in range(self.rng.randrange(1, 4)):
            word, number = self.word(), len(entries)
            entry_id = f"line-{number}" if numbered else f"r{number}"
            text = f"It said {word}"
            entries.append(Entry(id=entry_id, at=number, role="user", parts=(Text(text=text),)))
            self.places[word] = (name, entry_id)
        compactions = before.compactions if before else ()
        if self.rng.random() < 0.3 and not numbered:
            quoted = " ".join(WORD.findall(str(entries)))
            summary = Entry(
                id=f"r{len(entries)}", at=9, role="system", parts=(Text(text=f"In short: {quoted}"),)
            )
            compactions = (*compactions, Summarised(summary=summary.id))
            entries.append(summary)
        title = self.rng.choice([f"On {word}", None])
        imported = Imported(id=name, source="codex", created_at=1, updated_at=len(entries), title=title)
        raw = (RawCopy("000", str(entries).encode()),)
        self.taken[name] = Taken(imported, tuple(entries), compactions, raw)
        await self.take_again(sessions, name)

    async def take_again(self, sessions: Sessions, name: str, *, revive: bool = False) -> None:
        """Read an agent's session again."""
        imported, entries, compactions, raw = self.taken[name]
        await sessions.transfer.sync(
            LOCAL, imported, entries, compactions=compactions, raw=raw, revive=revive
        )

    async def _transcript(self, sessions: Sessions) -> None:
        """A transcript of Claude Code grows, and is synced."""
        number = self.rng.randrange(2)
        session = str(uuid.UUID(int=number + 1, version=4))
        path = self.folder / "claude" / "projects" / "-p" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_bytes().splitlines() if path.exists() else []
        word = self.word()
        entry = str(uuid.UUID(int=self._count, version=4))
        parent = json.loads(lines[-1])["uuid"] if lines else None
        record = {
            "type": "user", "uuid": entry, "parentUuid": parent, "sessionId": session, "cwd": "/p", "version": "2.0.0",
            "timestamp": f"2026-01-01T00:00:{len(lines) % 60:02d}.000Z", "isSidechain": False,
            "message": {"role": "user", "content": f"In a file: {word}"},
        }  # fmt: skip
        path.write_bytes(b"\n".join([*lines, json.dumps(record).encode(), b""]))
        await self.sync(sessions)
        ids = await listed(sessions, LOCAL, Filter(archived="include"), limit=500)
        (name,) = [each for each in ids if session in each]
        self.places[word] = (name, entry)

    async def sync(self, sessions: Sessions, *, revive: bool = False) -> None:
        """Sync the transcripts."""
        source, ledger = ClaudeSource(self.folder / "claude"), Ledger(self.folder / "ledger.db")
        try:
            found = find_all([source])
            await Sync(sessions, LOCAL, ledger, revive=revive, processes=0).run([source], found)
        finally:
            ledger.close()

    async def clear_notes(self, sessions: Sessions) -> None:
        """What `hitherto erase` and `delete` do with the notes of sync."""
        ledger = Ledger(self.folder / "ledger.db")
        try:
            await clear_ledger(sessions, LOCAL, ledger)
        finally:
            ledger.close()

    def touch_transcripts(self) -> None:
        """The same bytes in new files: sync reads them again."""
        for path in (self.folder / "claude").rglob("*.jsonl"):
            copy = path.with_suffix(".copy")
            copy.write_bytes(path.read_bytes())
            os.replace(copy, path)

    _steps: ClassVar[dict[Callable[[Planted, Sessions], Awaitable[None]], int]] = {
        _begin: 1, _say: 8, _fact: 2, _raw: 1, _title: 1, _fork: 2, _compact: 2, _rewind: 1, _restore: 1, _take: 2,
        _transcript: 1,
    }  # fmt: skip


async def alive(sessions: Sessions, places: dict[str, tuple[str, str]]) -> set[str]:
    """The words whose own message is still there, in whichever session."""
    there: set[tuple[str, str]] = set()
    for session_id in await listed(sessions, LOCAL, Filter(archived="include"), limit=500):
        for line in await exported(sessions, LOCAL, session_id):
            if (entry := json.loads(line).get("entry")) is not None:
                there.update((entry["id"], word) for word in WORD.findall(line.decode()))
    return {word for word, (_, entry_id) in places.items() if (entry_id, word) in there}


def decoded(data: bytes) -> bytes:
    """What bytes say, plainly and as base64."""
    runs = re.findall(rb"[A-Za-z0-9+/]{16,}", data)
    return data + b"".join(base64.b64decode(run[: len(run) // 4 * 4]) for run in runs)


def words_in(data: bytes, words: Sequence[str]) -> list[str]:
    """Those of the words that are in these bytes, as text, as hex, or as base64."""
    found = decoded(data)
    return [each for each in words if each.encode() in found or each.encode().hex().encode() in found]
