"""The export formats: a table, and one module for each. Pure."""

from __future__ import annotations

from typing import NamedTuple

from hitherto.errors import InvalidInput
from hitherto.exports.format import About, Writer
from hitherto.exports.html import HtmlPage
from hitherto.exports.json import JsonDocument, JsonLines
from hitherto.exports.markdown import Markdown


class Format(NamedTuple):
    """How a format is written. One that is `for_reading` is made to be shown to others, and is not read back."""

    writer: type[Writer]
    suffix: str
    media_type: str
    for_reading: bool


FORMATS = {
    "json": Format(JsonDocument, ".json", "application/json", False),
    "jsonl": Format(JsonLines, ".jsonl", "application/jsonl", False),
    "markdown": Format(Markdown, ".md", "text/markdown; charset=utf-8", True),
    "html": Format(HtmlPage, ".html", "text/html; charset=utf-8", True),
}


def format_named(name: str) -> Format:
    """The format of this name."""
    if name not in FORMATS:
        raise InvalidInput(f"the format of an export is one of {', '.join(FORMATS)}, not {name!r:.40}")
    return FORMATS[name]


__all__ = ["FORMATS", "About", "Format", "Writer", "format_named"]
