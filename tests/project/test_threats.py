"""Every defence that the threat page claims names tests and rows of the scorecard that are there."""

from __future__ import annotations

import ast
import re

import pytest

from supply.pins import ROOT
from torture.rows import ROWS

PAGE = (ROOT / "docs/threats.md").read_text(encoding="utf-8")
THREATS = re.findall(r"^\| (T\d+) \|.*\| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
KEYS = [key for key, _proof, _tried in THREATS]
LINKED = re.compile(r"\[(\w+)\]\(scorecard\.md#(\w+)\)")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_the_threats_are_numbered_without_a_gap() -> None:
    assert [f"T{number}" for number in range(1, len(KEYS) + 1)] == KEYS


@pytest.mark.parametrize(("key", "tried"), [(key, tried) for key, _proof, tried in THREATS], ids=KEYS)
def test_each_defence_is_tried_in_rows_that_exist_or_by_tests_only(key: str, tried: str) -> None:
    named = LINKED.findall(tried)
    told = ", ".join(f"[{name}](scorecard.md#{anchor})" for name, anchor in named)
    assert tried == (told or "tests only"), key
    assert [name for name, anchor in named if name not in ROWS or anchor != name.lower()] == []


@pytest.mark.parametrize(("key", "proof"), [(key, proof) for key, proof, _tried in THREATS], ids=KEYS)
def test_each_defence_is_proved_by_tests_that_exist(key: str, proof: str) -> None:
    named = NAMED.findall(proof)
    assert named, key
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}, (
            f"{file}::{name}"
        )
