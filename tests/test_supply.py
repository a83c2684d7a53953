"""What is installed is pinned, hashed, listed and has a reason."""

from __future__ import annotations

import json
import re
import site
import tomllib
from pathlib import Path

import apsw
import pytest

from recollect.stores.sqlite.connection import OLDEST_SAFE
from supply.pins import ROOT, asked_for, normal, pins

PAGE = ROOT / "docs/supply-chain.md"
BASE_AT_MOST = 8
OURS = {"recollect.pth"}
"""The editable install."""
KNOWN_HOOKS = {"distutils-precedence.pth"}
"""Code of setuptools that runs at every start of Python; nothing else may."""


@pytest.mark.parametrize("file", sorted(ROOT.glob("requirements*.txt")), ids=lambda file: file.name)
def test_every_package_is_pinned_and_hashed(file: Path) -> None:
    found = pins(file)
    assert found
    assert [pin.name for pin in found if not pin.digests] == []


def test_every_direct_dependency_has_a_reason_and_nothing_else_is_listed() -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| [^|]+ \| [^|]{10,} \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows == ["package", *rows[1:]]
    assert sorted(rows[1:]) == sorted(asked_for(ROOT / "requirements.in"))


def test_the_package_asks_for_what_is_pinned_and_the_base_is_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        each for name, extra in project["optional-dependencies"].items() if name != "all" for each in extra
    ]
    names = {normal(re.split(r"[\[ ;<>=]", each)[0]) for each in (*project["dependencies"], *extras)}
    assert names == set(asked_for(ROOT / "requirements.in"))
    assert len(project["dependencies"]) <= BASE_AT_MOST


def test_the_bill_of_materials_is_that_of_the_pins() -> None:
    bill = json.loads((ROOT / "docs/sbom.json").read_text(encoding="utf-8"))
    listed = {
        (part["name"], part["version"]): {digest["content"] for digest in part["hashes"]}
        for part in bill["components"]
    }
    assert listed == {(pin.name, pin.version): set(pin.digests) for pin in pins(ROOT / "requirements.txt")}


def test_no_package_runs_code_at_every_start_of_python() -> None:
    hooks = {file.name for folder in site.getsitepackages() for file in Path(folder).glob("*.pth")}
    assert hooks - OURS <= KNOWN_HOOKS


def test_the_sqlite_that_comes_along_damages_no_file() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= OLDEST_SAFE >= (3, 51, 3)
