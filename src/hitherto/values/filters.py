"""What a filter means, for one session. Stores may answer from an index; the answer must be the same. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from hitherto.errors import InvalidCwd, InvalidInput, InvalidKey, TooLarge
from hitherto.limits import CONDITIONS, CWD_CHARS, checked_length, checked_number, is_storable
from hitherto.model import (
    RESERVED,
    STATUSES,
    Condition,
    Filter,
    Session,
    Status,
    decode_json,
    encode,
    is_subagent,
)
from hitherto.values import words
from hitherto.values.days import day_number, day_text
from hitherto.values.keys import parse_key
from hitherto.values.words import Term


def normal_cwd(cwd: str) -> str:
    """The one spelling of an absolute path: no double or trailing slashes, no `.` and `..`."""
    if not isinstance(cwd, str) or not cwd.startswith("/"):
        raise InvalidCwd(f"a working directory must be an absolute path, not {cwd!r}")
    if "\0" in cwd:
        raise InvalidCwd("a working directory cannot contain NUL")
    checked_length(cwd, CWD_CHARS, "a working directory")
    path = posixpath.normpath(cwd)
    return path[1:] if path.startswith("//") else path


def normal_filter(given: Filter) -> Filter:
    """The filter with its values checked and spelled the one way."""
    if given.archived not in ("exclude", "include", "only"):
        raise InvalidInput(f"archived is exclude, include or only, not {given.archived!r}")
    if given.status is not None and given.status not in STATUSES:
        raise InvalidInput(f"status is one of {', '.join(STATUSES)}, not {given.status!r}")
    for text in (given.agent_id, given.channel, given.source, given.project, *given.tags):
        if text is not None and not is_storable(text):
            raise InvalidInput("a filter's texts cannot contain NUL or lone surrogates")
    for at in (given.created_after, given.created_before, given.updated_after, given.updated_before):
        if at is not None:
            checked_number(at, "a bound in time")
    if len(given.where) > CONDITIONS:
        raise TooLarge(f"a filter may have at most {CONDITIONS} conditions, this one has {len(given.where)}")
    cwd = None if given.cwd is None else normal_cwd(given.cwd)
    return Filter(
        cwd=cwd,
        project=given.project,
        agent_id=given.agent_id,
        channel=given.channel,
        source=given.source,
        native=given.native,
        status=given.status,
        tags=tuple(sorted(set(given.tags))),
        text=given.text or None,
        archived=given.archived,
        pinned=given.pinned,
        created_after=given.created_after,
        created_before=given.created_before,
        updated_after=given.updated_after,
        updated_before=given.updated_before,
        day=None if given.day is None else day_text(day_number(given.day)),
        subagents=bool(given.subagents),
        where=tuple(map(_normal, given.where)),
    )


def _normal(given: Condition) -> Condition:
    if given.field not in _HOLDS:
        raise InvalidInput(f"a condition is about one of {', '.join(_HOLDS)}, not {given.field!r:.80}")
    if given.field == "metadata":
        for value in given.values:
            _named_value(value)
    if not all(map(is_storable, given.values)):
        raise InvalidInput("a filter's texts cannot contain NUL or lone surrogates")
    if len(given.values) > CONDITIONS:
        raise TooLarge(f"a condition may have at most {CONDITIONS} values, this one has {len(given.values)}")
    return given


def title_text(session: Session) -> str:
    """The text under which a session's title is found: the title and the earlier ones."""
    return "\n".join(filter(None, (session.title, *session.earlier_titles)))


def title_tokens(session: Session) -> list[str]:
    """The tokens of `title_text`."""
    return words.tokens(words.searchable(title_text(session)))


def text_terms(given: Filter) -> tuple[Term, ...]:
    """The terms that `text` asks for, all of which the title must have."""
    return words.parse_words(given.text) if given.text else ()


def statuses(given: Filter) -> tuple[Status, ...]:
    """What a session may be doing; nothing if that was not asked for. A turn that waits for an answer runs."""
    if given.status is None:
        return ()
    return ("running", "waiting") if given.status == "running" else (given.status,)


def passes(session: Session, given: Filter) -> bool:
    """Whether the session is one that the (normal) filter asks for, whatever the day: that depends on its entries."""
    equal = (
        (given.cwd, session.cwd),
        (given.project, session.project),
        (given.agent_id, session.agent_id),
        (given.channel, session.channel),
        (given.source, session.source),
        (given.native, session.source is None),
        (given.pinned, session.pinned),
    )
    if any(want is not None and want != have for want, have in equal):
        return False
    if given.status is not None and session.status not in statuses(given):
        return False
    if given.archived != "include" and session.archived != (given.archived == "only"):
        return False
    if not set(given.tags) <= set(session.tags):
        return False
    if not _within(session.created_at, given.created_after, given.created_before):
        return False
    if not _within(session.updated_at, given.updated_after, given.updated_before):
        return False
    if not all(holds(each, session) for each in given.where):
        return False
    return not given.text or words.matches(text_terms(given), title_tokens(session))


def holds(condition: Condition, session: Session) -> bool:
    """Whether the session is as the condition asks."""
    is_so = _HOLDS[condition.field]
    return condition.out != any(is_so(session, value) for value in condition.values)


def is_like(value: str, name: str | None) -> bool:
    """Whether a name is this value, or begins with what stands before its `*`."""
    if name is None:
        return False
    return name.startswith(value[:-1]) if value.endswith("*") else name == value


HERE = "hitherto"
"""The source of sessions that were not read from another agent."""
STATES: dict[str, Callable[[Session], bool]] = {
    "archived": lambda session: session.archived,
    "failed": lambda session: session.status == "failed",
    "fork": lambda session: session.parent is not None and not is_subagent(session),
    "pinned": lambda session: session.pinned,
    "running": lambda session: session.status in ("running", "waiting"),
    "subagent": is_subagent,
    "synced": lambda session: session.source is not None,
    "waiting": lambda session: session.status == "waiting",
}
"""What a session can be said to be. One `failed` if its last turn did."""


def kind_of(session: Session) -> str | None:
    """The kind of chat that a session is, by its key; None without one."""
    with suppress(InvalidKey):
        return None if session.key is None else str(parse_key(session.key).kind)
    return None


def metadata_condition(name: str, value: Any) -> str:
    """What a condition on `metadata` asks for: that the session has this value under this name."""
    return encode([name, value]).decode()


def _named_value(wanted: str) -> tuple[str, Any]:
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        match decode_json(wanted.encode("utf-8", "surrogatepass")):
            case [str(name), value]:
                return name, value
    raise InvalidInput("a condition on metadata is a list in JSON: a name and a value")


def _has_metadata(session: Session, wanted: str) -> bool:
    name, value = _named_value(wanted)
    return name in session.meta and not name.startswith(RESERVED) and bool(session.meta[name] == value)


_HOLDS: dict[str, Callable[[Session, str], bool]] = {
    "agent": lambda session, value: is_like(value, session.source) or is_like(value, session.agent_id),
    "branch": lambda session, value: is_like(value, session.branch),
    "channel": lambda session, value: is_like(value, session.channel),
    "cwd": lambda session, value: is_like(value, session.cwd),
    "kind": lambda session, value: kind_of(session) == value,
    "metadata": lambda session, value: _has_metadata(session, value),
    "parent": lambda session, value: session.parent == value,
    "is": lambda session, value: value in STATES and STATES[value](session),
    "project": lambda session, value: is_like(value, session.project),
    "source": lambda session, value: is_like(value, session.source or HERE),
    "tag": lambda session, value: any(is_like(value, tag) for tag in session.tags),
    "title": lambda session, value: words.matches(words.parse_words(value), title_tokens(session)),
}
"""What each field of a query asks of a session."""


def _within(at: int, after: int | None, before: int | None) -> bool:
    return (after is None or at >= after) and (before is None or at < before)
