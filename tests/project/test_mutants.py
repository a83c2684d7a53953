"""Every breakage can still be made: what it changes is in the sources, and the test that must notice it is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.mutants import DOORS, MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_breakage_can_be_made_and_has_a_test(mutant: Mutant) -> None:
    for change in mutant.changes:
        assert change.old in (ROOT / "src" / "hitherto" / change.file).read_text(encoding="utf-8")
        assert change.old != change.new
    file, _, name = mutant.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_there_are_enough_breakages_and_each_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= 25


@pytest.mark.parametrize("door", DOORS)
def test_there_is_a_breakage_of_every_door(door: str) -> None:
    assert [mutant.name for mutant in MUTANTS if door in mutant.doors]


def _changes_of_trials() -> Iterator[tuple[str, str]]:
    """The file and the old text of every change that a control of the torture rows makes."""
    for path in sorted((ROOT / "torture").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Change":
                file, old, _ = (ast.literal_eval(argument) for argument in node.args)
                yield file, old


@pytest.mark.parametrize(("file", "old"), sorted(set(_changes_of_trials())))
def test_a_change_of_a_trial_can_be_made(file: str, old: str) -> None:
    assert old in (ROOT / "src" / "hitherto" / file).read_text(encoding="utf-8")
