"""CONTRIBUTING.md names layers, files and tables that there are."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.support.paths import ROOT

SOURCE = ROOT / "src" / "hitherto"


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def paths(cell: str) -> list[str]:
    """The files and folders that a cell names."""
    return [
        each for each in re.findall(r"`([\w<>./-]+)`", cell) if "/" in each or each.endswith((".py", ".toml"))
    ]


def test_the_layers_are_those_that_import_linter_holds() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}
    held = [re.findall(r"\w+", layer) for layer in contracts["layers"]["layers"]]
    assert [re.findall(r"`(\w+)`", row[0]) for row in rows("Layers")] == held


@pytest.mark.parametrize("row", rows("Where a new thing goes"), ids=lambda row: row[0])
def test_what_a_row_names_is_there(row: list[str]) -> None:
    assert len(row) == 4
    for path in paths(" ".join(row)):
        pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
        assert [*SOURCE.glob(pattern), *ROOT.glob(pattern)], path
    for table, file in re.findall(r"`([A-Z]+)` in `([\w./]+)`", row[2]):
        assert re.search(rf"^{table}\b.*=", (SOURCE / file).read_text(encoding="utf-8"), re.MULTILINE), table


def test_every_command_of_make_is_explained() -> None:
    explained = {re.findall(r"`make (\w+)`", row[0])[0] for row in rows("Set up")}
    targets = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert targets is not None
    assert explained == set(targets[1].split()) - {"help"}
