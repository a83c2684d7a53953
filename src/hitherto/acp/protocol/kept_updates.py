"""Updates of another agent as they came. Pure.

The parts of an entry hold what can be read of an update; whatever else it had stands in the entry's meta, as the
difference to what is rendered from the part alone. So both together are the update again, to the last field.

    {"acp": {"message": "m1", "rest": {"0": [[12, null], [5, {"in": …}]], "1": {"put": …, "in": …, "cut": […]}}}}

`message` is the agent's id of the message, `rest` has the difference of each part that has one. A text may have been
joined from chunks that had different fields: for each stretch of it, the number of characters and the difference. `prompt` is
the id that the agent has given the prompt that it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from hitherto.acp.protocol.content import block_of
from hitherto.acp.protocol.entry_bytes import (
    NOTHING,
    Call,
    Piece,
    Result,
    Stored,
    Text,
    Thought,
    read_stored,
    value_of,
)
from hitherto.model import Json, Part, Plan, Unknown
from hitherto.rpc import frames

KEY = "acp"
"""The key of an entry's meta."""
TERMINAL = "hitherto/terminalId"
"""In the `_meta` of a text that stands for a terminal of the client: the terminal's id. It is gone when the call is replayed."""
GATED: dict[str, str] = {
    **dict.fromkeys(("compaction_update", "compaction_summary_chunk"), "compaction"),
    **dict.fromkeys(("plan_update", "plan_removed"), "plans"),
    **dict.fromkeys(("subagent_update", "session_message", "session_message_chunk"), "subagents"),
    "notice": "notices",
}
"""Kinds of updates that only clients get that have said that they know them: the field of `Client`."""


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """See the module."""

    message: str | None = None
    rest: dict[str, Any] = {}
    prompt: str | None = None


def kept_of(meta: Mapping[str, Any]) -> Kept | None:
    """What stands beside the parts of an entry of another agent; None if it is not one, or is unreadable."""
    found = meta.get(KEY)
    try:
        return None if found is None else msgspec.convert(found, Kept)
    except msgspec.ValidationError:
        return None


def is_shown_as(payload: bytes, shown: str) -> bool:
    """Whether clients know an entry, or a tool call in it, by this id."""
    if frames.encode(shown) not in payload:
        return False
    stored = read_stored(payload)
    kept = kept_of(_meta(stored))
    ids = [part.id for part in stored.parts if isinstance(part, Call | Result)]
    return shown in (value_of(stored.id), kept and kept.message, *ids)


def is_answer_to(payload: bytes, shown: str) -> bool:
    """Whether an entry is the beginning of the answer to a prompt that the agent has given this id."""
    if frames.encode(shown) not in payload:
        return False
    kept = kept_of(_meta(read_stored(payload)))
    return kept is not None and kept.prompt == shown


def _meta(stored: Stored) -> Json:
    meta: Json = {} if stored.meta is NOTHING else value_of(stored.meta)
    return meta


# Differences


def difference(given: Json, plain: Json) -> Json | None:
    """What turns `plain` into `given`; None if they are equal."""
    put: Json = {}
    within: Json = {}
    for name, value in given.items():
        known = plain.get(name)
        if name in plain and known == value and type(known) is type(value):
            continue
        if isinstance(value, dict) and isinstance(known, dict):
            within[name] = difference(value, known)
        else:
            put[name] = value
    cut = [name for name in plain if name not in given]
    found = {"put": put, "in": {name: rest for name, rest in within.items() if rest}, "cut": cut}
    return {name: value for name, value in found.items() if value} or None


def restored(plain: Json, rest: Any) -> Json:
    """What the difference was taken from."""
    if not isinstance(rest, dict):
        return plain
    put, within, cut = rest.get("put"), rest.get("in"), rest.get("cut")
    fields = {**plain, **put} if isinstance(put, dict) else dict(plain)
    for name, inner in within.items() if isinstance(within, dict) else ():
        known = fields.get(name)
        fields[name] = restored(known if isinstance(known, dict) else {}, inner)
    for name in cut if isinstance(cut, list) else ():
        fields.pop(name, None)
    return fields


# Parts as updates


def plain_text(kind: str, text: str | Raw, message: str | None) -> Json:
    """The parameters of a chunk of text, but for the session."""
    fields: Json = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return {"update": fields if message is None else {**fields, "messageId": message}}


def plain_part(kind: str, part: Piece, message: str | None) -> Json:
    """The parameters of the update of any other part, but for the session; of calls without their id."""
    match part:
        case Call():
            known: Json = {"title": part.title, "name": part.name, "kind": part.kind}
            raw = {"locations": part.locations, "rawInput": part.input}
            fields = _set({**known, **{name: value for name, value in raw.items() if memoryview(value)}})
            return {"update": {"sessionUpdate": "tool_call", **fields}}
        case Result():
            fields = {"status": "failed" if part.is_error else "completed", "content": _contents(part)}
            if memoryview(part.output):
                fields["rawOutput"] = part.output
            return {"update": {"sessionUpdate": "tool_call_update", **fields}}
        case Plan():
            return {"update": {"sessionUpdate": "plan", "entries": list(part.steps)}}
        case Unknown(raw={"sessionUpdate": str()}):
            return {"update": part.raw}
    content = part.raw if isinstance(part, Unknown) else block_of(part)
    fields = {"sessionUpdate": kind, "content": content}
    return {"update": fields if message is None else {**fields, "messageId": message}}


def rest_of(kind: str, given: Json, part: Part, message: str | None) -> Json | None:
    """What the parameters of an update have beside the part that was made from them."""
    return difference(given, _values(plain_part(kind, _piece(part), message)))


def runs_of(part: Text | Thought, rest: Any) -> Iterator[tuple[str | Raw, Any]]:
    """The stretches of a text, each with its difference."""
    if not isinstance(rest, list):
        yield part.text, None
        return
    text, at = str(value_of(part.text)), 0
    for run in rest:
        match run:
            case [int(chars), difference]:
                yield text[at : at + chars], difference
                at += chars
    if at < len(text):
        yield text[at:], None


def updates_of(
    parts: Sequence[Piece], kept: Kept, kinds: tuple[str, str], known: Callable[[str], bool]
) -> Iterator[tuple[Piece, Json]]:
    """The parts of an entry, each with the parameters of its updates but for the session. `kinds` are those of its chunks, of
    text and of thoughts; `known` says whether the client knows a kind."""
    for at, part in enumerate(parts):
        rest = kept.rest.get(str(at))
        if isinstance(part, Text | Thought):
            kind = kinds[isinstance(part, Thought)]
            for text, difference in runs_of(part, rest):
                yield part, restored(plain_text(kind, text, kept.message), difference)
            continue
        params = restored(plain_part(kinds[0], part, kept.message), rest)
        if known(str(params["update"].get("sessionUpdate"))):
            yield part, params


def _contents(result: Result) -> list[Any]:
    return [
        part.raw if isinstance(part, Unknown) else {"type": "content", "content": block_of(part)}
        for part in result.content
    ]


def _set(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _piece(part: Part) -> Piece:
    piece: Piece = _pieces.decode(frames.encode(part))
    return piece


def _values(fields: Json) -> Json:
    """The same without raw JSON in it."""
    values: Json = msgspec.json.decode(frames.encode(fields))
    return values


_pieces = msgspec.json.Decoder(Piece)
