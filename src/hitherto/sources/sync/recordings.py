"""Sessions that were recorded while an agent had them, and that its own files tell as well: each is listed once.

The recording stands in lists and searches; what sync reads is archived, and linked with it. What was said to the agent
past Hitherto is in its files only: then they are a session beside the recording.
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
"""So many sessions of agents are linked with one recording."""
SLACK_MS = 5_000
"""So far apart are the times of a prompt as it was recorded and as the agent wrote it down, at most: some agents round to
seconds, some take their time."""
_OTHERS = re.compile(r"[^a-z0-9]+")


def source_of_agent(agent: str) -> str:
    """The source of an agent that calls itself so: `claude` for `claude-agent-acp`. One that cannot be read gets a name too."""
    words = [word for word in _OTHERS.split(agent.lower()) if word]
    return next((word for word in words if word in AGENTS), "-".join(words)[:40] or "agent")


def can_be_read(source: str) -> bool:
    """Whether sync may find sessions of this source."""
    return source in AGENTS


async def note(sessions: Sessions, who: Principal, imported: Imported) -> Session:
    """The session of this id; one that is not there yet has nothing but what is known of it."""
    try:
        return await sessions.get(who, imported.id)
    except SessionNotFound:
        await sessions.transfer.sync(who, imported, (), extends=True, revive=True)
        return await sessions.get(who, imported.id)


async def claim(
    sessions: Sessions, who: Principal, recording: Session, source: str, known_as: str
) -> Session:
    """Say that the session which this source calls so is the one that is being recorded; done once for each."""
    id = f"{source}:{known_as}"
    known = recording.meta.get(RECORDS, ())
    if id in known:
        return recording
    told = Imported(
        id=id,
        source=source,
        created_at=recording.created_at,
        updated_at=recording.updated_at,
        cwd=recording.cwd,
        project=recording.project,
        archived=True,
        meta={RECORDED_IN: recording.id},
    )
    await note(sessions, who, told)
    await sessions.catalog.set_own_meta(who, id, {RECORDED_IN: recording.id})
    await sessions.archive(who, id)
    return await sessions.catalog.set_own_meta(who, recording.id, {RECORDS: [*known, id][-MOST:]})


async def part(sessions: Sessions, who: Principal, since: int) -> None:
    """Of what has changed since, list again what tells more than its recording. It is linked with it no more."""
    while changes := await sessions.changes.since(who, after=since, limit=CHANGES_PAGE):
        for change in changes:
            since = change.number
            if change.kind == "sync":
                await _part_one(sessions, who, change.session)


async def _part_one(sessions: Sessions, who: Principal, session_id: str) -> None:
    try:
        copy = await sessions.get(who, session_id)
        recording = recording_of(copy)
        if recording is None:
            return
        begun = (await sessions.get(who, recording)).created_at
        recorded = [entry async for entry in _entries(sessions, who, recording)]
        told = [entry async for entry in _entries(sessions, who, copy.id)]
    except SessionNotFound:  # deleted meanwhile
        return
    if has_unrecorded_prompts(told, recorded, begun):
        await sessions.catalog.set_own_meta(who, copy.id, {RECORDED_IN: None})
        await sessions.archive(who, copy.id, archived=False)


def has_unrecorded_prompts(told: Sequence[Entry], recorded: Sequence[Entry], begun: int) -> bool:
    """Whether the agent was prompted when no turn was being recorded. What the recording began with at that time, it was
    given: the agent may tell it otherwise."""
    times = [entry.at for entry in recorded]
    given = max((at for at in times if at <= begun), default=begun)
    for prompt in told:
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
