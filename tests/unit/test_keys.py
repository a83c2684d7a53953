from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput, InvalidKey
from recollect.keys import LINKED, DmScope, Kind, SessionKey, parse_key, route_dm
from recollect.limits import KEY_CHARS

UUID = "0192f7c4-9b1e-7abc-8def-0123456789AB"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("agent:main:main", SessionKey(Kind.MAIN, "main")),
        ("agent:main:telegram:dm:user123", SessionKey(Kind.DIRECT_MESSAGE, "main", "telegram", "user123")),
        ("agent:a:matrix:dm:@Al:x.org", SessionKey(Kind.DIRECT_MESSAGE, "a", "matrix", "@Al:x.org")),
        ("agent:a:signal:group:aB+/=", SessionKey(Kind.GROUP, "a", "signal", "aB+/=")),
        ("agent:a:x:dm:group:g", SessionKey(Kind.DIRECT_MESSAGE, "a", "x", "group:g")),
        ("agent:a:cron:nightly", SessionKey(Kind.TASK, "a", name="nightly")),
        ("subagent:agent:a:s1", SessionKey(Kind.SUBAGENT, "a", name="s1")),
        (f"agent:a:ephemeral:{UUID}", SessionKey(Kind.EPHEMERAL, "a", name=UUID)),
        ("agent:main:x:dm:Ünal", SessionKey(Kind.DIRECT_MESSAGE, "main", "x", "Ünal")),
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
        "agent:main:cron:dm:u",
        "agent:main:main:dm:u",
        "agent:a:cron:job:more",
        "agent:a:ephemeral:not-a-uuid",
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


def test_a_key_has_a_longest_spelling() -> None:
    longest = "agent:a:x:dm:".ljust(KEY_CHARS, "u")
    assert str(parse_key(longest)) == longest
    with pytest.raises(InvalidKey, match=f"at most {KEY_CHARS} characters, this one has 1000000"):
        parse_key("u" * 1_000_000)
    with pytest.raises(InvalidKey, match=f"at most {KEY_CHARS} characters"):
        route_dm("a", "x", "u" * KEY_CHARS)


@pytest.mark.parametrize(
    ("kind", "agent", "channel", "name"),
    [
        (Kind.MAIN, "x:y", None, None),
        (Kind.MAIN, "a", "telegram", None),
        (Kind.MAIN, "a", None, "name"),
        (Kind.DIRECT_MESSAGE, "a", None, "u"),
        (Kind.DIRECT_MESSAGE, "a", "tele:gram", "u"),
        (Kind.GROUP, "a", "telegram", None),
        (Kind.TASK, "a", None, "x:y"),
        (Kind.TASK, "a", None, ""),
    ],
)
def test_no_key_can_be_made_that_reads_as_another(
    kind: Kind, agent: str, channel: str | None, name: str | None
) -> None:
    with pytest.raises(InvalidKey):
        SessionKey(kind, agent, channel, name)


@given(st.one_of(st.text(alphabet=st.characters()), st.lists(
    st.sampled_from(["agent", "subagent", "main", "cron", "dm", "group", "ephemeral", "a", "", UUID, "é"]), max_size=7
).map(":".join)))  # fmt: skip
def test_every_key_that_is_accepted_has_one_spelling(text: str) -> None:
    try:
        key = parse_key(text)
    except InvalidKey:
        return
    assert str(key) == text
    assert parse_key(str(key)) == key


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_users_never_share_a_session_by_the_spelling_of_their_names(one: str, other: str) -> None:
    try:
        keys = {str(route_dm("main", "telegram", user)) for user in (one, other)}
    except InvalidKey:
        return
    assert len(keys) == len({one, other})


LINKS = {"alice": ["telegram:123", "discord:77"], "bob": ["matrix:@b:x.org"]}


@pytest.mark.parametrize(
    ("scope", "channel", "user", "key"),
    [
        (DmScope.MAIN, "telegram", "123", "agent:main:main"),
        (DmScope.PER_PEER, "telegram", "123", f"agent:main:{LINKED}:dm:alice"),
        (DmScope.PER_PEER, "discord", "77", f"agent:main:{LINKED}:dm:alice"),
        (DmScope.PER_PEER, "matrix", "@b:x.org", f"agent:main:{LINKED}:dm:bob"),
        (DmScope.PER_PEER, "discord", "123", "agent:main:discord:dm:123"),
        (DmScope.PER_PEER, "telegram", "user123", "agent:main:telegram:dm:user123"),
        (DmScope.PER_CHANNEL_PEER, "telegram", "123", "agent:main:telegram:dm:123"),
        (DmScope.PER_CHANNEL_PEER, "discord", "123", "agent:main:discord:dm:123"),
    ],
)
def test_a_direct_message_goes_to_this_session(scope: DmScope, channel: str, user: str, key: str) -> None:
    assert str(route_dm("main", channel, user, scope, LINKS)) == key


def test_an_account_that_two_people_claim_is_refused() -> None:
    with pytest.raises(InvalidKey, match="more than one person: alice, eve"):
        route_dm("main", "telegram", "123", DmScope.PER_PEER, LINKS | {"eve": ["telegram:123"]})


def test_part_of_an_account_is_nobody() -> None:
    assert (
        route_dm("main", "telegram", "12", DmScope.PER_PEER, {"alice": "telegram:123"}).channel == "telegram"
    )


@pytest.mark.parametrize("channel", [LINKED, "cron", "", "a:b"])
@pytest.mark.parametrize("scope", list(DmScope))
def test_a_message_from_an_impossible_channel_is_refused(channel: str, scope: DmScope) -> None:
    with pytest.raises(InvalidKey):
        route_dm("main", channel, "alice", scope, LINKS)
