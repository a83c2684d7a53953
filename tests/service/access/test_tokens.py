"""Tokens: told once, good in every process until they are revoked. Links: one person behind several accounts."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitherto
from hitherto.errors import AlreadyExists, Conflict, InvalidInput, TooLarge
from hitherto.limits import NAME_CHARS
from hitherto.model import Account, Principal, Token
from hitherto.ports import Store
from hitherto.service import Sessions
from hitherto.values.scopes import SCOPES, checked_scopes
from tests.support.homes import Clock, Home
from tests.support.outcomes import outcome
from tests.support.waits import LIMIT

# Tokens


async def test_a_token_is_known_by_its_secret(sessions: Sessions, reader: Sessions, clock: Clock) -> None:
    token, secret = await sessions.tokens.create(
        "ann", scopes=["run", "read", "run"], role="bot", label="laptop"
    )
    assert (token.owner, token.scopes, token.role, token.label) == ("ann", ("read", "run"), "bot", "laptop")
    assert (token.created_at, token.revoked_at) == (clock.now, None)
    assert await reader.tokens.verify(secret) == token


async def test_a_token_is_good_for_everything_unless_told(sessions: Sessions) -> None:
    token, _ = await sessions.tokens.create("ann")
    assert (token.scopes, token.role, token.label) == (SCOPES, "owner", "")


async def test_secrets_are_256_random_bits(sessions: Sessions) -> None:
    secrets = [(await sessions.tokens.create("ann"))[1] for _ in range(20)]
    assert len(set(secrets)) == 20
    for secret in secrets:
        assert secret.startswith("hth_")
        assert len(base64.urlsafe_b64decode(secret.removeprefix("hth_") + "=")) == 32


async def test_no_other_text_is_a_secret(sessions: Sessions, reader: Sessions) -> None:
    token, secret = await sessions.tokens.create("ann")
    swapped = secret[:-2] + ("AA" if secret[-2:] != "AA" else "BB")
    digest = hashlib.sha256(secret.encode()).hexdigest()
    unknown: list[Any] = [swapped, secret[:-1], f"{secret}A", f" {secret}", f"{secret}\n", secret.swapcase()]
    unknown += [
        secret.removeprefix("hth_"),
        token.id,
        digest,
        "",
        "%",
        "hth_",
        None,
        7,
        secret.encode(),
        "\ud800",
    ]
    for text in unknown:
        assert await reader.tokens.verify(text) is None
    assert await reader.tokens.verify(secret) == token


async def test_a_token_of_the_first_name_is_good_in_its_store(sessions: Sessions, store: Store) -> None:
    secret = "rcl_" + "Ab-_" * 10 + "xyz"
    token = Token(id="t", owner="ann", scopes=SCOPES, role="owner", label="", created_at=1)
    await store.write(lambda tx: tx.put_token(token, hashlib.sha256(secret.encode()).digest()))
    assert await sessions.tokens.verify(secret) == token


async def test_a_revoked_token_is_good_for_nothing_in_any_process_at_once(
    sessions: Sessions, other: Sessions, clock: Clock
) -> None:
    kept, kept_secret = await sessions.tokens.create("ann")
    token, secret = await sessions.tokens.create("ann")
    assert await other.tokens.verify(secret) == token
    assert await sessions.tokens.revoke(token.id)
    assert await other.tokens.verify(secret) is None
    assert await sessions.tokens.verify(secret) is None
    assert await other.tokens.verify(kept_secret) == kept
    assert [known.revoked_at for known in await other.tokens.all()] == [None, clock.now]


async def test_a_token_is_revoked_once(sessions: Sessions, other: Sessions, clock: Clock) -> None:
    token, _ = await sessions.tokens.create("ann")
    at = clock.now
    done = await asyncio.gather(*(each.tokens.revoke(token.id) for each in (sessions, other) * 4))
    assert sorted(done) == [False] * 7 + [True]
    clock.advance()
    assert not await other.tokens.revoke(token.id)
    assert (await other.tokens.all())[0].revoked_at == at


@pytest.mark.parametrize("token_id", ["", "nope", "\0", "\ud800", "x" * 10_000, None, 7])
async def test_what_is_no_token_cannot_be_revoked(sessions: Sessions, token_id: Any) -> None:
    await sessions.tokens.create("ann")
    assert not await sessions.tokens.revoke(token_id)
    assert await sessions.tokens.generation() == 0


async def test_every_process_sees_the_generation_rise_with_each_revocation_and_only_then(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    assert await other.tokens.generation() == 0
    tokens = [(await sessions.tokens.create(owner))[0] for owner in ("ann", "bob", "ann")]
    await sessions.create(ann)
    assert await other.tokens.generation() == 0
    for number, token in enumerate(tokens, 1):
        await sessions.tokens.revoke(token.id)
        assert await other.tokens.generation() == number
        await sessions.tokens.revoke(token.id)
        assert await other.tokens.generation() == number


async def test_tokens_are_listed_oldest_first_by_owner_or_all_without_their_secrets(
    sessions: Sessions, reader: Sessions, clock: Clock
) -> None:
    made = []
    for owner in ("ann", "bob", "ann", "a%"):
        made.append(await sessions.tokens.create(owner))
        clock.advance()
    tokens = [token for token, _ in made]
    assert await reader.tokens.all() == tokens
    assert await reader.tokens.all("ann") == [tokens[0], tokens[2]]
    assert await reader.tokens.all("a%") == [tokens[3]]
    assert await reader.tokens.all("nobody") == []
    shown = repr(await reader.tokens.all())
    assert not any(secret in shown for _, secret in made)


async def test_an_owner_with_nothing_but_a_token_has_no_sessions_and_no_changes(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await sessions.tokens.create("ann")
    assert (await reader.find(ann)).sessions == ()
    assert await reader.changes.newest(ann) == "0"
    assert (await reader.statistics.stats(ann))["sessions"] == 0
    assert (await reader.admin.check(repair=False)).problems == ()


WRONG_TOKENS: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "no owner": ({"owner": ""}, InvalidInput),
    "an owner with NUL": ({"owner": "a\0"}, InvalidInput),
    "an endless owner": ({"owner": "x" * (NAME_CHARS + 1)}, InvalidInput),
    "an owner that is no text": ({"owner": 7}, InvalidInput),
    "no scopes": ({"scopes": []}, InvalidInput),
    "an unknown scope": ({"scopes": ["read", "root"]}, InvalidInput),
    "scopes as one text": ({"scopes": "read"}, InvalidInput),
    "a scope that is no text": ({"scopes": [["read"]]}, InvalidInput),
    "no role": ({"role": ""}, InvalidInput),
    "an endless label": ({"label": "x" * (NAME_CHARS + 1)}, TooLarge),
    "a label with a surrogate": ({"label": "\udfff"}, InvalidInput),
}


@pytest.mark.parametrize("name", WRONG_TOKENS)
async def test_a_wrong_token_is_not_made(sessions: Sessions, name: str) -> None:
    wrong, error = WRONG_TOKENS[name]
    with pytest.raises(error):
        await sessions.tokens.create(**{"owner": "ann", **wrong})
    assert await sessions.tokens.all() == []


@given(st.lists(st.sampled_from(SCOPES), min_size=1))
def test_scopes_have_one_spelling(scopes: list[str]) -> None:
    checked = checked_scopes(scopes)
    assert set(checked) == set(scopes)
    assert checked_scopes(list(reversed(checked))) == checked


async def test_the_secret_of_a_token_is_in_no_file_of_the_store(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()

    def kept() -> bytes:
        # By another process: to open and close such a file here would take SQLite's locks away.
        copy = "import pathlib, sys; sys.stdout.buffer.write(pathlib.Path(sys.argv[1]).read_bytes())"
        command = [sys.executable, "-c", copy]
        read = [
            subprocess.run([*command, str(file)], check=True, stdout=PIPE, timeout=LIMIT)
            for file in folder.iterdir()
        ]
        return b"".join(each.stdout for each in read)

    async with hitherto.open(f"sqlite:///{folder}/hitherto.db") as sessions:
        made = [await sessions.tokens.create("ann", label="laptop") for _ in range(5)]
        for token, secret in made:
            assert await sessions.tokens.verify(secret) == token
        await sessions.tokens.revoke(made[0][0].id)
        assert (folder / "hitherto.db-wal").stat().st_size > 0
        while_open = kept()
    when_closed = kept()
    for token, secret in made:
        digest = hashlib.sha256(secret.encode()).digest()
        for everything in (while_open, when_closed):
            # So the search would have found it.
            assert digest in everything
            assert token.id.encode() in everything
            bits = base64.urlsafe_b64decode(secret.removeprefix("hth_") + "=")
            for form in (secret.encode(), secret.removeprefix("hth_").encode(), bits, bits.hex().encode()):
                assert form not in everything


# Links


TELEGRAM, DISCORD, IRC = Account("telegram", "123"), Account("discord", "ann#1"), Account("irc", "ann")


async def test_a_linked_account_is_known_by_the_canonical_one(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await sessions.identities.link(ann, *DISCORD, canonical=TELEGRAM)
    await sessions.identities.link(ann, *IRC, canonical=("telegram", "123"))
    assert await reader.identities.linked(ann, *DISCORD) == TELEGRAM
    assert await reader.identities.linked(ann, *TELEGRAM) is None
    for account in (TELEGRAM, DISCORD, IRC):
        assert await reader.identities.accounts(ann, *account) == [TELEGRAM, DISCORD, IRC]


async def test_the_same_id_on_another_channel_is_somebody_else(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await sessions.identities.link(ann, "discord", "7", canonical=("telegram", "7"))
    for channel, user in (
        ("irc", "7"),
        ("discord", "77"),
        ("Discord", "7"),
        ("discord7", ""),
        ("telegram", "7"),
    ):
        if user:
            assert await reader.identities.linked(ann, channel, user) is None
    assert await reader.identities.accounts(ann, "irc", "7") == [("irc", "7")]


async def test_a_link_is_its_owner_s_alone(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    await sessions.identities.link(ann, *DISCORD, canonical=TELEGRAM)
    assert await reader.identities.linked(bob, *DISCORD) is None
    assert await reader.identities.accounts(bob, *TELEGRAM) == [TELEGRAM]
    assert not await reader.identities.unlink(bob, *DISCORD)
    await reader.identities.link(bob, *DISCORD, canonical=IRC)
    assert await reader.identities.linked(ann, *DISCORD) == TELEGRAM


async def test_a_link_that_is_taken_away_is_gone(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await sessions.identities.link(ann, *DISCORD, canonical=TELEGRAM)
    assert await reader.identities.unlink(ann, *DISCORD)
    assert not await reader.identities.unlink(ann, *DISCORD)
    assert await sessions.identities.linked(ann, *DISCORD) is None
    await sessions.identities.link(ann, *TELEGRAM, canonical=DISCORD)
    assert await reader.identities.linked(ann, *TELEGRAM) == DISCORD


async def test_nobody_is_two_people_and_no_link_leads_to_a_link(sessions: Sessions, ann: Principal) -> None:
    await sessions.identities.link(ann, *DISCORD, canonical=TELEGRAM)
    await sessions.identities.link(ann, *DISCORD, canonical=TELEGRAM)
    with pytest.raises(AlreadyExists, match="unlink"):
        await sessions.identities.link(ann, *DISCORD, canonical=IRC)
    with pytest.raises(Conflict, match="itself linked"):
        await sessions.identities.link(ann, *IRC, canonical=DISCORD)
    with pytest.raises(Conflict, match="other accounts are linked"):
        await sessions.identities.link(ann, *TELEGRAM, canonical=IRC)
    with pytest.raises(InvalidInput, match="itself"):
        await sessions.identities.link(ann, *IRC, canonical=IRC)
    for channel, user in (("", "1"), ("a", ""), ("\0", "1"), ("a", "x" * (NAME_CHARS + 1))):
        with pytest.raises(InvalidInput):
            await sessions.identities.link(ann, channel, user, canonical=TELEGRAM)
        with pytest.raises(InvalidInput):
            await sessions.identities.link(ann, *IRC, canonical=(channel, user))
    assert await sessions.identities.accounts(ann, *TELEGRAM) == [TELEGRAM, DISCORD]


async def test_links_made_at_once_never_make_a_chain(shared_home: Home, ann: Principal) -> None:
    """Each round one of the two must lose: a link from the canonical account, or one to a linked account."""
    async with hitherto.open(shared_home.url) as one, hitherto.open(shared_home.url) as two:
        for number in range(20):
            a, b, c = (Account(channel, str(number)) for channel in "abc")
            await asyncio.gather(
                outcome(one.identities.link(ann, *a, canonical=b)),
                outcome(two.identities.link(ann, *b, canonical=c)),
            )
            links = [await one.identities.linked(ann, *a), await one.identities.linked(ann, *b)]
            assert links in ([b, None], [None, c])
