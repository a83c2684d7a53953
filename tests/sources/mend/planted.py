"""Faults planted in transcripts of Claude Code and in rollouts of Codex: what their agent would refuse or lose."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from hitherto.model import Entry, search_text
from hitherto.sources.claude import parse as claude_parse
from hitherto.sources.codex import parse as codex_parse
from hitherto.sources.mend.findings import OVERSIZED, Findings, whole_records
from tests.claude.transcripts import Writer
from tests.sources.codex.codex_files import CodexWriter

Records = list[dict[str, Any]]
Plant = Callable[[Records, random.Random], bytes]
"""Does something to the records of a transcript; the bytes of its file."""


class Fault(NamedTuple):
    """A kind of fault: how it is planted, what is found of it, and whether a record cannot be read for it."""

    plant: Plant
    found: str
    loses: bool = False

    @property
    def name(self) -> str:
        return self.plant.__name__


def line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def claude_talk(dice: random.Random, session_id: str, *, turns: int = 4) -> Records:
    """A conversation in which tools are called; each text is its own."""
    made = Writer(session_id, rng=random.Random(dice.random()))
    for number in range(turns):
        made.user(f"ask {number}")
        _, call = made.call("Bash", {"command": f"run {number}"})
        made.result(call, f"output {number}")
        made.say(f"answer {number}")
    made.last_prompt(f"ask {turns - 1}")
    return made.records


def codex_talk(dice: random.Random, session_id: str, *, turns: int = 4) -> Records:
    """The same as a rollout."""
    made = CodexWriter("legacy", session_id)
    for number in range(turns):
        made.user(f"ask {number}")
        made.run(f"call-{number}-{dice.randrange(1000)}", f"run {number}", f"output {number}")
        made.say(f"answer {number}")
        made.end()
    return made.records


def _data(records: Records) -> bytes:
    return b"".join(map(line, records))


def _hit(records: Records, dice: random.Random) -> int:
    """A record neither first nor last."""
    return dice.randrange(1, len(records) - 1)


def torn_end(records: Records, dice: random.Random) -> bytes:
    data = _data(records)
    last = len(line(records[-1]))
    return data[: len(data) - dice.randrange(2, last)]


def torn_middle(records: Records, dice: random.Random) -> bytes:
    place = _hit(records, dice)
    torn = line(records[place])
    return (
        _data(records[:place])
        + torn[: dice.randrange(1, len(torn) - 1)]
        + b"\n"
        + _data(records[place + 1 :])
    )


def spliced(records: Records, dice: random.Random) -> bytes:
    """A record was torn, and the next one written right behind it."""
    place = _hit(records, dice)
    torn = line(records[place])
    return (
        _data(records[: place + 1]) + torn[: dice.randrange(1, len(torn) - 1)] + _data(records[place + 1 :])
    )


def nuls(records: Records, dice: random.Random) -> bytes:
    place = _hit(records, dice)
    return _data(records[:place]) + bytes(dice.randrange(1, 5000)) + _data(records[place:])


def bad_utf8(records: Records, dice: random.Random) -> bytes:
    place = _hit(records, dice)
    bad = line({**records[place], "note": "@@"})
    return _data(records[:place]) + bad.replace(b"@@", b"\xff\xfe") + _data(records[place + 1 :])


def byte_order_mark(records: Records, _: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + _data(records)


def repeated(records: Records, dice: random.Random) -> bytes:
    place = _hit(records, dice)
    while "uuid" not in records[place] and "payload" not in records[place]:
        place = _hit(records, dice)
    return _data([*records[: place + 1], *records[place:]])


def no_times(records: Records, dice: random.Random) -> bytes:
    place = dice.randrange(1, len(records) - 1)
    while "timestamp" not in records[place]:
        place = dice.randrange(1, len(records) - 1)
    del records[place]["timestamp"]
    return _data(records)


def claude_missing_parent(records: Records, dice: random.Random) -> bytes:
    place = dice.randrange(2, len(records) - 1)
    records[place]["parentUuid"] = "00000000-0000-4000-8000-000000000000"
    return _data(records)


def claude_circle(records: Records, dice: random.Random) -> bytes:
    place = dice.randrange(2, len(records) - 1)
    records[1]["parentUuid"] = records[place]["uuid"]
    return _data(records)


def claude_two_writers(records: Records, dice: random.Random) -> bytes:
    """Two programs went on from the same record at the same time."""
    base, tail = records[:8], records[8:-1]
    other = Writer(records[0]["sessionId"], rng=random.Random(dice.random()))
    other.last = base[-1]["uuid"]
    other.user("ask elsewhere")
    other.say("answer elsewhere")
    other.user("ask once more")
    other.say("answer once more")
    mixed = [*base, tail[0], other.records[0], *tail[1:4], *other.records[1:], *tail[4:]]
    return _data(mixed)


def claude_unanswered_call(records: Records, dice: random.Random) -> bytes:
    """A call whose result was never written; what followed it follows the call."""
    results = [place for place, record in enumerate(records) if "toolUseResult" in record]
    place = dice.choice(results)
    records[place + 1]["parentUuid"] = records[place]["parentUuid"]
    del records[place]
    return _data(records)


def claude_lost_call(records: Records, dice: random.Random) -> bytes:
    results = [place for place, record in enumerate(records) if "toolUseResult" in record]
    place = dice.choice(results)
    records[place]["parentUuid"] = records[place - 1]["parentUuid"]
    del records[place - 1]
    return _data(records)


def claude_oversized(records: Records, dice: random.Random) -> bytes:
    results = [record for record in records if "toolUseResult" in record]
    record = dice.choice(results)
    long = record["message"]["content"][0]["content"] + " " + "x" * OVERSIZED
    record["message"]["content"][0]["content"] = long
    record["toolUseResult"] = {"stdout": long}
    return _data(records)


def codex_no_head(records: Records, _: random.Random) -> bytes:
    return _data(records[1:])


def codex_late_head(records: Records, _: random.Random) -> bytes:
    return _data([records[1], records[0], *records[2:]])


def _codex_places(records: Records, kind: str) -> list[int]:
    return [place for place, each in enumerate(records) if each["payload"].get("type") == kind]


def codex_unanswered_call(records: Records, dice: random.Random) -> bytes:
    del records[dice.choice(_codex_places(records, "function_call_output"))]
    return _data(records)


def codex_lost_call(records: Records, dice: random.Random) -> bytes:
    del records[dice.choice(_codex_places(records, "function_call"))]
    return _data(records)


def codex_second_result(records: Records, dice: random.Random) -> bytes:
    place = dice.choice(_codex_places(records, "function_call_output"))
    second = json.loads(json.dumps(records[place]))
    second["payload"]["output"] = "output again"
    return _data([*records[: place + 2], second, *records[place + 2 :]])


def codex_oversized(records: Records, dice: random.Random) -> bytes:
    place = dice.choice(_codex_places(records, "function_call_output"))
    records[place]["payload"]["output"] += " " + "x" * OVERSIZED
    return _data(records)


SHARED = (
    Fault(torn_end, "torn_lines", loses=True),
    Fault(torn_middle, "torn_lines", loses=True),
    Fault(spliced, "spliced_lines"),
    Fault(nuls, "nul_bytes"),
    Fault(bad_utf8, "bad_utf8"),
    Fault(byte_order_mark, "byte_order_marks"),
    Fault(repeated, "repeated_records"),
    Fault(no_times, "missing_times"),
)
FAULTS: dict[str, tuple[Fault, ...]] = {
    "claude": (
        *SHARED,
        Fault(claude_missing_parent, "missing_parents"),
        Fault(claude_circle, "circles"),
        Fault(claude_two_writers, "two_writers"),
        Fault(claude_unanswered_call, "unanswered_calls"),
        Fault(claude_lost_call, "lost_calls"),
        Fault(claude_oversized, "oversized_records"),
    ),
    "codex": (
        *SHARED,
        Fault(codex_no_head, "missing_head"),
        Fault(codex_late_head, "missing_head"),
        Fault(codex_unanswered_call, "unanswered_calls"),
        Fault(codex_lost_call, "lost_calls"),
        Fault(codex_second_result, "lost_calls"),
        Fault(codex_oversized, "oversized_records"),
    ),
}
TALKS: dict[str, Callable[[random.Random, str], Records]] = {"claude": claude_talk, "codex": codex_talk}


# What transcripts say


def entries_in(agent: str, data: bytes) -> list[Entry]:
    """All that our own reader finds in a transcript, in branches too."""
    if agent == "codex":
        read = codex_parse.parse(data)
        return [] if read is None else list(read.entries)
    parsed = claude_parse.parse(data)
    return [*parsed.entries, *(entry for branch in parsed.branches for entry in branch.entries)]


def said(entries: Iterable[Entry]) -> set[str]:
    return {word for entry in entries for word in search_text(entry)[:4000].splitlines() if word}


def whole_texts(agent: str, data: bytes) -> list[Entry]:
    """What every whole record of a damaged transcript says, wherever it hangs."""
    if agent == "codex":
        return entries_in(agent, data)
    records = whole_records(data, Findings())
    alone = [{**each, "parentUuid": None} for each in records if "uuid" in each]
    return [entry for each in alone for entry in entries_in(agent, line(each))]


def texts_of(files: dict[str, bytes]) -> set[str]:
    return {word for data in files.values() for word in data.decode()[:4000].splitlines()}
