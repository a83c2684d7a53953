"""Syntax highlighting and images of messages. Pure."""

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

from hitherto.exports.sanitized_html import rendered
from hitherto.model import Image, Part
from hitherto.presentation.effort import bounded
from hitherto.presentation.labels import IMAGE_TYPES, part_label

LONGEST = 50_000
"""Longer code is not highlighted: it would take too long."""
CODE_BEGINS = '<div class="code"><button class="quiet copy-code">Copy</button><pre>'
CODE_ENDS = "</pre></div>"
"""What stands around a block of code. Text has no tag of its own: in it each is escaped."""
_formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


def markdown(text: str) -> str:
    """Markdown as HTML, with highlighted code that can be copied; as it is if that takes too long."""
    return rendered(text, highlight).replace("<pre>", CODE_BEGINS).replace("</pre>", CODE_ENDS)


def highlight(code: str, language: str, _: str = "") -> str:
    """Highlight code of a language; plain if the language is unknown or takes too long."""
    return _coloured(code, _lexer(language.lower()) if language and len(code) <= LONGEST else None)


def highlight_file(code: str, path: str) -> str:
    """Highlight code by the name of its file."""
    return _coloured(code, _file_lexer(PurePosixPath(path).suffix.lower()) if len(code) <= LONGEST else None)


def _coloured(code: str, lexer: Lexer | None) -> str:
    if lexer is None:
        return escape(code)
    return bounded(lambda: str(highlighted(code, lexer, _formatter)), lambda: escape(code))


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
"""In base64 characters. A larger image is only mentioned; the raw message has it."""


class Picture(NamedTuple):
    """An image, or a note why it is not shown."""

    note: str
    source: str | None = None


def picture(part: Image) -> Picture:
    """The image if its type is safe to show and its data is complete."""
    if part.mime_type not in IMAGE_TYPES or part.data is None:
        return Picture(part_label(part))
    if len(part.data) > LARGEST:
        return Picture(f"{part.mime_type}, too large to show here")
    try:
        pure = base64.b64encode(base64.b64decode(part.data, validate=True)).decode()
    except ValueError:
        return Picture(part_label(part))
    return Picture(f"a picture ({part.mime_type})", f"data:{part.mime_type};base64,{pure}")


def pictures(parts: Iterable[Part]) -> Iterator[Picture]:
    """The images among these parts."""
    return (picture(part) for part in parts if isinstance(part, Image))
