"""`hitherto stats`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions

TIMES = ("oldest", "newest")


@command("hitherto stats", "hitherto stats --json | jq .messages", opens="read")
async def run(sessions: Sessions, out: Output) -> None:
    """Show statistics about your sessions and the store. In a pipe, each line has a name and a value, separated by a tab."""
    numbers, about = await sessions.statistics.stats(LOCAL), await sessions.admin.about()
    if out.json:
        out.document({**numbers, "store": about})
        return
    rows = [*_rows(numbers, "", people=out.terminal), *_rows(about, "store ", people=out.terminal)]
    if out.terminal:
        out.table(("WHAT", "VALUE"), rows)
        return
    for row in rows:
        out.row(*row)


def _rows(numbers: dict[str, Any], prefix: str, *, people: bool) -> Iterator[tuple[str, str]]:
    """Names and values; nested ones get their own rows, unknown ones are left out."""
    for name, value in numbers.items():
        label = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _rows(value, f"{label} ", people=people)
        elif value is not None:
            yield label, _value_text(name, value, people=people)


def _value_text(name: str, value: Any, *, people: bool) -> str:
    if name in TIMES:
        return formats.local(value) if people else formats.utc(value)
    if people and name == "bytes":
        return formats.size(value)
    return str(value)
