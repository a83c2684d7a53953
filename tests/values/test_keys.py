from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.errors import InvalidInput, InvalidKey
from hitherto.limits import KEY_CHARS
from hitherto.model import Account
from hitherto.values.keys import (
    FORMS,
    DmScope,
    DmScopes,
    Kind,
    SessionKey,
    dm_scope,
    encode_name,
    parse_key,
    parse_scopes,
    route,
)

UUID = "0192f7c4-9b1e-7abc-8def-0123456789ab"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("agent:main:main", SessionKey(Kind.MAIN, "main")),
        ("agent:main:telegram:dm:user123", SessionKey(Kind.DIRECT_MESSAGE, "main", "telegram", "user123")),
        ("agent:a:matrix:dm:%40Al%3Ax.org", SessionKey(Kind.DIRECT_MESSAGE, "a", "matrix", "@Al:x.org")),
        ("agent:a:signal:group:aB%2B%2F%3D", SessionKey(Kind.GROUP, "a", "signal", "aB+/=")),
        ("agent:a:x:dm:group%3Ag", SessionKey(Kind.DIRECT_MESSAGE, "a", "x", "group:g")),
        ("agent:a:cron:nightly", SessionKey(Kind.TASK, "a", name="nightly")),
        ("agent:a:cron:every%20night", SessionKey(Kind.TASK, "a", name="every night")),
        ("subagent:agent:a:s1", SessionKey(Kind.SUBAGENT, "a", name="s1")),
        (f"agent:a:ephemeral:{UUID}", SessionKey(Kind.EPHEMERAL, "a", name=UUID)),
        ("agent:main:x:dm:%C3%9Cnal", SessionKey(Kind.DIRECT_MESSAGE, "main", "x", "Ünal")),
        ("agent:a:x:dm:100%25", SessionKey(Kind.DIRECT_MESSAGE, "a", "x", "100%")),
        ("agent:x%3Ay:main", SessionKey(Kind.MAIN, "x:y")),
        ("agent:dm:dm:dm:dm", SessionKey(Kind.DIRECT_MESSAGE, "dm", "dm", "dm")),
        ("agent:a:x:dm:u:thread:t", SessionKey(Kind.DIRECT_MESSAGE, "a", "x", "u", thread="t")),
        ("agent:a:x:account:b:dm:u", SessionKey(Kind.DIRECT_MESSAGE, "a", "x", "u", "b")),
        ("agent:a:x:account:b:group:g:thread:t%3A1", SessionKey(Kind.GROUP, "a", "x", "g", "b", "t:1")),
        (
            "agent:a:account:group:thread:thread:dm",
            SessionKey(Kind.GROUP, "a", "account", "thread", thread="dm"),
        ),
    ],
)
def test_a_spelling_is_this_key_and_back(text: str, key: SessionKey) -> None:
    assert parse_key(text) == key
    assert str(key) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "main",
        "agent:",
        "agent:main",
        "agent::main",
        "agent:main:main:more",
        "agent:main:dm:u",
        "agent:main:peer:u",
        "agent:main:telegram:dm:",
        "agent:main:telegram:dm:a b",
        "agent:main:telegram:dm:a\nb",
        "agent:main:telegram:dm:a\u202eb",
        "agent:main:telegram:dm:\ud800",
        "agent:main:telegram:dm:@al",
        "agent:main:telegram:dm:a:b",
        "agent:main:telegram:dm:Ünal",
        "agent:main:telegram:dm:%41",
        "agent:main:telegram:dm:%c3%9cnal",
        "agent:main:telegram:dm:%C3",
        "agent:main:telegram:dm:%ED%A0%80",
        "agent:main:telegram:dm:%00",
        "agent:main:telegram:dm:%4",
        "agent:main:telegram:dm:100%",
        "agent:main:cron:dm:u",
        "agent:main:main:dm:u",
        "agent:a:cron:job:more",
        "agent:a:ephemeral:not-a-uuid",
        f"agent:a:ephemeral:{UUID.upper()}",
        "subagent:agent:a:b:c",
        "subagent:a:b",
        "Agent:main:main",
        " agent:main:main",
        "agent:main:main\n",
        "agent:a:x:dm:" + "u" * KEY_CHARS,
    ],
)
def test_a_malformed_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidKey) as refused:
        parse_key(text)
    assert isinstance(refused.value, InvalidInput)
    assert len(refused.value.message) < KEY_CHARS + 500


def test_a_refusal_says_how_a_name_is_spelled() -> None:
    with pytest.raises(InvalidKey, match="'%41' in a session key must be written 'A'"):
        parse_key("agent:main:x:dm:%41")


def test_a_key_has_a_longest_spelling() -> None:
    longest = "agent:a:x:dm:".ljust(KEY_CHARS, "u")
    assert str(parse_key(longest)) == longest
    with pytest.raises(InvalidKey, match=f"at most {KEY_CHARS} characters, this one has 1000000"):
        parse_key("u" * 1_000_000)
    with pytest.raises(InvalidKey, match=f"at most {KEY_CHARS} characters"):
        route("a", Account("x", "u" * KEY_CHARS))


@pytest.mark.parametrize(
    ("kind", "agent", "channel", "name"),
    [
        (Kind.MAIN, "", None, None),
        (Kind.MAIN, "a\0", None, None),
        (Kind.MAIN, "\ud800", None, None),
        (Kind.MAIN, "a", "telegram", None),
        (Kind.MAIN, "a", None, "name"),
        (Kind.DIRECT_MESSAGE, "a", None, "u"),
        (Kind.DIRECT_MESSAGE, "a", "cron", "u"),
        (Kind.GROUP, "a", "telegram", None),
        (Kind.TASK, "a", None, ""),
        (Kind.EPHEMERAL, "a", None, "not-a-uuid"),
    ],
)
def test_no_key_can_be_made_that_has_no_spelling(
    kind: Kind, agent: str, channel: str | None, name: str | None
) -> None:
    with pytest.raises(InvalidKey):
        SessionKey(kind, agent, channel, name)
    with pytest.raises(InvalidKey):
        SessionKey(Kind.MAIN, "a", thread="t")
    with pytest.raises(InvalidKey):
        SessionKey(Kind.TASK, "a", name="n", account="b")
    with pytest.raises(InvalidKey):
        SessionKey(Kind.GROUP, "a", "x", "g", thread="")


NAMES = st.text(min_size=1, max_size=30)


@st.composite
def keys(draw: st.DrawFn) -> SessionKey:
    """Any key, of names of any characters."""
    kind = draw(st.sampled_from(Kind))
    channel = draw(NAMES) if "{channel}" in FORMS[kind] else None
    name = draw(st.uuids().map(str) if kind is Kind.EPHEMERAL else NAMES) if "{name}" in FORMS[kind] else None
    more = [draw(st.none() | NAMES) if "{thread}" in FORMS[kind] else None for _ in range(2)]
    try:
        return SessionKey(kind, draw(NAMES), channel, name, *more)
    except InvalidKey:
        return SessionKey(Kind.MAIN, "main")


@given(keys())
def test_a_key_is_read_back_from_its_spelling(key: SessionKey) -> None:
    assert parse_key(str(key)) == key
    assert str(key).isascii()


@given(keys(), keys())
def test_two_keys_never_have_one_spelling(one: SessionKey, other: SessionKey) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(st.one_of(st.text(alphabet=st.characters()), st.lists(
    st.sampled_from(
        ["agent", "subagent", "main", "cron", "dm", "group", "account", "thread", "ephemeral", "a", "", UUID, "é", "%C3%A9", "%41", "%"]
    ), max_size=9
).map(":".join)))  # fmt: skip
def test_every_key_that_is_accepted_has_one_spelling(text: str) -> None:
    try:
        key = parse_key(text)
    except InvalidKey:
        return
    assert str(key) == text
    assert parse_key(str(key)) == key


@given(st.text(min_size=1), st.text(min_size=1), st.sampled_from([None, Account("irc", "x")]))
def test_two_users_never_share_a_session_by_the_spelling_of_their_names(
    one: str, other: str, canonical: Account | None
) -> None:
    try:
        keys = {str(route("main", Account("telegram", user)).key) for user in (one, other)}
        linked = str(route("main", Account("telegram", one), canonical=canonical).key)
    except InvalidKey:
        return
    assert len(keys) == len({one, other})
    assert (linked in keys) == (canonical is None)


PERSON = Account("telegram", "123")


@pytest.mark.parametrize(
    ("scope", "peer", "canonical", "key"),
    [
        (DmScope.MAIN, PERSON, None, "agent:main:main"),
        (DmScope.MAIN, Account("discord", "77"), PERSON, "agent:main:main"),
        (DmScope.PER_PEER, PERSON, None, "agent:main:telegram:dm:123"),
        (DmScope.PER_PEER, Account("discord", "77"), PERSON, "agent:main:telegram:dm:123"),
        (DmScope.PER_PEER, Account("discord", "123"), None, "agent:main:discord:dm:123"),
        (
            DmScope.PER_PEER,
            Account("x", "1"),
            Account("matrix", "@b:x.org"),
            "agent:main:matrix:dm:%40b%3Ax.org",
        ),
        (DmScope.PER_CHANNEL_PEER, PERSON, None, "agent:main:telegram:dm:123"),
        (DmScope.PER_CHANNEL_PEER, Account("discord", "77"), PERSON, "agent:main:discord:dm:77"),
    ],
)
def test_a_direct_message_goes_to_this_session(
    scope: DmScope, peer: Account, canonical: Account | None, key: str
) -> None:
    found = route("main", peer, scope=scope, canonical=canonical)
    assert (str(found.key), found.scope) == (key, scope)
    assert found.reason.startswith(f"dm_scope is {scope} (asked for)")


def test_a_message_in_a_group_goes_to_the_group_whatever_the_scope() -> None:
    for scope in DmScope:
        found = route("main", PERSON, group="-100:7", scope=scope, canonical=Account("irc", "p"))
        assert str(found.key) == "agent:main:telegram:group:-100%3A7"


@pytest.mark.parametrize("channel", ["main", "cron", "ephemeral", "", "a\0"])
@pytest.mark.parametrize("scope", list(DmScope))
def test_a_message_from_an_impossible_channel_is_refused(channel: str, scope: DmScope) -> None:
    with pytest.raises(InvalidKey):
        route("main", Account(channel, "alice"), scope=scope)


def test_accounts_and_threads_have_sessions_of_their_own() -> None:
    peer = Account("x", "u")
    given = [(None, None), ("b", None), (None, "t"), ("b", "t"), ("t", "b")]
    for group in (None, "g"):
        keys = {str(route("a", peer, group=group, account=one, thread=two).key) for one, two in given}
        assert len(keys) == len(given)
    shared = route("a", peer, account="b", thread="t", scope=DmScope.MAIN)
    assert str(shared.key) == "agent:a:main"
    linked = route("a", peer, account="b", thread="t", canonical=Account("irc", "i"))
    assert str(linked.key) == "agent:a:irc:dm:i:thread:t"


def test_a_scope_has_two_spellings() -> None:
    assert [dm_scope(text) for text in ("main", "per-peer", "per_channel-peer")] == list(DmScope)
    with pytest.raises(InvalidInput, match="one of main, per_peer, per_channel_peer, not 'Main'"):
        dm_scope("Main")


def test_a_channel_s_scope_goes_before_an_agent_s_and_that_before_the_default() -> None:
    scopes = parse_scopes("agent:ops=main, channel:irc=per-channel-peer")
    assert scopes == DmScopes(DmScope.PER_PEER, {"ops": DmScope.MAIN}, {"irc": DmScope.PER_CHANNEL_PEER})
    told = {
        (agent, channel): route(agent, Account(channel, "u"), scopes=scopes).reason.partition(":")[0]
        for agent in ("main", "ops")
        for channel in ("irc", "x")
    }
    assert told == {
        ("main", "irc"): "dm_scope is per_channel_peer (set for the channel irc)",
        ("main", "x"): "dm_scope is per_peer (the default)",
        ("ops", "irc"): "dm_scope is per_channel_peer (set for the channel irc)",
        ("ops", "x"): "dm_scope is main (set for the agent ops)",
    }


@pytest.mark.parametrize(("text", "default"), [("", DmScope.PER_PEER), ("main", DmScope.MAIN), (" , ", DmScope.PER_PEER)])  # fmt: skip
def test_the_default_scope_can_be_set(text: str, default: DmScope) -> None:
    assert parse_scopes(text) == DmScopes(default)


@pytest.mark.parametrize("text", ["no", "agent:a=no", "agent:=main", "group:a=main", "=main", "a=main"])
def test_a_setting_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_scopes(text)


def test_a_name_is_spelled_as_in_a_key() -> None:
    assert encode_name("a b:c") == "a%20b%3Ac"
