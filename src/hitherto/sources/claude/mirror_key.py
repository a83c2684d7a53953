"""The keys under which `claude-agent-sdk` mirrors transcripts, and their ids here. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from hitherto.claude.paths import is_session_id
from hitherto.errors import InvalidInput
from hitherto.limits import NAME_CHARS, is_storable
from hitherto.model import MIRRORED, Json, Session, Value, encode
from hitherto.sources.claude import parse
from hitherto.sources.claude.files import AGENT, SUBAGENTS

PREFIX = "claude-sdk:"
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class TranscriptKey(Value, frozen=True):
    """A transcript as the SDK knows it, and the ids that it may have here."""

    project_key: str
    session_id: str
    subpath: str | None = None

    @property
    def agent(self) -> str | None:
        """The subagent whose transcript this is, if it is one's."""
        folder, _, name = (self.subpath or "").rpartition("/")
        inside = folder == SUBAGENTS or folder.startswith(f"{SUBAGENTS}/")
        agent = name.removeprefix(AGENT) if inside and name.startswith(AGENT) else ""
        return agent if agent and _PLAIN.fullmatch(agent) else None

    @property
    def file_id(self) -> str | None:
        """The id of the session that sync reads from the same transcript in a file, if there can be one."""
        if not is_session_id(self.session_id):
            return None
        if self.subpath is None:
            return parse.session_id(self.session_id)
        return None if self.agent is None else parse.child_id(self.session_id, self.agent)

    @property
    def own_id(self) -> str:
        """An id that no other transcript has, whatever its project and its name."""
        main = self.main
        label = main.session_id if _PLAIN.fullmatch(main.session_id) else ""
        own = f"{PREFIX}{label}:{_digest([main.project_key, main.session_id])[:32]}"
        return own if self.subpath is None else f"{own}/{short(self.subpath)}"

    @property
    def main(self) -> TranscriptKey:
        """The session that it belongs to."""
        return TranscriptKey(project_key=self.project_key, session_id=self.session_id)

    @property
    def channel(self) -> str:
        """A value that all transcripts of the project share, to list them by."""
        return PREFIX + short(self.project_key)


def transcript_key(key: Mapping[str, Any]) -> TranscriptKey:
    """The SDK's key, checked."""
    texts = (key["project_key"], key["session_id"], key.get("subpath") or "")
    if not all(isinstance(text, str) for text in texts):
        raise InvalidInput("the parts of a session key must be strings")
    return TranscriptKey(project_key=texts[0], session_id=texts[1], subpath=texts[2] or None)


def mirrored_as(session: Session) -> Json:
    """What a session's meta says of its mirror: its key, its summary; empty if it is not mirrored."""
    found = session.meta.get(MIRRORED)
    return found if isinstance(found, dict) else {}


def key_of(session: Session) -> TranscriptKey | None:
    """The key under which a session is mirrored; None if it is not."""
    kept = mirrored_as(session)
    return transcript_key(kept) if "session_id" in kept and "project_key" in kept else None


def short(text: str) -> str:
    """The text if it is valid in an id, else its digest; two texts never get the same."""
    fits = len(text) < NAME_CHARS // 2 and is_storable(text) and text[:1] != "~"
    return text if fits else f"~{_digest(text)}"


def _digest(value: object) -> str:
    return hashlib.sha256(encode(value)).hexdigest()
