"""Draws how costs grow: lines on logarithmic scales, as an SVG file that is the same for the same figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

WIDTH, HEIGHT, LEFT, TOP, LEGEND = 420, 300, 60, 40, 190
COLOURS = ("#0b6e4f", "#4f81a8", "#b5651d", "#7a4fa8", "#a84f5f", "#5f6b00", "#333333")
STYLE = "font-family:sans-serif;font-size:11px"
Lines = Mapping[str, Mapping[int, float]]
"""Name → size → value."""


def grown(panels: Mapping[str, Lines], sizes_are: str, values_are: str) -> str:
    """One panel beside the other, on the same scales, with one legend."""
    values = [value for lines in panels.values() for line in lines.values() for value in line.values()]
    sizes = [size for lines in panels.values() for line in lines.values() for size in line]
    x = _Scale(min(sizes), max(sizes), LEFT, WIDTH - 20)
    y = _Scale(min(values), max(values), HEIGHT - 40, TOP)
    width = WIDTH * len(panels) + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" style="{STYLE}">',
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for number, (title, lines) in enumerate(panels.items()):
        parts += [f'<g transform="translate({number * WIDTH} 0)">', _axes(title, x, y, sizes_are, values_are)]
        parts += [_line(line, COLOURS[at % len(COLOURS)], x, y) for at, line in enumerate(lines.values())]
        parts.append("</g>")
    parts += [_named(name, at, width) for at, name in enumerate(next(iter(panels.values())))]
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """From whole powers of ten to a stretch of the picture."""

    def __init__(self, least: float, most: float, start: int, end: int) -> None:
        self.first = math.floor(math.log10(least))
        self.last = max(math.ceil(math.log10(most)), self.first + 1)
        self._start, self._each = start, (end - start) / (self.last - self.first)

    def at(self, value: float) -> float:
        return round(self._start + (math.log10(value) - self.first) * self._each, 1)


def _axes(title: str, x: _Scale, y: _Scale, sizes_are: str, values_are: str) -> str:
    low, high = HEIGHT - 40, TOP
    parts = [_text(LEFT, TOP - 20, title, "start", bold=True)]
    for power in range(x.first, x.last + 1):
        parts.append(_rule(x.at(10**power), low, x.at(10**power), high))
        parts.append(_text(x.at(10**power), low + 14, f"{10**power:,}", "middle"))
    for power in range(y.first, y.last + 1):
        parts.append(_rule(LEFT, y.at(10.0**power), WIDTH - 20, y.at(10.0**power)))
        parts.append(_text(LEFT - 6, y.at(10.0**power) + 4, f"{10.0**power:g}", "end"))
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 8, sizes_are, "middle"))
    parts.append(_text(6, TOP - 6, values_are, "start"))
    return "\n".join(parts)


def _line(line: Mapping[int, float], colour: str, x: _Scale, y: _Scale) -> str:
    points = [(x.at(size), y.at(value)) for size, value in line.items()]
    way = " ".join(f"{across},{down}" for across, down in points)
    dots = "".join(f'<circle cx="{across}" cy="{down}" r="2.5" fill="{colour}"/>' for across, down in points)
    return f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.5"/>{dots}'


def _named(name: str, at: int, width: int) -> str:
    down, across = TOP + 18 * at, width - LEGEND + 10
    mark = f'<rect x="{across}" y="{down - 4}" width="14" height="4" fill="{COLOURS[at % len(COLOURS)]}"/>'
    return mark + _text(across + 20, down + 2, name, "start")


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#dddddd" stroke-width="0.5"/>'


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
