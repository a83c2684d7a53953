"""Gemini CLI's transcripts: bytes in, entries out. Pure.

A transcript is a log of operations: messages, which come again when more of them is known, changes of what is known of the
session, and going back to before a message. Older ones are one JSON document.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from hitherto.claude.lines import decode, decode_object, read_records
from hitherto.model import Image, Json, Part, Resource, ResourceLink, Text, Thought, ToolResult, Usage, Value
from hitherto.sources.shared.conversation import (
    ERROR_CHARS,
    Conversation,
    ConversationBuilder,
    fit_conversation,
    moment,
    number,
    objects,
    text,
)
from hitherto.sources.shared.tool_kinds import call_of, plan_of

_MESSAGE = re.compile(r'\{\s*"(?:id|timestamp|type|content)"\s*:')
_HEAD = re.compile(r'"(sessionId|projectHash|startTime|lastUpdated|summary|kind)"\s*:\s*("(?:[^"\\]|\\.)*")')
_json = json.JSONDecoder()


AGAIN = "message that was written again"
"""What is left out of a message that comes several times: all but one."""


class Info(Value, frozen=True):
    """What a transcript says of itself."""

    session_id: str | None = None
    project_hash: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    summary: str | None = None
    is_child: bool = False
    directories: tuple[str, ...] = ()


class Parsed(Value, frozen=True):
    """A transcript: what it says of itself, and the conversation."""

    info: Info
    conversation: Conversation


def parse(data: bytes) -> Parsed:
    """The conversation in a transcript of operations. Damage costs the damaged records only."""
    lines, damage = read_records(data)
    log = _Log()
    for line in lines:
        log.add(decode_object(line))
    parsed = log.parsed(damage.records)
    return replace(parsed, conversation=fit_conversation(parsed.conversation, lines))


def parse_document(data: bytes) -> Parsed:
    """The conversation in an older transcript; of one that is damaged, the messages that are whole."""
    log = _Log()
    try:
        document = decode(data)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        log.add({"$set": document})
        parsed = log.parsed(0)
        return replace(parsed, conversation=fit_conversation(parsed.conversation, [data]))
    document = data.decode("utf-8", "replace")
    head, _, rest = document.partition('"messages"')
    log.add({"$set": {found[1]: _json.decode(found[2]) for found in _HEAD.finditer(head)}})
    for message in _intact_messages(rest):
        log.add(message)
    return log.parsed(1)


def _intact_messages(document: str) -> Iterator[Json]:
    """The messages in a piece of a document."""
    place = 0
    while begun := _MESSAGE.search(document, place):
        try:
            value, place = _json.raw_decode(document, begun.start())
        except (ValueError, RecursionError):
            place = begun.start() + 1
        else:
            if "id" in value and "type" in value:
                yield value


class _Log:
    """The state after the operations so far."""

    def __init__(self) -> None:
        self._about: Json = {}
        self._messages: dict[str, Json] = {}
        self._known: dict[str, Json] = {}
        """Everything that the log ever had of each message."""
        self._summaries: list[tuple[str, str | None]] = []
        self._rewound: list[tuple[Sequence[str], dict[str, Json]]] = []
        """The messages that were taken back, and the ids of those before them."""
        self._left_out = Counter[str]()
        self._number = 0

    def add(self, record: Json) -> None:
        """Apply one operation."""
        self._number += 1
        match record:
            case {"$rewindTo": str(id)}:
                self._left_out["$rewindTo"] += 1
                self._rewind(id)
            case {"$set": dict(changes)}:
                self._left_out["$set"] += 1
                self._set(changes)
            case {"id": str(id), "type": _}:
                self._left_out[AGAIN] += id in self._messages
                self._messages[id] = self._known[id] = record
            case {"sessionId": str()}:
                self._left_out["session"] += 1
                self._set(record)
            case _:
                self._messages[f"line-{self._number}"] = {
                    "id": f"line-{self._number}",
                    **record,
                    "type": None,
                }

    def _rewind(self, id: str) -> None:
        ids = list(self._messages)
        # An unknown id removes everything.
        place = ids.index(id) if id in ids else 0
        self._rewound.append((ids[:place], {each: self._messages.pop(each) for each in ids[place:]}))
        self._summaries = [(summary, kept) for summary, kept in self._summaries if summary in self._messages]

    def _set(self, changes: Json) -> None:
        about = {name: value for name, value in changes.items() if name != "messages"}
        # Resuming a session starts its log again; its start time is the first one.
        began = {"startTime": self._about["startTime"]} if "startTime" in self._about else {}
        self._about |= about | began
        if isinstance(changes.get("messages"), list):
            self._replace([each for each in objects(changes["messages"]) if text(each, "id")])

    def _replace(self, messages: Sequence[Json]) -> None:
        """Replace all messages. If some are left out and a new one comes before all others, it is a summary, and the messages
        that it summarises stay in the conversation."""
        self._left_out[AGAIN] += sum(message["id"] in self._messages for message in messages)
        new = {message["id"]: self._again(message) for message in messages}
        if new and not any(map(is_given, new.values())):
            # Resuming a session starts like this; the other messages follow.
            self._messages |= {id: message for id, message in new.items() if id not in self._messages}
            return
        left_out = [id for id in self._messages if id not in new]
        first = next((id for id in new if id not in self._messages), None)
        ids = list(new)
        behind = ids if first is None else ids[: ids.index(first)]
        if first is None or not left_out or any(is_given(new[id]) for id in behind):
            self._put_in_place(self._summed_up(new) | new)
            return
        kept = next((id for id in ids[len(behind) :] if id in self._messages), None)
        self._summaries.append((first, kept))
        self._messages = {id: new.get(id, message) for id, message in self._messages.items()} | new

    def _put_in_place(self, messages: dict[str, Json]) -> None:
        """Put these in place of all messages; those that are not among them are taken back."""
        if gone := {id: message for id, message in self._messages.items() if id not in messages}:
            before = list(self._messages)
            self._rewound.append((before[: before.index(next(iter(gone)))], gone))
        self._messages = messages

    def _summed_up(self, new: dict[str, Json]) -> dict[str, Json]:
        """The messages up to and including the last summary, which stay in the conversation."""
        ids = list(self._messages)
        standing = [summary for summary, _ in self._summaries if summary in new and summary in ids]
        until = ids.index(standing[-1]) + 1 if standing else 0
        return {id: new.get(id, self._messages[id]) for id in ids[:until]}

    def _again(self, message: Json) -> Json:
        """A message that is written again. Resuming a session writes all of it again, without some fields and with a new time:
        missing fields and the time are taken from the first version."""
        known = self._known.get(message["id"], {})
        when = {"timestamp": known["timestamp"]} if "timestamp" in known else {}
        self._known[message["id"]] = {**known, **message, **when}
        return self._known[message["id"]]

    def parsed(self, harm: int) -> Parsed:
        """The conversation so far, and the branches that were rewound."""
        builder = ConversationBuilder()
        builder.damaged, builder.left_out = harm, +self._left_out
        last = self._add_all(builder, self._messages)
        for before, messages in self._rewound:
            # A message that is there again, or that was taken back before, is not told twice.
            left = {id: message for id, message in messages.items() if id not in last}
            builder.left_out[AGAIN] += len(messages) - len(left)
            after = next((last[id] for id in reversed(before) if last.get(id)), None)
            builder.add_branch(after, partial(self._add_branch, builder, left, last))
        builder.left_out = +builder.left_out
        return Parsed(info=_info(self._about), conversation=builder.conversation)

    def _add_branch(
        self, builder: ConversationBuilder, messages: dict[str, Json], last: dict[str, str | None]
    ) -> None:
        last |= self._add_all(builder, messages)

    def _add_all(self, builder: ConversationBuilder, messages: dict[str, Json]) -> dict[str, str | None]:
        """Add these messages; the last entry of each, None if it has none."""
        at, summaries, listed = 0, dict(self._summaries), calls_in(messages.values())
        last = dict[str, str | None]()
        for id, message in messages.items():
            at, before = moment(message.get("timestamp")) or at, len(builder.entries)
            if id in summaries:
                parts, kept = [part for _, part in blocks_of(builder, message, listed)], summaries[id]
                builder.add_summary(id, at, parts, [kept] if kept else [])
            else:
                _add_message(builder, at, message, listed)
            shown = len(builder.entries) > before
            builder.tally("message that repeats a result", shown=shown)
            last[id] = builder.entries[-1].id if shown else None
        return last


def _add_message(builder: ConversationBuilder, at: int, message: Json, listed: frozenset[str]) -> None:
    id, kind = message["id"], message.get("type")
    if kind == "gemini":
        usage, blocks = usage_of(message.get("tokens")), blocks_of(builder, message, listed)
        builder.add_message(id, at, "assistant", blocks, model=text(message, "model"), usage=usage)
    elif kind == "user":
        meta = {} if is_given(message) else {"meta": True}
        builder.add_message(id, at, "user", blocks_of(builder, message, listed), meta=meta)
    elif kind in ("info", "warning", "error"):
        parts = [part for _, part in blocks_of(builder, message, listed)]
        message_text = " ".join(part.text for part in parts if isinstance(part, Text))
        builder.add_entry(
            id, at, "system", parts, meta={"error": message_text[:ERROR_CHARS]} if kind == "error" else {}
        )
    else:
        label = kind or next(iter(message.keys() - {"id", "type"}), "?")
        builder.add_entry(id, at, "system", [builder.unknown_part(f"record {label}", message)])


def _info(about: Json) -> Info:
    directories: Any = about.get("directories")
    return Info(
        session_id=text(about, "sessionId"),
        project_hash=text(about, "projectHash"),
        created_at=moment(about.get("startTime")),
        updated_at=moment(about.get("lastUpdated")),
        summary=text(about, "summary"),
        is_child=about.get("kind") == "subagent",
        directories=tuple(each for each in directories if isinstance(each, str))
        if isinstance(directories, list)
        else (),
    )


Block = tuple[str, Part]
"""A part, and its id."""
SHELL = "run_shell_command"
ENDED = frozenset({"success", "error", "cancelled"})
"""States of a call that has a result."""
_EXIT = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
INJECTED = ("<session_context>", "<hook_context>", "<additional_context>")
"""Beginnings of texts that the program inserted in the user's name."""


def calls_in(messages: Iterable[Json]) -> frozenset[str]:
    """The finished calls in the messages' lists of calls."""
    calls = (call for message in messages for call in objects(message.get("toolCalls")))
    return frozenset(id for call in calls if text(call, "status") in ENDED and (id := text(call, "id")))


def blocks_of(builder: ConversationBuilder, message: Json, listed: frozenset[str]) -> Iterator[Block]:
    """All parts of a message: thoughts, content and calls. Calls that are `listed` are in a list of calls, and are left out of
    the content."""
    id, calls = message["id"], list(objects(message.get("toolCalls")))
    listed |= {own for call in calls if (own := text(call, "id"))}
    thoughts = list(objects(message.get("thoughts")))
    for place, thought in enumerate(thoughts):
        thought_text = "\n".join(filter(None, (text(thought, "subject"), text(thought, "description"))))
        yield f"{id}/thought-{place}", Thought(text=thought_text)
    for place, piece in enumerate(_pieces(message.get("content"))):
        # What resuming writes again has the thoughts among the content too.
        if (thoughts and piece.get("thought") is True) or _call_id(piece) in listed:
            continue
        if (part := _part(builder, piece)) is not None:
            yield f"{id}/{place}", part
    for call in calls:
        yield from _call(builder, id, call)


def is_given(message: Json) -> bool:
    """Whether the user wrote any of this message: the program also writes in their name."""
    return any(
        not isinstance(prompt := piece.get("text"), str) or not prompt.lstrip().startswith(INJECTED)
        for piece in _pieces(message.get("content"))
    )


def _pieces(content: Any) -> Iterator[Json]:
    """Content may be a text, a part, or a list of both."""
    for each in content if isinstance(content, list) else [content]:
        if isinstance(each, str):
            yield {"text": each}
        elif isinstance(each, dict):
            yield each


def _call_id(piece: Json) -> str | None:
    """The call that a part of the content belongs to; empty if there is none."""
    inside = piece.get("functionCall") or piece.get("functionResponse")
    return text(inside, "id") or "" if isinstance(inside, dict) else ""


def _part(builder: ConversationBuilder, piece: Json) -> Part | None:
    match piece:
        case {"text": str(content)}:
            kind = Thought if piece.get("thought") is True else Text
            return kind(text=content) if content else None
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            return (
                Image(mime_type=mime, data=data)
                if mime.startswith("image/")
                else Resource(uri="", mime_type=mime, blob=data)
            )
        case {"fileData": {"fileUri": str(uri)} as file}:
            return ResourceLink(uri=uri, mime_type=text(file, "mimeType"))
        case {"functionCall": {"name": str(name)} as call}:
            return call_of(text(call, "id") or name, name, call.get("args"))
        case {"functionResponse": {"name": str(name)} as answer}:
            return _response(text(answer, "id") or name, answer)
    return builder.unknown_part(f"part {next(iter(piece), '?')}", piece)


def _response(id: str, answer: Json, *, failed: bool = False) -> ToolResult:
    response = answer.get("response")
    error, output = text(response, "error"), text(response, "output")
    answer_text = error or output
    return ToolResult(
        id=id,
        content=(Text(text=answer_text),) if answer_text else (),
        is_error=failed or bool(error) or (text(answer, "name") == SHELL and _has_failed(output or "")),
        output=None if answer_text else response,
    )


def _has_failed(output: str) -> bool:
    """Whether a command ended with another code than 0: Gemini CLI counts it as a success, and tells the code to the model. What
    the command itself put out comes before."""
    codes = _EXIT.findall(output)
    return bool(codes) and int(codes[-1]) != 0


def _call(builder: ConversationBuilder, message: str, call: Json) -> Iterator[Block]:
    id, name, given = text(call, "id") or "", text(call, "name") or "?", call.get("args")
    yield f"{message}/{id}", call_of(id, name, given)
    if name == "write_todos" and (plan := plan_of(given)) is not None:
        yield f"{message}/{id}/plan", plan
    status = text(call, "status")
    if status in ENDED:
        yield f"{message}/{id}/result", _result(builder, id, call, failed=status != "success")


def _result(builder: ConversationBuilder, id: str, call: Json, *, failed: bool) -> ToolResult:
    """The result of a call: as the model got it, else as it was shown."""
    content = list[Part]()
    for piece in _pieces(call.get("result")):
        if isinstance(piece.get("functionResponse"), dict):
            answer = _response(id, piece["functionResponse"], failed=failed)
            failed = answer.is_error
            content += answer.content
        elif (part := _part(builder, piece)) is not None:
            content.append(part)
    shown = call.get("resultDisplay")
    if not content and isinstance(shown, str) and shown:
        content.append(Text(text=shown))
    output = shown if isinstance(shown, dict) else None
    return ToolResult(id=id, content=tuple(content), is_error=failed, output=output)


def usage_of(tokens: Any) -> Usage | None:
    """The usage of an answer; output includes thoughts."""
    if not isinstance(tokens, dict):
        return None
    outputs = [each for name in ("output", "thoughts") if (each := number(tokens, name)) is not None]
    return Usage(
        input=number(tokens, "input"),
        output=sum(outputs) if outputs else None,
        cache_read=number(tokens, "cached"),
    )
