"""Compaction over the gateway: by the server's model if it has one, else without."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.errors import ModelBusy
from hitherto.model import Entry
from hitherto.service import Sessions
from hitherto.summariser import CompactionPolicy, Finding, Summary
from tests.gateway.methods.asker import KEY, Asker
from tests.support.scripted_engine import Scripted

TEXTS = [f"We talked for a while about the weather in town {number}, as one does." for number in range(60)]


class Terse:
    """Says one thing, unless it is to fail; `asked` counts."""

    asked = 0

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails

    async def summarise(
        self,
        retired: Sequence[Entry],
        kept: Sequence[Entry],  # noqa: ARG002 - the port's
        policy: CompactionPolicy,  # noqa: ARG002
    ) -> Summary:
        self.asked += 1
        if self._fails:
            raise ModelBusy("too many requests")
        return Summary(text="Weather.", facts=(Finding(text="It rains.", entries=(retired[0].id,)),))


async def test_the_model_of_the_session_summarises_and_nothing_is_opened_to_it(sessions: Sessions) -> None:
    summariser = Terse()
    engine = Scripted(summariser=summariser)
    asker = Asker(sessions, engine=engine)
    await asker.ask("session.create", session_key=KEY, cwd="/work")
    await asker.say(*TEXTS)
    await asker.ask("sessions.patch", session_key=KEY, model="a:model")
    done = await asker.ask("session.compact", session_key=KEY, idempotency_key="k")
    assert (done["compacted"], done["facts_extracted"], "fallback" in done) == (True, 1, False)
    assert "\nWeather.\n" in (await asker.said())[0]
    facts = (await asker.ask("memory.list"))["facts"]
    assert [fact["content"] for fact in facts] == ["It rains."]
    (setup,) = engine.setups
    assert (setup.roots, setup.local, setup.mcp_servers) == ((), False, ())
    assert [choices.model for choices in engine.summariser_choices] == ["a:model"]
    assert await asker.ask("session.compact", session_key=KEY, idempotency_key="k") == done
    assert summariser.asked == 1


async def test_a_model_that_fails_is_told_of(sessions: Sessions) -> None:
    asker = Asker(sessions, engine=Scripted(summariser=Terse(fails=True)))
    await asker.say("My name is Quentin Marsh.", *TEXTS)
    done = await asker.ask("session.compact", session_key=KEY)
    assert (done["compacted"], done["fallback"]) == (True, "too many requests")
    assert "Quentin Marsh" in (await asker.said())[0]


async def test_a_token_that_may_not_run_turns_has_no_model_asked(sessions: Sessions) -> None:
    summariser = Terse()
    asker = Asker(sessions, engine=Scripted(summariser=summariser))
    await asker.say(*TEXTS)
    done = await asker.allowed("read", "write").ask("session.compact", session_key=KEY)
    assert (done["compacted"], summariser.asked) == (True, 0)


async def test_a_server_without_a_model_does_it_itself(sessions: Sessions) -> None:
    for engine in (None, Scripted()):
        asker = Asker(sessions, engine=engine)
        await asker.say(*TEXTS, session_key=f"agent:main:cron:{engine is None}")
        done = await asker.ask("session.compact", session_key=f"agent:main:cron:{engine is None}")
        assert (done["compacted"], "fallback" in done) == (True, False)


async def test_sessions_whose_turn_waits_are_listed_among_those_that_run(sessions: Sessions) -> None:
    asker = Asker(sessions)
    names = {}
    for status in ("idle", "running", "waiting", "failed"):
        made = await asker.ask("session.create", title=status)
        await sessions.catalog.set_status(asker.context.who, made["session_id"], status)
        names[status] = made["session_id"]
    found = await asker.ask("session.list", filter={"status": "running"})
    assert {row["session_id"] for row in found["sessions"]} == {names["running"], names["waiting"]}
    assert {row["status"] for row in found["sessions"]} == {"running"}
    assert found["total"] == 2
