"""The records of a Claude Code transcript without what keeps Claude Code from going on. Pure.

Each step finds one kind of fault and mends it; without a fault it changes nothing. No message is left out.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from hitherto.claude.chain import KINDS as LINKED
from hitherto.model import Json
from hitherto.sources.mend.findings import (
    LOST_CALL,
    OVERSIZED,
    PREVIEW,
    UNANSWERED,
    Findings,
    MendedTranscript,
    whole_records,
    with_texts_moved,
)

FOLDER = "tool-results"


def mend(
    data: bytes, findings: Findings, session_id: str, now: str, new_id: Callable[[], str]
) -> MendedTranscript:
    """The records of the session `session_id` with all that a transcript says; what was wrong is added to the findings."""
    files: dict[str, bytes] = {}
    records = _unique(whole_records(data, findings), findings, new_id)
    _set_times(records, findings, now)
    _set_parents(records, findings)
    _break_circles(records, findings)
    records, joined = _join_writers(records, findings)
    records = _answer_calls(records, findings, new_id)
    _turn_lost_results(records, findings)
    for record in records:
        _shorten(record, files, findings)
        if "sessionId" in record:
            record["sessionId"] = session_id
    if joined is not None:
        records.append({"type": "last-prompt", "leafUuid": joined, "sessionId": session_id})
    return MendedTranscript(records, files)


def _is_link(record: Json) -> bool:
    return record.get("type") in LINKED and isinstance(record.get("uuid"), str)


def _links(records: Sequence[Json]) -> Iterator[Json]:
    return filter(_is_link, records)


def _unique(records: list[Json], findings: Findings, new_id: Callable[[], str]) -> list[Json]:
    """Each uuid once. Of records that differ, the last has it, as for Claude Code."""
    last: dict[str, Json] = {record["uuid"]: record for record in _links(records)}
    kept: list[Json] = []
    for record in records:
        if _is_link(record) and (final := last[record["uuid"]]) is not record:
            findings.add("repeated_records")
            if final == record:
                continue
            record["uuid"] = new_id()
        kept.append(record)
    return kept


def _set_times(records: Sequence[Json], findings: Findings, now: str) -> None:
    """Claude Code finds no conversation whose last record has no time."""
    stamps = (record["timestamp"] for record in _links(records) if isinstance(record.get("timestamp"), str))
    last = next(stamps, now)
    for record in _links(records):
        if isinstance(record.get("timestamp"), str):
            last = record["timestamp"]
        else:
            findings.add("missing_times")
            record["timestamp"] = last


def _set_parents(records: Sequence[Json], findings: Findings) -> None:
    known = {record["uuid"] for record in _links(records)}
    before: dict[bool, str] = {}
    for record in _links(records):
        aside, parent = record.get("isSidechain") is True, record.get("parentUuid")
        if parent is not None and parent not in known:
            findings.add("missing_parents")
            record["parentUuid"] = before.get(aside)
        before[aside] = record["uuid"]


def _break_circles(records: Sequence[Json], findings: Findings) -> None:
    parents: dict[str | None, str | None] = {each["uuid"]: each.get("parentUuid") for each in _links(records)}
    ends = set[str | None]({None})
    before: str | None = None
    for record in _links(records):
        own: str = record["uuid"]
        path, at = set[str | None]({own}), parents[own]
        while at not in ends and at not in path:
            path.add(at)
            at = parents[at]
        if at in path:
            findings.add("circles")
            record["parentUuid"] = parents[own] = before
        ends.update(path)
        before = own


def _join_writers(records: list[Json], findings: Findings) -> tuple[list[Json], str | None]:
    """Conversations that go on at the same time from one record, behind each other; and where the last one ends."""
    children = defaultdict[str, list[Json]](list)
    for record in _links(records):
        if isinstance(record.get("parentUuid"), str) and record.get("isSidechain") is not True:
            children[record["parentUuid"]].append(record)
    end: str | None = None
    for siblings in [each for each in children.values() if len(each) > 1]:
        before: list[Json] = []
        for root in filter(_is_prompt, siblings):
            places = {id(record): place for place, record in enumerate(records)}
            own = sorted(_below(root, children), key=lambda each: places[id(each)])
            if before and places[id(before[-1])] > places[id(root)]:
                findings.add("two_writers")
                root["parentUuid"] = before[-1]["uuid"]
                # A record is looked for behind its parent.
                records = _moved_behind(records, own, before[-1])
                end = own[-1]["uuid"]
            before = own
    return records, end


def _moved_behind(records: Sequence[Json], moved: Sequence[Json], last: Json) -> list[Json]:
    names = {id(each) for each in moved}
    kept = [each for each in records if id(each) not in names]
    at = next(place for place, each in enumerate(kept) if each is last) + 1
    return [*kept[:at], *moved, *kept[at:]]


def _below(root: Json, children: dict[str, list[Json]]) -> list[Json]:
    found, waiting = list[Json](), [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1]["uuid"], ())
    return found


def _is_prompt(record: Json) -> bool:
    marks = ("isMeta", "isCompactSummary")
    return record.get("type") == "user" and not any(map(record.get, marks)) and not any(_results(record))


def _blocks(record: Json) -> list[Json]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _calls(record: Json) -> Iterator[str]:
    if record.get("type") == "assistant":
        calls = (block.get("id") for block in _blocks(record) if block.get("type") == "tool_use")
        yield from (call for call in calls if isinstance(call, str))


def _results(record: Json) -> Iterator[Json]:
    if record.get("type") == "user":
        yield from (block for block in _blocks(record) if block.get("type") == "tool_result")


def _answer_of(record: Json) -> str:
    message = record.get("message")
    answer = message.get("id") if isinstance(message, dict) else None
    return answer if isinstance(answer, str) else str(record.get("uuid"))


def _answer_calls(records: list[Json], findings: Findings, new_id: Callable[[], str]) -> list[Json]:
    """A result for each call that has none, behind the answer that it is part of."""
    answered = {block.get("tool_use_id") for record in _links(records) for block in _results(record)}
    missing = defaultdict[str, list[str]](list)
    ends: dict[str, Json] = {}
    for record in _links(records):
        if record.get("type") == "assistant":
            ends[_answer_of(record)] = record
            missing[_answer_of(record)] += [call for call in _calls(record) if call not in answered]
    made: dict[str, Json] = {}
    for answer, calls in missing.items():
        if calls:
            findings.add("unanswered_calls", len(calls))
            made[ends[answer]["uuid"]] = _unanswered(ends[answer], calls, new_id())
    if not made:
        return records
    for record in _links(records):
        result = made.get(record.get("parentUuid") or "")
        if result is not None and not any(_results(record)) and record["uuid"] != result["uuid"]:
            record["parentUuid"] = result["uuid"]
    return [each for record in records for each in (record, made.get(record.get("uuid") or "")) if each]


def _unanswered(call: Json, calls: Sequence[str], uuid: str) -> Json:
    same = ("isSidechain", "agentId", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")
    blocks = [
        {"tool_use_id": each, "type": "tool_result", "content": UNANSWERED, "is_error": True}
        for each in calls
    ]
    return {
        "parentUuid": call["uuid"],
        **{name: call[name] for name in same if name in call},
        "type": "user",
        "message": {"role": "user", "content": blocks},
        "uuid": uuid,
        "timestamp": call["timestamp"],
        "toolUseResult": f"Error: {UNANSWERED}",
        "sourceToolAssistantUUID": call["uuid"],
    }


def _turn_lost_results(records: Sequence[Json], findings: Findings) -> None:
    """Results without a call, and second ones of a call on the same way, as texts of the program."""
    calls = {call for record in _links(records) for call in _calls(record)}
    parents = {record["uuid"]: record.get("parentUuid") for record in _links(records)}
    told = defaultdict[str, set[str]](set)
    for record in _links(records):
        for block in list(_results(record)):
            call = str(block.get("tool_use_id"))
            if call in calls and not _leads_from(record["uuid"], told[call], parents):
                told[call].add(record["uuid"])
                continue
            findings.add("lost_calls")
            content = record["message"]["content"]
            at = next(place for place, each in enumerate(content) if each is block)
            content[at : at + 1] = _as_texts(block)
            record["isMeta"] = True


def _leads_from(uuid: str, others: set[str], parents: dict[str, Any]) -> bool:
    """Whether one of the others stands on the way to a record, itself apart."""
    at = parents.get(uuid) if others else None
    while at is not None:
        if at in others:
            return True
        at = parents.get(at)
    return False


def _as_texts(result: Json) -> list[Json]:
    content = result.get("content")
    told = content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]
    return [{"type": "text", "text": LOST_CALL}, *told]


def _shorten(record: Json, files: dict[str, bytes], findings: Findings) -> None:
    """Long texts of a record that is too large go to files beside the session, as Claude Code itself keeps long outputs."""
    if len(json.dumps(record)) <= OVERSIZED:
        return
    findings.add("oversized_records")
    name = str(record.get("uuid") or len(files))
    if "toolUseResult" in record:
        files[f"{name}.json"] = json.dumps(record.pop("toolUseResult")).encode()
    if len(json.dumps(record)) > OVERSIZED:
        record["message"] = with_texts_moved(record.get("message"), partial(_persisted, name, files))


def _persisted(name: str, files: dict[str, bytes], text: str) -> str:
    file = f"{name}-{len(files)}.txt"
    files[file] = text.encode("utf-8", "surrogatepass")
    return (
        f"<persisted-output>\nOutput too large ({len(text)} characters). Full output saved to: {FOLDER}/{file}\n\n"
        f"Preview (first 2KB):\n{text[:PREVIEW]}\n...\n</persisted-output>"
    )
