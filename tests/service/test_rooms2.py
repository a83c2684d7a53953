"""`Sessions` is put together from rooms: what is wanted most is a method, the rest is reached by its noun."""

from __future__ import annotations

import inspect

import pytest

import hitherto
from hitherto.errors import ModelMissing
from hitherto.model import Principal, Text
from hitherto.service import ROOMS, Sessions
from hitherto.service.core import Room
from tests.support.conversations import started, told
from tests.support.homes import Home
from tests.support.scripted_engine import Scripted, says

METHODS = """
create get get_by_key find append history entry erase fork rewind restore compact search within rename tag archive pin move
delete prompt opened watch wait usage export import_ close resolve count checkpoints branch reset set_meta at
limited_to
"""


def test_these_are_the_methods_that_sessions_have_themselves() -> None:
    public = {name for name, _ in inspect.getmembers(Sessions, inspect.isfunction) if name[0] != "_"}
    assert public == set(METHODS.split())


def test_a_method_of_sessions_is_that_of_its_room_with_its_words_and_parameters() -> None:
    own = {"at", "limited_to", "prompt", "close"}
    for name in sorted(set(METHODS.split()) - own):
        method = getattr(Sessions, name)
        room, _, called = method.__qualname__.partition(".")
        (kind,) = (kind for kind in ROOMS.values() if kind.__name__ == room)
        there = getattr(kind, called)
        assert method.__doc__ == there.__doc__
        assert inspect.signature(method) == inspect.signature(there)


def test_every_room_says_what_it_is_for_and_has_calls() -> None:
    for name, kind in ROOMS.items():
        assert issubclass(kind, Room), name
        assert getattr(Sessions, name).__doc__, name
        assert [each for each in vars(kind) if each[0] != "_"], name


async def test_a_room_is_made_once_and_of_its_kind(sessions: Sessions) -> None:
    for name, kind in ROOMS.items():
        room = getattr(sessions, name)
        assert isinstance(room, kind)
        assert getattr(sessions, name) is room


async def test_a_prompt_is_answered_by_the_engine_that_is_given_else_by_that_of_the_sessions(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann)
    given, own = Scripted(says("Yes."), title=None), Scripted(says("No."), title=None)
    outcome = await sessions.prompt(ann, session.id, [Text(text="Is it so?")], engine=given)
    assert (outcome.stop_reason, outcome.text, given.open_now) == ("end_turn", "Yes.", 0)
    sessions.engine = own
    assert (await sessions.prompt(ann, session.id, [Text(text="And now?")])).text == "No."
    assert await told(reader, ann, session.id) == ["Is it so?", "Yes.", "And now?", "No."]


async def test_a_prompt_that_nothing_can_answer_is_not_stored(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann)
    with pytest.raises(ModelMissing):
        await sessions.prompt(ann, session.id, [Text(text="Hello?")])
    assert await told(reader, ann, session.id) == []


async def test_to_close_is_harmless_twice_and_before_the_block_ends(
    home: Home, other: Sessions, ann: Principal
) -> None:
    async with hitherto.open(home.url, ephemeral=True) as sessions:
        session, _ = await started(sessions, ann, "kept")
        await sessions.close()
        await sessions.close()
    await sessions.close()
    assert await told(other, ann, session.id) == ["kept"]


async def test_sessions_over_a_store_that_somebody_else_opened_leave_it_open(
    sessions: Sessions, ann: Principal
) -> None:
    await sessions.close()
    await started(sessions, ann, "still here")
