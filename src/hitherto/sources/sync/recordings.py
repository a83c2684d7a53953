"""Sessions that the proxy recorded and that sync also reads from the agent's files: each is listed once.

Lists and searches show the recording; the synced session is archived and linked to it. If the agent was also prompted
without Hitherto, only its files have that: then the synced session is listed beside the recording.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence

from hitherto.errors import SessionNotFound
from hitherto.limits import CHANGES_PAGE, HISTORY_PAGE
from hitherto.model import RECORDED_IN, RECORDS, Entry, Principal, Session
from hitherto.service import Imported, Sessions
from hitherto.service.catalog.deletion import recording_of
from hitherto.sources import AGENTS

MOST = 32
"""The most sessions of agents that are linked to one recording."""
SLACK_MS = 5_000
"""The most that the time of a prompt in a recording and in the agent's file may differ: some agents round to seconds, some
write late."""
_OTHERS = re.compile(r"[^a-z0-9]+")


def source_of_agent(agent: str) -> str:
    """The source of the agent with this name: `claude` for `claude-agent-acp`. An agent without a source gets a name too."""
    words = [word for word in _OTHERS.split(agent.lower()) if word]
    return next((word for word in words if word in AGENTS), "-".join(words)[:40] or "agent")


def can_be_read(source: str) -> bool:
    """Whether sync can read sessions of this source."""
    return source in AGENTS


async def ensure_session(sessions: Sessions, who: Principal, imported: Imported) -> Session:
    """The session of this id; if it does not exist yet, it is created without messages."""
    try:
        return await sessions.get(who, imported.id)
    except SessionNotFound:
        await sessions.transfer.sync(who, imported, (), extends=True, revive=True)
        return await sessions.get(who, imported.id)


async def link_recording(
    sessions: Sessions, who: Principal, recording: Session, source: str, known_as: str
) -> Session:
    """Link an agent's session, known to it by this id, to its recording; once for each."""
    id = f"{source}:{known_as}"
    known = recording.meta.get(RECORDS, ())
    if id in known:
        return recording
    copy = Imported(
        id=id,
        source=source,
        created_at=recording.created_at,
        updated_at=recording.updated_at,
        cwd=recording.cwd,
        project=recording.project,
        archived=True,
        meta={RECORDED_IN: recording.id},
    )
    await ensure_session(sessions, who, copy)
    await sessions.catalog.set_own_meta(who, id, {RECORDED_IN: recording.id})
    await sessions.archive(who, id)
    return await sessions.catalog.set_own_meta(who, recording.id, {RECORDS: [*known, id][-MOST:]})


async def unlink_extended(sessions: Sessions, who: Principal, since: str) -> None:
    """Of the sessions that changed since, unlink and list again those with prompts that were not recorded."""
    while changes := await sessions.changes.since(who, after=since, limit=CHANGES_PAGE):
        for change in changes:
            since = change.position
            if change.kind == "sync":
                await _unlink_if_extended(sessions, who, change.session)


async def _unlink_if_extended(sessions: Sessions, who: Principal, session_id: str) -> None:
    try:
        copy = await sessions.get(who, session_id)
        recording = recording_of(copy)
        if recording is None:
            return
        begun = (await sessions.get(who, recording)).created_at
        recorded = [entry async for entry in _entries(sessions, who, recording)]
        entries = [entry async for entry in _entries(sessions, who, copy.id)]
    except SessionNotFound:  # deleted meanwhile
        return
    if has_unrecorded_prompts(entries, recorded, begun):
        await sessions.catalog.set_own_meta(who, copy.id, {RECORDED_IN: None})
        await sessions.archive(who, copy.id, archived=False)


def has_unrecorded_prompts(entries: Sequence[Entry], recorded: Sequence[Entry], begun: int) -> bool:
    """Whether the agent was prompted while no turn was being recorded. Entries from before the recording began do not count:
    the agent may have them differently."""
    times = [entry.at for entry in recorded]
    given = max((at for at in times if at <= begun), default=begun)
    for prompt in entries:
        if prompt.role != "user" or prompt.meta.get("meta") is True or prompt.at <= given:
            continue
        at = bisect_right(times, prompt.at)
        within = at < len(recorded) and recorded[at].role != "user"
        near = any(abs(time - prompt.at) <= SLACK_MS for time in times[max(at - 1, 0) : at + 1])
        if not within and not near:
            return True
    return False


async def _entries(sessions: Sessions, who: Principal, session_id: str) -> AsyncIterator[Entry]:
    after: str | None = None
    while True:
        page = await sessions.history(who, session_id, view="conversation", limit=HISTORY_PAGE, after=after)
        for entry in page.entries:
            yield entry
        if (after := page.next) is None:
            return
