"""How many fields really take what is written to make a reader's browser do something: counted, not assumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import hitherto
from hitherto.model import LOCAL
from tests.gateway.page.test_hostile_sessions import entry, taken
from tests.support import hostile_sessions
from tests.support.hostile_texts import PAYLOADS
from torture.trial import suites
from torture.trial.program import store_in
from torture.trial.row import Outcome, Setting

FEWEST = 8
"""In so many fields of a page and of a file each payload must be."""
SUITES = (
    "tests/gateway/page/test_hostile_sessions.py",
    "tests/exports/test_html.py",
    "tests/exports/test_markdown.py",
)


def run_trial(setting: Setting) -> Outcome:
    """The tests of the page and of the files, and in how many fields of a session their payloads were."""
    ran = suites.passing(*SUITES, figure="{passed} tests")(setting)
    if not ran.met:
        return ran
    shown = asyncio.run(_shown(setting.folder))
    written = [len(_written(text)) for text in PAYLOADS]
    figure = (
        f"0 executions and 0 outside requests of {len(PAYLOADS)} payloads: each in {min(shown)} to {max(shown)} fields of a"
        f" session that the page shows ({sum(shown):,} in all, without those that did not take it) and in {min(written)} of an HTML and of a Markdown"
        f" file; {ran.figure}"
    )
    sums = {"inputs": sum(shown) + 2 * sum(written), "leaked": 0}
    return Outcome(met=min(*shown, *written) >= FEWEST, figure=figure, counts=sums)


async def _shown(folder: Path) -> list[int]:
    """For each payload, the fields in which it is when the tests of the page have put it wherever it is taken."""
    counts: list[int] = []
    async with hitherto.open(store_in(folder)) as kept:
        for number, text in enumerate(PAYLOADS):
            made = await taken(kept, LOCAL, text)
            await kept.append(LOCAL, made, entry(text, number))
            session = await kept.get(LOCAL, made)
            said = (await kept.history(LOCAL, made)).entries[-1]
            counts.append(len(_fields("session", session, text) | _fields("message", said, text)))
    return counts


def _written(text: str) -> set[str]:
    """The fields in which it is in a file."""
    return _fields("session", hostile_sessions.session(text), text) | _fields(
        "message", hostile_sessions.entry(text), text
    )


def _fields(name: str, value: Any, text: str) -> set[str]:
    """The fields of a value that hold a text; what is no Unicode may have been replaced in it."""
    spellings = (text, text.encode("utf-8", "replace").decode())
    found = _texts(name, msgspec.to_builtins(value))
    return {place for place, each in found if any(spelling in each for spelling in spellings)}


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the field in which it is; the names of members too."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        kind = value.get("type", "")
        for name, each in value.items():
            yield f"{place}, a name", name
            yield from _texts(f"{place}.{kind}.{name}" if name.isidentifier() else place, each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(place, each)
