"""What docs/architecture.md shows of the code: `python -m tests.project.architecture` writes it again."""

from __future__ import annotations

import ast
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.project.ways import ways
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src" / "hitherto"
TITLES = {
    "list": "`session.list` over HTTP",
    "append": "`session.append` over HTTP",
    "load": "`session/load` from an editor, over ACP",
    "sync": "`hitherto sync`, which finds one new transcript of Claude Code",
    "page": "The page with the list of sessions",
}


def purpose(module: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    assert text, f"{module} says nothing of itself"
    return re.split(r"(?<=[.…])\s", text.split("\n\n")[0].replace("\n", " "))[0]


def rooms() -> str:
    """The rooms, with how many modules each has."""
    found = sorted(path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE)
    rows = [
        f"| `{room.relative_to(SOURCE)}` | {modules_of(room)} | {purpose(room / '__init__.py')} |"
        for room in found
    ]
    return "\n".join(["| room | modules | what it holds |", "|---|--:|---|", *rows])


def modules_of(room: Path) -> int:
    """How many modules a room has, rooms inside it not counted."""
    return sum(path.stem != "__init__" for path in room.glob("*.py"))


def modules() -> str:
    """The modules at the top."""
    found = sorted(path for path in SOURCE.glob("*.py") if path.stem != "__init__")
    rows = [f"| `{path.stem}` | {purpose(path)} |" for path in found]
    return "\n".join(["| module | what it holds |", "|---|---|", *rows])


def layers() -> str:
    """The layers that import-linter holds."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = []
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            name = contract["containers"][0].replace(".", "/")
            lines = [re.sub("[()]", "", layer) for layer in contract["layers"]]
            parts.append("\n".join([f"In `{name}`:", "", "```", *lines, "```"]))
    return "\n\n".join(parts)


def listed(found: Mapping[str, Sequence[str]]) -> str:
    """The ways, as lists of modules."""
    parts = []
    for name, title in TITLES.items():
        lines = [f"{number}. `{module}`" for number, module in enumerate(found[name], 1)]
        parts.append("\n".join([f"### {title}", "", *lines]))
    return "\n\n".join(parts)


def shown(part: str) -> str:
    """What the page shows of it now."""
    found = re.search(rf"<!-- {part} -->\n(.*?)<!-- /{part} -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, part
    return found[1].strip()


def shown_ways() -> dict[str, list[str]]:
    """The ways that the page shows, by name."""
    sections = re.split(r"^### (.+)$", shown("ways"), flags=re.MULTILINE)
    by_title = dict(zip(sections[1::2], sections[2::2], strict=True))
    return {name: re.findall(r"`(.+)`$", by_title[title], re.MULTILINE) for name, title in TITLES.items()}


def tables() -> Iterator[tuple[str, str]]:
    """What needs no running program."""
    yield "rooms", rooms()
    yield "modules", modules()
    yield "layers", layers()


def write() -> None:
    """Write the page again."""
    with tempfile.TemporaryDirectory() as folder:
        found = listed(ways(Path(folder), shown_ways()))
    text = PAGE.read_text(encoding="utf-8")
    for part, content in (*tables(), ("ways", found)):
        text = text.replace(
            re.search(rf"<!-- {part} -->\n.*?<!-- /{part} -->", text, re.DOTALL)[0],  # type: ignore[index]
            f"<!-- {part} -->\n{content}\n<!-- /{part} -->",
        )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
