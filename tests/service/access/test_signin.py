"""Codes and passes of the page: good once, good for some days, and never longer than their token."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from hitherto.gateway.serve import SafeFormatter
from hitherto.secrets import redact
from hitherto.service import Sessions
from hitherto.service.access.signin import CODE_MS, PASS_MS
from tests.support.homes import Clock


async def test_a_code_is_good_for_one_of_those_who_come_at_the_same_time(
    sessions: Sessions, other: Sessions
) -> None:
    token, _ = await sessions.tokens.create("ann")
    code = await sessions.signin.invite(token)
    given = await asyncio.gather(*(each.signin.sign_in(code) for each in (sessions, other) * 4))
    assert len([each for each in given if each is not None]) == 1


async def test_codes_and_passes_end(sessions: Sessions, clock: Clock) -> None:
    token, _ = await sessions.tokens.create("ann")
    late, soon = await sessions.signin.invite(token), await sessions.signin.invite(token)
    clock.advance(CODE_MS - 1)
    given = await sessions.signin.sign_in(soon)
    assert given is not None
    clock.advance(1)
    assert await sessions.signin.sign_in(late) is None
    clock.advance(PASS_MS - 2)
    assert await sessions.signin.visitor(given) == token
    clock.advance(2)
    assert await sessions.signin.visitor(given) is None


async def test_codes_and_passes_end_with_their_token(sessions: Sessions, other: Sessions) -> None:
    token, _ = await sessions.tokens.create("ann", scopes=("read",))
    code, given = await sessions.signin.invite(token), await sessions.signin.admit(token)
    assert await other.signin.visitor(given) == token
    await other.tokens.revoke(token.id)
    assert await sessions.signin.visitor(given) is None
    assert await sessions.signin.sign_in(code) is None


async def test_a_code_is_no_pass_and_a_pass_no_code_nor_a_token(sessions: Sessions) -> None:
    token, _ = await sessions.tokens.create("ann / ä%")
    code, given = await sessions.signin.invite(token), await sessions.signin.admit(token)
    assert await sessions.signin.visitor(code) is None
    assert await sessions.signin.sign_in(given) is None
    assert await sessions.tokens.verify(given) is None
    foreign = "bob" + given[given.index(".") :]
    assert await sessions.signin.visitor(foreign) is None
    await sessions.signin.sign_out(foreign)
    assert await sessions.signin.visitor(given) == token
    await sessions.signin.sign_out(given)
    assert await sessions.signin.visitor(given) is None


async def test_neither_a_code_nor_a_pass_is_left_in_what_is_exported_or_logged(sessions: Sessions) -> None:
    token, _ = await sessions.tokens.create("local")
    code, given = await sessions.signin.invite(token), await sessions.signin.admit(token)
    record = logging.LogRecord(
        "x", logging.WARNING, "", 0, f"/#code={code} hitherto-8787={given}", None, None
    )
    for told in (
        redact(f"Open http://127.0.0.1:8787/#code={code}\nhitherto-8787={given}; Path=/", Counter()),
        SafeFormatter("%(message)s").format(record),
    ):
        assert not [secret for secret in (code, given) if secret.rpartition("hth_")[2] in told], told
