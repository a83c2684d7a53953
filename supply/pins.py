"""Reads the hashed requirement files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?==(?P<version>[^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_ASKED = re.compile(r"^[A-Za-z0-9._-]+")


class Pin(NamedTuple):
    """One package at one version, with the digests of the files that may be installed for it."""

    name: str
    version: str
    digests: tuple[str, ...]


def pins(file: Path) -> list[Pin]:
    """The pins of a requirement file, in its order."""
    found: list[Pin] = []
    for entry in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        pin = _PIN.match(entry)
        if pin is not None:
            found.append(Pin(normal(pin["name"]), pin["version"], tuple(_HASH.findall(entry))))
    return found


def asked_for(file: Path) -> list[str]:
    """The packages that a `.in` file names itself: the direct dependencies."""
    matches = (_ASKED.match(line) for line in file.read_text(encoding="utf-8").splitlines())
    return [normal(match[0]) for match in matches if match and not match[0].startswith("-")]


def normal(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()
