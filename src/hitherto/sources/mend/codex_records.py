"""The records of a Codex rollout without what keeps Codex from going on. Pure.

Each step finds one kind of fault and mends it; without a fault it changes nothing. No message is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from hitherto import __version__
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

HEAD, ITEM, EVENT = "session_meta", "response_item", "event_msg"
EVENTS = frozenset(
    {"user_message", "agent_message", "agent_reasoning", "token_count", "task_started", "task_complete"}
)
"""What is told beside the items for the model."""
OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
}
"""Kinds of calls → the kind of item that answers each."""


def mend(
    data: bytes, findings: Findings, session_id: str, now: str, new_id: Callable[[], str]
) -> MendedTranscript:
    """The records of the session `session_id` with all that a rollout says; what was wrong is added to the findings."""
    del new_id  # records of rollouts have no ids
    files: dict[str, bytes] = {}
    records = _unique(map(_wrapped, whole_records(data, findings)), findings)
    _set_times(records, findings, now)
    records = _with_head(records, findings, session_id, now)
    records = _answer_calls(records, findings)
    _turn_lost_outputs(records, findings)
    for number, record in enumerate(records):
        if len(json.dumps(record)) > OVERSIZED:
            findings.add("oversized_records")
            move = partial(_moved, str(number), files)
            record["payload"] = with_texts_moved(record.get("payload"), move)
    return MendedTranscript(records, files)


def _wrapped(record: Json) -> Json:
    """A record. What was found whole inside of a torn one is an item by itself, and gets a record of its own."""
    if "payload" in record or not isinstance(record.get("type"), str) or record["type"] == HEAD:
        return record
    kind = EVENT if record["type"] in EVENTS else ITEM
    return {"type": kind, "payload": record}


def _unique(records: Iterable[Json], findings: Findings) -> list[Json]:
    """Without a line that was written twice in a row, as after a failed write."""
    kept: list[Json] = []
    for record in records:
        if kept and kept[-1] == record:
            findings.add("repeated_records")
        else:
            kept.append(record)
    return kept


def _set_times(records: Sequence[Json], findings: Findings, now: str) -> None:
    stamps = (record["timestamp"] for record in records if isinstance(record.get("timestamp"), str))
    last = next(stamps, now)
    for record in records:
        if isinstance(record.get("timestamp"), str):
            last = record["timestamp"]
        else:
            findings.add("missing_times")
            record["timestamp"] = last


def _with_head(records: list[Json], findings: Findings, session_id: str, now: str) -> list[Json]:
    """What describes the session comes first, and describes the new one."""
    head = next((record for record in records if record.get("type") == HEAD), None)
    if not records or records[0] is not head:
        findings.add("missing_head")
    if head is None:
        at = records[0]["timestamp"] if records else now
        head = {"timestamp": at, "type": HEAD, "payload": _described(records, at)}
    payload = _payload(head)
    head = {**head, "payload": {**payload, "id": session_id, "session_id": session_id}}
    found = next((place for place, each in enumerate(records) if each.get("type") == HEAD), None)
    return [head, *(each for place, each in enumerate(records) if place != found)]


def _described(records: Sequence[Json], at: str) -> Json:
    """What can be said of a session whose description is lost."""
    contexts = (_payload(record) for record in records if record.get("type") == "turn_context")
    cwd = next((each["cwd"] for each in contexts if isinstance(each.get("cwd"), str)), "/")
    made = {"originator": "hitherto", "cli_version": __version__, "source": "cli", "history_mode": "legacy"}
    return {"timestamp": at, "cwd": cwd, **made}


def _payload(record: Json) -> Json:
    payload = record.get("payload")
    return payload if isinstance(payload, dict) else {}


def _items(records: Sequence[Json], kinds: Sequence[str]) -> Iterator[tuple[Json, str]]:
    """The items of these kinds, each with the id of its call."""
    for record in records:
        payload = _payload(record)
        call = payload.get("call_id")
        if record.get("type") == ITEM and payload.get("type") in kinds and isinstance(call, str):
            yield record, call


def _answer_calls(records: list[Json], findings: Findings) -> list[Json]:
    answered = {call for _, call in _items(records, tuple(OUTPUTS.values()))}
    made: dict[int, Json] = {}
    for record, call in _items(records, tuple(OUTPUTS)):
        if call not in answered:
            findings.add("unanswered_calls")
            kind = OUTPUTS[_payload(record)["type"]]
            payload = {"type": kind, "call_id": call, "output": UNANSWERED}
            made[id(record)] = {"timestamp": record["timestamp"], "type": ITEM, "payload": payload}
    return [each for record in records for each in (record, made.get(id(record))) if each is not None]


def _turn_lost_outputs(records: Sequence[Json], findings: Findings) -> None:
    """Outputs without a call before them, and second ones of a call, as messages."""
    calls, told = set[str](), set[str]()
    kinds = (*OUTPUTS, *OUTPUTS.values())
    for record, call in _items(records, kinds):
        payload = _payload(record)
        if payload["type"] in OUTPUTS:
            calls.add(call)
        elif call in calls and call not in told:
            told.add(call)
        else:
            findings.add("lost_calls")
            text = f"{LOST_CALL}\n{_output_text(payload.get('output'))}"
            content = [{"type": "input_text", "text": text}]
            record["payload"] = {"type": "message", "role": "user", "content": content}


def _output_text(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _moved(name: str, files: dict[str, bytes], text: str) -> str:
    file = f"{name}-{len(files)}.txt"
    files[file] = text.encode("utf-8", "surrogatepass")
    return f"{text[:PREVIEW]}\n[{len(text)} characters: all of them are in {file}, in the folder beside this rollout]"
