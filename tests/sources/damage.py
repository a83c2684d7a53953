"""What can happen to a transcript of lines: fourteen kinds of damage, for every source that reads such files.

A source takes part by saying how its transcripts are written; see `WRITTEN`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard

from hitherto.limits import ENTRY_BYTES
from hitherto.sources import Source
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.codex.source import CodexSource
from hitherto.sources.gemini.source import GeminiSource
from hitherto.sources.openclaw.source import OpenclawSource
from hitherto.sources.pi.source import PiSource
from tests.claude import transcripts
from tests.sources.codex.codex_files import CodexWriter, Mode
from tests.sources.gemini.gemini_files import GeminiWriter
from tests.sources.pi.pi_files import PiWriter

TEXTS = tuple(f"message {number}" for number in range(6))
HIT = 2
"""The place of the message whose records are damaged."""
HUGE = ENTRY_BYTES + 1

Lost = Callable[[Sequence[str], int], Sequence[str]]
"""Which of these texts are lost when the one at this place is hit."""


def nothing(_: Sequence[str], __: int) -> Sequence[str]:
    return ()


def that_one(texts: Sequence[str], hit: int) -> Sequence[str]:
    return texts[hit : hit + 1]


def the_one_before(texts: Sequence[str], hit: int) -> Sequence[str]:
    return texts[hit - 1 : hit]


def from_there_on(texts: Sequence[str], hit: int) -> Sequence[str]:
    return texts[hit:]


def everything(texts: Sequence[str], _: int) -> Sequence[str]:
    return texts


class Written(NamedTuple):
    """How an agent writes: the lines of a transcript in which the user and the model say these texts in turn, and where a
    transcript lies under the agent's folder; both for the session of this number. `packs`: it may be packed. `also_lost`:
    what this agent's transcripts lose to a kind of damage beyond what all do."""

    lines: Callable[[int, Sequence[str]], list[bytes]]
    place: Callable[[Path, int], Path]
    source: Callable[[Path], Source]
    packs: bool = False
    also_lost: Mapping[str, Lost] = {}

    def save(self, home: Path, number: int, data: bytes, *, packed: bool = False) -> Path:
        """Write a transcript where the agent would."""
        path = self.place(home, number)
        path = path.with_name(path.name + ".zst") if packed else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


def _claude(number: int, texts: Sequence[str]) -> list[bytes]:
    made = transcripts.Writer(transcripts.session_id(number))
    for place, said in enumerate(texts):
        made.say(said) if place % 2 else made.user(said)
    return list(map(transcripts.compact, made.records))


def _claude_place(home: Path, number: int) -> Path:
    return home / "projects" / "-home-ann-project" / f"{transcripts.session_id(number)}.jsonl"


def _pi(number: int, texts: Sequence[str]) -> list[bytes]:
    made = PiWriter(transcripts.session_id(number))
    for place, said in enumerate(texts):
        made.say(said) if place % 2 else made.user(said)
    return made.data().splitlines(keepends=True)


def _pi_place(home: Path, number: int) -> Path:
    return home / "--srv-engine--" / f"2026-11-01T10-00-00-000Z_{transcripts.session_id(number)}.jsonl"


def _openclaw_place(home: Path, number: int) -> Path:
    return home / "agents" / "main" / "sessions" / f"{transcripts.session_id(number)}.jsonl"


def _gemini(number: int, texts: Sequence[str]) -> list[bytes]:
    made = GeminiWriter(transcripts.session_id(number))
    for place, said in enumerate(texts):
        made.say(said) if place % 2 else made.user(said)
    return made.data().splitlines(keepends=True)


def _gemini_place(home: Path, number: int) -> Path:
    return home / "tmp" / "engine" / "chats" / f"session-2026-11-01T10-00-{number:08x}.jsonl"


def _codex(mode: Mode) -> Callable[[int, Sequence[str]], list[bytes]]:
    return lambda number, texts: CodexWriter(mode, transcripts.session_id(number)).talk(*texts).lines()


def _codex_place(home: Path, number: int) -> Path:
    return (
        home
        / "sessions"
        / "2026"
        / "11"
        / "02"
        / f"rollout-2026-11-02T09-00-00-{transcripts.session_id(number)}.jsonl"
    )


# A record names the one that it follows, and that one is looked for before it: one that stands behind it is left aside.
_ASIDE: Mapping[str, Lost] = {"reordered": the_one_before}

WRITTEN: dict[str, Written] = {
    "claude": Written(_claude, _claude_place, ClaudeSource, also_lost=_ASIDE),
    "codex-legacy": Written(_codex("legacy"), _codex_place, CodexSource, packs=True),
    "codex-paginated": Written(_codex("paginated"), _codex_place, CodexSource, packs=True),
    "gemini": Written(_gemini, _gemini_place, GeminiSource),
    "openclaw": Written(_pi, _openclaw_place, OpenclawSource),
    "pi": Written(_pi, _pi_place, PiSource),
}
"""Every source that reads lines."""


# Kinds of damage

Harm = Callable[[list[bytes], bytes], bytes]
"""What becomes of lines, given the text of the message that is hit."""


def _each(lines: list[bytes], hit: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """All lines, of which those of the message that is hit are changed."""
    return b"".join(change(line) if hit in line else line for line in lines)


def torn_line(lines: list[bytes], hit: bytes) -> bytes:
    return _each(lines, hit, lambda line: line[: line.index(hit)] + b"\n")


def nuls(lines: list[bytes], hit: bytes) -> bytes:
    return _each(lines, hit, lambda line: bytes(len(line)))


def bad_utf8(lines: list[bytes], hit: bytes) -> bytes:
    return _each(lines, hit, lambda line: line.replace(hit, hit + b"\xff\xfe"))


def spliced_lines(lines: list[bytes], hit: bytes) -> bytes:
    return _each(lines, hit, lambda line: line.rstrip(b"\n"))


def duplicate_lines(lines: list[bytes], hit: bytes) -> bytes:
    return _each(lines, hit, lambda line: line + line)


def no_first_line(lines: list[bytes], _: bytes) -> bytes:
    """Without what the file says of itself, if its first line is that."""
    return b"".join(lines if b"message 0" in lines[0] else lines[1:])


def wrong_types(lines: list[bytes], _: bytes) -> bytes:
    """Behind each of the first lines others that say something else, in which one value is not of its type.

    Not behind the last one: what stands there could be what was said last.
    """
    few = min(4, len(lines) - 1)

    def wrong(line: bytes, place: int) -> bytes:
        record = json.loads(line.replace(b"message ", b"nonsense "))
        names = {name: f"{name}-{place}" for name in ("uuid", "id") if name in record}
        others = ({**record, **names, name: [[]]} for name in record if name not in names)
        return b"".join(json.dumps(other).encode() + b"\n" for other in others)

    return b"".join(line + (wrong(line, place) if place < few else b"") for place, line in enumerate(lines))


def huge_line(lines: list[bytes], hit: bytes) -> bytes:
    return _each(lines, hit, lambda line: line.replace(hit, hit + b" " + b"x" * HUGE))


def truncated(lines: list[bytes], hit: bytes) -> bytes:
    data = b"".join(lines)
    return data[: data.index(hit)]


def byte_order_mark(lines: list[bytes], _: bytes) -> bytes:
    return b"\xef\xbb\xbf" + b"".join(lines)


def windows_line_ends(lines: list[bytes], _: bytes) -> bytes:
    return b"".join(line.rstrip(b"\n") + b"\r\n" for line in lines)


def reordered(lines: list[bytes], hit: bytes) -> bytes:
    """Two lines in the middle have changed places."""
    place = next(place for place, line in enumerate(lines) if hit in line)
    return b"".join([*lines[: place - 1], lines[place], lines[place - 1], *lines[place + 1 :]])


def unknown_kinds(lines: list[bytes], hit: bytes) -> bytes:
    strange = (
        b'{"type":"hologram","timestamp":"2026-11-02T09:30:00.000Z","payload":{"type":"beam","x":[1]}}\n'
    )
    return _each(lines, hit, lambda line: line + strange)


def empty_file(_: list[bytes], __: bytes) -> bytes:
    return b""


class Kind(NamedTuple):
    """A kind of damage: what is lost to it, and whether it is told of as damage."""

    harm: Harm
    lost: Lost = nothing
    told: bool = False

    @property
    def name(self) -> str:
        return self.harm.__name__

    def left(self, written: Written, texts: Sequence[str], hit: int) -> list[str]:
        """What of these texts a transcript still says when the one at this place is hit."""
        lost = {*self.lost(texts, hit), *written.also_lost.get(self.name, nothing)(texts, hit)}
        return [text for text in texts if text not in lost]


KINDS = (
    Kind(torn_line, that_one, told=True),
    Kind(nuls, that_one, told=True),
    Kind(bad_utf8, told=True),
    Kind(spliced_lines, told=True),
    Kind(duplicate_lines),
    Kind(no_first_line),
    Kind(wrong_types),
    Kind(huge_line),
    Kind(truncated, from_there_on),
    Kind(byte_order_mark),
    Kind(windows_line_ends),
    Kind(reordered),
    Kind(unknown_kinds),
    Kind(empty_file, everything),
)
"""Fourteen kinds of damage."""


def packed(lines: list[bytes], end: bytes | None = None) -> bytes:
    """Packed in two pieces, of which the second is torn, or something else: what stands before it can be unpacked."""
    data = b"".join(lines)
    place = data.index(TEXTS[HIT].encode())
    torn = zstandard.compress(data[place:])[:-4]
    return zstandard.compress(data[:place]) + (torn if end is None else end)
