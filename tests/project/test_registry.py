"""The entry for the public registry of ACP agents, held against the rules that the registry's own check applies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import hitherto
from hitherto.acp.protocol.initialize import About, InitializeParams, answer_initialize
from hitherto.engines.capabilities import Reads
from tests.support.paths import ROOT

FOLDER = ROOT / "registry" / "hitherto"
SVG = "{http://www.w3.org/2000/svg}"
COLOURS = {"currentColor", "none", "inherit"}


def test_the_entry_is_complete_and_of_this_version() -> None:
    entry = json.loads((FOLDER / "agent.json").read_text())
    assert entry["id"] == Path(FOLDER).name
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert entry["version"] == hitherto.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert all(entry[name] for name in ("name", "description", "authors", "license"))
    uvx = entry["distribution"]["uvx"]
    # The command is that of the package: some versions of the registry's schema allow no other.
    assert uvx == {"package": f"hitherto[models]=={entry['version']}", "args": ["acp"]}
    assert set(entry) <= {"id", "name", "version", "description", "authors", "license", "distribution"}
    assert len(entry["description"]) <= 200


def test_the_icon_is_small_square_and_of_the_colour_of_the_text() -> None:
    assert "<!--" not in (FOLDER / "icon.svg").read_text()
    icon = ElementTree.parse(FOLDER / "icon.svg").getroot()  # noqa: S314 - it is our own
    assert icon.tag == f"{SVG}svg"
    assert (icon.get("width"), icon.get("height"), icon.get("viewBox")) == ("16", "16", "0 0 16 16")
    used = {value for each in icon.iter() for name in ("fill", "stroke") if (value := each.get(name))}
    assert used <= COLOURS
    assert "currentColor" in used
    assert not any("style" in each.attrib for each in icon.iter())


def test_there_is_always_a_way_to_authenticate() -> None:
    for capabilities in ({}, {"auth": {"terminal": True}}):
        params = InitializeParams(protocol_version=1, client_capabilities=capabilities)
        _, answer = answer_initialize(params, Reads(), About(), signs_in=True)
        types = [method.get("type", "agent") for method in answer["authMethods"]]
        assert types == (["terminal", "agent"] if capabilities else ["agent"])
        assert all(method["id"] and method["name"] for method in answer["authMethods"])
