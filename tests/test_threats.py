"""Every defence that the threat page claims names a test that is there."""

from __future__ import annotations

import ast
import re

import pytest

from supply.pins import ROOT

PAGE = (ROOT / "docs/threats.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (T\d+) \|.*\| ([^|]*) \|$", PAGE, re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_the_threats_are_numbered_without_a_gap() -> None:
    assert [key for key, _proof in ROWS] == [f"T{number}" for number in range(1, len(ROWS) + 1)]


@pytest.mark.parametrize(("key", "proof"), ROWS, ids=[key for key, _proof in ROWS])
def test_each_defence_is_proved_by_tests_that_exist(key: str, proof: str) -> None:
    named = NAMED.findall(proof)
    assert named, key
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}, (
            f"{file}::{name}"
        )
