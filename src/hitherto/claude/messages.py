"""The messages of a session and of its subagents, from Claude Code's own files."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from hitherto.claude import lines, paths
from hitherto.claude.chain import NOTHING, Link, is_aside, is_queued_prompt, is_spoken
from hitherto.claude.lines import Damage
from hitherto.claude.paths import read_sidecar, session_folder
from hitherto.claude.transcript import Transcript, damage_of, read_transcript
from hitherto.claude.tree import Branch, conversation, subagent_conversation

log = logging.getLogger(__name__)

T = TypeVar("T")
Directory = str | os.PathLike[str] | None
_AGENT = "agent-"


@dataclass
class SessionMessage:
    """One message of a conversation; `message` is as the transcript has it.

    In a subagent's messages, `parent_tool_use_id` and `parent_agent_id` name the call and the agent that started it.
    The message of a system record has `role`, `content`, `subtype` and `compactMetadata`.
    """

    type: Literal["user", "assistant", "system"]
    uuid: str
    session_id: str
    message: Any
    parent_tool_use_id: str | None = None
    parent_agent_id: str | None = None

    @property
    def role(self) -> str:
        """The role in the message, else its type."""
        role = self.message.get("role") if isinstance(self.message, dict) else None
        return role if isinstance(role, str) else self.type

    @property
    def content(self) -> Any:
        """A text or a list of blocks; None if the message has none."""
        return self.message.get("content") if isinstance(self.message, dict) else None


def get_session_messages(
    session_id: str,
    directory: Directory = None,
    limit: int | None = None,
    offset: int = 0,
    *,
    dir: Directory = None,
    include_system_messages: bool = False,
    branch: Branch = "sdk",
) -> list[SessionMessage]:
    """The messages of a session, oldest first; none if there is no such session.

    `dir` is another name for `directory`; without one, all projects are searched. A limit of 0 or less means no limit.
    `branch`: a transcript may have several branches. `sdk` is the last one in the file, as the SDKs show it; `cli` is the
    one that `claude --resume` continues.
    """
    if branch not in ("sdk", "cli"):
        raise ValueError(f"branch must be 'sdk' or 'cli', not {branch!r}")
    path = paths.find_session(session_id, paths.one_of(directory, dir))

    def visible(entry: Link) -> bool:
        if entry.type == "system":
            return include_system_messages and not entry.is_meta
        return is_shown(entry)

    return _read(path, lambda links: conversation(links, branch), visible, limit, offset) if path else []


def is_shown(entry: Link) -> bool:
    """Whether an entry is a message that was said in the conversation itself."""
    return (is_spoken(entry) or is_queued_prompt(entry)) and not is_aside(entry)


def list_subagents(session_id: str, directory: Directory = None, *, dir: Directory = None) -> list[str]:
    """The ids of the subagents that a session started, in order; none if there is no such session."""
    return [agent for agent, _ in _subagents(session_id, paths.one_of(directory, dir))]


def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: Directory = None,
    limit: int | None = None,
    offset: int = 0,
    *,
    dir: Directory = None,
) -> list[SessionMessage]:
    """The messages of a subagent, oldest first; none if there is no such session or subagent."""
    found = _subagents(session_id, paths.one_of(directory, dir)) if agent_id else iter(())
    path = next((path for agent, path in found if agent == agent_id), None)
    if path is None:
        return []
    messages = _read(path, subagent_conversation, is_spoken, limit, offset)
    return with_origin(messages, read_sidecar(path.with_suffix(".meta.json")))


def with_origin(messages: list[SessionMessage], meta: dict[str, Any]) -> list[SessionMessage]:
    """The messages of a subagent with what its metadata says of the call and the agent that started it."""
    call, parent = meta.get("toolUseId"), meta.get("parentAgentId")
    for message in messages:
        message.parent_tool_use_id = call if isinstance(call, str) else None
        message.parent_agent_id = parent if isinstance(parent, str) else None
    return messages


def check_session(session_id: str, directory: Directory = None, *, dir: Directory = None) -> Damage | None:
    """Counts of the damage in a session's transcript; None if there is no such session."""
    path = paths.find_session(session_id, paths.one_of(directory, dir))
    return damage_of(path) if path else None


def _read(
    path: Path,
    chosen: Callable[[Sequence[Link]], list[int]],
    visible: Callable[[Link], bool],
    limit: int | None,
    offset: int,
) -> list[SessionMessage]:
    try:
        transcript = read_transcript(path)
        if transcript.damage:
            log.warning("transcript of session %s is damaged: %s", path.stem, transcript.damage)
        return messages_of(transcript, chosen, visible, limit, offset)
    except OSError:
        return []


def messages_of(
    transcript: Transcript,
    chosen: Callable[[Sequence[Link]], list[int]],
    visible: Callable[[Link], bool],
    limit: int | None,
    offset: int,
) -> list[SessionMessage]:
    """One page of the chosen and visible messages; only these are decoded."""
    links = transcript.links
    limit, offset = paths.whole_number("limit", limit), paths.whole_number("offset", offset)
    shown = (place for place in chosen(links) if visible(links[place]))
    return [_message(entry) for entry in transcript.full(_page(shown, limit, offset))]


def _page(rows: Iterator[T], limit: int, offset: int) -> list[T]:
    """The rows of a page; no more are read than needed."""
    if limit <= 0:
        return list(islice(rows, max(offset, 0), None))
    if offset >= 0:
        return list(islice(rows, offset, offset + limit))
    return list(rows)[offset : offset + limit]


def _message(entry: Link) -> SessionMessage:
    if entry.type == "system":
        return _made(entry, "system", _system_message(entry))
    if entry.type == "attachment":
        return _made(entry, "user", _queued_message(entry))
    return _made(entry, "user" if entry.type == "user" else "assistant", lines.decode(entry.message))


def _made(entry: Link, kind: Literal["user", "assistant", "system"], message: Any) -> SessionMessage:
    return SessionMessage(kind, entry.uuid or "", entry.session_id or "", message)


def _system_message(entry: Link) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "system", "content": lines.decode(entry.content)}
    if entry.subtype is not None:
        message["subtype"] = entry.subtype
    if entry.compact_metadata is not NOTHING:
        message["compactMetadata"] = lines.decode(entry.compact_metadata)
    return message


def _queued_message(entry: Link) -> dict[str, Any]:
    attachment = lines.decode(entry.attachment)
    prompt = attachment.get("prompt") if isinstance(attachment, dict) else None
    return {"role": "user", "content": prompt}


def _subagents(session_id: str, directory: str | os.PathLike[str] | None) -> Iterator[tuple[str, Path]]:
    path = paths.find_session(session_id, directory)
    return agent_files(session_folder(path) / "subagents") if path else iter(())


def agent_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Ids and transcripts of the agents below a folder, by name; links are not followed."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from agent_files(Path(entry.path))
        elif _is_agent_file(entry):
            yield entry.name.removeprefix(_AGENT).removesuffix(paths.TRANSCRIPT), Path(entry.path)


def _is_agent_file(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    named = name.startswith(_AGENT) and name.endswith(paths.TRANSCRIPT)
    return named and entry.is_file(follow_symlinks=False)
