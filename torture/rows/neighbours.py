"""Rows about neighbours: how long others wait while one owner asks for as much as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.mutants import Change
from torture.load.neighbours import Plan, Waits, measure
from torture.trial.program import Environment, ProgramTrial, broken, changed, each, whole
from torture.trial.row import Outcome, Row, Setting, Trial

TIMES, LEAST = 3, 0.025
MEMORY = 256 << 20
WHOLE = Plan(messages=60_000, newlines=49_000, rounds=5, requests=300)
SMALL = replace(WHOLE, messages=20_000, newlines=5_000, rounds=1, requests=200)
"""For the short form, and for controls, which would take hours else."""
ONCE = replace(SMALL, messages=WHOLE.messages)
TARGET = "p99 of others <= the larger of 3 x that of the quiet server and 25 ms; the server grows by < 256 MB"
SEARCHES = ("broad searches", "a first search", "searches behind a lock")
BYTES = ("half-sent bodies", "reads over MCP")
ON_THE_LOOP = Change(
    "gateway/server/workers.py",
    "            return await self._attempt(self._effort, work, given)\n",
    "            return work(*given)\n",
)
WHOLE_SESSIONS = Change("recall/tools.py", "READ_BYTES = 1_000_000", "READ_BYTES = 1 << 30")


def _trial(attacks: Sequence[str], plan: Plan) -> ProgramTrial:
    def run(setting: Setting, environment: Environment) -> Outcome:
        found, used = list[Waits](), SMALL if setting.short and plan is WHOLE else plan
        for number, attack in enumerate(attacks):
            folder = setting.folder / f"attack{number}"
            folder.mkdir()
            found.append(measure(folder, attack, used, environment))
            setting.say(_told(found[-1]))
        return Outcome(
            met=all(map(_is_kept, found)),
            figure="; ".join(map(_told, found)),
            counts={"faults": len(found) * used.rounds},
        )

    return run


def _is_kept(waits: Waits) -> bool:
    return waits.beside <= max(TIMES * waits.quiet, LEAST) and waits.memory < MEMORY


def _told(waits: Waits) -> str:
    return (
        f"{waits.attack}: p99 {waits.beside * 1e3:.1f} ms, quiet {waits.quiet * 1e3:.1f},"
        f" {waits.memory / 1e6:+,.0f} MB"
    )


def _each_broken(attacks: Sequence[str], *mutants: str) -> Trial:
    return each(*(broken(_trial((attack,), SMALL), *mutants) for attack in attacks))


HOW = (
    "A server of the program's own parts on SQLite, with its limits. Another owner appends and reads in turn on a"
    " socket, 300 requests after each other, or until it has waited for 20 s in all: while it is quiet, and while {attack},"
    " from another process. Both alternate five times; the medians of the five p99 are compared, of fewer than 100 requests the"
    " longest. The control does it once, with {small}."
)
R30 = Row(
    key="R30",
    promise="Pages that take minutes to highlight cost nobody else",
    target=TARGET,
    how=HOW.format(
        attack="six readers ask again and again for a page with a C block of 49,000 empty lines",
        small="5,000 empty lines",
    ),
    run=whole(_trial(("views",), WHOLE)),
    control=changed(_trial(("views",), SMALL), ON_THE_LOOP),
    broken="pages are made on the event loop",
    in_tests=False,
    short_forms=(
        "tests/gateway/page/test_bounded_work.py::test_code_that_takes_minutes_to_highlight_is_shown_plainly",
        "tests/gateway/page/test_bounded_work.py::"
        "test_others_have_their_pages_while_one_owner_has_many_that_take_long",
    ),
)
R31 = Row(
    key="R31",
    promise="Searches that take long cost nobody else",
    target=TARGET,
    how=HOW.format(
        attack=(
            "four clients search 60,000 messages for `w*`; or one searches first after another process has appended"
            " 60,000, and what counts is how long others wait until that is answered; or four append and search while another process holds the lock of the search file"
        ),
        small="20,000 messages",
    ),
    run=whole(_trial(SEARCHES, WHOLE)),
    control=_each_broken(SEARCHES, "search-on-the-event-loop"),
    broken="searches run on the event loop; it must be noticed in each of the three",
    in_tests=False,
    short_forms=("tests/gateway/server/test_searches.py::test_nobody_waits_for_the_search_of_another",),
)
R32 = Row(
    key="R32",
    promise="What one token sends half, or has read for it, costs nobody else",
    target=TARGET,
    how=HOW.format(
        attack=(
            "forty bodies of 32 MB are sent half and held; or four clients call `sessions_read` over MCP, of a session"
            " with 60 messages of 1 MB"
        ),
        small="as many",
    ),
    run=whole(_trial(BYTES, WHOLE)),
    control=each(
        broken(_trial(BYTES[:1], SMALL), "half-sent-bodies-uncounted"),
        changed(_trial(BYTES[1:], ONCE), ON_THE_LOOP, WHOLE_SESSIONS),
    ),
    broken="bodies are not counted; answers over MCP are made on the event loop, of whole sessions; each must be noticed",
    in_tests=False,
    short_forms=(
        "tests/gateway/server/test_limits.py::test_half_sent_bodies_are_bounded_for_each_token_and_in_sum",
        "tests/gateway/server/test_in_flight.py::test_a_tool_reads_by_a_worker",
        "tests/recall/test_read_bytes.py::test_long_messages_are_read_in_pages_of_bytes",
    ),
)
ROWS = (R30, R31, R32)
