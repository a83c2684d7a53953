"""Migrations: two of one number would leave one of them out, silently."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_migrations_are_numbered_from_one_without_gaps_or_twins(store: str) -> None:
    files = sorted((ROOT / "src/hitherto/stores" / store / "sql").glob("*.sql"))
    assert [int(file.name.partition("_")[0]) for file in files] == list(range(1, len(files) + 1))
