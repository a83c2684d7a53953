"""Code with its words in classes, for a style sheet to colour. Pure."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from pathlib import PurePosixPath

from pygments import highlight as highlighted
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_for_filename, get_lexer_by_name
from pygments.util import ClassNotFound

from hitherto.exports.rendering import rendered

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
