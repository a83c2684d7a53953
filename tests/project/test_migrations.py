"""Migrations: two of one number would leave one of them out, silently."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_migrations_are_numbered_from_one_without_gaps_or_twins(store: str) -> None:
    files = sorted((ROOT / "src/hitherto/stores" / store / "sql").glob("*.sql"))
    assert [int(file.name.partition("_")[0]) for file in files] == list(range(1, len(files) + 1))


FIRST_VERSION = 5
"""The newest schema of 0.1, on every store."""
LOOKS_SINCE = {"sqlite": 9, "postgres": 8}
"""The schema since which programs look who may write."""
TAKES_AWAY = re.compile(r"\b(DROP|RENAME)\b")
SHUTS_OUT = {"sqlite": "'oldest_writer'", "postgres": "SELECT shut_out_writers("}


def steps(store: str) -> list[tuple[int, str, str]]:
    """The number, the name and the statements of each."""
    files = sorted((ROOT / "src/hitherto/stores" / store / "sql").glob("*.sql"))
    return [(int(file.name[:4]), file.stem[5:], file.read_text(encoding="utf-8")) for file in files]


def rows() -> dict[str, list[str]]:
    """The table of migrations in the documents, by name."""
    page = (ROOT / "docs/storage.md").read_text(encoding="utf-8")
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line[:3] == "| `"
    ]
    return {row[0].strip("`"): row[1:] for row in cells if len(row) == 4}


@pytest.mark.parametrize(("store", "column"), [("sqlite", 0), ("postgres", 1)])
def test_the_documents_say_of_every_migration_whether_older_programs_may_write_beside_it(
    store: str, column: int
) -> None:
    for number, name, statements in steps(store)[FIRST_VERSION:]:
        row = rows()[name]
        assert row[column] == str(number)
        if number > LOOKS_SINCE[store]:
            assert row[2].startswith("no" if SHUTS_OUT[store] in statements else "yes"), name


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_migration_that_takes_something_away_shuts_out_older_writers(store: str) -> None:
    for number, name, statements in steps(store):
        if number > LOOKS_SINCE[store] and TAKES_AWAY.search(statements.upper()):
            assert SHUTS_OUT[store] in statements, f"{name}: programs of earlier schemas still write by it"


def test_the_list_of_migrations_to_record_by_hand_is_whole() -> None:
    page = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
    listed = re.findall(r"\((\d+), '(\w+)'\)", page)
    assert [(int(number), name) for number, name in listed] == [step[:2] for step in steps("postgres")]
