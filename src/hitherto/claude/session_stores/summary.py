"""What lists show of a mirrored session, gathered from its records as they come. Pure.

The fields of `data` are those of the SDK, which may have written what is there already, and may read what is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from hitherto.claude import lines
from hitherto.claude.list import SDKSessionInfo
from hitherto.claude.metadata import milliseconds, opening_of_message
from hitherto.claude.session_stores.protocol import SessionKey, SessionStoreEntry, SessionSummaryEntry

_NEWEST = {
    "customTitle": "custom_title",
    "aiTitle": "ai_title",
    "lastPrompt": "last_prompt",
    "summary": "summary_hint",
    "gitBranch": "git_branch",
}
"""Of these fields of records the last one counts."""
_LISTED = ("custom_title", "ai_title", "last_prompt", "summary_hint")


def fold_session_summary(
    prev: SessionSummaryEntry | None, key: SessionKey, entries: list[SessionStoreEntry]
) -> SessionSummaryEntry:
    """The summary of a session with these records behind those that `prev` was made from; None: there are none.

    `mtime` stays as it is, 0 for a new session: whoever keeps the summary stamps it. Records of subagents are no part of
    a session's summary.
    """
    data = dict(prev["data"]) if prev is not None else {}
    for entry in cast("Sequence[dict[str, Any]]", entries):
        _fold(data, entry)
    if prev is None:
        return {"session_id": key["session_id"], "mtime": 0, "data": data}
    return {"session_id": prev["session_id"], "mtime": prev["mtime"], "data": data}


def summarised_info(summary: SessionSummaryEntry, path: str) -> SDKSessionInfo | None:
    """The session as lists show it; None if they leave it out. `path` is the folder of a session that names none."""
    data = summary["data"]
    prompt = data.get("first_prompt" if data.get("first_prompt_locked") else "command_fallback")
    title = next(filter(None, (data.get(name) for name in _LISTED)), prompt)
    if data.get("is_sidechain") or not title:
        return None
    return SDKSessionInfo(
        session_id=summary["session_id"],
        summary=title,
        last_modified=summary["mtime"],
        custom_title=data.get("custom_title") or data.get("ai_title") or None,
        first_prompt=prompt or None,
        git_branch=data.get("git_branch") or None,
        cwd=data.get("cwd") or path or None,
        tag=data.get("tag") or None,
        created_at=data.get("created_at"),
    )


def _fold(data: dict[str, Any], entry: dict[str, Any]) -> None:
    data.setdefault("is_sidechain", entry.get("isSidechain") is True)
    stamp, cwd = entry.get("timestamp"), entry.get("cwd")
    if "created_at" not in data and isinstance(stamp, str) and (at := milliseconds(stamp)) is not None:
        data["created_at"] = at
    if "cwd" not in data and isinstance(cwd, str) and cwd:
        data["cwd"] = cwd
    if not data.get("first_prompt_locked"):
        _fold_prompt(data, entry)
    data |= {kept: entry[name] for name, kept in _NEWEST.items() if isinstance(entry.get(name), str)}
    if entry.get("type") == "tag":
        data["tag"] = entry.get("tag")
        if not isinstance(data["tag"], str) or not data["tag"]:
            del data["tag"]


def _fold_prompt(data: dict[str, Any], entry: dict[str, Any]) -> None:
    """The first meaningful prompt, or until there is one the first slash command."""
    if entry.get("type") != "user" or entry.get("isMeta") is True or entry.get("isCompactSummary") is True:
        return
    opened = opening_of_message(lines.encode(entry.get("message")))
    if opened.prompt is not None:
        data |= {"first_prompt": opened.prompt, "first_prompt_locked": True}
    elif opened.command:
        data.setdefault("command_fallback", opened.command)
