"""What is kept of an answer so that it can be given again: its ids and numbers, never what was said or how it is called.

What a session is called is looked up when the answer is given again: if it was erased or deleted meanwhile, it is gone.
"""

from __future__ import annotations

from typing import Any

from hitherto.model import Json, Session, decode_json, encode
from hitherto.ports import Reader

IDS = frozenset(
    {
        "id", "session_id", "session_key", "old_session_key", "new_session_key", "parent", "parent_entry",
        "message_id", "message_ids", "entries", "prompt_id", "checkpoint", "checkpoint_id", "summary",
        "tool_call_id", "channel", "peer_id", "source", "status", "reason", "value", "left_out", "replaced",
    }
)  # fmt: skip
"""The fields whose texts are names of something, or one of a few words of the program itself."""
PARTS = frozenset({"value", "session"})
"""The fields whose objects are outlined in turn; all others are left out."""
TITLES = frozenset({"name", "topic"})
"""The fields in which an answer tells the title of the session that it names."""
NOW = {"now": True}
"""Stands for the title that the session has when the answer is given again."""


def outlined(answer: Any) -> Any:
    """What is kept of an answer, as plain JSON values."""
    return _outlined("value", decode_json(encode(answer)))


def _outlined(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _outlined(key, each) for key, each in value.items() if _is_kept(key, each)}
        return kept | {key: NOW for key in TITLES & value.keys() if isinstance(value[key], str)}
    if isinstance(value, list):
        return [_outlined(name, each) for each in value]
    return value


def _is_kept(name: str, value: Any) -> bool:
    if isinstance(value, dict):
        return name in PARTS
    if isinstance(value, list):
        return name in IDS and all(isinstance(each, str) for each in value)
    return name in IDS if isinstance(value, str) else True


async def filled(tx: Reader, owner: str, outline: Any) -> Any:
    """The answer of an outline, with what its sessions are called now."""
    if not isinstance(outline, dict):
        return outline
    parts = {name: await filled(tx, owner, outline[name]) for name in PARTS & outline.keys()}
    answer: Json = {**outline, **parts}
    session = await _named_session(tx, owner, answer)
    if "revision" in answer and "id" in answer and session is not None:
        described = decode_json(encode(session))
        described.pop("status", None)  # as it was then
        answer = {**described, **answer}
    title = None if session is None else session.title
    known = {"topic": title, "name": title or answer.get("session_key")}
    return {**answer, **{name: known[name] for name in TITLES if answer.get(name) == NOW}}


async def _named_session(tx: Reader, owner: str, answer: Json) -> Session | None:
    """The session that an answer is about."""
    session_id, key = answer.get("session_id", answer.get("id")), answer.get("session_key")
    record = await tx.session(owner, session_id) if isinstance(session_id, str) else None
    if record is None and isinstance(key, str):
        record = await tx.by_key(owner, key)
    return None if record is None else record.session
