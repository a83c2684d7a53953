"""Code with its words in classes, for a style sheet to colour. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from pathlib import PurePosixPath
from typing import NamedTuple

from pygments import highlight as highlighted
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_for_filename, get_lexer_by_name
from pygments.util import ClassNotFound

from hitherto.exports.labels import IMAGE_TYPES, noted
from hitherto.exports.sanitized_html import rendered
from hitherto.model import Image, Part

LONGEST = 50_000
"""Longer code stays plain: colouring it would take long."""
_formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


def markdown(text: str) -> str:
    """A message as HTML, its code coloured."""
    return rendered(text, highlight)


def highlight(code: str, language: str, _: str = "") -> str:
    """Code of a language by its name; plain if it is not known."""
    return _coloured(code, _lexer(language.lower()) if language and len(code) <= LONGEST else None)


def highlight_file(code: str, path: str) -> str:
    """Code of a file, by the file's name."""
    return _coloured(code, _file_lexer(PurePosixPath(path).suffix.lower()) if len(code) <= LONGEST else None)


def _coloured(code: str, lexer: Lexer | None) -> str:
    return escape(code) if lexer is None else str(highlighted(code, lexer, _formatter))


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=64)
def _file_lexer(suffix: str) -> Lexer | None:
    found = find_lexer_class_for_filename(f"x{suffix}") if suffix else None
    return None if found is None else found(stripnl=False, ensurenl=False)


LARGEST = 2_000_000
"""Of base64; a larger one is named, and can be had from the message as it is kept."""


class Picture(NamedTuple):
    """A picture, or why there is none."""

    note: str
    source: str | None = None


def picture(part: Image) -> Picture:
    """The picture itself if it is of a kind that only shows, and whole."""
    if part.mime_type not in IMAGE_TYPES or part.data is None:
        return Picture(noted(part))
    if len(part.data) > LARGEST:
        return Picture(f"{part.mime_type}, too large to show here")
    try:
        pure = base64.b64encode(base64.b64decode(part.data, validate=True)).decode()
    except ValueError:
        return Picture(noted(part))
    return Picture(f"a picture ({part.mime_type})", f"data:{part.mime_type};base64,{pure}")


def pictures(parts: Iterable[Part]) -> Iterator[Picture]:
    """Those among these parts."""
    return (picture(part) for part in parts if isinstance(part, Image))
