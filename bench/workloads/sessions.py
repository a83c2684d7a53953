"""The sessions that are listed, and the filters that are asked of them.

Each filter on a value is asked twice: for a value that every fifth session has, and for one that only `SELDOM`
sessions have, whatever the size; those are spread evenly from the newest to the oldest, so that without an index they
are hard to find.
"""

from __future__ import annotations

from hitherto.model import Entry, Filter, Session, Status, Text
from hitherto.values.days import DAY_MS, day_text

SELDOM = 70
EVERY = 5
FIRST_AT = 1_700_000_000_000
STEP_MS = 1_000
# A session lasts as long as it takes to begin this many others.
LASTS = 100
OFTEN, SELDOM_DAY = 100, 200
"""Days on which something was said in every fifth session, and in few."""


def session(number: int, size: int) -> Session:
    """Session `number` of a catalogue of `size`, oldest activity first."""
    updated = FIRST_AT + number * STEP_MS
    status = _value(number, size, 4, ("waiting", "failed", "idle"))
    return Session(
        id=f"{number:08d}-bench",
        revision=1,
        created_at=updated - number * 37 % LASTS * STEP_MS,
        updated_at=updated,
        cwd=_value(number, size, 0, ("/projects/often", "/projects/seldom", f"/projects/{number % 997}")),
        project=_value(number, size, 8, ("host/often", "host/seldom", f"host/{number % 97}")),
        agent_id=_value(number, size, 1, ("often", "seldom", f"agent-{number % 97}")),
        channel=_value(number, size, 2, ("often", "seldom", f"channel-{number % 89}")),
        source=_value(number, size, 3, ("often", "seldom", f"source-{number % 83}")),
        status=_status(status),
        tags=(_value(number, size, 5, ("often", "seldom", f"tag-{number % 79}")), "all"),
        title=f"Session {number} about {_value(number, size, 6, ('bread', 'saffron', 'something else'))}",
        title_by="user",
        pinned=_is_seldom(number, size, 7),
        # Never one of the few: a list leaves archived sessions out, and each filter must find all of its few.
        archived=number // EVERY % EVERY == 2
        and not any(_is_seldom(number, size, field) for field in range(10)),
        message_count=number % 400,
    )


def said(number: int, size: int) -> Entry | None:
    """What was said in session `number`, long ago, if anything was: by it the session is found by day."""
    day = _value(number, size, 9, ("often", "seldom", ""))
    at = {"often": OFTEN, "seldom": SELDOM_DAY}.get(day)
    return None if at is None else Entry(id="said", at=at * DAY_MS, role="user", parts=(Text(text="early"),))


def filters(size: int) -> dict[str, Filter]:
    """Each single filter by the name it has in the tables."""

    def at(share: float) -> int:
        return FIRST_AT + int(size * share) * STEP_MS

    return {
        "none": Filter(),
        "cwd, every fifth": Filter(cwd="/projects/often"),
        "cwd, seldom": Filter(cwd="/projects/seldom"),
        "project, every fifth": Filter(project="host/often"),
        "project, seldom": Filter(project="host/seldom"),
        "day, every fifth": Filter(day=day_text(OFTEN)),
        "day, seldom": Filter(day=day_text(SELDOM_DAY)),
        "agent, every fifth": Filter(agent_id="often"),
        "agent, seldom": Filter(agent_id="seldom"),
        "channel, every fifth": Filter(channel="often"),
        "channel, seldom": Filter(channel="seldom"),
        "source, every fifth": Filter(source="often"),
        "source, seldom": Filter(source="seldom"),
        "status, every fifth": Filter(status="waiting"),
        "status, seldom": Filter(status="failed"),
        "tag, every fifth": Filter(tags=("often",)),
        "tag, seldom": Filter(tags=("seldom",)),
        "title, every fifth": Filter(text="bread"),
        "title, seldom": Filter(text="saffron"),
        "archived only": Filter(archived="only"),
        "pinned": Filter(pinned=True),
        "created after": Filter(created_after=at(0.75)),
        "created range": Filter(created_after=at(0.25), created_before=at(0.75)),
        "updated range": Filter(updated_after=at(0.25), updated_before=at(0.75)),
    }


# Each half is met by every fifth session, both together by none: the longest way to an empty page.
NEVER_BOTH = Filter(cwd="/projects/often", agent_id="often")


def _is_seldom(number: int, size: int, offset: int) -> bool:
    place = (number + offset * 3) % size
    return place * SELDOM // size != (place - 1) * SELDOM // size


def _value(number: int, size: int, offset: int, values: tuple[str, str, str]) -> str:
    often, seldom, other = values
    if _is_seldom(number, size, offset):
        return seldom
    return often if (number + offset) % EVERY == 0 else other


def _status(name: str) -> Status:
    known: dict[str, Status] = {"waiting": "waiting", "failed": "failed", "idle": "idle"}
    return known[name]
