"""What counts on the scorecard: trials that came to their end, held to every word that was acknowledged."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Sessions
from torture.__main__ import run_row
from torture.clients.acknowledged import Pages, judged, mark_for
from torture.trial import report
from torture.trial.program import store_in
from torture.trial.results import Recorded
from torture.trial.row import Outcome, Row, Setting


def ending(met: bool) -> Callable[[Setting], Outcome]:
    return lambda _: Outcome(met=met, figure="7 tried", counts={"faults": 7})


def breaking_off(_: Setting) -> Outcome:
    raise RuntimeError("no such program")


def row(run: Callable[[Setting], Outcome], control: Callable[[Setting], Outcome]) -> Row:
    return Row(key="X1", promise="p", target="t", how="h", run=run, control=control, broken="b")


def recorded(folder: Path, of: Row) -> Recorded:
    chosen = argparse.Namespace(seed=1, short=True, folder=folder)
    found = run_row(of, chosen, lambda _line: None, "short form")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("control", "counts"), [(ending(False), True), (ending(True), False), (breaking_off, False)]
)
def test_a_trial_counts_if_its_control_came_to_its_end_and_failed(
    tmp_path: Path, control: Callable[[Setting], Outcome], counts: bool
) -> None:
    of = row(ending(True), control)
    found = recorded(tmp_path, of)
    assert (found.met, found.counts) == (True, counts)
    page = report.page({"Group": (of,)}, {"X1": found})
    assert ("**7 faults injected" in page, "**does not count**" in page) == (counts, not counts)
    assert f"**{int(counts)} of 1 rows met" in page


def test_a_trial_that_breaks_off_is_not_met(tmp_path: Path) -> None:
    of = row(breaking_off, ending(False))
    found = recorded(tmp_path, of)
    assert (found.met, found.figure, found.broke_off) == (False, "broke off with RuntimeError", True)
    page = report.page({"Group": (of,)}, {"X1": found})
    assert "(broke off with RuntimeError). The trial aborted, so it shows nothing." in page


def test_a_row_that_was_not_tried_is_neither_met_nor_missed() -> None:
    page = report.page({"Group": (row(ending(True), ending(False)),)}, {})
    assert "**0 of 1 rows met, 0 missed, 1 not run.**" in page
    assert "Not run at full size yet: X1." in page
    assert "Missed" not in page
    assert "| met |" not in page


async def test_a_message_with_other_words_than_were_acknowledged_is_lost(tmp_path: Path) -> None:
    async with hitherto.open(store_in(tmp_path)) as sessions:
        session_id = (await sessions.create(LOCAL)).id
        kept, altered, gone = (mark_for(name, "some words") for name in ("a", "b", "c"))
        await say(sessions, session_id, f"{kept} some words", f"{altered} some other words")
    found = await judged(store_in(tmp_path), [Pages(session_id, [kept, altered, gone])])
    assert (found.acknowledged, found.lost, found.whole) == (3, 2, False)


async def say(sessions: Sessions, session_id: str, *texts: str) -> None:
    await sessions.append(LOCAL, session_id, [Draft(role="user", parts=(Text(text=text),)) for text in texts])
