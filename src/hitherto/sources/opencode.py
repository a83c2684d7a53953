"""opencode's sessions: rows in, entries out. Pure.

A session is told in one of two forms. The older has messages and their parts in tables of their own, the newer one row for
each message. Where the newer has what was said it is read, and what the older tells of the time before that comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from hitherto.model import Json, Text
from hitherto.sources.opencode_parts import attachments, error_of, model_of, new_blocks, old_blocks, usage_of
from hitherto.sources.tables import inner
from hitherto.sources.talk import Talk, Told, moment, text

SPOKEN = frozenset({"user", "assistant"})
NOTES = frozenset({"synthetic", "system", "skill"})
QUIET = frozenset({"agent-switched", "model-switched", "location-switched", "idle"})
"""Rows that say something about the conversation and are no part of it."""


def parse(session: Json, messages: Sequence[Json], parts: Sequence[Json], rows: Sequence[Json]) -> Told:
    """The conversation of a session: of the older form its messages and their parts, of the newer its rows."""
    telling = _Telling()
    old, new = telling.older(messages, parts), telling.intact(rows)
    if any(row["type"] in SPOKEN for row in new):
        began = min(map(_at, new))
        old = old if all(_at(row) < began for row in old) else []
    else:
        new = []
    for row in _shown(session, [*old, *new]):
        telling.tell(row)
    return telling.talk.told


def _shown(session: Json, rows: Sequence[Json]) -> Iterator[Json]:
    """The messages up to the one that was reverted: it and all behind it are hidden until the next prompt removes them."""
    revert = inner(session, "revert") or {}
    place, part = text(revert, "messageID"), text(revert, "partID")
    for row in rows:
        if row["id"] != place:
            yield row
            continue
        ids = [each["id"] for each in row.get("parts", ())]
        if part in ids:
            yield {**row, "parts": row["parts"][: ids.index(part)]}
        return


def _at(row: Json) -> int:
    when = row["told"].get("time")
    created = moment(when.get("created")) if isinstance(when, dict) else None
    return created or moment(row["time_created"]) or 0


class _Telling:
    """Both forms as one conversation."""

    def __init__(self) -> None:
        self.talk = Talk()
        self._tail: str | None = None
        """Where what the next summary keeps begins."""

    def intact(self, rows: Iterable[Json]) -> list[Json]:
        """Rows whose JSON can be read, with it; the others are counted."""
        told = [{**row, "id": str(row["id"]), "told": inner(row, "data")} for row in rows]
        whole = [row for row in told if row["told"] is not None]
        self.talk.damaged += len(told) - len(whole)
        return whole

    def older(self, messages: Iterable[Json], parts: Iterable[Json]) -> list[Json]:
        """Messages of the older form, each with its parts."""
        belonging = defaultdict[str, list[Json]](list)
        for part in self.intact(parts):
            belonging[part["message_id"]].append({**part["told"], "id": part["id"]})
        return [{**row, "parts": belonging[row["id"]]} for row in self.intact(messages)]

    def tell(self, row: Json) -> None:
        """One message."""
        if "parts" in row:
            self._message(row["id"], _at(row), row["told"], row["parts"])
        else:
            self._row(row["id"], _at(row), str(row["type"]), row["told"])

    def _message(self, id: str, at: int, told: Json, parts: Sequence[Json]) -> None:
        role = told.get("role")
        blocks = list(old_blocks(self.talk, parts))
        if role == "assistant" and told.get("summary") is True:
            said = [part for _, part in blocks if isinstance(part, Text)]
            self.talk.summary(id, at, said, [self._tail] if self._tail else [], usage=usage_of(told))
        elif role == "assistant":
            meta = error_of(told.get("error"))
            self.talk.said(id, at, role, blocks, model=model_of(told), usage=usage_of(told), meta=meta)
        elif role == "user":
            written = any(part.get("type") != "text" or not part.get("synthetic") for part in parts)
            self.talk.said(id, at, role, blocks, meta={} if written else {"meta": True})
        else:
            self.talk.say(id, at, "system", [self.talk.strange(f"message {role}", told)])
        for part in parts:
            if part.get("type") == "compaction":
                self._tail = text(part, "tail_start_id")

    def _row(self, id: str, at: int, kind: str, told: Json) -> None:
        talk = self.talk
        if kind == "user":
            said = [Text(text=prompt)] if (prompt := text(told, "text")) else []
            talk.say(id, at, "user", [*said, *attachments(told)])
        elif kind == "assistant":
            blocks, meta = new_blocks(talk, id, told.get("content")), error_of(told.get("error"))
            talk.said(id, at, "assistant", blocks, model=model_of(told), usage=usage_of(told), meta=meta)
        elif kind == "compaction":
            self._compaction(id, at, told)
        elif kind == "shell":
            talk.say(id, at, "user", [_command(told)])
        elif kind in NOTES:
            talk.say(id, at, "system", [Text(text=text(told, "text") or "")], meta={"meta": True})
        elif kind not in QUIET:
            talk.say(id, at, "system", [talk.strange(kind, told)])

    def _compaction(self, id: str, at: int, told: Json) -> None:
        """A summary that was made; one in the making, or that failed, stands for nothing."""
        if (summary := text(told, "summary")) and told.get("status", "completed") == "completed":
            self.talk.summary(id, at, [Text(text=summary)], usage=usage_of(told))


def _command(told: Json) -> Text:
    """What the user ran in the middle of the conversation."""
    given, code = told.get("output"), told.get("exit")
    output = given if isinstance(given, str) else text(given, "output", "text") or ""
    ended = f"\n(exit code {code})" if isinstance(code, int) and code else ""
    return Text(text=f"$ {text(told, 'command') or ''}\n{output}{ended}")
