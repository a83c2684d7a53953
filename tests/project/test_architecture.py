"""docs/architecture.md shows the code as it is, and the code keeps the shape that the page promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.architecture import SOURCE, layers, modules, modules_of, rooms, shown, shown_ways
from tests.project.ways import in_an_editor, of_a_transcript, over_the_gateway

AGAIN = "write it again: python -m tests.project.architecture"
MOST_MODULES = 16
"""Of a room: what one can take in at a look."""
MOST_FILES = 23
"""Of a list over the gateway: the sessions, and what each of them changed."""


def test_the_page_shows_every_room_with_what_it_holds() -> None:
    assert shown("rooms") == rooms(), AGAIN


def test_the_page_shows_every_module_at_the_top_with_what_it_holds() -> None:
    assert shown("modules") == modules(), AGAIN


def test_the_page_shows_who_may_import_whom() -> None:
    assert shown("layers") == layers(), AGAIN


def test_a_room_can_be_taken_in_at_a_look() -> None:
    found = {
        str(path.parent.relative_to(SOURCE)): modules_of(path.parent) for path in SOURCE.rglob("__init__.py")
    }
    del found["cli/commands"]  # one for each command
    assert {name: count for name, count in found.items() if count > MOST_MODULES} == {}


def is_value(module: str) -> bool:
    """Whether a module holds what all rooms speak in, as opposed to something that a request passes through."""
    return "/" not in module or module.startswith("values/")


def test_a_list_over_the_gateway_touches_few_files() -> None:
    assert len([module for module in shown_ways()["list"] if not is_value(module)]) <= MOST_FILES


@pytest.mark.parametrize("way", ["append", "list", "page"])
def test_the_page_shows_the_way_over_the_gateway(way: str, gateway_ways: dict[str, list[str]]) -> None:
    assert set(shown_ways()[way]) == set(gateway_ways[way]), AGAIN


def test_the_page_shows_the_way_of_a_load(tmp_path: Path) -> None:
    assert set(shown_ways()["load"]) == set(in_an_editor(tmp_path, shown_ways())), AGAIN


def test_the_page_shows_the_way_of_a_sync(tmp_path: Path) -> None:
    assert set(shown_ways()["sync"]) == set(of_a_transcript(tmp_path)), AGAIN


@pytest.fixture(scope="module")
def gateway_ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return over_the_gateway(tmp_path_factory.mktemp("ways"), shown_ways())
