"""Terminal output as HTML: colours become classes, all other control sequences are removed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup, escape

from hitherto.clean_text import clean_lines

_STYLE = re.compile("(?:\x1b\\[|\x9b)([0-9;]*)m")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_SET = {
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
    **{str(30 + number): name for number, name in enumerate(_NAMES)},
    **{str(90 + number): name for number, name in enumerate(_NAMES)},
}
_ENDS = {"22": ("bold", "dim"), "23": ("italic",), "24": ("underline",), "39": _NAMES}
_EXTENDED = {"5": 2, "2": 4}
"""Colours of larger palettes are ignored: how many numbers to skip."""


def coloured(text: str) -> Markup:
    """The text with its colours."""
    return Markup("").join(_pieces(text))


def _pieces(text: str) -> Iterator[Markup]:
    classes: tuple[str, ...] = ()
    done = 0
    for found in _STYLE.finditer(text):
        yield _piece(text[done : found.start()], classes)
        classes = _after(classes, found[1].split(";"))
        done = found.end()
    yield _piece(text[done:], classes)


def _piece(text: str, classes: tuple[str, ...]) -> Markup:
    shown = clean_lines(text)
    if not shown or not classes:
        return escape(shown)
    names = " ".join(f"ansi-{name}" for name in classes)
    return Markup('<span class="{}">{}</span>').format(names, shown)


def _after(classes: tuple[str, ...], codes: list[str]) -> tuple[str, ...]:
    """The classes after these codes."""
    skipped = 0
    for at, code in enumerate(codes):
        if skipped:
            skipped -= 1
        elif code in ("", "0", "00"):
            classes = ()
        elif code in ("38", "48"):
            skipped = _EXTENDED.get(codes[at + 1], 1) if at + 1 < len(codes) else 0
        elif code in _ENDS:
            classes = tuple(name for name in classes if name not in _ENDS[code])
        elif code.lstrip("0") in _SET:
            name = _SET[code.lstrip("0")]
            others = _NAMES if name in _NAMES else (name,)
            classes = (*(each for each in classes if each not in others), name)
    return classes
