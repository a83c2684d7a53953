"""Every row of the scorecard holds in its short form; the rest of them name the tests that do that. `make mutants` tries the controls."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from supply.pins import ROOT
from torture.rows import ROWS
from torture.trial.needs import lacking
from torture.trial.row import Row, Setting

SEED = 11
NEEDLESS = ("R4", "S6")
"""Rows whose short form needs nothing, though the full one does: a relay for a network, frames without the fuzzers."""
PARTICULAR = ("R2", "R8", "R9", "R15", "R20", "R25")
"""Rows that a machine may not allow, in their short form too: disks, failing calls, clocks, networks, a clone without its
history."""


def allowed(row: Row) -> bool:
    return row.key in NEEDLESS or not lacking(row.needs)


SHORT = [row for row in ROWS.values() if row.in_tests and allowed(row)]
HELD = [row for row in ROWS.values() if not row.in_tests]


def setting(folder: Path) -> Setting:
    return Setting(SEED, short=True, folder=folder, say=lambda _line: None)


@pytest.mark.parametrize("row", SHORT, ids=lambda row: row.key)
def test_the_promise_of_the_row_is_kept(row: Row, tmp_path: Path) -> None:
    outcome = row.run(setting(tmp_path))
    assert outcome.met, outcome.figure


def test_a_row_is_left_out_only_where_the_machine_lacks_what_it_needs() -> None:
    left_out = [row for row in ROWS.values() if row.in_tests and row not in SHORT]
    assert {row.key for row in left_out} <= set(PARTICULAR)
    assert all(row.needs for row in left_out)


@pytest.mark.parametrize("row", HELD, ids=lambda row: row.key)
def test_the_tests_that_are_the_short_form_of_a_row_exist(row: Row) -> None:
    assert row.short_forms
    for form in row.short_forms:
        file, _, name = form.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        there = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
        assert name.partition("[")[0] in there if name else any(each.startswith("test_") for each in there), (
            form
        )
