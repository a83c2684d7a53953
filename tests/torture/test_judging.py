"""What a row must not let pass."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from torture.clients.persistent import Writer
from torture.kills import postgres
from torture.kills.cluster import Watcher
from torture.storage import bit_rot


@pytest.mark.parametrize(
    ("told", "missed"), [(("a", "b", "c", "d"), 0), (("c", "d"), 0), (("d",), 1), ((), 2)], ids=str
)
def test_what_is_lost_right_after_subscribing_is_missed(told: Sequence[str], missed: int) -> None:
    writer = Writer([], "writer")
    watcher = Watcher([], writer, first=0)
    writer.pages.acknowledged += ["a"]
    watcher.subscribed("cursor")
    # "b" may have been stored before that, and acknowledged after it.
    writer.pages.acknowledged += ["b", "c", "d"]
    watcher.told += told
    assert watcher.missed() == missed


def test_who_never_could_subscribe_has_missed_everything() -> None:
    writer = Writer([], "writer")
    writer.pages.acknowledged += ["a", "b"]
    assert Watcher([], writer, first=0).missed() == 2


@pytest.mark.parametrize(
    ("found", "good"),
    [
        ({"refused": 1, "whole": 9 * 36}, True),
        ({"refused": 10}, False),
        ({"whole": 0, "told": 400}, False),
        ({"unlistable": 10, "whole": 400}, False),
        ({"whole": 400, "unlisted": 3}, True),
        ({"whole": 400, "unlisted": 3, "silent": 3}, False),
        ({"whole": 400, "altered": 1}, False),
    ],
    ids=str,
)
def test_a_server_that_serves_too_little_of_damaged_stores_is_not_good(
    found: dict[str, int], good: bool
) -> None:
    assert bit_rot.Seen(found).is_good(stores=10, flips=4) is good


def test_a_kind_of_fault_that_takes_long_is_not_hidden_among_others() -> None:
    back = [("kill -9", 0.1)] * 99 + [("partition", 9.0)] * 4
    seen = postgres.Seen(back)
    assert seen.p95() == {"kill -9": 0.1, "partition": 9.0}
    assert seen.told() == "99 × kill -9 (p95 0.1 s, max 0.1 s), 4 × partition (p95 9.0 s, max 9.0 s)"
