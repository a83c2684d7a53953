"""What a token is good for: its scopes, of which none includes another, and what it is restricted to. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from hitherto.errors import HithertoError, InvalidInput, TooLarge
from hitherto.limits import KEY_CHARS, NAME_CHARS, REACH_NAMES, is_storable
from hitherto.model import Account, Fact, Reach, Session, Token, TokenRule, encode
from hitherto.values.checksums import checksum
from hitherto.values.keys import encode_name, parse_key

MEANINGS: Mapping[str, str] = {
    "read": "read sessions and memory",
    "write": "create, change and delete sessions",
    "run": "run prompts",
    "raw": "export with secrets included",
    "commands": "start programs on the server",
    "admin": "manage tokens, identities and the whole store",
}
SCOPES = tuple(MEANINGS)
UNRESTRICTED = ("commands", "admin")
"""Scopes that a restricted token cannot have: by these everything can be reached."""
USUAL = ("read", "write", "run")
"""The default scopes of a token: its owner's sessions, and nothing of the machine."""


def checked_scopes(given: Sequence[str]) -> tuple[str, ...]:
    """The scopes in the order of the table, each once. Raises `InvalidInput` for none, and for an unknown one."""
    if isinstance(given, str) or not given:
        raise InvalidInput(f"a token needs a list of scopes, some of {', '.join(SCOPES)}")
    unknown = [scope for scope in given if scope not in SCOPES]
    if unknown:
        raise InvalidInput(f"a scope is one of {', '.join(SCOPES)}, not {unknown[0]!r:.40}")
    return tuple(scope for scope in SCOPES if scope in given)


# What a token reaches of its owner's, by agent, channel, session key and person

STARS = 4
"""A pattern has at most so many, so that it is compared quickly whatever it is compared with."""


def checked_reach(reach: Reach) -> Reach | None:
    """The reach with each name once, in order; None if it restricts nothing. Raises `InvalidInput` and `TooLarge`."""
    made = Reach(
        agents=_names(reach.agents, "agents"),
        channels=_names(reach.channels, "channels"),
        keys=_patterns(reach.keys, "keys"),
        people=_names(reach.people, "people"),
        methods=_patterns(reach.methods, "methods"),
    )
    return None if made == Reach() else made


def restricts_sessions(reach: Reach) -> bool:
    """Whether some sessions are out of reach."""
    return bool(reach.agents or reach.channels or reach.keys or reach.people)


def reaches(reach: Reach, session: Session) -> bool:
    """Whether a session is within reach: all that is restricted must hold."""
    person = None if session.identity is None else session.identity.identity_id
    return (
        _is_one(session.agent_id, reach.agents)
        and _is_one(session.channel, reach.channels)
        and _is_one(person, reach.people)
        and matches_any(session.key, reach.keys)
    )


def reaches_key(reach: Reach, key: str | None) -> bool:
    """Whether the session that had this key, of which nothing else is left, was certainly within reach."""
    if key is None or not matches_any(key, reach.keys):
        return False
    try:
        parsed = parse_key(key)
    except HithertoError:
        return not (reach.agents or reach.channels or reach.people)
    within = _is_one(parsed.agent, reach.agents) and _is_one(parsed.channel, reach.channels)
    return within and not reach.people


def reaches_fact(reach: Reach, fact: Fact, session: Session | None) -> bool:
    """Whether a fact is within reach; `session` is the one that it was drawn from, if that is within reach."""
    if fact.session is not None or reach.channels or reach.keys:
        return session is not None
    return _is_one(fact.agent_id, reach.agents) and _is_one(fact.identity_id, reach.people)


def reaches_account(reach: Reach, account: Account) -> bool:
    """Whether an account of a person is within reach."""
    name = f"{encode_name(account.channel)}:{encode_name(account.id)}"
    return _is_one(account.channel, reach.channels) and _is_one(name, reach.people)


def matches_any(text: str | None, patterns: Sequence[str]) -> bool:
    """Whether a text is one of these patterns; `*` stands for anything. No patterns: any text, or none, is."""
    if not patterns:
        return True
    return text is not None and any(_expression(each).fullmatch(text) for each in patterns)


def reach_name(reach: Reach) -> str:
    """A short name of a reach: the same for the same reach."""
    return hashlib.blake2b(encode(reach), digest_size=8).hexdigest()


def _is_one(name: str | None, allowed: Sequence[str]) -> bool:
    return not allowed or name in allowed


def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _patterns(given: Sequence[str], what: str) -> tuple[str, ...]:
    names = _names(given, what, KEY_CHARS)
    if any(name.count("*") > STARS for name in names):
        raise InvalidInput(f"a pattern of {what} has at most {STARS} stars")
    return names


def _names(given: Sequence[str], what: str, most: int = NAME_CHARS) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(name, str) and name for name in given):
        raise InvalidInput(f"{what} must be a list of texts, none of them empty")
    if len(given) > REACH_NAMES:
        raise TooLarge(f"a token is restricted to at most {REACH_NAMES} {what}, not {len(given)}")
    if any(len(name) > most or not is_storable(name) for name in given):
        raise InvalidInput(f"one of the {what} is too long, or has NUL or lone surrogates")
    return tuple(sorted(set(given)))


# The same as stores keep it


def rule_columns(token: Token) -> tuple[str | None, int | None]:
    """The rule of a token as JSON, and its checksum; nothing without a rule."""
    if token.rule is None:
        return None, None
    text = encode(token.rule).decode()
    return text, checksum(token.id, text)


def is_rule_whole(token_id: str, rule: str | None, crc: int | None) -> bool:
    """Whether these are what `rule_columns` gave."""
    return (rule is None and crc is None) or (rule is not None and crc == checksum(token_id, rule))


def rule_of(text: str | None) -> TokenRule | None:
    """The rule that this is."""
    return None if text is None else msgspec.json.decode(text, type=TokenRule)
