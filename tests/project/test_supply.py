"""What is installed is pinned, hashed, listed and has a reason."""

from __future__ import annotations

import json
import re
import shutil
import site
import subprocess
import tomllib
from datetime import date
from pathlib import Path

import apsw
import pytest

import hitherto
from hitherto.stores.sqlite.connection import OLDEST_SAFE
from supply.pins import ROOT, asked_for, normal, pins
from tests.support.waits import LIMIT

PAGE = ROOT / "docs/supply-chain.md"
SIGNED_OFF = re.compile(
    r"^\| ([a-z0-9-]+) \| [^|]+ \| [^|]{10,} \| (\d[^ |,]*), (\d{4}-\d\d-\d\d) \|$", re.MULTILINE
)
FIRST_SIGNED = date(2026, 11, 15)
BASE_AT_MOST = 10
OURS = {"hitherto.pth"}
"""The editable install."""
KNOWN_HOOKS = {"distutils-precedence.pth"}
"""Code of setuptools that runs at every start of Python; nothing else may."""


@pytest.mark.parametrize("file", sorted(ROOT.glob("requirements*.txt")), ids=lambda file: file.name)
def test_every_package_is_pinned_and_hashed(file: Path) -> None:
    found = pins(file)
    assert found
    assert [pin.name for pin in found if not pin.digests] == []


def test_every_direct_dependency_has_a_reason_and_is_signed_off_in_the_version_that_is_pinned() -> None:
    rows = SIGNED_OFF.findall(PAGE.read_text(encoding="utf-8"))
    pinned = {pin.name: pin.version for pin in pins(ROOT / "requirements.txt")}
    assert min(date.fromisoformat(day) for _name, _version, day in rows) >= FIRST_SIGNED
    assert {name: version for name, version, _day in rows} == {
        name: pinned[name] for name in asked_for(ROOT / "requirements.in")
    }


def _would_run(*words: str) -> str:
    """What `make` would do, one command a line."""
    make = shutil.which("make")
    assert make is not None
    ran = subprocess.run(
        [make, "-n", *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=LIMIT
    )
    return ran.stdout.replace("\\\n", " ")


def test_an_upgrade_takes_nothing_that_is_younger_than_a_week() -> None:
    locks = [line for line in _would_run("lock", "UPGRADE=--upgrade").splitlines() if " pip compile " in line]
    assert len(locks) == len(list(ROOT.glob("requirements*.in")))
    assert [line for line in locks if "--upgrade" not in line or '--exclude-newer "1 week"' not in line] == []


def test_the_audit_asks_about_every_requirement_file() -> None:
    assert re.search(
        r"for file in requirements\*\.txt; .*pip-audit --strict .* -r \"\$file\"", _would_run("audit")
    )


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


def test_the_bill_of_materials_says_what_it_is_the_bill_of_and_every_licence() -> None:
    bill = json.loads((ROOT / "docs/sbom.json").read_text(encoding="utf-8"))
    whole = bill["metadata"]["component"]
    assert (whole["name"], whole["version"]) == ("hitherto", hitherto.__version__)
    needs = {each["ref"]: set(each.get("dependsOn", ())) for each in bill["dependencies"]}
    assert needs[whole["bom-ref"]] == set(asked_for(ROOT / "requirements.in"))
    assert [part["name"] for part in bill["components"] if not part.get("licenses")] == []
    unknown = [part for part in bill["components"] if "NOASSERTION" in json.dumps(part["licenses"])]
    assert [part["name"] for part in unknown] == ["httpx2-jsfetch", "pywin32"]
    assert all(part["properties"] for part in unknown)


def test_no_package_runs_code_at_every_start_of_python() -> None:
    hooks = {file.name for folder in site.getsitepackages() for file in Path(folder).glob("*.pth")}
    assert hooks - OURS <= KNOWN_HOOKS


def test_the_sqlite_that_comes_along_damages_no_file() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= OLDEST_SAFE >= (3, 51, 3)
