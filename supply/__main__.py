"""`python -m supply`: writes the bill of materials of what requirements.txt pins, as CycloneDX."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from supply.pins import ROOT, Pin, asked_for, normal, pins

PINS = ROOT / "requirements.txt"
OUT = ROOT / "docs/sbom.json"
ASKED = ROOT / "requirements.in"
_NAME = re.compile(r"^[A-Za-z0-9._-]+")
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
UNKNOWN = "NOASSERTION"
NOT_HERE = "the package is for another system and not installed where this was written, so its own words were not read"
"""Why a licence is not known."""


def main() -> int:
    """Write it, after a look at its schema; 1 if it does not fit."""
    bom = _bill(pins(PINS))
    # Number and time of the writing would change without a change of content.
    written = json.loads(JsonV1Dot6(bom).output_as_string())
    del written["serialNumber"], written["metadata"]["timestamp"]
    text = json.dumps(written, indent=1, sort_keys=True, ensure_ascii=False)
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        sys.stderr.write(f"{fault}\n")
        return 1
    OUT.write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"wrote {OUT.relative_to(ROOT)}: {len(bom.components)} components\n")
    return 0


def _bill(found: list[Pin]) -> Bom:
    components = {pin.name: _component(pin) for pin in found}
    whole = _hitherto()
    bom = Bom(components=components.values(), metadata=BomMetaData(component=whole))
    bom.register_dependency(whole, [components[name] for name in asked_for(ASKED)])
    for name, component in components.items():
        bom.register_dependency(component, [components[each] for each in _needs(name) if each in components])
    return bom


def _hitherto() -> Component:
    """What it is the bill of."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = _VERSION.search((ROOT / "src/hitherto/__init__.py").read_text(encoding="utf-8"))
    return Component(
        type=ComponentType.APPLICATION,
        name=project["name"],
        version=version[1] if version else None,
        bom_ref=project["name"],
        description=project["description"],
        licenses=[LicenseFactory().make_from_string(project["license"])],
    )


def _component(pin: Pin) -> Component:
    licence = _licence(pin.name)
    return Component(
        type=ComponentType.LIBRARY,
        name=pin.name,
        version=pin.version,
        bom_ref=pin.name,
        purl=PackageURL("pypi", None, pin.name, pin.version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in pin.digests],
        licenses=[LicenseFactory().make_from_string(licence)],
        properties=[Property(name="hitherto:licence", value=NOT_HERE)] if licence == UNKNOWN else [],
    )


def _installed(name: str) -> Distribution | None:
    """What is installed under that name; a package for another system is not."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _licence(name: str) -> str:
    found = _installed(name)
    if found is None:
        return UNKNOWN
    fields = (found.metadata.get_all(field, []) for field in ("License-Expression", "License", "Classifier"))
    expressions, names, classifiers = fields
    classes = [text.rsplit(" :: ", 1)[-1] for text in classifiers if text.startswith("License ::")]
    # Some packages put the whole text of their licence into the field that was meant for its name: it begins with it.
    whole = [text.strip().partition("\n")[0].strip() for text in names if "\n" in text]
    brief = [text for text in (*expressions, *names, *classes) if text and "\n" not in text]
    return next(iter((*brief, *whole)), UNKNOWN)


def _needs(name: str) -> list[str]:
    found = _installed(name)
    names = (_NAME.match(line) for line in (found.requires or [] if found else []))
    return sorted({normal(match[0]) for match in names if match})


if __name__ == "__main__":
    sys.exit(main())
