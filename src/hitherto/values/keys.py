"""Session keys: which conversation a message of a chat channel belongs to. Pure.

| kind          | spelling |
|---------------|---|
| main          | `agent:{agent}:main`                    |
| directmessage | `agent:{agent}:{channel}:dm:{user}`     |
| group         | `agent:{agent}:{channel}:group:{group}` |
| task          | `agent:{agent}:cron:{job}`              |
| subagent      | `subagent:agent:{agent}:{subagent}`     |
| ephemeral     | `agent:{agent}:ephemeral:{uuid}`        |

The key of a chat, direct or in a group, may also name the account of the gateway's own that it is held with, behind the
channel (`agent:{agent}:{channel}:account:{account}:dm:{user}`), and a thread in it, at its end (`…:thread:{thread}`).

Every name in a key is percent-encoded (RFC 3986): ASCII letters, digits and `-._~` stand for themselves, all else is
the `%XX` of its UTF-8 bytes. So any id of any network can be a name, a key has exactly one spelling, and two names never
become one key: nothing is replaced, cut or put in lower case, or two people would read each other's messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from urllib.parse import quote, unquote_to_bytes

from hitherto.errors import InvalidInput, InvalidKey
from hitherto.limits import KEY_CHARS
from hitherto.model import Account

# These words stand where a channel would: `agent:a:cron:x` is a task.
_RESERVED = frozenset({"main", "cron", "ephemeral"})
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+"


class Kind(StrEnum):
    MAIN = "main"
    DIRECT_MESSAGE = "directmessage"
    GROUP = "group"
    TASK = "task"
    SUBAGENT = "subagent"
    EPHEMERAL = "ephemeral"


FORMS: Mapping[Kind, str] = {
    Kind.MAIN: "agent:{agent}:main",
    Kind.DIRECT_MESSAGE: "agent:{agent}:{channel}[:account:{account}]:dm:{name}[:thread:{thread}]",
    Kind.GROUP: "agent:{agent}:{channel}[:account:{account}]:group:{name}[:thread:{thread}]",
    Kind.TASK: "agent:{agent}:cron:{name}",
    Kind.SUBAGENT: "subagent:agent:{agent}:{name}",
    Kind.EPHEMERAL: "agent:{agent}:ephemeral:{name}",
}
"""How keys are spelled; what is in brackets may be left out."""
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_PATTERNS = {
    kind: re.compile(re.sub(r"\{(\w+)\}", rf"(?P<\1>{_NAME})", _OPTIONAL.sub(r"(?:\1)?", form)))
    for kind, form in FORMS.items()
}


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A well-formed key; `name` is the user, group, job, subagent or UUID, as it is known outside. Raises `InvalidKey`.

    A chat may be held with one of several accounts of the gateway's own, and in a thread.
    """

    kind: Kind
    agent: str
    channel: str | None = None
    name: str | None = None
    account: str | None = None
    thread: str | None = None

    def __post_init__(self) -> None:
        form = FORMS[self.kind]
        for what, text in (("channel", self.channel), ("name", self.name)):
            if (text is not None) != (f"{{{what}}}" in form):
                raise InvalidKey(f"a {self.kind} key {'needs a' if text is None else 'has no'} {what}")
        for what, text in (("account", self.account), ("thread", self.thread)):
            if text is not None and f"{{{what}}}" not in form:
                raise InvalidKey(f"a {self.kind} key has no {what}")
        if self.channel in _RESERVED:
            raise InvalidKey(f"{self.channel!r} is reserved and cannot be the name of a channel")
        if self.kind is Kind.EPHEMERAL and not _UUID.fullmatch(self.name or ""):
            raise InvalidKey("an ephemeral key ends with a UUID in lower case")
        if len(str(self)) > KEY_CHARS:
            raise InvalidKey(f"a session key may have at most {KEY_CHARS} characters")

    def __str__(self) -> str:
        names = {
            "agent": self.agent,
            "channel": self.channel,
            "name": self.name,
            "account": self.account,
            "thread": self.thread,
        }
        encoded = {what: _encoded(what, name) for what, name in names.items() if name is not None}
        form = _OPTIONAL.sub(
            lambda part: part[1] if part[1].split(":")[1] in encoded else "", FORMS[self.kind]
        )
        return form.format_map(encoded)


def parse_key(text: str) -> SessionKey:
    """The key that is spelled `text`; `str` of it is `text` again. Raises `InvalidKey`."""
    if len(text) > KEY_CHARS:
        raise InvalidKey(f"a session key may have at most {KEY_CHARS} characters, this one has {len(text)}")
    for kind, pattern in _PATTERNS.items():
        if found := pattern.fullmatch(text):
            names = {what: _decoded(name) for what, name in found.groupdict().items() if name is not None}
            return SessionKey(kind, **names)
    raise InvalidKey(
        f"{text!a:.120} is not a session key: use one of {', '.join(FORMS.values())}, and percent-encode everything but "
        "ASCII letters, digits and -._~ in names"
    )


def is_group(name: str | None) -> bool:
    """Whether this is the key of a chat of several people."""
    try:
        return name is not None and parse_key(name).kind is Kind.GROUP
    except InvalidKey:
        return False


LOOSE_FORMS: Mapping[str, Kind] = {
    "subagent:agent:*:*": Kind.SUBAGENT,
    "agent:*:*:dm:*": Kind.DIRECT_MESSAGE,
    "agent:*:*:group:*": Kind.GROUP,
    "agent:*:cron:*": Kind.TASK,
    "agent:*:main": Kind.MAIN,
}
"""Which kind a key is of, the first that fits, if it is well-formed: as the stores look for them. A name may be `dm` or `group`
itself: of what looks like both, the kind is open."""
_EITHER = tuple(form for form, kind in LOOSE_FORMS.items() if kind in (Kind.DIRECT_MESSAGE, Kind.GROUP))


def chat_of(key: str, channel: str | None) -> str:
    """What kind of chat a session with this key is, and in which channel, as one text; empty if it looks like none, or like
    two."""
    if all(fnmatchcase(key, form) for form in _EITHER):
        return ""
    kind = next((kind for form, kind in LOOSE_FORMS.items() if fnmatchcase(key, form)), None)
    return "" if kind is None else f"{kind}:{channel or ''}"


def is_ephemeral(name: str | None) -> bool:
    """Whether this is the key, and so the id, of a session that is never stored."""
    if name is None or f":{Kind.EPHEMERAL}:" not in name:
        return False
    try:
        return parse_key(name).kind is Kind.EPHEMERAL
    except InvalidKey:
        return False


def encode_name(name: str) -> str:
    """A name as it stands in keys."""
    return _encoded("name", name)


def _encoded(what: str, name: str) -> str:
    try:
        encoded = quote(name, safe="")
    except UnicodeEncodeError:
        raise InvalidKey(f"the {what} of a session key cannot have lone surrogates") from None
    if not encoded or "\0" in name:
        raise InvalidKey(f"the {what} of a session key cannot be empty or contain NUL")
    return encoded


def _decoded(text: str) -> str:
    """The name that is spelled so, if it is the one way to spell it."""
    try:
        name = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InvalidKey(
            f"{text!r:.120} in a session key is not the percent-encoded UTF-8 of a text"
        ) from None
    if _encoded("name", name) != text:
        raise InvalidKey(f"{text!r:.120} in a session key must be written {encode_name(name)!r:.120}")
    return name


# Which session a message goes to


class DmScope(StrEnum):
    """Which direct messages share a session: all, those of one person, those of one account on one channel."""

    MAIN = "main"
    PER_PEER = "per_peer"
    PER_CHANNEL_PEER = "per_channel_peer"


def dm_scope(text: str) -> DmScope:
    """The scope of this name; `per-peer` is `per_peer`. Raises `InvalidInput`."""
    try:
        return DmScope(text.replace("-", "_"))
    except ValueError:
        raise InvalidInput(f"a dm scope is one of {', '.join(DmScope)}, not {text!a:.60}") from None


@dataclass(frozen=True, slots=True)
class DmScopes:
    """Which scope holds where: a channel's own before an agent's own, and that before the one for all."""

    default: DmScope = DmScope.PER_PEER
    agents: Mapping[str, DmScope] = field(default_factory=dict)
    channels: Mapping[str, DmScope] = field(default_factory=dict)

    def holding(self, agent: str, channel: str) -> tuple[DmScope, str]:
        """The scope for an agent's messages on a channel, and where it was set."""
        if channel in self.channels:
            return self.channels[channel], f"set for the channel {channel}"
        if agent in self.agents:
            return self.agents[agent], f"set for the agent {agent}"
        return self.default, "the default"


def parse_scopes(text: str) -> DmScopes:
    """Scopes as a setting writes them: `per_peer, agent:ops=main, channel:irc=per_channel_peer`, each part optional.

    Raises `InvalidInput`.
    """
    default = DmScope.PER_PEER
    found: dict[str, dict[str, DmScope]] = {"agent": {}, "channel": {}}
    for part in filter(None, map(str.strip, text.split(","))):
        place, assigned, scope = part.rpartition("=")
        what, _, name = place.partition(":")
        if not assigned:
            default = dm_scope(part)
        elif what in found and name:
            found[what][name] = dm_scope(scope)
        else:
            raise InvalidInput(f"a dm scope is set for agent:NAME or channel:NAME, not {place!a:.60}")
    return DmScopes(default, found["agent"], found["channel"])


@dataclass(frozen=True, slots=True)
class Route:
    """Which session a message goes to, and why."""

    key: SessionKey
    scope: DmScope
    reason: str


def route(
    agent: str,
    peer: Account,
    *,
    group: str | None = None,
    account: str | None = None,
    thread: str | None = None,
    scope: DmScope | None = None,
    scopes: DmScopes = DmScopes(),  # noqa: B008 - a frozen value
    canonical: Account | None = None,
) -> Route:
    """The session of a message from `peer` to `agent`; `scope` is the caller's own wish.

    `account` is the one of the gateway's own that it was sent to, if the gateway has several on the channel: what is said to
    one is unknown to the other. A `thread` of a chat is a session of its own, unless all direct messages share one.

    `canonical` is the account that the peer's is linked to, by a link that was verified: under `per_peer` the person has
    one session, whichever account they write from. An account without a link is a person of its own, because the same
    id on two channels may be two people. Raises `InvalidKey`.
    """
    holds, where = (scope, "asked for") if scope is not None else scopes.holding(agent, peer.channel)
    own = SessionKey(Kind.DIRECT_MESSAGE, agent, *peer, account, thread)
    if group is not None:
        shared = SessionKey(Kind.GROUP, agent, peer.channel, group, account, thread)
        place = "group" if thread is None else "thread"
        return Route(
            shared, holds, f"a message in a {place} belongs to the {place}'s session, whoever wrote it"
        )
    why = f"dm_scope is {holds} ({where})"
    if holds is DmScope.MAIN:
        return Route(
            SessionKey(Kind.MAIN, agent), holds, f"{why}: all direct messages share the main session"
        )
    if holds is DmScope.PER_PEER and canonical is not None:
        linked = SessionKey(Kind.DIRECT_MESSAGE, agent, *canonical, thread=thread)
        return Route(linked, holds, f"{why}, and this account is linked to that of {canonical.channel}")
    rule = "an account without a link is a person of its own"
    if holds is DmScope.PER_CHANNEL_PEER:
        rule = "each account on each channel has a session of its own"
    return Route(own, holds, f"{why}: {rule}")
