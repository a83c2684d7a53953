"""Session keys: which conversation a message of a chat channel belongs to. Pure.

| kind          | spelling                                |
|---------------|-----------------------------------------|
| main          | `agent:{agent}:main`                    |
| directmessage | `agent:{agent}:{channel}:dm:{user}`     |
| group         | `agent:{agent}:{channel}:group:{group}` |
| task          | `agent:{agent}:cron:{job}`              |
| subagent      | `subagent:agent:{agent}:{subagent}`     |
| ephemeral     | `agent:{agent}:ephemeral:{uuid}`        |

A key has exactly one spelling and is never cleaned up: names are kept letter for letter, because two people whose
names become one key would read each other's messages. Only a user and a group may contain `:`, as the ids of some
networks do; they stand last, so that nothing else can be meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from recollect.errors import InvalidKey
from recollect.limits import KEY_CHARS

# The channel of a person whose accounts on several channels are linked.
LINKED = "identity"
# These words stand where a channel would: `agent:a:cron:x` is a task.
_RESERVED = frozenset({"main", "cron", "ephemeral"})
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Kind(StrEnum):
    MAIN = "main"
    DIRECT_MESSAGE = "directmessage"
    GROUP = "group"
    TASK = "task"
    SUBAGENT = "subagent"
    EPHEMERAL = "ephemeral"


class DmScope(StrEnum):
    """Which direct messages share a session: all, those of one person, those of one account on one channel."""

    MAIN = "main"
    PER_PEER = "per_peer"
    PER_CHANNEL_PEER = "per_channel_peer"


_NAME = r"([^:]+)"
_FORMS: Mapping[Kind, tuple[str, re.Pattern[str]]] = {
    Kind.MAIN: ("agent:{agent}:main", re.compile(rf"agent:{_NAME}:main")),
    Kind.TASK: ("agent:{agent}:cron:{name}", re.compile(rf"agent:{_NAME}:cron:(?P<name>[^:]+)")),
    Kind.EPHEMERAL: (
        "agent:{agent}:ephemeral:{name}",
        re.compile(rf"agent:{_NAME}:ephemeral:(?P<name>[^:]+)"),
    ),
    Kind.DIRECT_MESSAGE: (
        "agent:{agent}:{channel}:dm:{name}",
        re.compile(rf"agent:{_NAME}:(?P<channel>[^:]+):dm:(?P<name>.+)"),
    ),
    Kind.GROUP: (
        "agent:{agent}:{channel}:group:{name}",
        re.compile(rf"agent:{_NAME}:(?P<channel>[^:]+):group:(?P<name>.+)"),
    ),
    Kind.SUBAGENT: (
        "subagent:agent:{agent}:{name}",
        re.compile(rf"subagent:agent:{_NAME}:(?P<name>[^:]+)"),
    ),
}
_WITH_CHANNEL = frozenset({Kind.DIRECT_MESSAGE, Kind.GROUP})


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A well-formed key; `name` is the user, group, job, subagent or UUID. Raises `InvalidKey`."""

    kind: Kind
    agent: str
    channel: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        _check("the agent", self.agent)
        if (self.channel is not None) != (self.kind in _WITH_CHANNEL):
            raise InvalidKey(f"a {self.kind} key {'has no' if self.channel else 'needs a'} channel")
        if (self.name is None) != (self.kind is Kind.MAIN):
            raise InvalidKey(f"a {self.kind} key {'needs a' if self.name is None else 'has no'} name")
        if self.channel is not None:
            _check("the channel", self.channel)
        if self.channel in _RESERVED:
            raise InvalidKey(f"{self.channel!r} cannot be the name of a channel")
        if self.name is not None:
            _check("the name", self.name, colon=self.kind in _WITH_CHANNEL)
        if self.kind is Kind.EPHEMERAL and not _UUID.fullmatch(self.name or ""):
            raise InvalidKey("an ephemeral key ends with a UUID")
        if len(str(self)) > KEY_CHARS:
            raise InvalidKey(f"a session key may have at most {KEY_CHARS} characters")

    def __str__(self) -> str:
        form, _ = _FORMS[self.kind]
        return form.format(agent=self.agent, channel=self.channel, name=self.name)


def parse_key(text: str) -> SessionKey:
    """The key that is spelled `text`; `str` of it is `text` again. Raises `InvalidKey`."""
    if len(text) > KEY_CHARS:
        raise InvalidKey(f"a session key may have at most {KEY_CHARS} characters, this one has {len(text)}")
    for kind, (_, pattern) in _FORMS.items():
        if found := pattern.fullmatch(text):
            return SessionKey(kind, found[1], **found.groupdict())
    forms = ", ".join(form for form, _ in _FORMS.values())
    raise InvalidKey(f"{text!r} is not a session key; a key is one of {forms}")


def route_dm(
    agent: str,
    channel: str,
    user: str,
    scope: DmScope = DmScope.PER_PEER,
    links: Mapping[str, Collection[str]] | None = None,
) -> SessionKey:
    """The session of a direct message that `user` sent to `agent` on `channel`.

    `links` names the accounts (`channel:user`) of each known person. With `per_peer` all accounts of a person share
    one session; an account that is not linked is a person of its own, because the same id on two channels may be two
    people. Raises `InvalidKey`, also for an account that two people claim.
    """
    own = SessionKey(Kind.DIRECT_MESSAGE, agent, channel, user)
    if channel == LINKED:
        raise InvalidKey(f"{LINKED!r} stands for people with linked accounts and cannot be a channel")
    if scope is DmScope.MAIN:
        return SessionKey(Kind.MAIN, agent)
    if scope is DmScope.PER_CHANNEL_PEER:
        return own
    account = f"{channel}:{user}"
    people = [person for person, accounts in (links or {}).items() if account in tuple(accounts)]
    if len(people) > 1:
        raise InvalidKey(f"the account {account} is linked to more than one person: {', '.join(people)}")
    return SessionKey(Kind.DIRECT_MESSAGE, agent, LINKED, people[0]) if people else own


def _check(what: str, name: str, *, colon: bool = False) -> None:
    if not name or not name.isprintable() or " " in name:
        raise InvalidKey(f"{what} of a session key must be visible characters without spaces, not {name!r}")
    if ":" in name and not colon:
        raise InvalidKey(f"{what} of a session key cannot contain ':', as {name!r} does")
