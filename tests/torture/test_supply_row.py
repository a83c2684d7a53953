"""What the scorecard says of the supply chain is built from what was found."""

from __future__ import annotations

import itertools

import pytest

from torture.rows.supply import NO_LIST, Audit, judged

CASES = list(itertools.product((True, False), (True, False), Audit))


@pytest.mark.parametrize(("held", "clean", "audit"), CASES)
def test_the_figure_names_what_failed_and_the_reason_is_given_for_the_look_up_alone(
    held: bool, clean: bool, audit: Audit
) -> None:
    found = judged(held=held, clean=clean, audit=audit)
    assert found.met is (held and clean and audit is Audit.CLEAN)
    assert ("NOT all pinned" in found.figure, "NOT kept" in found.figure) == (not held, not clean)
    assert audit in found.figure
    assert found.missed == (NO_LIST if (held, clean, audit) == (True, True, Audit.UNREACHED) else "")
